#!/usr/bin/env python3
"""Writes tests/formats/irjson_cases.jsonl: one small IR JSON model per line, with inputs and expected outputs.

The expected outputs are computed with numpy as the documentation of the ATen operator says, independently of how Cleave lowers
the operator. Run this script after changing the cases: the random numbers are seeded, so unchanged cases stay the same."""
import json
import math
import os
import sys

import numpy as np
from scipy import special

RANDOM = np.random.default_rng(7)
NAMES = {"float32": "float32", "float64": "float64", "int64": "int64", "int32": "int32", "bool": "bool", "uint8": "uint8"}
LINES = []


DRAWN = []


def drawn(array):
    """Records a random array and returns it. last() returns it again, so that a case can use it as input and in the expected
    output."""
    DRAWN.append(array)
    return array


def last():
    return DRAWN[-1]


def real(*shape):
    return drawn(np.round(RANDOM.uniform(-2, 2, shape), 3).astype(np.float32))


def positive(*shape):
    return drawn(np.round(RANDOM.uniform(0.2, 2, shape), 3).astype(np.float32))


def whole(low, high, *shape, dtype=np.int64):
    return drawn(RANDOM.integers(low, high, shape).astype(dtype))


def truth(*shape):
    return drawn(RANDOM.integers(0, 2, shape).astype(bool))


class Half:
    """A bfloat16 tensor of numbers that bfloat16 can represent exactly."""

    def __init__(self, values):
        bits = np.asarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        self.values = bits.view(np.float32)


def numbers(array):
    array = array.values if isinstance(array, Half) else np.asarray(array)
    def plain(x):
        if isinstance(x, list):
            return [plain(y) for y in x]
        if isinstance(x, float) and math.isinf(x):
            return "inf" if x > 0 else "-inf"
        return round(x, 7) if isinstance(x, float) else x
    return plain(array.tolist())


def tensor(name, array, **more):
    dtype = "bfloat16" if isinstance(array, Half) else NAMES[str(np.asarray(array).dtype)]
    shape = list((array.values if isinstance(array, Half) else np.asarray(array)).shape)
    return {"name": name, "shape": shape, "dtype": dtype, **more}


def case(op, inputs, attrs, *outputs, weights=(), keep=False, read=None, tolerance=1e-5):
    """Adds a line with a case. `inputs` are in the order of ATen's arguments; `weights`: indices of the inputs that are constants
    in the model. `outputs` are the expected ones; `read`: indices of those to compare (default: all). `keep`: Cleave must not
    lower the node to ONNX operators."""
    graph_inputs, node_inputs, weight_list, constants, mapping, given = [], [], [], {}, {}, {}
    for i, array in enumerate(inputs):
        if i in weights:
            name = f"layer.w{i}"
            weight_list.append(tensor(name, array))
            constants[name] = {"data": numbers(array), "dtype": tensor(name, array)["dtype"]}
            mapping[f"p_layer_w{i}"] = name
            node_inputs.append(tensor(f"p_layer_w{i}", array))
        else:
            name = f"x{i}"
            graph_inputs.append(tensor(name, array))
            given[name] = numbers(array)
            node_inputs.append(tensor(name, array, producer_node=name, producer_output_idx=0))
    made = [tensor(f"y{i}" if len(outputs) > 1 else "y", array) for i, array in enumerate(outputs)]
    read = list(range(len(outputs))) if read is None else read
    model = {
        "model_name": op,
        "graph_inputs": graph_inputs,
        "graph_outputs": [{**made[i], "producer_node": "node", "producer_output_idx": i} for i in read],
        "weights": weight_list,
        "weight_name_mapping": mapping,
        "nodes": [{"name": "node", "op_type": op, "inputs": node_inputs, "outputs": made, "attrs": attrs}],
        "constants": constants,
    }
    line = {"model": model, "inputs": given, "outputs": {made[i]["name"]: numbers(outputs[i]) for i in read}}
    if keep:
        line["keep"] = True
    if tolerance != 1e-5:
        line["tolerance"] = tolerance
    LINES.append(json.dumps(line, separators=(",", ":")))


def f32(array):
    return np.asarray(array, np.float32)


