"""Compares the generated models in f16, in bf16, and in f32 with --precision bf16, with ONNX Runtime in f32.

    python tests/python/test_precision.py [NAME...] [--full]       --full: the published sizes instead of the small ones

The models are those of tools/models.py. Weights and inputs are rounded to the dtype first, so that only the arithmetic differs.
Also checks that f32 values keep their precision in models of two dtypes. Also runs on OpenVINO if $CLEAVE_OPENVINO is set.
"""
import argparse
import os
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle
import models  # from tools/, which oracle adds to the path

NUMPY = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
ONNX = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# Allowed difference, as a share of the largest magnitude. Rounding errors add up over the layers of a deep model.
TOLERANCE = {"f16": 1e-2, "bf16": 6e-2, "precision": 6e-2, "framework": 6e-2}
SKIPPED = {"resnet50_int8"}  # the scales of this model must be f32
F32_ALONE = {"Resize": {2}}  # {operator: inputs that are f32 for every dtype of the data}
FRAMEWORK = "openvino:CPU,cpu" if os.environ.get("CLEAVE_OPENVINO") else None
FRAMEWORK_TOO = {"resnet50", "bert"}
SAID = {"precision": "--precision bf16", "f32": "--precision f32", "framework": f"--precision bf16 on {FRAMEWORK}"}  # names for reports, by label of check()
# {model: outputs that depend on which of several nearly equal scores is the highest}. They may change, and are not compared.
CHOICES = {"multi_output": {"top_boxes", "chosen", "labels"}}


def narrowed(model, inputs, name):
    """Returns (model, inputs) with every f32 tensor converted to the dtype `name`, and (model, inputs) with the same numbers in
    f32."""
    dtype, narrow, wide = NUMPY[name], onnx.ModelProto(), onnx.ModelProto()
    narrow.CopyFrom(model)
    wide.CopyFrom(model)
    kept = {node.input[i] for node in model.graph.node for i in F32_ALONE.get(node.op_type, ()) if i < len(node.input)}
    for before, after in zip(wide.graph.initializer, narrow.graph.initializer):
        if before.data_type != TensorProto.FLOAT or before.name in kept:
            continue
        rounded = numpy_helper.to_array(before).astype(dtype)
        after.CopyFrom(numpy_helper.from_array(rounded, before.name))
        before.CopyFrom(numpy_helper.from_array(rounded.astype(np.float32), before.name))
    for info in [*narrow.graph.input, *narrow.graph.output, *narrow.graph.value_info]:
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = ONNX[name]
    for node in narrow.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = ONNX[name]
            if attribute.name == "value" and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(dtype), attribute.t.name))
    rounded = {key: value.astype(dtype) if value.dtype == np.float32 else value for key, value in inputs.items()}
    return narrow, rounded, wide, {key: value.astype(np.float32) if value.dtype == dtype else value for key, value in rounded.items()}


def difference(expected, actual, dtype):
    """Returns the largest difference, as a share of the largest magnitude."""
    if actual.dtype.kind == "V":
        actual = actual.view(ml_dtypes.bfloat16)  # npy files have no bf16, so it is read as raw 2-byte elements
    if expected.dtype != np.float32:
        return 0.0 if np.array_equal(expected, actual) else np.inf
    if actual.dtype != dtype:
        return np.inf
    gap = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return gap / max(np.abs(expected).max(), 1e-30) if np.isfinite(gap) else np.inf


def run(folder, model, inputs, *options):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    return oracle.cleave_run(path, oracle.save_inputs(folder, inputs), [o.name for o in model.graph.output], *options)


