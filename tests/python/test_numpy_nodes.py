"""Compares single nodes of recurrences, Scan, products of 8-bit integers, and losses with NumPy.

    python tests/python/test_numpy_nodes.py [GENERATOR...] [--count N] [--first SEED] [--devices LIST]

Shapes, attributes, dtypes and absent inputs are random. The products are computed by exact.py. NumPy's results are compared
with a second oracle if one supports the node: ONNX Runtime, or for integers the reference evaluator of the onnx package,
because ONNX Runtime's sums are not exact on every processor.
"""
import argparse
import os
import random
import shutil
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

import exact
import oracle

F32, F64, F16, BF16 = (np.dtype(t) for t in ("float32", "float64", "float16", ml_dtypes.bfloat16))
I8, U8, I32, I64 = (np.dtype(t) for t in ("int8", "uint8", "int32", "int64"))
# Allowed relative and absolute error; other dtypes must be equal.
TOLERANCES = {F32: (2e-4, 2e-5), F64: (1e-9, 1e-10), F16: (1e-2, 4e-3), BF16: (6e-2, 4e-2)}

# (name of the oracle, function from model and inputs to outputs)
RUNTIME, REFERENCE = ("ONNX Runtime", oracle.run_onnxruntime), ("the reference evaluator", oracle.run_reference)


class Case:
    """A node with its inputs and expected outputs. If an expected output is None, the node does not have that output."""

    def __init__(self, op, inputs, expected, opset, second=RUNTIME, **attributes):
        self.op, self.inputs, self.expected, self.opset = op, inputs, expected, opset
        self.second, self.attributes = second, attributes  # second: an oracle that must agree with NumPy, or None


class Random(random.Random):
    def __init__(self, seed):
        super().__init__(seed)
        self.numpy = np.random.default_rng(seed)

    def array(self, shape, dtype, low=-1.0, high=1.0):
        if dtype.kind in "iu":
            return self.numpy.integers(low, high, shape, endpoint=True).astype(dtype)
        return np.asarray(self.numpy.uniform(low, high, shape)).astype(dtype)

    def maybe(self, value, share=0.5):
        return value if self.random() < share else None


# --- recurrences

def sigmoid(x, _a, _b):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {  # name: (function, number of parameters, their defaults)
    "Relu": (lambda x, a, b: np.maximum(x, 0), 0, 0, 0),
    "Tanh": (lambda x, a, b: np.tanh(x), 0, 0, 0),
    "Sigmoid": (sigmoid, 0, 0, 0),
    "Affine": (lambda x, a, b: a * x + b, 2, None, None),
    "LeakyRelu": (lambda x, a, b: np.where(x < 0, a * x, x), 1, 0.01, 0),
    "ThresholdedRelu": (lambda x, a, b: np.where(x > a, x, 0), 1, 1, 0),
    "ScaledTanh": (lambda x, a, b: a * np.tanh(b * x), 2, None, None),
    "HardSigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 2, 0.2, 0.5),
    "Elu": (lambda x, a, b: np.where(x < 0, a * (np.exp(x) - 1), x), 1, 1, 0),
    "Softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0, 0, 0),
    "Softplus": (lambda x, a, b: np.log1p(np.exp(x)), 0, 0, 0),
}
# ThresholdedRelu is discontinuous, so its results cannot be compared within a tolerance.
STEADY = [name for name in FUNCTIONS if name != "ThresholdedRelu"]
# The functions for gates. With others, the states could grow without limit.
BOUNDED = ["Tanh", "Sigmoid", "ScaledTanh", "HardSigmoid", "Softsign"]


def read_functions(names, alphas, betas):
    alphas, betas = list(alphas), list(betas)
    for name in names:
        function, takes, alpha, beta = FUNCTIONS[name]
        a, b = alphas.pop(0) if takes >= 1 and alphas else alpha, betas.pop(0) if takes == 2 and betas else beta
        a, b = (None if v is None else np.float64(np.float32(v)) for v in (a, b))
        yield lambda x, f=function, a=a, b=b: f(x, a, b)