def unary_cases():
    x, p = real(2, 3), positive(2, 3)
    for name, array in {"exp": np.exp(x), "sin": np.sin(x), "cos": np.cos(x), "tan": np.tan(x), "sinh": np.sinh(x),
                        "cosh": np.cosh(x), "asinh": np.arcsinh(x), "atan": np.arctan(x), "erf": special.erf(x), "tanh": np.tanh(x),
                        "sigmoid": special.expit(x), "relu": np.maximum(x, 0), "neg": -x, "abs": np.abs(x), "sign": np.sign(x),
                        "floor": np.floor(x), "ceil": np.ceil(x), "round": np.rint(x), "square": x * x,
                        "silu": x * special.expit(x), "reciprocal": 1 / x, "hardswish": x * np.clip(x + 3, 0, 6) / 6,
                        "hardsigmoid": np.clip(x + 3, 0, 6) / 6, "mish": x * np.tanh(np.log1p(np.exp(x))),
                        "softplus": np.log1p(np.exp(x)), "relu6": np.clip(x, 0, 6), "hardtanh": np.clip(x, -1, 1),
                        "elu": np.where(x > 0, x, np.expm1(x)), "celu": np.where(x > 0, x, np.expm1(x)),
                        "leaky_relu": np.where(x > 0, x, 0.01 * x), "alias": x, "clone": x, "detach": x, "detach_": x}.items():
        case(f"aten.{name}.default", [x], {}, f32(array))
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    case("aten.selu.default", [x], {}, f32(scale * np.where(x > 0, x, alpha * np.expm1(x))))
    for name, array in {"log": np.log(p), "sqrt": np.sqrt(p), "rsqrt": 1 / np.sqrt(p), "log2": np.log2(p), "log10": np.log10(p)}.items():
        case(f"aten.{name}.default", [p], {}, f32(array))
    y = np.clip(x / 2.1, -1, 1)
    y = np.round(y, 3).astype(np.float32)
    for name, array in {"asin": np.arcsin(y), "acos": np.arccos(y), "atanh": np.arctanh(y), "acosh": None}.items():
        case(f"aten.{name}.default", [y if array is not None else p + 1], {}, f32(np.arccosh(p + 1) if array is None else array))
    case("aten.gelu.default", [x], {}, f32(0.5 * x * (1 + special.erf(x / math.sqrt(2)))))
    case("aten.gelu.default", [x], {"approximate": "tanh"},
         f32(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))))
    case("aten.leaky_relu.default", [x], {"negative_slope": 0.3}, f32(np.where(x > 0, x, 0.3 * x)))
    case("aten.softplus.default", [x], {"beta": 2}, f32(np.log1p(np.exp(2 * x)) / 2))
    case("aten.exp.default", [whole(-2, 3, 4)], {}, f32(np.exp(last())))
    case("aten.sqrt.default", [truth(4)], {}, f32(np.sqrt(last())))
    case("aten.floor.default", [whole(-5, 5, 3)], {}, last())
    case("aten.glu.default", [real(2, 6)], {"dim": -1}, f32(last()[:, :3] * special.expit(last()[:, 3:])))
    slopes = positive(3)
    z = real(2, 3, 2)
    case("aten.prelu.default", [z, slopes], {}, f32(np.where(z > 0, z, z * slopes[:, None])), weights=[1])
    case("aten.logical_not.default", [np.float32([0, 1.5, -0.0])], {}, np.array([True, False, True]))
    case("aten.bitwise_not.default", [truth(4)], {}, ~last())
    case("aten.bitwise_not.default", [whole(-4, 5, 4)], {}, ~last())
    case("aten.clamp.default", [x], {"min": -0.5, "max": 0.75}, np.clip(x, np.float32(-0.5), np.float32(0.75)))
    case("aten.clamp.default", [x], {"max": 0.5}, np.minimum(x, np.float32(0.5)))
    case("aten.clamp.default", [whole(-5, 6, 5)], {"min": -2}, np.maximum(last(), -2))
    case("aten.clamp.default", [whole(-5, 6, 5)], {"min": -1.5}, f32(np.maximum(last(), -1.5)))
    case("aten.clamp_min.default", [x], {"min": 0.25}, np.maximum(x, np.float32(0.25)))
    low, high = real(3), real(3)
    case("aten.clamp.Tensor", [x, low, high], {}, np.minimum(np.maximum(x, low), high))
    case("aten.isnan.default", [x], {}, np.zeros((2, 3), bool))


