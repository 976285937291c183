"""Tests the CPU's operators with special values: NaN, infinities, zeros of both signs, denormals, and extremes.

    python tests/python/test_special_values.py [--seed N] [--only TEXT]

The data is random, with special values in between; the extremes are the largest floats, and the ends of the range of integers.
Many single nodes form one model, whose results are compared with ONNX Runtime and with IEEE 754 arithmetic in NumPy. Also tests
chains of operators, which the CPU may fuse.
"""
import argparse
import functools
import math
import os
import sys
import warnings
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import oracle

DTYPES = {"f32": (np.dtype(np.float32), T.FLOAT), "f16": (np.dtype(np.float16), T.FLOAT16),
          "bf16": (np.dtype(ml_dtypes.bfloat16), T.BFLOAT16), "f64": (np.dtype(np.float64), T.DOUBLE)}
SHAPES = [(7,), (1, 3, 10, 10), (2, 4, 25, 25), (3, 17, 100), (5, 60)]
# Allowed rounding error, relative to each element: the largest element is 1e38 here, so an error relative to it would be useless.
# Case.absolute adds a tolerance for sums whose terms cancel.
RELATIVE = {"f32": 2e-5, "f16": 3e-3, "bf16": 2e-2, "f64": 1e-9}


@dataclass
class Case:
    label: str
    op: str
    inputs: list  # names in the pool, arrays (which become initializers), or None (absent)
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    absolute: float = 0.0  # absolute tolerance, in multiples of the relative one: for sums whose terms cancel
    zeros: bool = True  # whether the sign of a zero must be right
    opset: int = 21


# --- data

def specials(dtype):
    info = ml_dtypes.finfo(dtype)
    tiny, largest = float(info.smallest_subnormal), float(info.max)
    return np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, float(info.tiny), -float(info.tiny) / 2, largest, -largest,
                     1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88.0, -88.0, 700.0, -700.0], np.float64).astype(dtype)


def pool_of(dtype, shape, rng):
    """Returns {name: data}. x and y: a third of the elements are special values; z: the same without NaN. r: a few are NaN,
    infinite or zero. i: a few are infinity; n: a few are minus infinity; s: a few are NaN. f: all are finite."""
    values = specials(dtype)
    def mixed(share, among):
        data = (rng.standard_normal(shape) * 3).astype(dtype)
        at = rng.random(shape) < share
        data[at] = rng.choice(among, int(at.sum()))
        return data
    rare = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(dtype)
    share = min(0.3, 6 / np.prod(shape) * 4)
    pool = {"x": mixed(0.35, values), "y": mixed(0.35, values), "r": mixed(min(share, 0.02 if len(shape) > 1 else 0.3), rare),
            "i": mixed(share, rare[1:2]), "n": mixed(share, rare[2:3]), "f": mixed(0, rare), "s": mixed(0.01, rare[:1]),
            "z": mixed(0.35, values[~np.isnan(values)])}
    if len(shape) >= 2:  # whole rows of one infinity
        pool["r"][(0,) * (len(shape) - 1)] = np.asarray(-np.inf, dtype)
        pool["i"][(0,) * (len(shape) - 1)] = np.asarray(np.inf, dtype)
    return pool


# --- cases

UNARY = [("Abs", {}), ("Neg", {}), ("Relu", {}), ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 2.0}), ("LeakyRelu", {"alpha": 0.0}),
         ("LeakyRelu", {"alpha": -0.5}), ("ThresholdedRelu", {"alpha": 0.5}), ("Elu", {}), ("Elu", {"alpha": 0.0}), ("Elu", {"alpha": 2.0}), ("Selu", {}), ("Celu", {}),
         ("Celu", {"alpha": 2.0}), ("Sigmoid", {}), ("HardSigmoid", {}), ("HardSigmoid", {"alpha": 1 / 6}), ("HardSwish", {}), ("Mish", {}), ("Softplus", {}),
         ("Softsign", {}), ("Tanh", {}), ("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("Erf", {}), ("Sqrt", {}), ("Exp", {}),
         ("Log", {}), ("Reciprocal", {}), ("Floor", {}), ("Ceil", {}), ("Round", {}), ("Sign", {}), ("Sin", {}), ("Cos", {}), ("Tan", {}),
         ("Asin", {}), ("Acos", {}), ("Atan", {}), ("Sinh", {}), ("Cosh", {}), ("Asinh", {}), ("Acosh", {}), ("Atanh", {}),
         ("Shrink", {"lambd": 0.5}), ("Shrink", {"lambd": 1.0, "bias": 0.5}), ("Identity", {}), ("IsNaN", {}), ("IsInf", {}),
         ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0}), ("IsInf", {"detect_positive": 0, "detect_negative": 0}), ("Swish", {}), ("Swish", {"alpha": 1.7})]
UNSIGNED = ("Elu", "Gelu", "LeakyRelu", "Selu")  # oneDNN's implementations return 0 for -0
REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
              "ReduceSumSquare"]


def text_of(attributes):
    return ",".join(f"{name}={value}" for name, value in attributes.items())