def step(op, gates, h, c, x, weights, functions, attributes, clip):
    """Returns the states after one step of all sequences."""
    w, r, wb, rb, p = weights
    f = [lambda v, g=g: g(clip(v)) for g in functions]
    n = h.shape[1]
    part = lambda v, i: v[..., i * n:(i + 1) * n]
    own = x @ w.T + wb
    if op == "RNN":
        return f[0](own + h @ r.T + rb), c
    if op == "GRU":
        both = own + h @ r.T + rb
        z, reset = f[0](part(both, 0)), f[0](part(both, 1))
        last_r, last_rb = r[2 * n:], rb[2 * n:]
        if attributes.get("linear_before_reset"):
            new = f[1](part(own, 2) + reset * (h @ last_r.T + last_rb))
        else:
            new = f[1](part(own, 2) + (reset * h) @ last_r.T + last_rb)
        return (1 - z) * new + z * h, c
    total = own + h @ r.T + rb
    i = f[0](part(total, 0) + part(p, 0) * c)
    forget = 1 - i if attributes.get("input_forget") else f[0](part(total, 2) + part(p, 2) * c)
    new_c = forget * c + i * f[1](part(total, 3))
    o = f[0](part(total, 1) + part(p, 1) * new_c)
    return o * functions[2](new_c), new_c