def binary_cases():
    x, y, z = real(2, 3), real(3), positive(2, 3)
    i, j = whole(-6, 7, 2, 3), whole(1, 4, 3)
    f64 = np.round(RANDOM.uniform(-1, 1, (3,)), 3)
    half = Half(real(2, 3))
    b, c = truth(2, 3), truth(3)
    case("aten.add.Tensor", [x, y], {}, x + y, weights=[1])
    case("aten.add.Tensor", [x, y], {"alpha": 2}, x + 2 * y)
    case("aten.add.Tensor", [x], {"other": 1.5}, f32(x + 1.5))
    case("aten.add.Tensor", [i], {"other": 2}, i + 2)
    case("aten.add.Tensor", [i], {"other": 0.5}, f32(i + 0.5))
    case("aten.add.Scalar", [x], {"other": 1, "alpha": 3}, f32(x + 3))
    case("aten.add.Tensor", [x, i], {}, f32(x + i))
    case("aten.add.Tensor", [x, f64], {}, x.astype(np.float64) + f64)
    case("aten.add.Tensor", [x, np.array(0.25, np.float64)], {}, f32(x + 0.25))
    case("aten.add.Tensor", [np.array(2, np.int64), x], {}, f32(x + 2))
    case("aten.add.Tensor", [i, np.array(0.5, np.float32)], {}, f32(i + 0.5))
    case("aten.add.Tensor", [b, c], {}, b | c)
    case("aten.add.Tensor", [i.astype(np.int32), j], {}, i + j)
    u = whole(0, 9, 3, dtype=np.uint8)
    case("aten.add.Tensor", [u, np.array([-3, 4, 5], np.int32)], {}, (u + np.array([-3, 4, 5])).astype(np.int32))
    case("aten.add.Tensor", [half, x], {}, f32(half.values + x))
    case("aten.add.Tensor", [half, Half(y)], {}, Half(half.values + Half(y).values), tolerance=0.02)
    case("aten.mul.Tensor", [half], {"other": 0.5}, Half(half.values * 0.5), tolerance=0.02)
    case("aten.sub.Tensor", [x, y], {}, x - y)
    case("aten.sub.Tensor", [x, y], {"alpha": 0.5}, f32(x - 0.5 * y))
    case("aten.sub.Tensor", [x], {"other": 3}, f32(x - 3))
    case("aten.rsub.Scalar", [x], {"other": 1}, f32(1 - x))
    case("aten.rsub.Scalar", [x], {"other": 1, "alpha": 2}, f32(1 - 2 * x))
    case("aten.mul.Tensor", [x, y], {}, x * y)
    case("aten.mul.Tensor", [x], {"other": 0.125}, f32(x * 0.125))
    case("aten.mul.Tensor", [b, c], {}, b & c)
    case("aten.mul.Tensor", [b, i], {}, b * i)
    case("aten.div.Tensor", [x, z], {}, x / z)
    case("aten.div.Tensor", [i, j], {}, f32(i / j))
    case("aten.div.Tensor", [i], {"other": 4}, f32(i / 4))
    case("aten.div.Tensor_mode", [i, j], {"rounding_mode": "floor"}, np.floor_divide(i, j))
    case("aten.div.Tensor_mode", [i, j], {"rounding_mode": "trunc"}, np.trunc(i / j).astype(np.int64))
    case("aten.div.Tensor_mode", [x, z], {"rounding_mode": "floor"}, np.floor(x / z))
    case("aten.div.Tensor_mode", [x, z], {"rounding_mode": "trunc"}, np.trunc(x / z))
    case("aten.floor_divide.default", [i, -j], {}, np.floor_divide(i, -j))
    case("aten.remainder.Tensor", [i, -j], {}, np.mod(i, -j))
    case("aten.remainder.Scalar", [x], {"other": 0.75}, f32(np.mod(x.astype(np.float64), 0.75)))
    case("aten.fmod.Tensor", [i, j], {}, np.fmod(i, j))
    case("aten.fmod.Scalar", [x], {"other": 0.75}, f32(np.fmod(x, np.float32(0.75))))
    case("aten.pow.Tensor_Scalar", [x], {"exponent": 2}, x * x)
    case("aten.pow.Tensor_Scalar", [x], {"exponent": 3}, x**3)
    case("aten.pow.Tensor_Scalar", [z], {"exponent": 0.5}, np.sqrt(z))
    case("aten.pow.Tensor_Scalar", [z], {"exponent": -1.5}, f32(z**-1.5))
    case("aten.pow.Tensor_Scalar", [i], {"exponent": 2}, i * i)
    case("aten.pow.Tensor_Tensor", [z, x], {}, f32(z**x))
    case("aten.pow.Scalar", [x], {"self": 2}, f32(2.0**x))
    case("aten.minimum.default", [x, y], {}, np.minimum(x, y))
    case("aten.maximum.default", [i, j], {}, np.maximum(i, j))
    case("aten.maximum.default", [b, c], {}, b | c)
    for name, function in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                           "ge": np.greater_equal}.items():
        case(f"aten.{name}.Tensor", [i, j], {}, function(i, j))
        case(f"aten.{name}.Scalar", [i], {"other": 0.5 if name != "eq" else 1}, function(i, 0.5 if name != "eq" else 1))
        case(f"aten.{name}.Tensor", [b, c], {}, function(b, c))
    case("aten.logical_and.default", [i, b], {}, (i != 0) & b)
    case("aten.logical_or.default", [x, c], {}, (x != 0) | c)
    case("aten.logical_xor.default", [b, c], {}, b ^ c)
    case("aten.bitwise_and.Tensor", [b, c], {}, b & c)
    case("aten.bitwise_or.Tensor", [i, j], {}, i | j)
    case("aten.bitwise_xor.Scalar", [i], {"other": 5}, i ^ 5)
    case("aten.where.self", [b, x, y], {}, np.where(b, x, y))
    case("aten.where.self", [b, x, i], {}, f32(np.where(b, x, i)))
    case("aten.where.ScalarOther", [b, x], {"other": 2.5}, f32(np.where(b, x, 2.5)))
    case("aten.where.ScalarSelf", [b, x], {"self": -1}, f32(np.where(b, -1, x)))
    case("aten.masked_fill.Scalar", [x, c], {"value": -9.5}, f32(np.where(c, -9.5, x)))
    case("aten.masked_fill.Scalar", [x, c], {"value": "-inf"}, f32(np.where(c, -np.inf, x)))
    case("aten.masked_fill.Tensor", [x, c, np.array(4.0, np.float32)], {}, f32(np.where(c, 4, x)))
    case("aten.addcmul.default", [x, y, z], {"value": 0.5}, f32(x + 0.5 * y * z))
    case("aten.addcdiv.default", [x, y, z], {}, f32(x + y / z))
    case("aten.lerp.Scalar", [x, z], {"weight": 0.25}, f32(x + 0.25 * (z - x)))