def elementwise_cases(dtype, shape):
    for op, attributes in UNARY:
        costly = op in ("Sigmoid", "Mish", "Gelu", "Swish", "Log", "Exp", "Tanh", "Softplus", "HardSwish")
        yield Case(f"{op}({text_of(attributes)})", op, ["x"], attributes, absolute=0.1 if costly else 0, zeros=op not in UNSIGNED, opset=24 if op == "Swish" else 21)
    def number(value):
        return np.asarray(value, dtype)
    bounds = {"both": (-1.0, 2.0), "min": (0.0, None), "max": (None, 6.0), "crossed": (3.0, 1.0), "inf": (-np.inf, np.inf), "zero": (0.0, 0.0), "none": (None, None)}
    for label, (low, high) in bounds.items():
        yield Case(f"Clip({label})", "Clip", ["x", None if low is None else number(low), None if high is None else number(high)], opset=13)
    channels = [] if len(shape) < 2 else [np.resize(specials(dtype), (shape[1],) + (1,) * (len(shape) - 2))]
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Sum", "Mean", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "PRelu", "Mod"):
        attributes = {"fmod": 1} if op == "Mod" else {}
        others = ["y", "x"] + [number(v) for v in (0.0, -0.0, np.nan, np.inf, -np.inf, 2.0, 0.5, -1.0, 3.0)] + channels
        for at, other in enumerate(others):
            label = other if isinstance(other, str) else f"{float(other)}" if other.ndim == 0 else "channels"
            yield Case(f"{op}(x, {label})", op, ["x", other], attributes)
            if at > 1 and op not in ("PRelu",):
                yield Case(f"{op}({label}, x)", op, [other, "x"], attributes)
    yield Case("Max(x, y, f)", "Max", ["x", "y", "f"])
    yield Case("Min(f, y, x)", "Min", ["f", "y", "x"])
    yield Case("Mean(f, s, f)", "Mean", ["f", "s", "f"], absolute=4)
    yield Case("Max(x)", "Max", ["x"])
    yield Case("Where(x, y)", "Where", ["mask", "x", "y"])
    yield Case("Where(x, nan)", "Where", ["mask", "x", number(np.nan)])
    for to, (_, code) in DTYPES.items():
        yield Case(f"Cast({to})", "Cast", ["x"], {"to": code})
    yield Case("Cast(bool)", "Cast", ["x"], {"to": T.BOOL})
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8"):
        yield Case(f"Cast({name})", "Cast", [np.abs(np.arange(-5, 9.5, 0.5)).astype(dtype) * (1 if name[0] == "U" else -1)], {"to": getattr(T, name)})


def axis_cases(dtype, shape):
    rank = len(shape)
    axes = range(rank)
    for data in ("r", "i", "n", "s"):
        for axis in axes:
            yield Case(f"Softmax({data}, {axis})", "Softmax", [data], {"axis": axis}, absolute=1)
            yield Case(f"LogSoftmax({data}, {axis})", "LogSoftmax", [data], {"axis": axis}, absolute=4)
            yield Case(f"CumSum({data}, {axis})", "CumSum", [data, np.asarray(axis, np.int64)], absolute=100)
            for last in (0, 1):
                yield Case(f"ArgMax({data}, {axis}, {last})", "ArgMax", [data], {"axis": axis, "select_last_index": last})
                yield Case(f"ArgMin({data}, {axis}, {last})", "ArgMin", [data], {"axis": axis, "select_last_index": last})
            k = np.asarray([min(3, shape[axis])], np.int64)
            yield Case(f"TopK({data}, {axis})", "TopK", [data, k], {"axis": axis}, outputs=2)
            yield Case(f"TopK({data}, {axis}, smallest)", "TopK", [data, k], {"axis": axis, "largest": 0}, outputs=2)
        yield Case(f"CumSum({data}, exclusive)", "CumSum", [data, np.asarray(rank - 1, np.int64)], {"exclusive": 1}, absolute=100)
        yield Case(f"CumSum({data}, reverse)", "CumSum", [data, np.asarray(0, np.int64)], {"reverse": 1, "exclusive": 1}, absolute=100)
        for op in REDUCTIONS:
            sets = [(axis,) for axis in axes] + [tuple(axes)] + ([(2, 3), (0, 2, 3), (1, 3)] if rank == 4 else [])
            for chosen in sets:
                for keep in (0, 1) if len(chosen) == 1 else (1,):
                    yield Case(f"{op}({data}, {chosen}, {keep})", op, [data, np.asarray(chosen, np.int64)], {"keepdims": keep}, absolute=2000)
    for op in ("ReduceMax", "ReduceMin"):
        yield Case(f"{op}(x)", op, ["x", np.asarray([rank - 1], np.int64)])


def norm_cases(dtype, shape):
    rng, rank = np.random.default_rng(3), len(shape)
    def weights(*dims):
        return (rng.standard_normal(dims) + 0.1).astype(dtype)
    for data in ("r", "i", "s", "f"):
        yield Case(f"LayerNorm({data})", "LayerNormalization", [data, weights(shape[-1]), weights(shape[-1])], {"axis": -1}, absolute=50)
        yield Case(f"LpNorm({data})", "LpNormalization", [data], {"axis": -1, "p": 2}, absolute=50, opset=21)
        if rank < 3:
            continue
        yield Case(f"InstanceNorm({data})", "InstanceNormalization", [data, weights(shape[1]), weights(shape[1])], absolute=50)
        variance = np.abs(weights(shape[1])) + 0.1
        yield Case(f"BatchNorm({data})", "BatchNormalization", [data, weights(shape[1]), weights(shape[1]), weights(shape[1]), variance.astype(dtype)], absolute=50, opset=15)
        if rank == 4:
            yield Case(f"LRN({data})", "LRN", [data], {"size": 3, "alpha": 0.1}, absolute=50)


