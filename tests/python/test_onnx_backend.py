"""Runs onnx.backend.test.BackendTest, the suite of the package onnx for backends, on cleave.onnx_backend.

    python tests/python/test_onnx_backend.py [PATTERN]      PATTERN: a regular expression of names

EXCLUDED lists the tests that need not pass, with reasons; one that passes nevertheless is a failure. As many node tests must pass
as `cleave test` passes. Also tests the functions of the backend themselves.
"""
import io
import json
import os
import re
import sys
import unittest
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper

import oracle
import test_node_cases

sys.path.insert(0, os.path.join(oracle.BUILD, "python"))

CATEGORIES = {"OnnxBackendNodeModelTest", "OnnxBackendSimpleModelTest", "OnnxBackendPyTorchConvertedModelTest",
              "OnnxBackendPyTorchOperatorModelTest", "OnnxBackendRealModelTest"}
SEQUENCES = "Cleave has no sequences"
OPTIONALS = "Cleave has no optionals"
STRINGS = "Cleave has no operators for strings"
TRAINING = "training: Cleave runs inference"
OPSET = "opset 6 or older, with an operator that differs from that of opset 7"
# {pattern of the whole name, without the device: reason}
EXCLUDED = {
    "test_sequence_.*|test_split_to_sequence_.*|test_identity_sequence|test_if_seq|test_loop13_seq": SEQUENCES,
    "test_optional_.*|test_identity_opt|test_if_opt|test_loop16_seq_none": OPTIONALS,
    "test_equal_string(_broadcast)?|test_regex_full_match_.*|test_string_.*|test_strnorm.*": STRINGS,
    "test_adagrad.*|test_adam.*|test_momentum.*|test_nesterov_momentum|test_gradient_.*": TRAINING,
    "test_batchnorm_.*_training_mode|test_training_dropout.*": TRAINING,
    "test_bernoulli.*": "the random numbers are of another generator",
    "test_image_decoder_.*": "Cleave does not decode images",
    "test_tfidfvectorizer_.*": "Cleave does not vectorise text",
    "test_ai_onnx_ml_(array_feature|label_encoder|tree_ensemble).*": "Cleave has few operators of ai.onnx.ml",
    "test_dft_inverse(_opset19)?": "expected values of up to 1.9e-7 are rounding errors of f32: the exact result is 0, and the tolerance 1e-7",
    "test_(BatchNorm.*_eval|ConstantPad2d|GLU|GLU_dim|Linear|PReLU_.*|PoissonNLLLLoss_no_reduce|ReflectionPad2d|ReplicationPad2d|SELU|Softsign"
    "|ZeroPad2d)": OPSET,
    "test_operator_(add_.*|addconstant|addmm|basic|chunk|concat2|max|min|mm|non_float_params|pad|params|pow|selu|symbolic_.*)": OPSET,
}


class Counted(unittest.TestResult):
    """Collects the names of tests by outcome."""

    def __init__(self):
        super().__init__()
        self.names = {"passed": [], "failed": {}, "skipped": {}}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.names["passed"].append(test.id().split(".")[-1])

    def note(self, test, error):
        self.names["failed"][test.id().split(".")[-1]] = f"{error[0].__name__}: {str(error[1]).strip()[:300]}"

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.names["skipped"][test.id().split(".")[-1]] = reason


def excluded(name):
    plain = name.removesuffix("_cpu")
    return next((reason for pattern, reason in EXCLUDED.items() if re.fullmatch(pattern, plain)), None)


def run_suite(backend, pattern):
    """Runs the suite, and returns ({category: Counted}). Node tests that are excluded run, too."""
    os.environ["ONNX_MODELS"] = oracle.build_folder("onnx_models")  # the suite writes inputs and outputs there
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        import onnx.backend.test
        suite = onnx.backend.test.BackendTest(backend, __name__)
        if pattern:
            suite.include(pattern)
        results = {}
        for name, case in suite.test_cases.items():
            results[name] = Counted()
            output, sys.stdout = sys.stdout, io.StringIO()
            try:
                unittest.defaultTestLoader.loadTestsFromTestCase(case).run(results[name])
            finally:
                sys.stdout = output
    return results