def view_cases():
    x = real(2, 3, 4)
    case("aten.view.default", [x], {"size": [6, -1]}, x.reshape(6, 4))
    case("aten.reshape.default", [x], {"shape": [4, 3, 2]}, x.reshape(4, 3, 2))
    case("aten.reshape.default", [real(0, 4)], {"shape": [2, 0]}, np.zeros((2, 0), np.float32))
    case("aten._unsafe_view.default", [x], {"size": [24]}, x.reshape(24))
    case("aten.flatten.using_ints", [x], {"start_dim": 1}, x.reshape(2, 12))
    case("aten.unsqueeze.default", [x], {"dim": -1}, x[..., None])
    case("aten.unsqueeze.default", [x], {"dim": 1}, x[:, None])
    case("aten.squeeze.dim", [real(2, 1, 3)], {"dim": 1}, last().reshape(2, 3))
    case("aten.squeeze.dim", [x], {"dim": 1}, x)
    case("aten.permute.default", [x], {"dims": [2, 0, -2]}, x.transpose(2, 0, 1))
    case("aten.transpose.int", [x], {"dim0": 1, "dim1": -1}, x.swapaxes(1, 2))
    case("aten.t.default", [x[0]], {}, x[0].T)
    case("aten.expand.default", [x[:, :1]], {"size": [5, -1, 3, -1]}, np.broadcast_to(x[:, :1], (5, 2, 3, 4)))
    case("aten.to.dtype", [x], {"dtype": "torch.int64"}, np.trunc(x).astype(np.int64))
    case("aten.to.dtype", [x], {"dtype": "torch.float32"}, x)
    case("aten._to_copy.default", [whole(-3, 4, 3)], {"dtype": "torch.bool"}, last().astype(bool))
    case("aten._to_copy.default", [x], {"dtype": "torch.bfloat16"}, Half(x), tolerance=0.02)
    case("aten.dropout.default", [x], {"p": 0.5, "train": False}, x)
    case("aten.dropout.default", [x], {"p": 0.5, "train": True}, x, keep=True)
    case("aten.contiguous.default", [x], {}, x)
    case("aten.slice.Tensor", [x], {"dim": 2, "start": 1, "end": 3}, x[:, :, 1:3])
    case("aten.slice.Tensor", [x], {"dim": -1, "start": -3, "end": 9223372036854775807, "step": 2}, x[:, :, -3::2])
    case("aten.slice.Tensor", [x], {"dim": 1, "end": -1}, x[:, :-1])
    case("aten.slice.Tensor", [x], {}, x)
    case("aten.narrow.default", [x], {"dim": 1, "start": 1, "length": 2}, x[:, 1:3])
    case("aten.select.int", [x], {"dim": 1, "index": -1}, x[:, -1])
    case("aten.flip.default", [x], {"dims": [0, 2]}, x[::-1, :, ::-1])
    case("aten.constant_pad_nd.default", [x], {"pad": [1, 2, 0, 1], "value": 7}, np.pad(x, ((0, 0), (0, 1), (1, 2)), constant_values=7))
    case("aten.pad.default", [x], {"pad": [1, 0]}, np.pad(x, ((0, 0), (0, 0), (1, 0))))
    case("aten.pad.default", [x], {"pad": [2, 1], "mode": "reflect"}, np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="reflect"))
    case("aten.replication_pad1d.default", [x], {"padding": [2, 1]}, np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="edge"))
    case("aten.repeat.default", [x], {"repeats": [2, 1, 3, 1]}, np.tile(x, (2, 1, 3, 1)))
    case("aten.repeat_interleave.self_int", [x], {"repeats": 2, "dim": 1}, np.repeat(x, 2, 1))
    case("aten.tril.default", [x], {"diagonal": 1}, np.tril(x, 1))
    case("aten.triu.default", [x], {}, np.triu(x))
    y = real(1, 8, 2, 3)
    case("aten.pixel_shuffle.default", [y], {"upscale_factor": 2},
         y.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6))


def join_cases():
    x, y, i = real(2, 3), real(2, 1), whole(0, 9, 2, 2)
    case("aten.cat.default", [x, y], {"_tensor_list_sizes": [2], "dim": -1}, np.concatenate([x, y], 1))
    case("aten.cat.default", [x, i], {"_tensor_list_sizes": [2], "dim": 1}, f32(np.concatenate([x, i], 1)))
    case("aten.cat.default", [np.zeros(0, np.float32), x], {"_tensor_list_sizes": [2]}, x)
    case("aten.stack.default", [x, x + 1], {"_tensor_list_sizes": [2], "dim": -1}, f32(np.stack([x, x + 1], -1)))
    z = real(5, 2)
    case("aten.split.Tensor", [z], {"split_size": 2}, z[:2], z[2:4], z[4:])
    case("aten.split_with_sizes.default", [z], {"split_sizes": [1, 4]}, z[:1], z[1:])
    case("aten.chunk.default", [z], {"chunks": 2}, z[:3], z[3:])
    case("aten.unbind.int", [x], {"dim": 0}, x[0], x[1])
    case("aten.slice_scatter.default", [z, real(2, 2)], {"dim": 0, "start": 1, "end": 3}, np.concatenate([z[:1], last(), z[3:]]))
    case("aten.select_scatter.default", [z, real(2)], {"dim": 0, "index": -1}, np.concatenate([z[:4], last()[None]]))


