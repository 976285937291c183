"""Compares dynamically quantised models with exact.py, an oracle whose sums of integers are exact.

    python tests/python/test_dynamic.py [--count N] [--first SEED]

The models are chains of DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast, Mul and Add, as ONNX Runtime's
quantize_dynamic writes them. Seeds determine their sizes, weights of i8 or u8, and zero points and scales per tensor or per
channel. Integer outputs must be equal, float outputs may differ by a few roundings in f32. The CPU's list of steps must show
that integer kernels ran the products. An encoder that quantize_dynamic has converted is tested too.
"""
import logging
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import exact
import oracle
import models  # from tools/, which oracle adds to the path

ROUNDINGS = 4e-7  # allowed difference as a share of the largest magnitude: implementations round products and sums once or twice
# Allowed root mean square error, as a share of the standard deviation: values halfway between two quantisation steps may be
# rounded up or down.
ENCODER_ERROR = 0.03


class Maker:
    def __init__(self, seed):
        self.rng = np.random.default_rng([seed, 8])
        self.nodes, self.weights, self.outputs = [], [], []

    def constant(self, array, hint):
        name = f"{hint}{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, op, inputs, outputs=1, **attributes):
        names = [f"{op}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def values_of(self, shape):
        """Returns random values: all zero, all equal, all positive, all negative, or mixed, which give different quantisation
        ranges."""
        kind = self.rng.integers(7)
        x = self.rng.standard_normal(shape).astype(np.float32)
        if kind == 0:
            return np.zeros(shape, np.float32)
        if kind == 1:
            return np.full(shape, self.rng.choice([-3.5, 0.1]), np.float32)
        return np.abs(x) + 1 if kind == 2 else -np.abs(x) - 1 if kind == 3 else x * np.float32(10.0 ** self.rng.integers(-6, 7))

    def layer(self, x, shape):
        """Adds a layer, which quantises x, multiplies it by constants, and converts the result to f32. Some intermediate values
        become outputs. Returns (name, shape) of the result."""
        rng, is_matrix = self.rng, len(shape) < 4
        unsigned = bool(rng.random() < 0.5) or not is_matrix  # ONNX Runtime supports ConvInteger only with u8 weights
        quantised, scale, zero = self.op("DynamicQuantizeLinear", [x], 3)
        out, channels = int(rng.integers(1, 90)), shape[-1] if is_matrix else shape[1]
        kernel, pads = int(rng.integers(1, 4)), [int(p) for p in rng.integers(0, 2, 4)]
        weights = rng.integers(0 if unsigned else -128, 256 if unsigned else 128, (channels, out) if is_matrix else (out, channels, kernel, kernel))
        w = self.constant(weights.astype(np.uint8 if unsigned else np.int8), "w")
        each = is_matrix and bool(rng.random() < 0.5)
        zeros = rng.integers(0, 256, out if each else ()) if unsigned and rng.random() < 0.7 else np.full(out if each else (), 128 if unsigned else 0)
        inputs = [quantised, w, zero, self.constant(zeros.astype(np.uint8 if unsigned else np.int8), "z")]
        if is_matrix:
            sums, shape = self.op("MatMulInteger", inputs), (*shape[:-1], out)
        else:
            sums = self.op("ConvInteger", inputs, kernel_shape=[kernel] * 2, pads=pads)
            shape = (shape[0], out, *[shape[i + 2] + pads[i] + pads[i + 2] - kernel + 1 for i in range(2)])
        if rng.random() < 0.15:
            self.outputs.append((sums, T.INT32))
        line = (out,) if is_matrix else (1, out, 1, 1)
        steps = self.constant(rng.uniform(0.5, 2, line if rng.random() < 0.5 else ()).astype(np.float32) / 128, "s")
        real = self.op("Mul", [self.op("Cast", [sums], to=T.FLOAT), self.op("Mul", [scale, steps])])
        if rng.random() < 0.7:
            real = self.op("Add", [real, self.constant(rng.standard_normal(line).astype(np.float32), "b")])
        if rng.random() < 0.15:
            self.outputs.append((real, T.FLOAT))
        if rng.random() < 0.3:
            real = self.op("Relu", [real])
        return real, shape

    def model(self):
        """Returns (model, inputs). The model has only one layer: before a second one, values halfway between two quantisation
        steps could be rounded differently."""
        rng, open_rows = self.rng, bool(self.rng.random() < 0.5)
        shape = tuple(int(n) for n in (rng.integers(1, 12), rng.choice([1, 3, 64, 65, 200])))
        if rng.random() < 0.4:
            shape = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 16, 40])), *[int(n) for n in rng.integers(3, 14, 2)])
        elif rng.random() < 0.5:
            shape = (int(rng.integers(1, 3)), *shape)
        name, _ = self.layer("x", shape)
        self.outputs.append((name, T.FLOAT))
        values = [helper.make_tensor_value_info("x", T.FLOAT, ["n" if open_rows else shape[0], *shape[1:]])]
        outputs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in self.outputs]
        graph = helper.make_graph(self.nodes, "g", values, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return model, {"x": self.values_of(shape)}


def kernels_of(path):
    """Returns (number of products of 8-bit integers, number of those in integer kernels), according to the CPU's list of
    steps."""
    command = [oracle.COMMAND, "run", path, "--devices", "cpu", "--device-option", "cpu:profile=1", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    steps = [line.split() for line in done.stderr.splitlines() if " us  " in line]
    found = [words[3] for words in steps if len(words) > 3 and words[2] in ("MatMulInteger", "ConvInteger")]
    return len(found), sum("vnni" in kernel or "amx" in kernel for kernel in found)


def run(folder, name, model, inputs, *options):
    path, arguments = oracle.save_case(folder, name, model, inputs)
    names = [output.name for output in model.graph.output]
    return oracle.cleave_run(path, arguments, names, "--devices", "cpu", *options), path


def difference(expected, actual):
    for index, (e, a) in enumerate(zip(expected, actual)):
        reason = oracle.compare(e, a)
        if reason is None and e.dtype == np.float32 and e.size:
            worst = np.abs(e.astype(np.float64) - a).max() / max(np.abs(e).max(), 1e-30)
            reason = f"the largest difference is {worst:.2g} of the largest magnitude, {ROUNDINGS:g} is allowed" if not worst <= ROUNDINGS else None
        if reason:
            return f"output {index}: {reason}"
    return None


def check(seed, folder):
    model, inputs = Maker(seed).model()
    expected = [np.asarray(output) for output in exact.evaluate(model, inputs)]
    made, path = run(folder, str(seed), model, inputs)
    return difference(expected, made), kernels_of(path)


def encoder(folder):
    """Converts the small BERT with quantize_dynamic and checks its results. Returns None, or what is wrong."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    logging.getLogger().setLevel(logging.ERROR)  # hides a recommendation of quantize_dynamic that does not apply here
    model, inputs = models.make("bert")
    whole, path = os.path.join(folder, "bert.onnx"), os.path.join(folder, "bert_dynamic.onnx")
    onnx.save(model, whole)
    quantize_dynamic(whole, path, per_channel=True, weight_type=QuantType.QUInt8)
    model = onnx.load(path)
    expected = exact.evaluate(model, inputs)
    made, _ = run(folder, "bert_made", model, inputs)
    for e, a in zip(expected, made):
        error = np.sqrt(np.square(e - a).mean()) / e.std()
        if not error <= ENCODER_ERROR:
            return f"the root mean square error is {error:.3g} of the standard deviation, {ENCODER_ERROR:g} is allowed"
    return None


def main():
    tally, products, on_integers = oracle.Tally(), 0, 0
    for seed, found in oracle.each_seed(__doc__, tally, "dynamic", 80, check):
        tally.add(f"seed {seed}", found[0])
        products, on_integers = products + found[1][0], on_integers + found[1][1]
    tally.add("an encoder that quantize_dynamic has converted", encoder(oracle.build_folder("dynamic")))
    if not any(name in oracle.cleave("devices", "--devices", "cpu") for name in ("vnni", "bf16", "amx")):
        tally.skip("all products of 8-bit integers run in integer kernels", "Cleave does not use them on this processor, whose sums of integers are not exact")
    else:
        print(f"{on_integers} of {products} products ran in integer kernels")
        tally.add("all products of 8-bit integers run in integer kernels", f"only {on_integers} of {products} products used them" if on_integers < products or products == 0 else None)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