def window_cases(dtype, shape):
    rng, rank = np.random.default_rng(4), len(shape)
    def weights(*dims):
        return (rng.standard_normal(dims) + 0.1).astype(dtype)
    for data in ("r", "i", "n", "s", "z"):
        if data == "z" and rank < 4:
            continue
        if rank == 1:
            yield Case(f"MatMul({data})", "MatMul", [data, weights(shape[0], 5)], absolute=100)
            continue
        if data != "z":
            yield Case(f"MatMul({data})", "MatMul", [data, weights(shape[-1], 9)], absolute=200)
            yield Case(f"MatMul({data}) left", "MatMul", [weights(4, shape[-2]), data], absolute=200)
            if rank == 2:
                yield Case(f"Gemm({data})", "Gemm", [data, weights(shape[-1], 9), weights(9)], absolute=200)
                yield Case(f"Gemm({data}) turned", "Gemm", [weights(6, shape[-1]), data], {"transB": 1, "alpha": 0.5}, absolute=200)
        if rank < 4:
            continue
        c = shape[1]
        # the maximum of a window that contains a NaN may be NaN or a number, so MaxPool gets data without NaN
        for kernel, extra in () if data in "rs" else (((2, 2), {"strides": [2, 2]}), ((3, 3), {"pads": [1, 1, 1, 1]}), ((3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
                              ((5, 2), {"pads": [1, 0, 2, 1], "ceil_mode": 1, "strides": [2, 3]}), ((3, 3), {"dilations": [2, 2]})):
            label = f"{data}, {kernel}, {text_of(extra)}"
            attributes = {"kernel_shape": kernel, **extra}
            yield Case(f"MaxPool({label})", "MaxPool", [data], attributes, zeros=False, opset=19)
            yield Case(f"MaxPool({label}) with indices", "MaxPool", [data], attributes, outputs=2, zeros=False, opset=19)
            if "dilations" not in extra and data != "z":
                yield Case(f"AveragePool({label})", "AveragePool", [data], attributes, absolute=4, opset=19)
                yield Case(f"AveragePool({label}, counted)", "AveragePool", [data], {**attributes, "count_include_pad": 1}, absolute=4, opset=19)
                if "ceil_mode" not in extra:
                    yield Case(f"LpPool({label})", "LpPool", [data], {"p": 2, **attributes}, absolute=50, opset=18)
        for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
            if data == "z" or (data in "rs" and op == "GlobalMaxPool") or (op == "GlobalLpPool" and dtype == np.float64):
                continue
            yield Case(f"{op}({data})", op, [data], absolute=50)
        if data == "z":
            continue
        for groups in (1, c):
            for side in (1, 3):
                yield Case(f"Conv({data}, {groups}, {side})", "Conv", [data, weights(c * 2, c // groups, side, side), weights(c * 2)],
                           {"group": groups, "pads": [side // 2] * 4}, absolute=100)
        yield Case(f"Conv({data}, 16)", "Conv", [data, weights(16, c, 3, 3)], {"pads": [1] * 4, "strides": [2, 2]}, absolute=100)
        yield Case(f"ConvTranspose({data})", "ConvTranspose", [data, weights(c, 5, 2, 2)], {"strides": [2, 2]}, absolute=100)
        scales = np.asarray([1, 1, 2, 1.5], np.float32)
        # Implementations may skip weights of 0, so that 0 times infinity need not be NaN. So linear and cubic get finite data.
        for mode in () if dtype == np.float64 else ("nearest", "linear", "cubic") if data == "s" else ("nearest",):
            yield Case(f"Resize({data}, {mode})", "Resize", ["f" if mode != "nearest" else data, None, scales], {"mode": mode}, absolute=20, opset=19)
    if rank >= 2:
        yield Case("Pad(x)", "Pad", ["x", np.asarray([1] * 2 * rank, np.int64), np.asarray(np.nan, dtype)])
        yield Case("Transpose(x)", "Transpose", ["x"])
        yield Case("Concat(x, y)", "Concat", ["x", "y"], {"axis": 1})
        yield Case("Trilu(x)", "Trilu", ["x"])
        yield Case("NonZero(x)", "NonZero", ["x"])
        yield Case("ScatterElements(max)", "ScatterElements", ["f", np.zeros(shape, np.int64), "r"], {"axis": rank - 1, "reduction": "max"})
        yield Case("ScatterElements(min)", "ScatterElements", ["f", np.zeros(shape, np.int64), "r"], {"axis": rank - 1, "reduction": "min"})
        yield Case("Expand(x)", "Expand", ["x", np.asarray((2,) + shape, np.int64)])


FAMILIES = {"elementwise": elementwise_cases, "axes": axis_cases, "norms": norm_cases, "windows": window_cases}


# --- oracles: ONNX Runtime, and IEEE 754 arithmetic in numpy and f64. The specification leaves some special values open: if the oracles
# differ there, both are right.

def is_float(array):
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * np.vectorize(math.erfc, otypes=[np.float64])(-x / np.sqrt(2))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x, alpha=1.0):
    return np.where(x < 0, alpha * np.expm1(x), x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


IEEE = {
    "Abs": np.abs, "Neg": np.negative, "Relu": lambda x: np.where(x < 0, 0.0, x), "LeakyRelu": lambda x, alpha=0.01: np.where(x < 0, np.float64(np.float32(alpha)) * x, x),
    "ThresholdedRelu": lambda x, alpha=1.0: np.where(x <= alpha, 0.0, x), "Elu": elu,
    "Selu": lambda x, a=1.67326319217681884765625, g=1.05070102214813232421875: np.where(x > 0, g * x, g * a * np.expm1(x)),
    "Celu": lambda x, alpha=1.0: np.where(x < 0, alpha * np.expm1(x / alpha), x), "Sigmoid": sigmoid,
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(np.float64(np.float32(alpha)) * x + beta, 0, 1), "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(softplus(x)), "Softplus": softplus, "Softsign": lambda x: x / (1 + np.abs(x)), "Tanh": np.tanh, "Gelu": gelu,
    "Erf": np.vectorize(math.erf, otypes=[np.float64]), "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Reciprocal": lambda x: 1 / x, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos,
    "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "Swish": lambda x, alpha=1.0: x * sigmoid(alpha * x), "Clip": lambda x, low=None, high=None: clip(x, low, high),
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Mod": lambda a, b, fmod: np.fmod(a, b),
    "Min": lambda *v: functools.reduce(np.minimum, v), "Max": lambda *v: functools.reduce(np.maximum, v), "Sum": lambda *v: functools.reduce(np.add, v),
    "Mean": lambda *v: functools.reduce(np.add, v) / len(v), "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "Where": np.where, "Shrink": lambda x, lambd, bias=0.0: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0.0)),
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k), "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)), "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: log_sum_exp(x, **k), "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
    "LRN": lambda x, size, alpha: x / (1 + alpha / size * windows(x * x)) ** 0.75,
    "ScatterElements": lambda x, at, new, axis, reduction: scattered(x, new, getattr(np, reduction + "imum")),
    "Softmax": lambda x, axis: np.exp(x - x.max(axis, keepdims=True)) / np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True),
    "LogSoftmax": lambda x, axis: x - x.max(axis, keepdims=True) - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)),
}


def windows(x):
    """Returns the sums of three neighbours along the channels."""
    wide = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]


def scattered(x, new, extreme):
    """Reduces all elements of each row of `new` into the first element of that row of x."""
    x = x.copy()
    x[..., 0] = extreme(x[..., 0], extreme.reduce(new, -1))
    return x


def clip(x, low, high):
    x = x if low is None else np.where(x < low, low, x)
    return x if high is None else np.where(x > high, high, x)


def log_sum_exp(x, axis, keepdims):
    shift = np.max(x, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, 0)
    result = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return result if keepdims else np.squeeze(result, axis)


def places(case, x):
    """Returns the outputs of ArgMax, ArgMin or TopK. ArgMax and ArgMin choose the first NaN, TopK chooses NaNs last. Of equal
    values they choose the first, or the last if `select_last_index` is set."""
    axis = case.attributes.get("axis", -1)
    if case.op == "TopK":
        keys = np.where(np.isnan(x), np.inf, x)
        largest = case.attributes.get("largest", 1)
        # The sort is stable, so it chooses the first of equal values.
        order = np.lexsort((-keys if largest else keys, np.isnan(x)), axis=axis)
        order = np.take(order, range(int(case.inputs[1][0])), axis)
        return [np.take_along_axis(x, order, axis), order.astype(np.int64)]
    find = np.argmax if case.op == "ArgMax" else np.argmin
    found = find(x, axis, keepdims=True)
    if case.attributes["select_last_index"]:
        last = x.shape[axis] - 1 - find(np.flip(x, axis), axis, keepdims=True)
        found = np.where(np.isnan(x).any(axis, keepdims=True), found, last)
    return [found]


def ieee(case, arrays):
    """Returns the outputs computed with numpy, or None if there is no numpy code for the operator."""
    float_arrays = [a for a in arrays if a is not None and is_float(a)]
    dtype = float_arrays[0].dtype
    wide = [a.astype(np.float64) if a is not None and is_float(a) else a for a in arrays]
    if case.op in ("ArgMax", "ArgMin", "TopK"):
        return [o.astype(dtype) if o.dtype.kind == "f" else o for o in places(case, wide[0])]
    if case.op == "Cast":
        return [arrays[0].astype(helper.tensor_dtype_to_np_dtype(case.attributes["to"]))]
    if case.op not in IEEE:
        return None
    if case.op.startswith("Reduce"):
        result = IEEE[case.op](wide[0], axis=tuple(int(v) for v in wide[1]), keepdims=bool(case.attributes["keepdims"] if case.attributes else 1))
    else:
        result = IEEE[case.op](*wide, **case.attributes)
    return [np.asarray(result).astype(dtype)]


def joint_model(items):
    """Returns one model of many cases, and its inputs. `items`: (case, input arrays) of each."""
    nodes, names, feeds, outputs = [], {}, {}, []
    for k, (case, arrays) in enumerate(items):
        read = ["" if a is None else names.setdefault(id(a), f"i{len(names)}") for a in arrays]
        feeds.update((name, a) for name, a in zip(read, arrays) if name)
        outputs += [f"o{k}_{j}" for j in range(case.outputs)]
        nodes.append(helper.make_node(case.op, read, [f"o{k}_{j}" for j in range(case.outputs)], **case.attributes))
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for name, a in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", items[0][0].opset)], ir_version=10), feeds


def run_jointly(items):
    """Runs many cases in one model. Returns the outputs of each case from ONNX Runtime, or from the reference evaluator if ONNX
    Runtime does not support the node, or an exception."""
    model, feeds = joint_model(items)
    try:
        flat = oracle.run_onnxruntime(model, feeds, optimize=False)
    except Exception:
        if len(items) > 1:
            return run_jointly(items[:len(items) // 2]) + run_jointly(items[len(items) // 2:])
        try:
            return [oracle.run_reference(model, feeds)]
        except Exception as error:
            return [error]
    ends = np.cumsum([case.outputs for case, _ in items])
    return [flat[end - case.outputs:end] for (case, _), end in zip(items, ends)]


def runtimes(cases, lists):
    """Returns the results of run_jointly() for all cases. 16-bit floats are computed in f32."""
    widened, narrows, found = {}, [], [None] * len(cases)
    for case, arrays in zip(cases, lists):
        halves = {a.dtype for a in arrays if a is not None and is_float(a) and a.dtype.itemsize == 2}
        narrows.append(None if case.op == "Cast" else next(iter(halves), None))

    def wide(a, narrow):
        if narrow is None or a is None or not is_float(a):
            return a
        return widened.setdefault(id(a), a.astype(np.float32))
    for opset in {case.opset for case in cases}:
        chosen = [k for k, case in enumerate(cases) if case.opset == opset]
        items = [(cases[k], [wide(a, narrows[k]) for a in lists[k]]) for k in chosen]
        for k, outputs in zip(chosen, run_jointly(items)):
            if not isinstance(outputs, Exception) and narrows[k] is not None:
                outputs = [o.astype(narrows[k]) if is_float(o) and o.dtype == np.float32 else o for o in outputs]
            found[k] = outputs
    return found


DEFINED = ("TopK", "ArgMax", "ArgMin")  # operators for which only numpy is the oracle


def opinions(cases, lists):
    """Returns, for each case, the outputs of one or two oracles. The outputs of either are right."""
    with np.errstate(all="ignore"):
        own = [ieee(case, arrays) for case, arrays in zip(cases, lists)]
        asked = [k for k, case in enumerate(cases) if own[k] is None or case.op not in DEFINED]
        theirs = dict(zip(asked, runtimes([cases[k] for k in asked], [lists[k] for k in asked])))
    found = []
    for k, mine in enumerate(own):
        given = theirs.get(k)
        if isinstance(given, Exception) and mine is None:
            raise given
        found.append(([] if given is None or isinstance(given, Exception) else [given]) + ([] if mine is None else [mine]))
    return found


# --- comparison

def wrong_elements(expected, actual, name, case):
    if not is_float(expected):
        return expected != actual
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    tolerance = RELATIVE[name if expected.dtype.itemsize == DTYPES[name][0].itemsize else "f32"]
    with np.errstate(all="ignore"):
        info = ml_dtypes.finfo(expected.dtype)
        largest = float(info.max)
        # The CPU's bf16 instructions flush denormals to 0.
        least = float(info.tiny) if name == "bf16" else 2 * float(info.smallest_subnormal)
        near = np.abs(e - a) <= tolerance * (np.abs(e) + case.absolute) + least
        # In f16, 65519 rounds to the largest number, and 65520 to infinity. So infinity and a number near the largest count as
        # equal.
        ends = [np.where(np.isinf(v), np.sign(v) * largest, v) for v in (e, a)]
        brink = (np.isinf(e) != np.isinf(a)) & (np.abs(ends[0] - ends[1]) <= tolerance * largest)
    return ~(near | (e == a) | (np.isnan(e) & np.isnan(a)) | brink)


def difference(accepted, actual, name, case, arrays):
    """Returns None if every element agrees with one of the accepted outputs, otherwise what is wrong."""
    accepted, actual = [np.asarray(e) for e in accepted], np.asarray(actual)
    if actual.dtype.kind == "V":
        actual = actual.view(ml_dtypes.bfloat16)  # npy files have no bf16, so it is read as raw 2-byte elements
    for expected in accepted:
        if expected.dtype != actual.dtype or expected.shape != actual.shape:
            return f"the output is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    wrong = np.logical_and.reduce([wrong_elements(expected, actual, name, case) for expected in accepted])
    if case.zeros and is_float(actual):
        for sign in (False, True):
            agreed = np.logical_and.reduce([(e == 0) & (np.signbit(e) == sign) for e in accepted])
            wrong |= agreed & (actual == 0) & (np.signbit(actual) != sign)
    if not wrong.any():
        return None
    at = tuple(np.argwhere(wrong)[0])
    read = [str(np.broadcast_to(a, actual.shape)[at]) for a in arrays
            if a is not None and is_float(a) and np.broadcast_shapes(a.shape, actual.shape) == actual.shape] if case.op in IEEE and "axis" not in case.attributes and not case.op.startswith("Reduce") else []
    return (f"{int(wrong.sum())} of {wrong.size} elements are wrong, the first at {[int(i) for i in at]}: {actual[at]}, expected "
            f"{' or '.join(str(e[at]) for e in accepted)}" + (f", computed from {', '.join(read)}" if read else ""))


# --- integers: the expected results are the low bits of results of Python's integers, which have no limit. The result of a
# division by zero is not compared, but it must not crash the command.

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def integer_data(dtype, count, rng):
    info = np.iinfo(dtype)
    special = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, 2, 3, 7], np.object_) if info.min == 0 else np.array(
        [info.min, info.max, 0, 1, -1, info.max - 1, info.min + 1, 2, -2, 7], np.object_)
    data = rng.integers(-100 if info.min < 0 else 0, 100, count).astype(dtype)
    at = rng.random(count) < 0.6
    data[at] = rng.choice(special, int(at.sum())).astype(dtype)
    return data


def whole(function):
    """Applies a function of Python's integers to each element."""
    return np.frompyfunc(function, 2, 1)


def towards_zero(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_OPS = {  # name: (attributes, function of Python's integers, whether results with a right operand of 0 are compared, dtypes)
    "Add": ({}, lambda a, b: a + b, True, "iu"), "Sub": ({}, lambda a, b: a - b, True, "iu"), "Mul": ({}, lambda a, b: a * b, True, "iu"),
    "Div": ({}, towards_zero, False, "iu"), "Mod": ({}, lambda a, b: 0 if b == 0 else a % b, False, "iu"),
    "Mod ": ({"fmod": 1}, lambda a, b: a - b * towards_zero(a, b), False, "iu"),
    "Min": ({}, min, True, "iu"), "Max": ({}, max, True, "iu"), "Pow": ({}, lambda a, b: a ** (b % 8), True, "p"),
    "BitwiseAnd": ({}, lambda a, b: a & b, True, "iu"), "BitwiseXor": ({}, lambda a, b: a ^ b, True, "iu"),
    "Less": ({}, lambda a, b: a < b, True, "iu"), "GreaterOrEqual": ({}, lambda a, b: a >= b, True, "iu"), "Equal": ({}, lambda a, b: a == b, True, "iu"),
    "BitShift": ({"direction": "LEFT"}, lambda a, b: a << (b % 8), True, "s"), "BitShift ": ({"direction": "RIGHT"}, lambda a, b: a >> (b % 8), True, "s"),
    "Abs": ({}, lambda a: abs(a), True, "1"), "Neg": ({}, lambda a: -a, True, "1i"), "Sign": ({}, lambda a: (a > 0) - (a < 0), True, "1"),
    "BitwiseNot": ({}, lambda a: ~a, True, "1"), "Relu": ({}, lambda a: max(a, 0), True, "1i"),
}


def wrapped(values, dtype):
    """Converts Python's integers to a dtype, keeping the low bits."""
    if dtype == np.bool_:
        return np.asarray(values, np.bool_)
    bits = np.iinfo(dtype).bits
    flat = [int(v) % (1 << bits) for v in np.ravel(values)]
    return np.array(flat, np.uint64).astype(f"u{bits // 8}").view(dtype).reshape(np.shape(values))


def integer_cases(dtype, pool):
    """Yields (case, outputs, which elements are compared)."""
    a, b = pool["a"], pool["b"]
    objects = [v.astype(np.object_) for v in (a, b)]
    small = pool["n"].astype(np.object_)
    for name, (attributes, function, zero, kinds) in INTEGER_OPS.items():
        op = name.strip()
        if "1" in kinds:
            if "i" in kinds and dtype(0).dtype.kind == "u":
                continue
            yield Case(op, op, ["a"], attributes), [wrapped(np.frompyfunc(function, 1, 1)(objects[0]), dtype)], True
            continue
        if ("s" in kinds and dtype(0).dtype.kind != "u") or ("p" in kinds and dtype not in (np.int32, np.int64)):
            continue
        few = op in ("BitShift", "Pow")  # the right operand must be small
        result = np.bool_ if op in ("Less", "GreaterOrEqual", "Equal") else dtype
        yield Case(f"{name}(a, b)", op, ["a", "n" if few else "b"], attributes), [wrapped(whole(function)(objects[0], small if few else objects[1]), result)], zero or b != 0
        if not few:
            for value in (-1, 0, np.iinfo(dtype).min) if dtype(0).dtype.kind == "i" else (0, np.iinfo(dtype).max):
                right = np.asarray(value, dtype)
                yield Case(f"{name}(a, {value})", op, ["a", right], attributes), [wrapped(whole(function)(objects[0], np.asarray(value, np.object_)), result)], zero or value != 0
    if dtype in (np.int32, np.int64, np.uint32, np.uint64):
        for op, function in (("ReduceSum", np.sum), ("ReduceProd", np.prod), ("ReduceMax", np.max), ("ReduceMin", np.min), ("ReduceSumSquare", lambda x, **k: np.sum(x * x, **k))):
            yield Case(op, op, ["a", np.asarray([1], np.int64)], {"keepdims": 1}), [wrapped(function(objects[0], axis=1, keepdims=True), dtype)], True
    if dtype in (np.int32, np.int64):
        yield Case("CumSum", "CumSum", ["a", np.asarray(1, np.int64)]), [wrapped(np.cumsum(objects[0], 1), dtype)], True
    yield Case("ArgMax", "ArgMax", ["a"], {"axis": 1}), [np.argmax(a, 1, keepdims=True)], True
    for to in INTEGERS:
        yield Case(f"Cast({to.__name__})", "Cast", ["a"], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}), [wrapped(objects[0], to)], True
    for to in (np.float32, np.float64):
        yield Case(f"Cast({to.__name__})", "Cast", ["a"], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}), [a.astype(to)], True


def check_integers(dtype, seed):
    rng, found = np.random.default_rng([seed, np.dtype(dtype).itemsize]), []
    for shape in ((2, 5), (3, 100), (4, 1300)):
        pool = {name: integer_data(dtype, shape, rng) for name in "ab"}
        pool["n"] = rng.integers(0, 8, shape).astype(dtype)
        cases = list(integer_cases(dtype, pool))
        folder = os.path.join(oracle.build_folder("special"), f"{dtype.__name__}_{shape[1]}")
        for (case, expected, counts), actual in zip(cases, run_cases([case for case, _, _ in cases], pool, folder)):
            label = f"{dtype.__name__} {list(shape)} {case.label}"
            if isinstance(actual, Exception):
                found.append((label, str(actual)))
                continue
            if actual[0].dtype != expected[0].dtype or actual[0].shape != expected[0].shape:
                found.append((label, f"{actual[0].dtype}{actual[0].shape}, expected {expected[0].dtype}{expected[0].shape}"))
                continue
            wrong = (actual[0] != expected[0]) & counts
            at = tuple(np.argwhere(wrong)[0]) if wrong.any() else ()
            found.append((label, f"{int(wrong.sum())} elements are wrong, the first is {actual[0][at]}, expected {expected[0][at]}; its left operand is {pool['a'][at]}" if wrong.any() else None))
    return found


# --- chains that may be fused: of elementwise operators, and of functions after products

FUNCTIONS = [("Relu", {}), ("LeakyRelu", {"alpha": 0.1}), ("Sigmoid", {}), ("Tanh", {}), ("Abs", {}), ("Sqrt", {}), ("Exp", {}), ("Elu", {}),
             ("HardSwish", {}), ("Neg", {}), ("Clip", {}), ("HardSigmoid", {}), ("Softplus", {}), ("Log", {})]
SUMS = ["Add", "Mul", "Sub", "Div", "Max", "Min"]
# Functions after a product. Their data has no NaN, because oneDNN's Relu and Clip may turn a NaN into a number, and no infinities
# of opposite signs, whose sum would be NaN.
BEHIND = [("Relu", {}), ("LeakyRelu", {"alpha": 0.1}), ("Sigmoid", {}), ("Tanh", {}), ("Abs", {}), ("Elu", {}), ("Clip", {}), ("HardSigmoid", {}), ("Add", {})]


def chain_pool(shape, rng, share):
    rare = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    pool = {}
    for name in "xyf":
        pool[name] = (rng.standard_normal(shape) * 3).astype(np.float32)
        at = rng.random(shape) < (0 if name == "f" else share)
        pool[name][at] = rng.choice(rare, int(at.sum()))
    return pool


def elementwise_chains(shape, rng):
    """Returns (nodes, constants, pool, {output: expected values})."""
    pool, nodes, right = chain_pool(shape, rng, 0.2), [], {}
    for chain in range(150):
        name, value = "x", pool["x"]
        steps = int(rng.integers(2, 5))
        for k in range(steps):
            out, attributes = f"c{chain}_{k}", {}
            if rng.random() < 0.45:
                op, other = SUMS[rng.integers(len(SUMS))], "yfx"[rng.integers(3)]
                inputs, operands = [name, other], [value, pool[other]]
            else:
                op, attributes = FUNCTIONS[rng.integers(len(FUNCTIONS))]
                inputs, operands = [name] + (["low", "high"] if op == "Clip" else []), [value] + ([-1.0, 2.0] if op == "Clip" else [])
            nodes.append(helper.make_node(op, inputs, [out], **attributes))
            with np.errstate(all="ignore"):
                value = IEEE[op](*[np.asarray(v, np.float64) for v in operands], **attributes).astype(np.float32)
            name = out
            if k == steps - 1 or rng.random() < 0.15:  # also an output
                right[out] = value
    return nodes, {"low": np.float32(-1), "high": np.float32(2)}, pool, right


def product_chains(shape, rng):
    channels = shape[1]
    pool = chain_pool(shape, rng, 0)
    for name in "xy":
        for image in pool[name]:
            image[tuple(rng.integers(extent) for extent in shape[1:])] = rng.choice([np.inf, -np.inf])
    weights = {"low": np.float32(-1), "high": np.float32(2), "bias": rng.standard_normal(channels).astype(np.float32)}
    nodes, outputs = [], []
    for k, side in enumerate((1, 3)):
        weights[f"w{side}"] = rng.standard_normal((channels, channels, side, side)).astype(np.float32)
    weights["matrix"] = rng.standard_normal((shape[-1], 12)).astype(np.float32)
    for product in ("Conv 1", "Conv 3", "MatMul"):
        for op, attributes in BEHIND:
            made = f"{product[-1]}_{op}"
            if product == "MatMul":
                nodes.append(helper.make_node("MatMul", ["x", "matrix"], [made]))
            else:
                side = int(product[-1])
                nodes.append(helper.make_node("Conv", ["x", f"w{side}", "bias"], [made], pads=[side // 2] * 4))
            if op == "Add" and product == "MatMul":
                nodes.append(helper.make_node("MatMul", ["f", "matrix"], [f"{made}_f"]))
            inputs = [made] + (["low", "high"] if op == "Clip" else [f"{made}_f" if product == "MatMul" else "f"] if op == "Add" else [])
            outputs.append(f"{made}_out")
            nodes.append(helper.make_node(op, inputs, [outputs[-1]], **attributes))
    return nodes, weights, {name: pool[name] for name in "xf"}, dict.fromkeys(outputs)


def check_chains(make, shape, seed):
    rng = np.random.default_rng([seed, *shape])
    nodes, constants, pool, right = make(shape, rng)
    inputs = [helper.make_tensor_value_info(name, T.FLOAT, shape) for name in pool]
    outputs = [helper.make_empty_tensor_value_info(name) for name in right]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    runtimes = oracle.run_onnxruntime(model, pool, optimize=False)
    folder = os.path.join(oracle.build_folder("special"), f"{make.__name__}_{'x'.join(map(str, shape))}")
    os.makedirs(folder, exist_ok=True)
    path, found = os.path.join(folder, "model.onnx"), []
    onnx.save(model, path)
    actual = oracle.cleave_run(path, oracle.save_inputs(folder, pool), list(right), "--devices", "cpu")
    for (name, own), theirs, ours in zip(right.items(), runtimes, actual):
        case = Case(name, "chain", [], absolute=10, zeros=False)
        accepted = [theirs] if own is None else [theirs, own]
        found.append((f"{make.__name__} {list(shape)} {name}", difference(accepted, ours, "f32", case, [])))
    return found


CHAINS = [(elementwise_chains, (2, 8, 25, 25)), (elementwise_chains, (3, 17, 100)), (elementwise_chains, (2, 3, 4)),
          (product_chains, (2, 8, 25, 25)), (product_chains, (1, 3, 9, 10))]


# --- running

def save(path, array):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array).SerializeToString())


def run_cases(cases, pool, folder, options=()):
    """Runs the cases in one model per opset. Returns the outputs of each case, or an exception if it does not run even alone."""
    results = {}
    for opset in sorted({case.opset for case in cases}):
        chosen = [k for k, case in enumerate(cases) if case.opset == opset]
        for k, outputs in zip(chosen, run_model([cases[k] for k in chosen], opset, pool, folder, options)):
            results[k] = outputs
    return [results[k] for k in range(len(cases))]


def run_model(cases, opset, pool, folder, options):
    nodes, weights, names = [], [], []
    for k, case in enumerate(cases):
        inputs = []
        for j, value in enumerate(case.inputs):
            if isinstance(value, np.ndarray):
                weights.append(numpy_helper.from_array(value, f"w{k}_{j}"))
                value = f"w{k}_{j}"
            inputs.append(value or "")
        names.append([f"o{k}_{j}" for j in range(case.outputs)])
        nodes.append(helper.make_node(case.op, inputs, names[-1], name=case.label, **case.attributes))
    used = {value for node in nodes for value in node.input}
    inputs = {name: array for name, array in pool.items() if name in used}
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for group in names for name in group]
    graph = helper.make_graph(nodes, "g", infos, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    os.makedirs(folder, exist_ok=True)
    path, arguments = os.path.join(folder, f"model_{opset}.onnx"), []
    onnx.save(model, path)
    for name, array in inputs.items():
        file = os.path.join(folder, f"{name}.pb")
        save(file, array)
        arguments += ["--input", f"{name}={file}"]
    try:
        flat = oracle.cleave_run(path, arguments, [name for group in names for name in group], "--devices", "cpu", *options)
    except oracle.CleaveError as error:
        if len(cases) == 1:
            return [error]
        half = len(cases) // 2
        return run_model(cases[:half], opset, pool, folder, options) + run_model(cases[half:], opset, pool, folder, options)
    grouped = []
    for group in names:
        grouped.append(flat[:len(group)])
        flat = flat[len(group):]
    return grouped


def check(job, seed, only):
    """Checks one dtype, shape and family. Returns [(label, reason or None)]."""
    name, shape, family = job
    dtype = DTYPES[name][0]
    rng = np.random.default_rng([seed, sum(shape), len(shape)])
    pool = pool_of(dtype, shape, rng)
    pool["mask"] = rng.random(shape) < 0.5
    cases = [case for case in FAMILIES[family](dtype, shape) if only in case.label]
    if not cases:
        return []
    folder = os.path.join(oracle.build_folder("special"), f"{name}_{'x'.join(map(str, shape))}_{family}")
    found = []
    lists = [[pool[value] if isinstance(value, str) else value for value in case.inputs] for case in cases]
    for case, arrays, accepted, actual in zip(cases, lists, opinions(cases, lists), run_cases(cases, pool, folder)):
        label = f"{name} {list(shape)} {case.label}"
        if isinstance(actual, Exception):
            found.append((label, str(actual)))
            continue
        reasons = [difference([outputs[k] for outputs in accepted], actual[k], name, case, arrays) for k in range(case.outputs)]
        reason = next((f"output {k}: {text}" for k, text in enumerate(reasons) if text), None)
        found.append((label, reason))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only cases whose label contains this text")
    parser.add_argument("--dtype", action="append", choices=list(DTYPES))
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # numpy warns of casts of NaN
    tally = oracle.Tally()
    chosen = arguments.dtype or list(DTYPES)
    jobs = [(check, (name, shape, family), arguments.seed, arguments.only) for name in chosen for shape in (SHAPES if name == "f32" else SHAPES[::2])
            for family in arguments.family or FAMILIES]
    if not (arguments.dtype or arguments.family or arguments.only):
        jobs += [(check_integers, dtype, arguments.seed) for dtype in INTEGERS] + [(check_chains, *chain, arguments.seed) for chain in CHAINS]
    for job, found in oracle.each(lambda job: job[0](*job[1:]), jobs):
        if isinstance(found, Exception):
            tally.add(str(job[1:]), f"{type(found).__name__}: {found}")
            continue
        for label, reason in found:
            tally.add(label, reason)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