def matrix_cases():
    a, b, w, bias = real(2, 3, 4), real(2, 4, 5), real(5, 4), real(5)
    case("aten.matmul.default", [a, b], {}, a @ b)
    case("aten.matmul.default", [a[0, 0], b[0, :, 0]], {}, f32(a[0, 0] @ b[0, :, 0]))
    case("aten.mm.default", [a[0], b[0]], {}, a[0] @ b[0])
    case("aten.bmm.default", [a, b], {}, a @ b)
    case("aten.mv.default", [a[0], b[0, :, 0]], {}, a[0] @ b[0, :, 0])
    case("aten.linear.default", [a, w, bias], {}, a @ w.T + bias, weights=[1, 2])
    case("aten.linear.default", [a[0], w], {}, a[0] @ w.T, weights=[1])
    case("aten.linear.default", [a[0, 0], w, bias], {}, a[0, 0] @ w.T + bias, weights=[1, 2])
    case("aten.linear.default", [a, Half(w)], {}, a @ Half(w).values.T, weights=[1])
    case("aten.linear.default", [a, bias[:4]], {}, a @ bias[:4])
    case("aten.addmm.default", [bias, a[0], b[0]], {}, bias + a[0] @ b[0])
    case("aten.addmm.default", [bias, a[0], b[0]], {"beta": 0.5, "alpha": 2}, f32(0.5 * bias + 2 * (a[0] @ b[0])))
    case("aten.baddbmm.default", [real(2, 3, 5), a, b], {"beta": 2, "alpha": 0.5}, f32(2 * last() + 0.5 * (a @ b)))
    case("aten.outer.default", [a[0, 0], bias], {}, np.outer(a[0, 0], bias))
    case("aten.einsum.default", [a, b], {"equation": "bij,bjk->bik", "_tensor_list_sizes": [2]}, a @ b)


def conv2d(x, w, bias, stride, padding, dilation, groups):
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    n, _, height, width = x.shape
    m, c, kh, kw = w.shape
    oh = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, m, oh, ow))
    for k in range(m):
        first = k // (m // groups) * c
        for p in range(oh):
            for q in range(ow):
                window = x[:, first:first + c, p * stride[0]:p * stride[0] + dilation[0] * (kh - 1) + 1:dilation[0],
                           q * stride[1]:q * stride[1] + dilation[1] * (kw - 1) + 1:dilation[1]]
                out[:, k, p, q] = (window * w[k]).sum((1, 2, 3)) + (0 if bias is None else bias[k])
    return f32(out)


def pool2d(x, kernel, stride, padding, reduce, fill):
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=fill)
    oh, ow = (x.shape[2] - kernel) // stride + 1, (x.shape[3] - kernel) // stride + 1
    return f32([[[[reduce(x[n, c, p * stride:p * stride + kernel, q * stride:q * stride + kernel]) for q in range(ow)]
                  for p in range(oh)] for c in range(x.shape[1])] for n in range(x.shape[0])])


def bilinear(x, size, align):
    out = np.zeros(x.shape[:2] + size)
    for p in range(size[0]):
        for q in range(size[1]):
            at = []
            for k, (o, n, m) in enumerate(((p, x.shape[2], size[0]), (q, x.shape[3], size[1]))):
                s = o * (n - 1) / (m - 1) if align else max(0.0, (o + 0.5) * n / m - 0.5)
                low = min(int(s), n - 1)
                at.append((low, min(low + 1, n - 1), s - low))
            (a, b, u), (c, d, v) = at
            out[:, :, p, q] = ((1 - u) * ((1 - v) * x[:, :, a, c] + v * x[:, :, a, d]) +
                               u * ((1 - v) * x[:, :, b, c] + v * x[:, :, b, d]))
    return f32(out)


def window_cases():
    x, w, bias = real(1, 4, 5, 6), real(4, 2, 3, 2), real(4)
    case("aten.conv2d.default", [x, w, bias], {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "groups": 2},
         conv2d(x, w, bias, (2, 1), (1, 0), (1, 2), 2), weights=[1, 2])
    w1 = real(3, 4, 3, 3)
    case("aten.conv2d.default", [x, w1], {}, conv2d(x, w1, None, (1, 1), (0, 0), (1, 1), 1), weights=[1])
    case("aten.conv2d.padding", [x, w1], {"padding": "same"}, conv2d(x, w1, None, (1, 1), (1, 1), (1, 1), 1))
    case("aten.convolution.default", [x, w1, bias[:3]], {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False,
                                                         "output_padding": [0, 0], "groups": 1},
         conv2d(x, w1, bias[:3], (1, 1), (1, 1), (1, 1), 1))
    line, w2 = real(1, 2, 7), real(3, 2, 3)
    case("aten.conv1d.default", [line, w2], {"stride": [2], "padding": [1]},
         conv2d(line[:, :, None], w2[:, :, None], None, (1, 2), (0, 1), (1, 1), 1)[:, :, 0])
    # A transposed convolution of stride s equals a convolution of the input with s - 1 zeros between its elements.
    t, wt = real(1, 2, 3, 3), real(2, 3, 2, 2)
    spread = np.zeros((1, 2, 5, 5), np.float32)
    spread[:, :, ::2, ::2] = t
    case("aten.conv_transpose2d.input", [t, wt], {"stride": [2, 2]},
         conv2d(spread, wt.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1], None, (1, 1), (1, 1), (1, 1), 1))
    case("aten.max_pool2d.default", [x], {"kernel_size": [2, 2]}, pool2d(x, 2, 2, 0, np.max, 0))
    case("aten.max_pool2d.default", [x], {"kernel_size": 3, "stride": [2, 2], "padding": 1}, pool2d(x, 3, 2, 1, np.max, -np.inf))
    case("aten.max_pool2d_with_indices.default", [x], {"kernel_size": [2, 2], "stride": []}, pool2d(x, 2, 2, 0, np.max, 0),
         np.zeros((1, 4, 2, 3), np.int64), read=[0])
    case("aten.avg_pool2d.default", [x], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}, pool2d(x, 3, 2, 1, np.mean, 0))
    counted = pool2d(np.ones_like(x), 3, 2, 1, np.mean, 0)
    case("aten.avg_pool2d.default", [x], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1], "count_include_pad": False},
         pool2d(x, 3, 2, 1, np.mean, 0) / counted)
    case("aten.adaptive_avg_pool2d.default", [x], {"output_size": [1, 1]}, x.mean((2, 3), keepdims=True))
    y = real(1, 2, 4, 6)
    case("aten.adaptive_avg_pool2d.default", [y], {"output_size": [2, 3]}, pool2d(y, 2, 2, 0, np.mean, 0))
    case("aten.adaptive_avg_pool2d.default", [y], {"output_size": [3, 3]},
         np.stack([y[:, :, i : i + 2].reshape(1, 2, 2, 3, 2).mean((2, 4)) for i in range(3)], 2))
    case("aten.upsample_nearest2d.vec", [y], {"scale_factors": [2.0, 2.0]}, y.repeat(2, 2).repeat(2, 3))
    case("aten.upsample_nearest2d.default", [y], {"output_size": [6, 9]}, y[:, :, [0, 0, 1, 2, 2, 3]][..., [0, 0, 1, 2, 2, 3, 4, 4, 5]])
    case("aten.upsample_bilinear2d.vec", [y], {"output_size": [7, 9], "align_corners": False}, bilinear(y, (7, 9), False))
    case("aten.upsample_bilinear2d.vec", [y], {"output_size": [7, 9], "align_corners": True}, bilinear(y, (7, 9), True))