def check(item):
    name, full = item
    folder = os.path.join(oracle.build_folder("precision"), name)
    model, inputs = models.make(name, seed=1, full=full)
    names, choices, found = [o.name for o in model.graph.output], CHOICES.get(name, ()), {}

    def worst(expected, actual, dtype, leave_out=choices):
        return max(difference(e, a, dtype) for n, e, a in zip(names, expected, actual) if n not in leave_out)
    for dtype in NUMPY:
        narrow, given, wide, same = narrowed(model, inputs, dtype)
        expected = oracle.run_onnxruntime(wide, same)
        actual = run(os.path.join(folder, dtype), narrow, given)
        found[dtype] = worst(expected, actual, NUMPY[dtype])
    expected = oracle.run_onnxruntime(model, inputs)
    for label, options in (("precision", ["--precision", "bf16"]), ("f32", ["--precision", "f32"])):
        actual = run(os.path.join(folder, label), model, inputs, *options)
        if label == "precision" and not full:
            oracle.cleave("run", os.path.join(folder, label, "model.onnx"), "--verify", *options)
        found[label] = worst(expected, actual, np.dtype(np.float32), choices if label == "precision" else ())
    if name in FRAMEWORK_TOO and FRAMEWORK:
        runs = [run(os.path.join(folder, "framework"), model, inputs, "--devices", FRAMEWORK, *options)
                for options in ([], ["--precision", "bf16"])]
        found["framework"] = worst(expected, runs[1], np.dtype(np.float32))
        same = all(np.array_equal(a, b) for a, b in zip(*runs))
        if same and has_bf16():
            raise oracle.CleaveError(f"--precision bf16 does not change the results on {FRAMEWORK}")
    return found


def mixed(dtype, extent):
    """Makes a model that casts a value of the dtype to f32, and computes with the result and with another f32 value. Returns the
    model and its inputs, and both with the same numbers only in f32."""
    shape, generator = [1, 16, extent, extent], np.random.default_rng(extent)
    nodes = [helper.make_node("Add", ["c", "b"], ["sum"]), helper.make_node("Mul", ["b", "c"], ["product"]),
             helper.make_node("Concat", ["c", "b"], ["both"], axis=1), helper.make_node("MatMul", ["c", "b"], ["matrix"]),
             helper.make_node("AveragePool", ["c"], ["mean"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Sigmoid", ["c"], ["sigmoid"]), helper.make_node("Softmax", ["c"], ["softmax"], axis=-1),
             helper.make_node("LayerNormalization", ["c", "scale"], ["normal"], axis=-1),
             helper.make_node("Reshape", ["c", "flat"], ["flattened"]), helper.make_node("Add", ["flattened", "flattened"], ["twice"])]
    outputs = ["sum", "product", "both", "matrix", "mean", "sigmoid", "softmax", "normal", "twice"]
    constants = [numpy_helper.from_array(generator.standard_normal(extent).astype(np.float32), "scale"),
                 numpy_helper.from_array(np.array([16, -1]), "flat")]
    narrow = generator.standard_normal(shape).astype(NUMPY[dtype])
    given = {"a": narrow, "b": generator.standard_normal(shape).astype(np.float32)}
    found = []
    for kind in (ONNX[dtype], TensorProto.FLOAT):
        cast = [helper.make_node("Cast", ["a"], ["c"], to=TensorProto.FLOAT)]
        inputs = [helper.make_tensor_value_info("a", kind, shape), helper.make_tensor_value_info("b", TensorProto.FLOAT, shape)]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(cast + nodes, "mixed", inputs, results, constants)
        found.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    return found[0], given, found[1], {**given, "a": narrow.astype(np.float32)}


def check_mixed(tally):
    """Checks that an f32 value that was cast from a narrow dtype is not computed in the narrow dtype."""
    folder = os.path.join(oracle.build_folder("precision"), "mixed")
    for dtype in NUMPY:
        for extent in (4, 32):
            model, given, wide, same = mixed(dtype, extent)
            expected = oracle.run_onnxruntime(wide, same)
            actual = run(os.path.join(folder, f"{dtype}-{extent}"), model, given)
            for output, right, ours in zip(model.graph.output, expected, actual):
                share = difference(right, ours, np.dtype(np.float32))
                tally.add(f"{dtype} cast to f32, {output.name} of {extent}", None if share <= 1e-5 else f"the difference is {share:.3g} of the largest magnitude, 1e-5 is allowed")


def has_bf16():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    if not arguments.names:
        check_mixed(tally)
    work = [(name, arguments.full) for name in arguments.names or list(models.MODELS) if name not in SKIPPED]
    for (name, _), found in oracle.each(check, work):
        if isinstance(found, Exception):
            tally.add(name, f"{type(found).__name__}: {found}")
            continue
        for label, share in found.items():
            allowed = TOLERANCE.get(label, 1e-4)
            tally.add(f"{name}, {SAID.get(label, label)}", None if share <= allowed else f"the difference is {share:.3g} of the largest magnitude, {allowed:g} is allowed")
        print(f"{name}: " + ", ".join(f"{label} {share:.2g}" for label, share in found.items()), flush=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