def run_recurrence(op, gates, inputs, functions, attributes):
    """Returns Y, Y_h and Y_c in f64, in layout 0."""
    x, w, r, b, lengths, h0, c0, p = (None if v is None else v.astype(F64) for v in inputs)
    steps, batch, _ = x.shape
    directions, _, n = r.shape
    limit = attributes.get("clip")
    clip = (lambda v: np.clip(v, -np.float32(limit), np.float32(limit))) if limit else (lambda v: v)
    y = np.zeros((steps, directions, batch, n))
    last_h, last_c = np.zeros((directions, batch, n)), np.zeros((directions, batch, n))
    for d in range(directions):
        bias = b[d] if b is not None else np.zeros(2 * gates * n)
        weights = w[d], r[d], bias[:gates * n], bias[gates * n:], p[d] if p is not None else np.zeros(3 * n)
        own = functions[d * len(functions) // directions:(d + 1) * len(functions) // directions]
        reverse = attributes["direction"] == "reverse" or d == 1
        for s in range(batch):
            length = int(lengths[s]) if lengths is not None else steps
            h = h0[d, s:s + 1] if h0 is not None else np.zeros((1, n))
            c = c0[d, s:s + 1] if c0 is not None else np.zeros((1, n))
            for t in reversed(range(length)) if reverse else range(length):
                h, c = step(op, gates, h, c, x[t, s:s + 1], weights, own, attributes, clip)
                y[t, d, s] = h
            last_h[d, s], last_c[d, s] = h, c
    return [y, last_h, last_c]


def recurrence(r, op):
    gates, each, state = {"RNN": (1, 1, 1), "GRU": (3, 2, 1), "LSTM": (4, 3, 2)}[op]
    direction = r.choice(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    t, batch, size, n = r.randint(1, 7), r.choice([1, 1, 2, 3, 5]), r.choice([1, 3, 8, 19]), r.choice([1, 4, 15, 16, 17, 33, 50])
    dtype = r.choice([F32, F32, F32, F64, F16, BF16])
    spread = 1 / np.sqrt(n)
    x, w = r.array((t, batch, size), dtype), r.array((d, gates * n, size), dtype)
    weights = r.array((d, gates * n, n), dtype, -spread, spread)
    b = r.maybe(r.array((d, 2 * gates * n), dtype))
    lengths = r.maybe(r.array((batch,), I32, 1, t), 0.3)
    h0 = r.maybe(r.array((d, batch, n), dtype))
    c0 = r.maybe(r.array((d, batch, n), dtype, -2, 2)) if op == "LSTM" else None
    p = r.maybe(r.array((d, 3 * n), dtype), 0.4) if op == "LSTM" else None
    attributes = {"direction": direction, "hidden_size": n}
    names = ["Tanh"] * d if op == "RNN" else (["Sigmoid", "Tanh"] if op == "GRU" else ["Sigmoid", "Tanh", "Tanh"]) * d
    alphas, betas = [], []
    if r.random() < 0.5:
        names = [r.choice(BOUNDED if each > 1 and i % each == 0 else STEADY) for i in range(each * d)]
        attributes["activations"] = names
        # Affine and ScaledTanh always get their parameters, because implementations have different defaults for them.
        if {"Affine", "ScaledTanh"} & set(names) or r.random() < 0.5:
            alphas = [r.uniform(0.1, 0.9) for name in names if FUNCTIONS[name][1] >= 1]
            betas = [r.uniform(0.1, 0.9) for name in names if FUNCTIONS[name][1] == 2]
            attributes |= ({"activation_alpha": alphas} if alphas else {}) | ({"activation_beta": betas} if betas else {})
    if r.random() < 0.3:
        attributes["clip"] = r.uniform(0.2, 1.5)
    if op == "GRU" and r.random() < 0.5:
        attributes["linear_before_reset"] = 1
    if op == "LSTM" and r.random() < 0.3:
        attributes["input_forget"] = 1
    functions = list(read_functions(names, alphas, betas))
    inputs = [x, w, weights, b, lengths, h0, c0, p]
    expected = [v.astype(dtype) for v in run_recurrence(op, gates, inputs, functions, attributes)[:1 + state]]
    batch_first = r.random() < 0.3
    if batch_first:
        attributes["layout"] = 1
        inputs = [x.swapaxes(0, 1), w, weights, b, lengths, *(None if v is None else v.swapaxes(0, 1) for v in (h0, c0)), p]
        expected = [expected[0].transpose(2, 0, 1, 3), *(v.swapaxes(0, 1) for v in expected[1:])]
    asked = r.choice([[True] * len(expected), [r.random() < 0.6 for _ in expected]])
    if not any(asked):
        asked[0] = True
    expected = [v if a else None for v, a in zip(expected, asked)]
    second = RUNTIME if not batch_first and dtype == F32 else None
    opset = 22 if dtype == BF16 else r.choice([14, 22] if batch_first else [7, 14, 22])
    return Case(op, inputs if op == "LSTM" else inputs[:6], expected, opset, second, **attributes)


# --- Scan of opset 8, with a batch of sequences and their lengths

def batched_scan(r):
    sequences, steps, n = r.randint(1, 4), r.randint(1, 6), r.randint(1, 5)
    start, x = r.array((sequences, n), F32), r.array((sequences, steps, n), F32)
    factors = r.array((sequences, steps), F32)  # a scanned value whose slices are scalars
    lengths = r.maybe(r.array((sequences,), I64, 1, steps))
    directions = r.choice([[0, 0], [1, 0], [0, 1]])
    info = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    body = helper.make_graph([helper.make_node("Mul", ["x", "f"], ["p"]), helper.make_node("Add", ["s", "p"], ["t"]),
                              helper.make_node("Neg", ["t"], ["u"])], "body", [info("s", [n]), info("x", [n]), info("f", [])],
                             [info("t", [n]), info("u", [n])])
    last, seen = start.copy(), np.zeros((sequences, steps, n), F32)
    for b in range(sequences):
        length = steps if lengths is None else int(lengths[b])
        for t in range(length):
            at = [length - 1 - t if d else t for d in directions]
            last[b] = last[b] + x[b, at[0]] * factors[b, at[1]]
            seen[b, t] = -last[b]
    return Case("Scan", [lengths, start, x, factors], [last, seen], 8, None, body=body, num_scan_inputs=2, directions=directions)


# --- products of 8-bit integers

def bytes_of(r, shape, dtype):
    return r.array(shape, dtype, *((-128, 127) if dtype == I8 else (0, 255)))


def matmul_integer(r):
    a_dtype, b_dtype = r.choice([I8, U8]), r.choice([I8, U8])
    m, k, n = r.randint(1, 9), r.choice([1, 3, 17, 300]), r.choice([1, 2, 15, 16, 33, 260])
    lead = r.choice([(), (), (2,), (2, 3)])
    a = bytes_of(r, lead + (m, k), a_dtype)
    b = bytes_of(r, r.choice([(), lead, tuple(1 for _ in lead)]) + (k, n), b_dtype)
    row_shape = r.choice([(), (1,), (m,) if not lead else lead + (m, 1)])
    column_shape = r.choice([(), (1,), (n,), *([b.shape[:-2] + (1, n)] if b.ndim > 2 else [])])
    za, zb = r.maybe(bytes_of(r, row_shape, a_dtype)), r.maybe(bytes_of(r, column_shape, b_dtype))
    second = REFERENCE if za is None or za.shape in ((), (1,)) else None  # the evaluator applies the zero points of rows to columns
    return Case("MatMulInteger", [a, b, za, zb], [exact.matmul_integer(a, b, za, zb)], 10, second)


def matmul_quantized(r):
    a_dtype, b_dtype, y_dtype = r.choice([I8, U8]), r.choice([I8, U8]), r.choice([I8, U8])
    scale_dtype = r.choice([F32, F32, F16, BF16])
    m, k, n = r.randint(1, 9), r.choice([1, 3, 40]), r.choice([1, 2, 33, 260])
    lead = r.choice([(), (), (2,), (2, 3)])
    a, b = bytes_of(r, lead + (m, k), a_dtype), bytes_of(r, (k, n), b_dtype)
    columns = r.choice([(), (n,)])
    rows = () if r.random() < 0.7 else (m,) if not lead else lead + (m, 1)
    sa, sb, sy = (r.array(shape, scale_dtype, 0.01, 0.1) for shape in (rows, columns, ()))
    sy = (sy * k).astype(scale_dtype)
    za, zb, zy = bytes_of(r, rows, a_dtype), bytes_of(r, columns, b_dtype), bytes_of(r, (), y_dtype)
    inputs = [a, sa, za, b, sb, zb, sy, zy]
    return Case("QLinearMatMul", inputs, [exact.qlinear_matmul(*inputs)], 21 if scale_dtype != F32 else 10, None)


def conv_of_bytes(r, quantized):
    spatial = r.choice([1, 2, 2, 2, 3, 4])
    x_dtype, w_dtype, y_dtype = r.choice([I8, U8]), r.choice([I8, U8]), r.choice([I8, U8])
    groups, inner, out = r.choice([1, 1, 2, 3]), r.randint(1, 4), r.randint(1, 3)
    kernel = [r.choice([1, 2, 3]) for _ in range(spatial)] if r.random() < 0.8 else [1] * spatial
    strides, dilations = ([r.choice([1, 1, 2, 3]) for _ in range(spatial)] for _ in range(2))
    pads = [r.choice([0, 0, 1, 2]) for _ in range(2 * spatial)]
    shape = [max((k - 1) * d + 1, r.randint(3, 9 if spatial < 3 else 5)) for k, d in zip(kernel, dilations)]
    x = bytes_of(r, (r.randint(1, 2), groups * inner, *shape), x_dtype)
    w = bytes_of(r, (groups * out, inner, *kernel), w_dtype)
    zx, zw = bytes_of(r, r.choice([(), (1,)]), x_dtype), bytes_of(r, r.choice([(), (1,), (groups * out,)]), w_dtype)
    attributes = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads}
    if not quantized:
        inputs = [x, w, r.maybe(zx, 0.8), r.maybe(zw, 0.8)]
        # The reference evaluator supports zero points per channel only in 2D.
        second = REFERENCE if spatial == 2 or inputs[3] is None or zw.ndim == 0 else None
        return Case("ConvInteger", inputs, [exact.conv_integer(*inputs, **attributes)], 10, second, **attributes)
    bias = r.maybe(r.array((groups * out,), I32, -9999, 9999))
    sx, sw, sy = r.array((), F32, 0.01, 0.1), r.array(r.choice([(), (groups * out,)]), F32, 0.01, 0.1), r.array((), F32, 0.5, 2)
    zy = bytes_of(r, (), y_dtype)
    inputs = [x, sx, zx, w, sw, zw, sy, zy, bias]
    return Case("QLinearConv", inputs, [exact.qlinear_conv(*inputs, **attributes)], 10, None, **attributes)


# --- losses

def losses(r, op):
    dtype = r.choice([F32, F32, F64, F16, BF16])
    n, c = r.randint(1, 4), r.choice([1, 2, 5, 70, 600])
    shape = r.choice([(), (), (3,), (70,), (2, 3), (2, 1, 2, 2)])
    x = r.array((n, c, *shape), dtype, -3, 3)
    target = r.array((n, *shape), r.choice([I32, I64]), 0, c - 1)
    attributes = {"reduction": r.choice(["none", "sum", "mean"])}
    if r.random() < 0.5:
        attributes["ignore_index"] = r.choice([0, c - 1, -1, c + 3])
        if attributes["ignore_index"] not in range(c):
            target.flat[0] = attributes["ignore_index"]
    weight = r.maybe(r.array((c,), dtype, 0.1, 1))
    scores = x.astype(F64)
    if op == "SoftmaxCrossEntropyLoss":
        scores = scores - scores.max(1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(1, keepdims=True))
    kept = target != attributes.get("ignore_index", c + 99)
    safe = np.where(kept, target, 0).astype(I64)
    weights = np.where(kept, weight.astype(F64)[safe] if weight is not None else 1.0, 0.0)
    loss = -np.take_along_axis(scores, safe[:, None], 1)[:, 0] * weights
    if attributes["reduction"] != "none":
        with np.errstate(invalid="ignore"):
            loss = loss.sum() / (weights.sum() if attributes["reduction"] == "mean" else 1)
    expected = [np.asarray(loss).astype(dtype)]
    if op == "SoftmaxCrossEntropyLoss" and r.random() < 0.5:
        expected.append(scores.astype(dtype))
    return Case(op, [x, target, weight], expected, 13 if dtype == BF16 else r.choice([12, 13]), None, **attributes)


GENERATORS = {
    "RNN": lambda r: recurrence(r, "RNN"), "GRU": lambda r: recurrence(r, "GRU"), "LSTM": lambda r: recurrence(r, "LSTM"),
    "Scan": batched_scan,
    "MatMulInteger": matmul_integer, "QLinearMatMul": matmul_quantized, "ConvInteger": lambda r: conv_of_bytes(r, False),
    "QLinearConv": lambda r: conv_of_bytes(r, True), "NegativeLogLikelihoodLoss": lambda r: losses(r, "NegativeLogLikelihoodLoss"),
    "SoftmaxCrossEntropyLoss": lambda r: losses(r, "SoftmaxCrossEntropyLoss"),
}


# --- running

def trimmed(names):
    while names and names[-1] == "":
        names.pop()
    return names


def build(case, constants):
    kind = helper.np_dtype_to_tensor_dtype
    names = trimmed([f"x{i}" if x is not None else "" for i, x in enumerate(case.inputs)])
    results = trimmed([f"y{i}" if y is not None else "" for i, y in enumerate(case.expected)])
    node = helper.make_node(case.op, names, results, **case.attributes)
    fed = [helper.make_tensor_value_info(f"x{i}", kind(x.dtype), x.shape) for i, x in enumerate(case.inputs)
           if x is not None and i not in constants]
    kept = [numpy_helper.from_array(case.inputs[i], f"x{i}") for i in sorted(constants)]
    outs = [helper.make_tensor_value_info(f"y{i}", kind(y.dtype), y.shape) for i, y in enumerate(case.expected) if y is not None]
    return helper.make_model(helper.make_graph([node], "g", fed, outs, kept), ir_version=10,
                             opset_imports=[helper.make_opsetid("", case.opset)])


def write(case, folder, r):
    """Writes an ONNX test directory. Returns how the second oracle differs from the expected outputs, or None if it agrees."""
    later = [i for i, x in enumerate(case.inputs) if x is not None and i > 0]
    constants = set(later if r.random() < 0.5 else r.sample(later, r.randint(0, len(later))))
    if case.op == "Scan":
        constants = set()
    model = build(case, constants)
    expected = [y for y in case.expected if y is not None]
    shutil.rmtree(folder, ignore_errors=True)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    fed = {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None and i not in constants}
    for number, (name, x) in enumerate(fed.items()):
        onnx.save_tensor(numpy_helper.from_array(x, name), os.path.join(data, f"input_{number}.pb"))
    for number, y in enumerate(expected):
        onnx.save_tensor(numpy_helper.from_array(y, f"y{number}"), os.path.join(data, f"output_{number}.pb"))
    if case.second is None:
        return None
    name, run = case.second
    reason = oracle.first_difference(run(model, fed), expected, 1e-4)
    return None if reason is None else f"NumPy and {name} disagree: {reason}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generators", nargs="*", metavar="GENERATOR")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--devices", default="cpu")
    arguments = parser.parse_args()
    root, tally, folders, asked = oracle.build_folder("numpy_nodes"), oracle.Tally(), {}, 0
    for name in arguments.generators or GENERATORS:
        for seed in range(arguments.first, arguments.first + arguments.count):
            r = Random(seed * 1000 + sorted(GENERATORS).index(name))
            case = GENERATORS[name](r)
            folder = os.path.join(root, f"{name}_{seed}")
            asked += case.second is not None
            if (reason := write(case, folder, r)) is not None:
                tally.add(f"{name}_{seed}", reason)
            dtype = next(y for y in case.expected if y is not None).dtype
            folders.setdefault(TOLERANCES.get(dtype, (0, 0)), []).append(folder)
    for (rtol, atol), group in folders.items():
        for result in oracle.cleave_test(group, "--devices", arguments.devices, "--rtol", rtol, "--atol", atol):
            passed = result["status"] == "PASS"
            tally.add(result["name"], None if passed else f"{result['status']}: {result.get('reason')}")
    print(f"for {asked} nodes, a second oracle agrees with NumPy" if tally.failed == 0 else f"{asked} nodes were compared with a second oracle")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