def normalize_cases():
    x = real(2, 4, 3)
    scale, shift, mean, variance = positive(4), real(4), real(4), positive(4)
    column = lambda v: v[:, None]
    batch = f32((x - column(mean)) / np.sqrt(column(variance) + 1e-5) * column(scale) + column(shift))
    case("aten.batch_norm.default", [x, scale, shift, mean, variance],
         {"training": False, "momentum": 0.1, "eps": 1e-05, "cudnn_enabled": True}, batch, weights=[1, 2, 3, 4])
    case("aten.batch_norm.default", [x, scale, shift, mean, variance], {"training": True, "eps": 1e-5}, batch, keep=True)
    case("aten._native_batch_norm_legit_no_training.default", [x, scale, shift, mean, variance], {"momentum": 0.1, "eps": 1e-05},
         batch, np.zeros(0, np.float32), np.zeros(0, np.float32), weights=[1, 2, 3, 4], read=[0])
    case("aten.batch_norm.default", [x, mean, variance], {"training": False, "eps": 1e-5},
         f32((x - column(mean)) / np.sqrt(column(variance) + 1e-5)), weights=[1, 2])
    w, b = positive(4, 3), real(4, 3)
    def moments(v, axes):
        m = v.astype(np.float64).mean(axes, keepdims=True)
        return m, v.astype(np.float64).var(axes, keepdims=True)
    m, v = moments(x, (1, 2))
    case("aten.layer_norm.default", [x, w, b], {"normalized_shape": [4, 3], "eps": 1e-3}, f32((x - m) / np.sqrt(v + 1e-3) * w + b),
         weights=[1, 2])
    m1, v1 = moments(x, (2,))
    case("aten.layer_norm.default", [x], {"normalized_shape": [3]}, f32((x - m1) / np.sqrt(v1 + 1e-5)))
    case("aten.native_layer_norm.default", [x, w, b], {"normalized_shape": [4, 3], "eps": 1e-3},
         f32((x - m) / np.sqrt(v + 1e-3) * w + b), f32(m), f32(1 / np.sqrt(v + 1e-3)), weights=[1, 2])
    g = x.reshape(2, 2, 6)
    mg, vg = moments(g, (2,))
    group = ((g - mg) / np.sqrt(vg + 1e-5)).reshape(2, 4, 3)
    case("aten.group_norm.default", [x, scale, shift], {"num_groups": 2}, f32(group * column(scale) + column(shift)), weights=[1, 2])
    case("aten.instance_norm.default", [x], {"use_input_stats": True, "eps": 1e-5}, f32((x - m1) / np.sqrt(v1 + 1e-5)))
    case("aten.rms_norm.default", [x, scale[:3]], {"normalized_shape": [3], "eps": 1e-6},
         f32(x / np.sqrt((x.astype(np.float64)**2).mean(-1, keepdims=True) + 1e-6) * scale[:3]), weights=[1])
    case("aten.softmax.int", [x], {"dim": 1}, f32(special.softmax(x, 1)))
    case("aten._softmax.default", [x], {"dim": -1, "half_to_float": False}, f32(special.softmax(x, -1)))
    half = Half(x)
    case("aten.softmax.int", [half], {"dim": -1, "dtype": "torch.float32"}, f32(special.softmax(half.values, -1)))
    case("aten.log_softmax.int", [x], {"dim": 0}, f32(special.log_softmax(x, 0)))