def count(results, tally):
    """Tallies the results. Returns how many node tests passed."""
    for found in results.values():
        for name in found.names["passed"]:
            tally.add(name, "the test passes, but EXCLUDED lists it" if excluded(name) else None)
        for name, reason in found.names["failed"].items():
            if excluded(name):
                tally.skipped += 1
            else:
                tally.add(name, reason)
        for name, reason in found.names["skipped"].items():
            if name.endswith("_cuda") or reason.startswith("no matched include"):
                continue
            if excluded(name):
                tally.skipped += 1
            else:
                tally.add(name, f"skipped: {reason}")
    return len(results["OnnxBackendNodeModelTest"].names["passed"])


def passes_of_command():
    """How many node tests `cleave test` passes."""
    folder = oracle.build_folder("node")
    cases = test_node_cases.written_cases(folder)
    return sum(status == "PASS" for status, _ in test_node_cases.run(folder, cases, "cpu").values())


# --- the functions themselves

def check_functions(backend, tally):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 6), np.float32), rng.standard_normal((6, 3), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node, helper.make_node("Relu", ["y"], ["z"])], "g", [info("x", TensorProto.FLOAT, ["n", 6]), info("w", TensorProto.FLOAT, [6, 3])],
                              [info("y", TensorProto.FLOAT, ["n", 3]), info("z", TensorProto.FLOAT, ["n", 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wanted = [x @ w, np.maximum(x @ w, 0)]
    same = oracle.first_difference
    tally.add("run_model", same(wanted, backend.run_model(model, [x, w])))
    tally.add("run_model by names", same(wanted, backend.run_model(model, {"w": w, "x": x})))
    prepared = backend.prepare(model, "npu,cpu", strategy="contiguous")
    tally.add("devices", None if {p.device for p in prepared.session.plan.partitions} == {"npu"} else str(prepared.session.plan))
    outputs = prepared.run([x, w])
    tally.add("prepare on npu", same(wanted, outputs, 1e-3))
    tally.add("names of outputs", same([outputs[1]], [outputs["z"]]) or same([outputs[1]], [outputs.z]))
    tally.add("run_node", same(wanted[:1], backend.run_node(node, [x, w])))
    tally.add("run_node with types", same(wanted[:1], backend.run_node(node, [x, w], outputs_info=[(np.float32, (4, 3))])))
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    tally.add("run_node, shape from data", same([x.reshape(3, 8)], backend.run_node(reshape, [x, np.array([3, 8])], opset_version=14)))
    clip = helper.make_node("Clip", ["x", "", "max"], ["y"])
    tally.add("run_node, absent input", same([np.minimum(x, 0)], backend.run_node(clip, [x, np.array(0, np.float32)])))
    tally.add("run_node, one array", same([np.abs(x)], backend.run_node(helper.make_node("Abs", ["x"], ["y"]), x)))
    for device, right in (("CPU", True), ("npu,cpu", True), ("CUDA", False), ("abacus", False)):
        tally.add(f"supports_device {device}", None if backend.supports_device(device) is right else f"not {right}")
    absent = helper.make_model(helper.make_graph([helper.make_node("StringConcat", ["x", "x"], ["y"])], "g", [info("x", TensorProto.STRING, [1])],
                                                 [info("y", TensorProto.STRING, [1])]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    tally.add("is_compatible", None if backend.is_compatible(model) and not backend.is_compatible(absent) else "wrong")
    try:
        backend.run_node(node, [x])
        tally.add("too few inputs", "no error")
    except ValueError as error:
        tally.add("too few inputs", None if "1 inputs are given, but the node reads 2" in str(error) else str(error))


def main():
    import cleave.onnx_backend as backend
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    tally = oracle.Tally()
    check_functions(backend, tally)
    results = run_suite(backend, pattern)
    if set(results) != CATEGORIES:
        tally.add("categories", f"{sorted(results)}")
    passed = count(results, tally)
    print(json.dumps({name: len(found.names["passed"]) for name, found in results.items()}))
    if not pattern:
        command = passes_of_command()
        print(f"node tests: {passed} pass, {command} with `cleave test`")
        tally.add("as many node tests as cleave test", None if passed >= command else f"{passed}, not {command}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
