"""Compares seeded random quantised models with exact.py, an oracle whose sums of integers are exact.

    python tests/python/test_quantised.py [--count N] [--first SEED]

The models have operators between QuantizeLinear and DequantizeLinear. They run fused, and with one step per node. A value
halfway between two quantisation steps may be rounded up or down, which changes all values that are computed from it. So most
results must be equal, and none may differ by more than a few steps. The CPU's list of steps shows whether it used integer
kernels.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import exact
import oracle

STEPS_OFF = 3  # allowed difference, in quantisation steps of the output
SHARE_OFF = 0.05  # share of the results that may differ by one step or more
PRODUCTS = ("Conv", "MatMul", "Gemm", "QLinearConv", "QLinearMatMul")
INTEGER_KERNELS = ("int8", "vnni", "s8s8s32", "x8s8s32", "u8s8s32")
SHARE_ON_INTEGERS = 0.8  # the least share of products in integer kernels, which do not support some zero points of weights


class Value:
    """A float tensor of the graph. `grid`: the scale, zero point and dtype to which it was quantised, or None. `integers`: the
    name of the quantised tensor, or None."""

    def __init__(self, name, shape, grid=None, integers=None):
        self.name, self.shape, self.grid, self.integers = name, tuple(shape), grid, integers


class Grid:
    def __init__(self, scale, zero, dtype):
        self.scale, self.zero, self.dtype = np.float32(scale), int(zero), dtype


class Maker:
    """Builds a graph node by node. To choose a scale and zero point (a grid) for a value, it evaluates the graph so far."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs = [], [], {}
        self.known, self.evaluated = {}, 0  # arrays by name; number of nodes that were evaluated

    def name(self, hint):
        return f"{hint}_{len(self.nodes)}_{len(self.weights)}"

    def constant(self, array, hint="c"):
        name = self.name(hint)
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, op, inputs, **attributes):
        output = self.name(op)
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def model(self, outputs, nodes=None, inputs=None, weights=None):
        """Returns the model. `outputs` are names of float or integer values; their types are inferred."""
        inputs = self.inputs if inputs is None else inputs
        values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(nodes or self.nodes, "g", values, results, self.weights if weights is None else weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def see(self, name):
        """Returns the data of a value. Evaluates the nodes that were added since the last call."""
        if name in self.inputs:
            return self.inputs[name]
        nodes = self.nodes[self.evaluated:]
        read, made = {value for node in nodes for value in node.input}, [value for node in nodes for value in node.output]
        feeds = {value: array for value, array in (self.inputs | self.known).items() if value in read}
        model = self.model(made, nodes, feeds, [w for w in self.weights if w.name in read])
        self.known.update(zip(made, map(np.asarray, exact.evaluate(model, feeds))))
        self.evaluated = len(self.nodes)
        return self.known[name]

    def input(self, shape):
        name = self.name("x")
        self.inputs[name] = self.rng.standard_normal(shape).astype(np.float32)
        return Value(name, shape)

    def grid_of(self, name):
        """Returns a grid that roughly covers the range of the value. Some elements may be outside, and are saturated. The zero
        point is 0 or any other integer of the dtype."""
        data = self.see(name)
        low, high = float(min(data.min(), 0)), float(max(data.max(), 1e-3))
        kind = self.rng.integers(4)
        if kind == 0:
            return Grid(max(-low, high) / self.rng.uniform(100, 127), 0, np.int8)
        if kind == 1 and low >= 0:
            return Grid(high / self.rng.uniform(200, 255), 0, np.uint8)
        scale = (high - low) / self.rng.uniform(200, 254)
        zero = int(np.clip(np.rint(-low / scale), 0, 255))
        return Grid(scale, zero, np.uint8) if kind < 3 else Grid(scale, zero - 128, np.int8)

    def scalars(self, grid):
        return self.constant(grid.scale, "scale"), self.constant(grid.dtype(grid.zero), "zero")

    def quantise(self, value, grid=None):
        """Adds QuantizeLinear and DequantizeLinear to a value. Returns the result."""
        grid = grid or self.grid_of(value.name)
        scale, zero = self.scalars(grid)
        integers = self.op("QuantizeLinear", [value.name, scale, zero])
        return Value(self.op("DequantizeLinear", [integers, scale, zero]), value.shape, grid, integers)

    def linear(self, op, x, weights, bias, shape, **attributes):
        """Adds QLinearConv or QLinearMatMul. `weights` is the name of a value made by DequantizeLinear, whose inputs are used;
        `bias` is a list of at most one name."""
        count = len(self.nodes)
        grid = self.grid_of(self.op(op.removeprefix("QLinear"), [x.name, weights, *bias], **attributes))
        del self.nodes[count:]
        self.evaluated = count
        if grid.dtype != x.grid.dtype:  # as in real models, the output has the dtype of x, because ONNX Runtime supports no other
            grid = Grid(grid.scale, grid.zero + (128 if grid.dtype == np.int8 else -128), x.grid.dtype)
        made = next(node for node in self.nodes if node.output[0] == weights)
        parts = [x.integers, *self.scalars(x.grid), *made.input, *self.scalars(grid)]
        if bias:
            parts.append(self.constant(self.rng.integers(-3000, 3000, shape[1]).astype(np.int32), "b"))
        name = self.op(op, parts, **attributes)
        return Value(self.op("DequantizeLinear", [name, *parts[6:8]]), shape, grid, name)

    def integer_weights(self, shape, axis, signed=False):
        """Returns the name of weights that DequantizeLinear makes from i8 or u8, with one scale or one per channel."""
        unsigned = not signed and self.rng.random() < 0.2
        integers = self.rng.integers(-127, 128, shape)
        channels = shape[axis] if self.rng.random() < 0.7 else None
        fan = np.prod(shape) / shape[axis]
        scale = (self.rng.uniform(0.5, 2, channels) / 127 / np.sqrt(fan)).astype(np.float32)
        middle = 128 if self.rng.random() < 0.8 else 100  # only weights with a zero point of 128 can be converted to i8
        dtype, zero = (np.uint8, middle) if unsigned else (np.int8, 0)
        if unsigned:
            integers = np.clip(integers + zero, 0, 255)
        names = [self.constant(integers.astype(dtype), "w"), self.constant(scale, "scale"),
                 self.constant(np.full(scale.shape, zero, dtype), "zero")]
        return self.op("DequantizeLinear", names, **({} if channels is None else {"axis": axis}))

    def bias(self, count):
        kind = self.rng.integers(3)
        if kind == 0:
            return []
        if kind == 1:
            return [self.constant((self.rng.standard_normal(count) * 0.3).astype(np.float32), "b")]
        scale = self.constant(np.float32(0.002), "scale")
        integers = self.constant(self.rng.integers(-300, 300, count).astype(np.int32), "b")
        return [self.op("DequantizeLinear", [integers, scale])]

    def function(self, name):
        kind = self.rng.integers(8)
        if kind < 3:
            return self.op("Relu", [name])
        if kind == 3:
            return self.op("Clip", [name, self.constant(np.float32(0)), self.constant(np.float32(1.5))])
        if kind == 4:
            return self.op("LeakyRelu", [name], alpha=0.1)
        if kind == 5:
            return self.op("HardSigmoid", [name]) if self.rng.random() < 0.3 else self.op("Sigmoid", [name])
        return name

    def convolution(self, x):
        rng, rank = self.rng, len(x.shape) - 2
        channels = x.shape[1]
        groups = 1 if rng.random() < 0.7 else channels if rng.random() < 0.6 else 2 if channels % 2 == 0 else 1
        out = groups * int(rng.integers(1, 3)) if groups == channels > 1 else groups * int(rng.integers(1, 20))
        kernel = [int(rng.choice([1, 1, 2, 3, 3])) if rng.random() < 0.2 else 0 for _ in range(rank)]
        size = int(rng.choice([1, 3, 3, 5]))
        kernel = [k or size for k in kernel]
        pads = [int(rng.integers(0, k)) if rng.random() < 0.7 else 0 for k in kernel * 2]
        strides, dilations = [int(rng.integers(1, 3)) for _ in kernel], [1 if rng.random() < 0.8 else 2 for _ in kernel]
        shape = [(x.shape[i + 2] + pads[i] + pads[i + rank] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
                 for i in range(rank)]
        if min(shape) < 1:
            return None
        linear = x.integers and rng.random() < 0.2
        weights = self.integer_weights([out, channels // groups, *kernel], 0, signed=linear)
        attributes = dict(kernel_shape=kernel, pads=pads, strides=strides, dilations=dilations, group=groups)
        shape, bias = (x.shape[0], out, *shape), self.bias(out)
        if linear:
            return self.linear("QLinearConv", x, weights, bias, shape, **attributes)
        return Value(self.function(self.op("Conv", [x.name, weights, *bias], **attributes)), shape)

    def product(self, x):
        """Multiplies the last axis by a matrix: with MatMul, or with Gemm if x has two axes."""
        out, inner = int(self.rng.integers(1, 40)), x.shape[-1]
        if x.integers and self.rng.random() < 0.2:
            return self.linear("QLinearMatMul", x, self.integer_weights([inner, out], 1, signed=True), [], (*x.shape[:-1], out))
        if len(x.shape) != 2 or self.rng.random() < 0.4:
            name = self.op("MatMul", [x.name, self.integer_weights([inner, out], 1)])
            if self.rng.random() < 0.4:
                name = self.op("Add", [name, self.constant((self.rng.standard_normal(out) * 0.3).astype(np.float32), "b")])
        else:
            turned = bool(self.rng.random() < 0.7)
            weights = self.integer_weights([out, inner] if turned else [inner, out], 0 if turned else 1)
            name = self.op("Gemm", [x.name, weights, *self.bias(out)], transB=int(turned))
        return Value(self.function(name), (*x.shape[:-1], out))

    def sum_with(self, x, makes, keep):
        """Adds another quantised value of the same shape to `makes`, the result of a product, before or after `makes` is
        quantised."""
        shape = makes.shape
        if keep is not None and keep.shape == shape:
            other = keep
        else:
            other = self.quantise(self.input(shape))
        if self.rng.random() < 0.5:
            makes = self.quantise(makes)
        pair = [makes.name, other.name]
        self.rng.shuffle(pair)
        return Value(self.function(self.op("Add", pair)), shape)

    def move(self, x):
        """Adds an operator that moves or selects elements without computing."""
        kind = self.rng.integers(4)
        if kind == 0 and len(x.shape) > 2 and min(x.shape[2:]) >= 3:
            count = len(x.shape) - 2
            shape = (*x.shape[:2], *[(n + 2 - 3) // 2 + 1 for n in x.shape[2:]])
            return Value(self.op("MaxPool", [x.name], kernel_shape=[3] * count, strides=[2] * count, pads=[1] * 2 * count), shape, x.grid)
        if kind == 1:
            perm = [0, *(1 + self.rng.permutation(len(x.shape) - 1))]
            return Value(self.op("Transpose", [x.name], perm=[int(p) for p in perm]), [x.shape[p] for p in perm], x.grid)
        if kind == 2:
            name = self.op("Concat", [x.name, x.name], axis=1)
            return Value(name, (x.shape[0], 2 * x.shape[1], *x.shape[2:]), x.grid)
        if kind == 3 and len(x.shape) == 4:
            flat = (x.shape[0], x.shape[1], x.shape[2] * x.shape[3])
            return Value(self.op("Reshape", [x.name, self.constant(np.array(flat, np.int64))]), flat, x.grid)
        return x

    def average(self, x):
        name = self.op("GlobalAveragePool", [x.name])
        return Value(name, (*x.shape[:2], *[1] * (len(x.shape) - 2)))

    def graph(self):
        """Returns (model, grid of the output or None)."""
        rng, rank = self.rng, int(self.rng.choice([1, 2, 2, 2, 2, 3]))
        shape = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 4, 8, 16, 17, 32])), *[int(rng.integers(4, 13)) for _ in range(rank)])
        x, kept = self.quantise(self.input(shape)), None
        for _ in range(int(rng.integers(1, 5))):
            makes = self.convolution(x) if len(x.shape) > 2 and rng.random() < 0.8 else self.product(x)
            if makes is None:
                continue
            if rng.random() < 0.35:
                makes = self.sum_with(x, makes, kept)
            x = makes if makes.integers else self.quantise(makes)
            if rng.random() < 0.5:
                kept = x
            if rng.random() < 0.35:
                x = self.move(x)
        end = rng.integers(4)
        if end == 0:
            return onnx.shape_inference.infer_shapes(self.model([x.integers or x.name])), x.grid
        if end == 1:
            x = self.average(x) if len(x.shape) > 2 else x
        elif end == 2:
            x = self.product(x)
        return onnx.shape_inference.infer_shapes(self.model([x.name])), x.grid


def difference(expected, actual, grid):
    """Returns None, or how the results differ. A step is the scale of the grid, or for floats without a grid a twentieth of their
    standard deviation."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"the output is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    step = 1.0 if expected.dtype != np.float32 else float(grid.scale) if grid else max(float(e.std()), 0.05) / 20
    steps = np.abs(e - a) / step
    if not np.isfinite(a).all() or steps.max(initial=0) > STEPS_OFF + 0.01:
        return f"the largest difference is {steps.max():.2f} quantisation steps, {STEPS_OFF} are allowed"
    off = (steps > 0.99).mean()
    limit = max(SHARE_OFF, 1.5 / steps.size)
    return None if off <= limit else f"{off:.1%} of the elements differ by a quantisation step or more, {limit:.1%} is allowed"


def count_products(path):
    """Returns (number of the CPU's steps that are products, number of those in integer kernels, according to the kernels'
    names)."""
    command = [oracle.COMMAND, "run", path, "--devices", "cpu", "--device-option", "cpu:profile=1", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    steps = [line.split() for line in done.stderr.splitlines() if " us  " in line]
    kernels = [words[3] for words in steps if len(words) > 3 and words[2] in PRODUCTS]
    return len(kernels), sum(any(name in kernel for name in INTEGER_KERNELS) for kernel in kernels)


def check(seed, folder):
    """Returns ([(label, reason or None)], count_products()); the latter only for every fourth seed, otherwise (0, 0)."""
    maker = Maker(seed)
    model, grid = maker.graph()
    expected = [np.asarray(output) for output in exact.evaluate(model, maker.inputs)]
    path, arguments = oracle.save_case(folder, seed, model, maker.inputs)
    names = [output.name for output in model.graph.output]
    results = []
    fused = oracle.cleave_run(path, arguments, names, "--devices", "cpu")
    plain = oracle.cleave_run(path, arguments, names, "--devices", "cpu", "--device-option", "cpu:fuse=0")
    results.append((f"seed {seed}, fused", difference(expected[0], fused[0], grid)))
    results.append((f"seed {seed}, one step per node", difference(expected[0], plain[0], grid)))
    return results, count_products(path) if seed % 4 == 0 else (0, 0)


def main():
    tally, products, on_integers = oracle.Tally(), 0, 0
    for _, found in oracle.each_seed(__doc__, tally, "quantised", 120, check):
        for label, reason in found[0]:
            tally.add(label, reason)
        products, on_integers = products + found[1][0], on_integers + found[1][1]
    if not any(name in oracle.cleave("devices", "--devices", "cpu") for name in ("vnni", "bf16", "amx")):
        tally.skip("most products run in integer kernels", "Cleave does not use them on this processor, whose sums of integers are not exact")
    else:
        print(f"{on_integers} of {products} products ran in integer kernels")
        few = on_integers < SHARE_ON_INTEGERS * products or products == 0
        tally.add("most products run in integer kernels", f"only {on_integers} of {products} products" if few else None)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