def reduce_cases():
    x, i, b = real(2, 3, 4), whole(-4, 5, 2, 3), truth(2, 3)
    case("aten.mean.dim", [x], {"dim": [-1], "keepdim": True}, x.mean(-1, keepdims=True))
    case("aten.mean.default", [x], {}, f32(x.mean()))
    case("aten.mean.default", [i], {"dtype": "torch.float32"}, f32(i.mean()))
    case("aten.sum.dim_IntList", [x], {"dim": [0, 2]}, x.sum((0, 2)))
    case("aten.sum.default", [b], {}, np.int64(b.sum()))
    case("aten.sum.dim_IntList", [i], {"dim": [1]}, i.sum(1))
    case("aten.sum.dim_IntList", [x], {"dim": []}, f32(x.sum()))
    case("aten.prod.dim_int", [x], {"dim": 1}, x.prod(1))
    case("aten.amax.default", [x], {"dim": [1], "keepdim": True}, x.max(1, keepdims=True))
    case("aten.amin.default", [x], {"dim": [-1]}, x.min(-1))
    case("aten.max.default", [x], {}, x.max())
    case("aten.max.dim", [x], {"dim": 1}, x.max(1), x.argmax(1))
    case("aten.min.dim", [x], {"dim": -1, "keepdim": True}, x.min(-1, keepdims=True), x.argmin(-1)[..., None])
    case("aten.max.other", [x, real(4)], {}, np.maximum(x, last()))
    case("aten.logsumexp.default", [x], {"dim": [1]}, f32(special.logsumexp(x, 1)))
    case("aten.any.dim", [b], {"dim": 1}, b.any(1))
    case("aten.all.default", [b], {}, b.all())
    case("aten.argmax.default", [x], {"dim": 1}, x.argmax(1))
    case("aten.argmax.default", [x], {}, np.int64(x.argmax()))
    case("aten.argmin.default", [x], {"dim": 2, "keepdim": True}, x.argmin(2)[..., None])
    case("aten.var.correction", [x], {"dim": [1], "correction": 1}, f32(x.var(1, ddof=1)))
    case("aten.var.dim", [x], {"dim": [1, 2], "unbiased": False, "keepdim": True}, f32(x.var((1, 2), keepdims=True)))
    case("aten.std.correction", [x], {"dim": [2], "correction": 0}, f32(x.std(2)))
    case("aten.linalg_vector_norm.default", [x], {"dim": [1]}, f32(np.sqrt((x**2).sum(1))))
    case("aten.linalg_vector_norm.default", [x], {"ord": 1, "dim": [1], "keepdim": True}, np.abs(x).sum(1, keepdims=True))
    case("aten.cumsum.default", [x], {"dim": 1}, x.cumsum(1))
    case("aten.cumsum.default", [b], {"dim": 1}, b.cumsum(1))
    case("aten.diff.default", [x], {}, np.diff(x))
    case("aten.roll.default", [x], {"shifts": [1, -3], "dims": [0, 2]}, np.roll(x, (1, -3), (0, 2)))
    case("aten.roll.default", [x], {"shifts": [-31], "dims": [-2]}, np.roll(x, -31, 1))
    case("aten.roll.default", [x], {"shifts": 5}, np.roll(x, 5))
    case("aten.roll.default", [x], {"shifts": [2], "dims": [0]}, x)
    case("aten.roll.default", [b], {"shifts": [1, 1], "dims": [1, 1]}, np.roll(b, 2, 1))
    case("aten.diff.default", [x], {"n": 2, "dim": 1}, np.diff(x, 2, 1))
    case("aten.diff.default", [x], {"n": 5, "dim": 0}, np.zeros((0, 3, 4), np.float32))
    case("aten.diff.default", [i, i[:, :1] - 1], {"dim": -1}, np.diff(i, prepend=i[:, :1] - 1))
    case("aten.diff.default", [x, i[:, :, None], x[:, :, :2]], {"n": 1}, f32(np.diff(x, prepend=f32(i)[:, :, None], append=x[:, :, :2])))
    case("aten.diff.default", [x, x[:1]], {"n": 0, "dim": 0}, x)
    case("aten.diff.default", [b], {"dim": 0}, b[1:] ^ b[:-1])
    case("aten.diff.default", [x], {"n": 17}, x[:, :, :0], keep=True)
    order = np.argsort(-x, -1, kind="stable")
    case("aten.topk.default", [x], {"k": 2}, np.take_along_axis(x, order[..., :2], -1), order[..., :2])
    up = np.argsort(x, 1, kind="stable")
    case("aten.sort.default", [x], {"dim": 1}, np.take_along_axis(x, up, 1), up)
    case("aten.argsort.default", [x], {"dim": 1, "descending": True}, np.argsort(-x, 1, kind="stable"))


def index_cases():
    x, table = real(4, 3), real(6, 2)
    i, j = np.array([[0, 5], [3, 3]], np.int64), np.array([2, -1, 0], np.int64)
    case("aten.embedding.default", [table, i], {}, table[i], weights=[0])
    case("aten.index_select.default", [x, np.array([2, 0], np.int64)], {"dim": 0}, x[[2, 0]])
    g = np.array([[0, 2], [1, 1], [3, 0]], np.int64)
    case("aten.gather.default", [x, g], {"dim": 0}, np.take_along_axis(x[:, :2], g, 0))
    s = x.copy()
    src = real(4, 2)
    for r in range(3):
        for c in range(2):
            s[g[r, c], c] = src[r, c]
    case("aten.scatter.src", [x, g, src], {"dim": 0}, s)
    a = x.copy()
    for r in range(3):
        for c in range(2):
            a[g[r, c], c] += src[r, c]
    case("aten.scatter_add.default", [x, g, src], {"dim": 0}, a)
    v = x.copy()
    for r in range(3):
        for c in range(2):
            v[g[r, c], c] = 1.5
    case("aten.scatter.value", [x, g], {"dim": 0, "value": 1.5}, v)
    cache, new = real(1, 2, 4, 3), real(1, 2, 2, 3)
    k = cache.copy()
    k[:, :, [3, 1]] = new
    case("aten.index_copy.default", [cache, np.array([3, 1], np.int64), new], {"dim": 2}, k)
    k = cache.copy()
    k[:, :, [1]] = Half(new[:, :, :1]).values
    case("aten.index_copy.default", [cache, np.array([1], np.int64), Half(new[:, :, :1])], {"dim": 2}, k)
    k = cache.copy()
    k[:, :, [3, 1]] += new
    case("aten.index_add.default", [cache, np.array([3, 1], np.int64), new], {"dim": 2}, k)
    case("aten.index.Tensor", [x, j], {"_tensor_list_sizes": [1], "_tensor_list_none_masks": [[True, False]]}, x[:, j], weights=[1])
    case("aten.index.Tensor", [x, i[:, :1] % 4], {"_tensor_list_sizes": [1]}, x[i[:, :1] % 4])
    case("aten.index.Tensor", [x, np.array([[1], [3]], np.int64), j], {"_tensor_list_sizes": [2]}, x[[[1], [3]], j])
    case("aten.index.Tensor", [x, truth(4)], {"_tensor_list_sizes": [1]}, real(2, 3), keep=True)
    p = x.copy()
    p[[3, 1]] = new[0, 0, :, :]
    case("aten.index_put.default", [x, np.array([3, 1], np.int64), new[0, 0]], {"_tensor_list_sizes": [1]}, p)
    p = x.copy()
    np.add.at(p, ([3, 3], [0, 0]), np.float32(0.5))
    case("aten.index_put.default", [x, np.array([3, 3], np.int64), np.array([0, 0], np.int64), np.array(0.5, np.float32)],
         {"_tensor_list_sizes": [2], "accumulate": True}, p)
    case("aten.one_hot.default", [np.array([1, 0, 3], np.int64)], {"num_classes": 4}, np.eye(4, dtype=np.int64)[[1, 0, 3]])


def create_cases():
    x = real(2, 3)
    case("aten.full.default", [], {"size": [2, 2], "fill_value": 1.5, "dtype": "torch.float32"}, np.full((2, 2), 1.5, np.float32))
    case("aten.full.default", [], {"size": [], "fill_value": True}, np.array(True))
    case("aten.zeros.default", [], {"size": [3]}, np.zeros(3, np.float32))
    case("aten.ones.default", [], {"size": [2, 1], "dtype": "torch.int64"}, np.ones((2, 1), np.int64))
    case("aten.full_like.default", [x], {"fill_value": "-inf"}, np.full((2, 3), -np.inf, np.float32))
    case("aten.zeros_like.default", [x], {}, np.zeros((2, 3), np.float32))
    case("aten.new_ones.default", [x], {"size": [4]}, np.ones(4, np.float32))
    case("aten.scalar_tensor.default", [], {"s": 2.5}, np.array(2.5, np.float32))
    case("aten.arange.default", [], {"end": 5}, np.arange(5))
    case("aten.arange.start_step", [], {"start": 7, "end": 0, "step": -2}, np.arange(7, 0, -2))
    case("aten.arange.start_step", [], {"start": 0.5, "end": 2.0, "step": 0.5}, f32(np.arange(0.5, 2.0, 0.5)))
    case("aten.arange.start", [], {"start": 1, "end": 4, "dtype": "torch.float32"}, f32([1, 2, 3]))
    case("aten.eye.default", [], {"n": 3}, np.eye(3, dtype=np.float32))
    case("aten.fill.Scalar", [x], {"value": 2}, np.full((2, 3), 2, np.float32))


def attention_cases():
    q, k, v = real(1, 4, 3, 2), real(1, 4, 5, 2), real(1, 4, 5, 2)
    def attend(keys, values, scale=1 / math.sqrt(2), add=0.0):
        scores = q.astype(np.float64) @ keys.swapaxes(-1, -2) * scale + add
        return f32(special.softmax(scores, -1) @ values)
    op = "aten.scaled_dot_product_attention.default"
    case(op, [q, k, v], {}, attend(k, v))
    mask = np.tril(np.ones((3, 5), bool), 1)
    case(op, [q, k, v, mask], {"scale": 0.3}, attend(k, v, 0.3, np.where(mask, 0, -np.inf)))
    bias = real(3, 5)
    case(op, [q, k, v, bias], {"dropout_p": 0.0}, attend(k, v, add=bias))
    case(op, [q, k, v], {"is_causal": True}, attend(k, v, add=np.where(np.tril(np.ones((3, 5))) == 1, 0, -np.inf)))
    k2, v2 = k[:, :2], v[:, :2]
    case(op, [q, k2, v2], {"enable_gqa": True}, attend(k2.repeat(2, 1), v2.repeat(2, 1)))
    case(op, [q, k, v], {"dropout_p": 0.1}, attend(k, v), keep=True)


def main():
    for cases in (unary_cases, binary_cases, view_cases, join_cases, matrix_cases, window_cases, normalize_cases, reduce_cases,
                  index_cases, create_cases, attention_cases):
        cases()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "formats", "irjson_cases.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(LINES) + "\n")
    print(f"{len(LINES)} cases", file=sys.stderr)


if __name__ == "__main__":
    main()
