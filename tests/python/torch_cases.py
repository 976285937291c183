"""Calls of ATen operators for test_torch.py: functions of tensors, with their inputs.

They test unusual arguments: omitted defaults, dims that are negative or in the middle, numbers in place of tensors, mixed
dtypes, sizes of 0 and 1."""
import dataclasses

import torch
import torch.nn.functional as F

A = torch.ops.aten


@dataclasses.dataclass
class Case:
    name: str
    call: callable
    inputs: list
    weights: tuple = ()  # indices of the inputs that are weights of the model
    dtypes: tuple = (torch.float32, torch.bfloat16)  # the floating-point inputs are cast to each
    kept: str = ""  # an operator that cannot be lowered to ONNX, which the error must name; "" if there is none
    factor: float = 1.0  # multiplies the dtype's tolerance


CASES = {}
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
ONLY = (torch.float32,)


def real(*shape):
    return torch.randn(shape, generator=GENERATOR)


def positive(*shape):
    return torch.rand(shape, generator=GENERATOR) + 0.25


def whole(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=GENERATOR).to(dtype)


def truth(*shape):
    return torch.rand(shape, generator=GENERATOR) < 0.5


GENERATOR = torch.Generator().manual_seed(11)


def case(family, name, call, *inputs, **more):
    CASES.setdefault(family, []).append(Case(f"{family}: {name}", call, list(inputs), **more))


def special():
    inf, nan = float("inf"), float("nan")
    return torch.tensor([[-inf, -2.5, -1.0, -0.0], [0.0, 0.5, 1.5, inf], [2.5, nan, 100.0, -100.0]])


def pointwise():
    f = "pointwise"
    x = real(2, 3, 4) * 2
    for op in ("exp", "sin", "cos", "tanh", "sigmoid", "relu", "silu", "neg", "abs", "floor", "ceil", "round", "sign", "erf", "square",
               "hardtanh", "relu6", "leaky_relu", "elu", "celu", "selu", "hardswish", "hardsigmoid", "mish", "softplus", "atan", "asinh", "sinh",
               "cosh", "tan"):
        case(f, op, getattr(A, op), x, dtypes=FLOATS)
        if op not in ("tan", "sinh", "cosh", "square"):
            case(f, f"{op} of special values", getattr(A, op), special())
    for op in ("sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"):
        case(f, op, getattr(A, op), positive(3, 5) * 3, dtypes=FLOATS)
        case(f, f"{op} of special values", getattr(A, op), special())
    for op in ("exp", "sin", "sqrt", "tanh", "sigmoid", "rsqrt", "log"):
        case(f, f"{op} of integers", getattr(A, op), whole(1, 9, 4))
        case(f, f"{op} of bools", getattr(A, op), torch.tensor([True, True]))
    for op in ("relu", "neg", "abs", "sign", "floor", "round", "square"):
        case(f, f"{op} of integers", getattr(A, op), whole(-5, 6, 7))
        case(f, f"{op} of int32", getattr(A, op), whole(-5, 6, 7, dtype=torch.int32))
    case(f, "relu of int8", A.relu, whole(-5, 6, 7, dtype=torch.int8))
    case(f, "gelu", lambda x: A.gelu(x), x, dtypes=FLOATS)
    case(f, "gelu, tanh", lambda x: A.gelu(x, approximate="tanh"), x, dtypes=FLOATS)
    case(f, "gelu of special values", lambda x: A.gelu(x), special()[:1, 1:])
    case(f, "elu, alpha and scale", lambda x: A.elu(x, 0.5, 1.0, 1.0), x)
    case(f, "elu, odd alpha", lambda x: F.elu(x, 0.3), x, dtypes=FLOATS)
    case(f, "celu, odd alpha", lambda x: F.celu(x, 0.3), x, dtypes=FLOATS)
    case(f, "elu, scale", lambda x: A.elu(x, 0.5, 2.0, 0.25), x)
    case(f, "leaky_relu 0.3", lambda x: F.leaky_relu(x, 0.3), x)
    case(f, "softplus, beta and threshold", lambda x: F.softplus(x, 3.0, 5.0), x)
    case(f, "softplus, beta", lambda x: F.softplus(x, 0.5), x * 20)
    case(f, "clamp", lambda x: torch.clamp(x, -0.5, 1), x)
    case(f, "clamp, low alone", lambda x: torch.clamp(x, min=0), x)
    case(f, "clamp, tensors", lambda x, a, b: torch.clamp(x, a, b), x, real(4), real(3, 1))
    case(f, "clamp, high tensor alone", lambda x, b: torch.clamp(x, None, b), x, real(4))
    case(f, "clamp of integers by a fraction", lambda x: torch.clamp(x, -1.5, 2), whole(-5, 6, 7))
    case(f, "clamp of special values", lambda x: torch.clamp(x, -1, 1), special())
    case(f, "clamp, low above high", lambda x: torch.clamp(x, 1, -1), x)
    case(f, "glu", lambda x: F.glu(x, 1), real(2, 6, 3))
    case(f, "prelu", lambda x, w: F.prelu(x, w), real(2, 3, 4), real(3), weights=(1,))
    case(f, "logical_not", torch.logical_not, special())
    case(f, "bitwise_not", torch.bitwise_not, whole(-5, 6, 7))
    case(f, "isnan", torch.isnan, special())
    case(f, "isinf", torch.isinf, special())
    case(f, "round, decimals", lambda x: torch.round(x, decimals=2), x, kept="aten.round.decimals")
    case(f, "empty", lambda x: A.exp(x), real(0, 3))
    case(f, "rank 0", lambda x: A.silu(x), real())


def arithmetic():
    f = "arithmetic"
    x, y, z = real(2, 3, 4), real(3, 1), positive(2, 3, 4)
    i, j = whole(-9, 10, 2, 3, 4), whole(1, 5, 4)
    tiny = whole(0, 20, 4, dtype=torch.uint8)
    for name, op in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div)):
        case(f, f"{name}, tensors", op, x, y, dtypes=FLOATS)
        case(f, f"{name}, whole number", lambda x, op=op: op(x, 3), x, dtypes=FLOATS)
        case(f, f"{name}, fraction", lambda x, op=op: op(x, 0.3), x, dtypes=FLOATS)
        case(f, f"{name}, negative fraction", lambda x, op=op: op(x, -1e-3), x)
        case(f, f"{name}, integers by a fraction", lambda x, op=op: op(x, 0.5), i)
        case(f, f"{name}, integers by a whole number", lambda x, op=op: op(x, 2), i)
        case(f, f"{name}, integers", op, i, j)
        case(f, f"{name}, int32 and int64", op, i.int(), j)
        case(f, f"{name}, uint8 and int8", op, tiny, whole(1, 5, 4, dtype=torch.int8))
        case(f, f"{name}, float and int", op, x, j)
        case(f, f"{name}, bf16 and f32", lambda a, b, op=op: op(a.to(torch.bfloat16), b), x, y, dtypes=ONLY)
        case(f, f"{name}, bf16 and f16", lambda a, b, op=op: op(a.to(torch.bfloat16), b.to(torch.float16)), x, y, dtypes=ONLY)
        case(f, f"{name}, bf16 and a f32 of rank 0", lambda a, b, op=op: op(a.to(torch.bfloat16), b), x, positive(), dtypes=ONLY)
        case(f, f"{name}, int and a float of rank 0", op, i, positive(), dtypes=ONLY)
        case(f, f"{name}, f64 and f32", lambda a, b, op=op: op(a.double(), b), x, y, dtypes=ONLY)
        case(f, f"{name}, int and bool", op, i, torch.ones(4, dtype=torch.bool))
        case(f, f"{name}, empty", op, real(0, 3), real(3))
        case(f, f"{name}, bools with a fraction", lambda x, op=op: op(x, 0.5), truth(4))
        if name != "sub":
            case(f, f"{name}, bools", op, truth(4), torch.ones(4, dtype=torch.bool))
    case(f, "add, alpha", lambda x, y: torch.add(x, y, alpha=2.5), x, y, dtypes=FLOATS)
    case(f, "add, alpha of integers", lambda x, y: torch.add(x, y, alpha=3), i, j)
    case(f, "add, number and alpha", lambda x: torch.add(x, 2, alpha=3), x)
    case(f, "add.Scalar with alpha", lambda x: A.add.Scalar(x, 1.5, 2), x)
    case(f, "sub, alpha", lambda x, y: torch.sub(x, y, alpha=-0.5), x, y, dtypes=FLOATS)
    case(f, "sub.Scalar with alpha", lambda x: A.sub.Scalar(x, 1, 3), i)
    case(f, "sub, reversed", lambda x: 1.5 - x, x)
    case(f, "rsub with alpha", lambda x: torch.rsub(x, 2, alpha=3), x)
    case(f, "rsub, tensors with alpha", lambda x, y: torch.rsub(x, y, alpha=0.25), x, y)
    case(f, "mul.Scalar", lambda x: A.mul.Scalar(x, 0.125), x)
    case(f, "div.Scalar", lambda x: A.div.Scalar(x, 7), x)
    case(f, "div of integers by Scalar", lambda x: A.div.Scalar(x, 7), i)
    case(f, "div, reversed", lambda x: 2 / x, z)
    case(f, "div by zero", lambda x: x / 0, special())
    for mode in ("floor", "trunc"):
        case(f, f"div, {mode}", lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), x * 5, y, dtypes=FLOATS)
        case(f, f"div of integers, {mode}", lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), i, j)
        case(f, f"div of integers by negative, {mode}", lambda x, m=mode: torch.div(x, -4, rounding_mode=m), i)
        case(f, f"div exact multiples, {mode}", lambda x, m=mode: torch.div(x, 0.1, rounding_mode=m), torch.arange(-9, 10) * 0.1)
        case(f, f"div integers by a fraction, {mode}", lambda x, m=mode: torch.div(x, 0.75, rounding_mode=m), i)
    case(f, "floor_divide", torch.floor_divide, i, j)
    case(f, "remainder", torch.remainder, x * 5, y, dtypes=FLOATS)
    case(f, "remainder of integers", lambda x: torch.remainder(x, -4), i)
    case(f, "remainder, exact multiples", lambda x: torch.remainder(x, 0.1), torch.arange(-9, 10) * 0.1)
    case(f, "remainder, number first", lambda x: torch.remainder(5, x), y * 2)
    case(f, "fmod", torch.fmod, x * 5, y)
    case(f, "fmod of integers", lambda x: torch.fmod(x, 4), i)
    for exponent in (2, 1, 0, 3, -1, 0.5, -0.5, 2.5):
        base = x if isinstance(exponent, int) else z
        case(f, f"pow {exponent}", lambda x, e=exponent: torch.pow(x, e), base, dtypes=FLOATS)
    case(f, "pow 0.3", lambda x: torch.pow(x, 0.3), z * 100)
    case(f, "compared with a fraction", lambda x: x > 0.3, torch.tensor([0.2998, 0.3, 0.3003, 0.301]))
    case(f, "pow of integers", lambda x: torch.pow(x, 3), i)
    case(f, "pow of integers by a fraction", lambda x: torch.pow(x, 0.5), j)
    case(f, "pow of integers by 2.0", lambda x: torch.pow(x, 2.0), j)
    case(f, "pow, tensors", torch.pow, z, y)
    case(f, "pow, number first", lambda x: torch.pow(2, x), x)
    case(f, "pow, whole number and integers", lambda x: torch.pow(2, x), j)
    case(f, "pow 0.5 of special values", lambda x: torch.pow(x, 0.5), special())
    case(f, "maximum", torch.maximum, x, y)
    case(f, "minimum of special values", torch.minimum, special(), torch.zeros(4))
    case(f, "maximum of int and float", torch.maximum, i, y)
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        case(f, op, getattr(torch, op), special(), torch.tensor([0.0, 0.5, 1.5, 2.0]))
        case(f, f"{op}, integers and a fraction", lambda x, op=op: getattr(torch, op)(x, 2.5), i)
        case(f, f"{op}, bools", getattr(torch, op), truth(6), truth(6))
        case(f, f"{op}, bool and number", lambda x, op=op: getattr(torch, op)(x, 1), truth(6))
    case(f, "logical_and", torch.logical_and, x, i)
    case(f, "bitwise_and of integers", torch.bitwise_and, i, j)
    case(f, "xor of bools", lambda a, b: a ^ b, truth(5), truth(5))
    case(f, "addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), x, y, z)
    case(f, "addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=-2), x, y, z)
    case(f, "lerp", lambda a, b: torch.lerp(a, b, 0.3), x, z)
    case(f, "lerp above one half", lambda a, b: torch.lerp(a, b, 0.9), x, z)
    case(f, "lerp, tensor", torch.lerp, x, z, positive(2, 3, 4))


def selecting():
    f = "selecting"
    x, y, mask = real(2, 3, 4), real(3, 1), truth(2, 3, 4)
    case(f, "where", torch.where, mask, x, y)
    case(f, "where, number", lambda m, x: torch.where(m, x, 0.0), mask, x)
    case(f, "where, number first", lambda m, x: torch.where(m, -1, x), mask, x)
    case(f, "where, two numbers", lambda m: torch.where(m, 1.5, 0.0), mask)
    case(f, "where, two whole numbers", lambda m: torch.where(m, 1, 0), mask)
    case(f, "where, int and float", torch.where, mask, whole(0, 9, 4), y)
    case(f, "where, fraction and integers", lambda m, i: torch.where(m, i, 0.5), mask, whole(0, 9, 4))
    case(f, "masked_fill", lambda x, m: x.masked_fill(m, -1e9), x, mask)
    case(f, "masked_fill, infinite", lambda x, m: x.masked_fill(m, float("-inf")), x, mask)
    case(f, "masked_fill, NaN", lambda x, m: x.masked_fill(m, float("nan")), x, mask)
    case(f, "masked_fill, mask of another shape", lambda x, m: x.masked_fill(m, 7), x, truth(3, 1))
    case(f, "masked_fill, wider mask", lambda x, m: x.masked_fill(m, 7), real(4), truth(3, 4))
    case(f, "masked_fill of integers", lambda x, m: x.masked_fill(m, 3), whole(0, 9, 4), truth(4))
    case(f, "masked_fill, tensor", lambda x, m, v: x.masked_fill(m, v), x, mask, real())
    table, ids = real(7, 5), whole(0, 7, 2, 3)
    case(f, "embedding", lambda i, w: F.embedding(i, w), ids, table, weights=(1,))
    case(f, "embedding, padding_idx", lambda i, w: F.embedding(i, w, padding_idx=2), ids, table, weights=(1,))
    case(f, "embedding, int32", lambda i, w: F.embedding(i, w), ids.int(), table, weights=(1,))
    case(f, "index_select", lambda x, i: torch.index_select(x, 1, i), x, torch.tensor([2, 0, 0, 1]))
    case(f, "index_select, last dim", lambda x, i: torch.index_select(x, -1, i), x, torch.tensor([3]))
    case(f, "index_select, rank 0 index", lambda x, i: torch.index_select(x, 0, i), x, torch.tensor(1))
    case(f, "gather", lambda x, i: torch.gather(x, 2, i), x, whole(0, 4, 2, 3, 2))
    case(f, "gather, smaller index", lambda x, i: torch.gather(x, 1, i), x, whole(0, 3, 1, 2, 3))
    case(f, "gather, dim -3", lambda x, i: torch.gather(x, -3, i), x, whole(0, 2, 5, 2, 3))
    case(f, "index_copy", lambda x, i, s: torch.index_copy(x, 1, i, s), x, torch.tensor([2, 0]), real(2, 2, 4), dtypes=FLOATS)
    case(f, "index_copy, last dim", lambda x, i, s: torch.index_copy(x, -1, i, s), x, torch.tensor([3]), real(2, 3, 1))
    case(f, "index_copy, rank 0 index", lambda x, i, s: torch.index_copy(x, 0, i, s), x, torch.tensor(1), real(1, 3, 4))
    case(f, "index_copy of rank 0 source", lambda x, i, s: torch.index_copy(x, 0, i, s), real(4), torch.tensor(1), real())
    case(f, "index_add", lambda x, i, s: torch.index_add(x, 1, i, s), x, torch.tensor([2, 2]), real(2, 2, 4), dtypes=ONLY)
    case(f, "index_add, alpha", lambda x, i, s: torch.index_add(x, 1, i, s, alpha=2), x, torch.tensor([2, 2]), real(2, 2, 4), dtypes=ONLY)
    case(f, "scatter", lambda x, i, s: torch.scatter(x, 1, i, s), x, torch.tensor([[[0, 1, 2, 0]], [[2, 2, 1, 0]]]), real(2, 3, 4))
    case(f, "scatter, number", lambda x, i: torch.scatter(x, 2, i, 1.5), x, whole(0, 4, 2, 3, 1))
    case(f, "scatter_add", lambda x, i, s: torch.scatter_add(x, 1, i, s), x, whole(0, 3, 2, 3, 4), real(2, 3, 4), dtypes=ONLY)
    case(f, "x[i]", lambda x, i: x[i], x, torch.tensor([1, 0, -1]))
    case(f, "x[:, i]", lambda x, i: x[:, i], x, torch.tensor([[1, 0], [2, -1]]))
    case(f, "x[i, j]", lambda x, i, j: x[i, j], x, torch.tensor([[1], [0]]), torch.tensor([0, 2, -1]))
    case(f, "x[:, i, j]", lambda x, i, j: x[:, i, j], x, torch.tensor([1, 0]), torch.tensor([0, 3]))
    case(f, "x[i, :, j]", lambda x, i, j: x[i, :, j], x, torch.tensor([1, 0]), torch.tensor([0, 3]))
    case(f, "index_put", lambda x, i, v: torch.index_put(x, (i,), v), x, torch.tensor([1]), real(1, 3, 4))
    case(f, "index_put, accumulate", lambda x, i, j, v: torch.index_put(x, (i, j), v, True), x, torch.tensor([1, 1]), torch.tensor([0, 0]),
         real(2, 4), dtypes=ONLY)
    case(f, "one_hot", lambda i: F.one_hot(i, 5), whole(0, 5, 3))


def shapes():
    f = "shapes"
    x = real(2, 3, 4, 5)
    case(f, "transpose", lambda x: x.transpose(1, -1), x)
    case(f, "transpose of rank 0", lambda x: x.transpose(0, -1), real())
    case(f, "permute", lambda x: x.permute(3, -4, 2, 1), x)
    case(f, "t", lambda x: x.t(), real(3, 4))
    case(f, "t of rank 1", lambda x: x.t(), real(3))
    case(f, "mT", lambda x: x.mT, x)
    case(f, "reshape", lambda x: x.reshape(6, -1), x)
    case(f, "view of a permutation", lambda x: x.permute(0, 2, 1, 3).reshape(8, 15), x)
    case(f, "view", lambda x: A.view(x, [-1, 5]), x)
    case(f, "view to rank 0", lambda x: x.view([]), real(1))
    case(f, "view of an empty tensor", lambda x: x.view(0, 6), real(2, 0, 3))
    case(f, "view to another dtype", lambda x: x.view(torch.int32), real(2, 4), dtypes=ONLY, kept="aten.view.dtype")
    case(f, "flatten", lambda x: torch.flatten(x, 1, 2), x)
    case(f, "flatten of rank 0", lambda x: torch.flatten(x), real())
    case(f, "unflatten", lambda x: x.unflatten(-1, (1, 5)), x)
    case(f, "squeeze", lambda x: x.squeeze(), real(1, 3, 1))
    case(f, "squeeze, dim", lambda x: x.squeeze(-1), real(1, 3, 1))
    case(f, "squeeze, dim that is not 1", lambda x: x.squeeze(1), real(1, 3, 1))
    case(f, "squeeze, dims", lambda x: x.squeeze((0, 2)), real(1, 3, 1))
    case(f, "unsqueeze", lambda x: x.unsqueeze(-1).unsqueeze(0), real(3))
    case(f, "unsqueeze, -2", lambda x: x.unsqueeze(-2), x)
    case(f, "expand", lambda x: x.expand(4, 2, 3, -1), real(3, 1).expand(3, 5).contiguous())
    case(f, "expand from 1", lambda x: x.expand(2, -1, 3), real(4, 1))
    case(f, "expand of rank 0", lambda x: x.expand(2, 3), real())
    case(f, "to f64", lambda x: x.to(torch.float64), x)
    case(f, "to int truncates", lambda x: (x * 3).to(torch.int64), x)
    case(f, "to int8 of integers wraps", lambda x: x.to(torch.int8), whole(-300, 300, 9))
    case(f, "to bool", lambda x: x.to(torch.bool), special())
    case(f, "to bf16 and back", lambda x: x.to(torch.bfloat16).to(torch.float32), x, dtypes=ONLY)
    case(f, "to f16", lambda x: x.to(torch.float16), x * 1000)
    case(f, "bool to float", lambda x: x.to(torch.float32), truth(5))
    case(f, "type_as", lambda x, y: x.type_as(y), x, whole(0, 2, 1))
    case(f, "to.dtype of its own dtype", lambda x: A.to.dtype(x, x.dtype), x)
    case(f, "contiguous", lambda x: x.transpose(1, 2).contiguous(), x)
    case(f, "clone, alias, detach", lambda x: A.detach(A.alias(x.clone())), x)
    case(f, "dropout", lambda x: F.dropout(x, 0.3, False), x)
    case(f, "slice", lambda x: x[:, 1:], x)
    case(f, "slice, step", lambda x: x[..., ::2], x)
    case(f, "slice, from the end", lambda x: x[:, :, -3:-1], x)
    case(f, "slice beyond the end", lambda x: A.slice(x, 3, 2, 100), x)
    case(f, "slice, nothing", lambda x: A.slice(x, 1, 3, 1), x)
    case(f, "slice, default", lambda x: A.slice(x), x)
    case(f, "select", lambda x: x[:, -1], x)
    case(f, "select, last dim", lambda x: A.select(x, -1, 2), x)
    case(f, "narrow", lambda x: torch.narrow(x, 2, 1, 2), x)
    case(f, "flip", lambda x: torch.flip(x, (0, -1)), x)
    case(f, "pad", lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), x)
    case(f, "pad, negative", lambda x: F.pad(x, (-1, 2)), x)
    case(f, "pad, reflect", lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"), x, dtypes=ONLY)
    case(f, "pad, replicate", lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"), x, dtypes=ONLY)
    case(f, "pad, circular", lambda x: F.pad(x, (1, 2), mode="circular"), real(2, 3, 5), dtypes=ONLY)
    case(f, "repeat", lambda x: x.repeat(2, 1, 3), real(2, 3))
    case(f, "tile", lambda x: torch.tile(x, (2,)), real(2, 3))
    case(f, "repeat_interleave", lambda x: x.repeat_interleave(3, 1), real(2, 4))
    case(f, "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), real(1, 8, 2, 3))
    case(f, "tril", lambda x: torch.tril(x, -1), real(4, 5))
    case(f, "triu", lambda x: torch.triu(x, 1), real(2, 4, 5))
    case(f, "roll", lambda x: torch.roll(x, 1, 1), real(2, 4), dtypes=FLOATS)
    case(f, "roll, several axes", lambda x: torch.roll(x, (-2, 7, 0), (1, -1, 0)), real(2, 4, 5))
    case(f, "roll, flattened", lambda x: torch.roll(x, -5), real(2, 4))
    case(f, "roll, empty", lambda x: torch.roll(x, 1, 0), real(0, 4))


def joining():
    f = "joining"
    a, b, c = real(2, 3, 4), real(2, 1, 4), real(2, 5, 4)
    case(f, "cat of three", lambda a, b, c: torch.cat((a, b, c), 1), a, b, c, dtypes=FLOATS)
    case(f, "cat of three, dim -2", lambda a, b, c: torch.cat((a, b, c), -2), a, b, c)
    case(f, "cat of one", lambda a: torch.cat((a,), 2), a)
    case(f, "cat, the same twice", lambda a: torch.cat((a, a)), a)
    case(f, "cat of unlike dtypes", lambda a, b: torch.cat((a, b), 1), a, whole(0, 9, 2, 2, 4))
    case(f, "cat with an empty one", lambda a, b: torch.cat((a, b), 1), a, real(2, 0, 4))
    case(f, "cat with one of shape [0]", lambda a, b: torch.cat((a, b), 1), a, real(0))
    case(f, "stack", lambda a, b: torch.stack((a, b), 1), a, real(2, 3, 4))
    case(f, "stack, last", lambda a, b: torch.stack((a, b), -1), a, real(2, 3, 4))
    case(f, "stack of rank 0", lambda a, b: torch.stack((a, b)), real(), real())
    case(f, "split", lambda x: torch.split(x, 2, 1), c)
    case(f, "split, sizes", lambda x: torch.split(x, [1, 0, 4], -2), c)
    case(f, "split, the last alone", lambda x: torch.split(x, 2, 1)[-1], c)
    case(f, "chunk", lambda x: torch.chunk(x, 3, 1), c)
    case(f, "chunk into fewer", lambda x: torch.chunk(x, 4, 1), c)
    case(f, "unbind", lambda x: torch.unbind(x, 1), a)
    case(f, "slice_scatter", lambda x, s: torch.slice_scatter(x, s, 1, 1, 3), c, real(2, 2, 4))
    case(f, "slice_scatter, step", lambda x, s: torch.slice_scatter(x, s, 1, 0, 5, 2), c, real(2, 3, 4))
    case(f, "select_scatter", lambda x, s: torch.select_scatter(x, s, 1, -1), c, real(2, 4))


def matrices():
    f = "matrices"
    case(f, "matmul", torch.matmul, real(2, 3, 4), real(4, 5))
    case(f, "matmul, batches that broadcast", torch.matmul, real(2, 1, 3, 4), real(5, 4, 2))
    case(f, "matmul, vectors", torch.matmul, real(4), real(4))
    case(f, "matmul, vector first", torch.matmul, real(4), real(2, 4, 3))
    case(f, "matmul, vector second", torch.matmul, real(2, 3, 4), real(4))
    case(f, "matmul of integers", torch.matmul, whole(-3, 4, 2, 3), whole(-3, 4, 3, 2))
    case(f, "mm", torch.mm, real(3, 4), real(4, 2), dtypes=FLOATS)
    case(f, "mm over nothing", torch.mm, real(3, 0), real(0, 2))
    case(f, "bmm", torch.bmm, real(2, 3, 4), real(2, 4, 2))
    case(f, "mv", torch.mv, real(3, 4), real(4))
    case(f, "linear", lambda x, w, b: F.linear(x, w, b), real(2, 3, 4), real(5, 4), real(5), weights=(1, 2), dtypes=FLOATS)
    case(f, "linear without bias", lambda x, w: F.linear(x, w), real(2, 4), real(5, 4), weights=(1,))
    case(f, "linear of a vector", lambda x, w, b: F.linear(x, w, b), real(4), real(5, 4), real(5), weights=(1, 2))
    case(f, "linear with a vector of weights", lambda x, w: F.linear(x, w), real(3, 4), real(4), weights=(1,))
    case(f, "addmm", torch.addmm, real(5), real(3, 4), real(4, 5))
    case(f, "addmm, alpha and beta", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=-2), real(3, 1), real(3, 4), real(4, 5))
    case(f, "addmm, odd alpha and beta", lambda c, a, b: torch.addmm(c, a, b, beta=0.3, alpha=0.7), real(5), real(3, 4), real(4, 5),
         dtypes=FLOATS)
    case(f, "addmm, beta 0", lambda c, a, b: torch.addmm(c, a, b, beta=0), torch.full((3, 5), float("nan")), real(3, 4), real(4, 5))
    case(f, "addmm of integers", lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), whole(0, 9, 3, 5), whole(0, 9, 3, 4), whole(0, 9, 4, 5))
    case(f, "baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), real(1, 3, 2), real(2, 3, 4), real(2, 4, 2))
    case(f, "baddbmm, beta 0", lambda c, a, b: torch.baddbmm(c, a, b, beta=0), torch.full((2, 3, 2), float("nan")), real(2, 3, 4), real(2, 4, 2))
    case(f, "outer", torch.outer, real(3), real(4))
    case(f, "einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), real(2, 3, 4), real(2, 5, 4))


def windows():
    f = "windows"
    x, w, b = real(2, 4, 9, 8), real(6, 4, 3, 2), real(6)
    case(f, "conv2d", lambda x, w, b: F.conv2d(x, w, b), x, w, b, weights=(1, 2), dtypes=FLOATS)
    case(f, "conv2d, stride and padding", lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2)), x, w, b, weights=(1, 2))
    case(f, "conv2d, dilation", lambda x, w: F.conv2d(x, w, None, 1, 2, (2, 3)), x, w, weights=(1,))
    case(f, "conv2d, dilation and stride", lambda x, w, b: F.conv2d(x, w, b, 2, 3, 2), x, w, b, weights=(1, 2))
    case(f, "conv2d, groups", lambda x, w, b: F.conv2d(x, w, b, groups=2), x, real(6, 2, 3, 2), b, weights=(1, 2))
    case(f, "conv2d, depthwise", lambda x, w: F.conv2d(x, w, padding=1, groups=4), x, real(8, 1, 3, 3), weights=(1,))
    case(f, "conv2d, same", lambda x, w: F.conv2d(x, w, padding="same"), x, w, weights=(1,))
    case(f, "conv2d, same and dilated", lambda x, w: F.conv2d(x, w, padding="same", dilation=2), x, w, weights=(1,))
    case(f, "conv2d, valid", lambda x, w: F.conv2d(x, w, padding="valid", stride=2), x, w, weights=(1,))
    case(f, "conv2d without a batch", lambda x, w: F.conv2d(x, w), real(4, 9, 8), w, weights=(1,))
    case(f, "conv2d, weights that are no constants", lambda x, w, b: F.conv2d(x, w, b), x, w, b)
    case(f, "conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2), real(2, 4, 11), real(6, 4, 3), b, weights=(1, 2))
    case(f, "conv3d", lambda x, w: F.conv3d(x, w, None, 1, 1), real(1, 2, 4, 5, 3), real(3, 2, 3, 2, 3), weights=(1,), dtypes=ONLY)
    case(f, "conv_transpose2d", lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), x, real(4, 6, 3, 3), b, weights=(1, 2))
    case(f, "conv_transpose2d, groups", lambda x, w: F.conv_transpose2d(x, w, None, 2, 0, 0, 2, 2), x, real(4, 3, 3, 3), weights=(1,))
    case(f, "max_pool2d", lambda x: F.max_pool2d(x, 3), x)
    case(f, "max_pool2d, all arguments", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), (2, 1), True), x)
    case(f, "max_pool2d without a batch", lambda x: F.max_pool2d(x, 2), real(4, 9, 8))
    case(f, "max_pool2d, ceil", lambda x: F.max_pool2d(x, 2, 2, 1, ceil_mode=True), x)
    case(f, "max_pool2d of negatives", lambda x: F.max_pool2d(x, 3, 1, 1), -positive(1, 2, 4, 4))
    case(f, "max_pool2d with indices", lambda x: F.max_pool2d(x, 2, return_indices=True), x, dtypes=ONLY,
         kept="aten.max_pool2d_with_indices.default")
    case(f, "avg_pool2d", lambda x: F.avg_pool2d(x, 3), x)
    case(f, "avg_pool2d, padding", lambda x: F.avg_pool2d(x, 3, 2, 1), x)
    case(f, "avg_pool2d, padding not counted", lambda x: F.avg_pool2d(x, (3, 2), 2, 1, False, False), x)
    case(f, "avg_pool2d, ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, True), x)
    case(f, "avg_pool2d, ceil, padding not counted", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), x)
    case(f, "avg_pool2d, divisor", lambda x: F.avg_pool2d(x, 3, divisor_override=5), x)
    case(f, "avg_pool2d, divisor and padding", lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=4), x)
    case(f, "avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), real(2, 3, 9))
    case(f, "adaptive_avg_pool2d to 1", lambda x: F.adaptive_avg_pool2d(x, 1), x)
    case(f, "adaptive_avg_pool2d to a divisor", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), x)
    case(f, "adaptive_avg_pool2d to sizes that do not divide", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), x)
    case(f, "adaptive_avg_pool2d to more", lambda x: F.adaptive_avg_pool2d(x, (13, 8)), x)
    case(f, "adaptive_avg_pool2d, one size as it is", lambda x: F.adaptive_avg_pool2d(x, (None, 1)), x)
    case(f, "adaptive_avg_pool2d without a batch", lambda x: F.adaptive_avg_pool2d(x, (3, 1)), real(4, 9, 8))
    case(f, "adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 4), real(2, 3, 10))
    case(f, "adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), x)
    case(f, "interpolate, nearest", lambda x: F.interpolate(x, scale_factor=2), x)
    case(f, "interpolate, nearest to a size", lambda x: F.interpolate(x, size=(13, 5)), x)
    case(f, "interpolate, bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x)
    case(f, "interpolate, bilinear, corners", lambda x: F.interpolate(x, size=(11, 5), mode="bilinear", align_corners=True), x)
    case(f, "interpolate, bicubic", lambda x: F.interpolate(x, size=(12, 16), mode="bicubic"), x, dtypes=ONLY)


def normalising():
    f = "normalising"
    x, c = real(2, 4, 5, 3), 4
    s, b, m, v = real(c), real(c), real(c), positive(c)
    case(f, "batch_norm", lambda x, m, v, s, b: F.batch_norm(x, m, v, s, b, False), x, m, v, s, b, weights=(1, 2, 3, 4), dtypes=FLOATS)
    case(f, "batch_norm without scale and bias", lambda x, m, v: F.batch_norm(x, m, v), x, m, v, weights=(1, 2))
    case(f, "batch_norm, scale alone", lambda x, m, v, s: F.batch_norm(x, m, v, s), x, m, v, s, weights=(1, 2, 3))
    case(f, "batch_norm, bias alone", lambda x, m, v, b: F.batch_norm(x, m, v, None, b), x, m, v, b, weights=(1, 2, 3))
    case(f, "batch_norm, eps", lambda x, m, v, s, b: F.batch_norm(x, m, v, s, b, eps=0.5), x, m, v, s, b, weights=(1, 2, 3, 4))
    case(f, "batch_norm of rank 2", lambda x, m, v, s, b: F.batch_norm(x, m, v, s, b), real(3, 4), m, v, s, b, weights=(1, 2, 3, 4))
    case(f, "batch_norm with the statistics of the batch", lambda x, s, b: A.native_batch_norm(x, s, b, None, None, True, 0.1, 1e-5)[0], x, s, b, weights=(1, 2), dtypes=ONLY, kept="aten.native_batch_norm.default")
    case(f, "layer_norm", lambda x, s, b: F.layer_norm(x, (3,), s, b), x, real(3), real(3), weights=(1, 2), dtypes=FLOATS)
    case(f, "layer_norm, two axes", lambda x, s, b: F.layer_norm(x, (5, 3), s, b, 1e-2), x, real(5, 3), real(5, 3), weights=(1, 2))
    case(f, "layer_norm without scale", lambda x: F.layer_norm(x, (3,)), x)
    case(f, "layer_norm, scale alone", lambda x, s: F.layer_norm(x, (3,), s), x, real(3), weights=(1,))
    case(f, "layer_norm, bias alone", lambda x, b: F.layer_norm(x, (3,), None, b), x, real(3), weights=(1,))
    case(f, "native_layer_norm, all outputs", lambda x: A.native_layer_norm(x, [5, 3], None, None, 1e-5), x, dtypes=ONLY)
    case(f, "rms_norm", lambda x, s: F.rms_norm(x, (3,), s), x, real(3), weights=(1,), dtypes=FLOATS)
    case(f, "rms_norm without scale", lambda x: F.rms_norm(x, (5, 3), eps=1e-3), x)
    case(f, "rms_norm, eps of the dtype", lambda x: F.rms_norm(x, (3,)), real(2, 3) * 1e-4, dtypes=FLOATS)
    case(f, "group_norm", lambda x, s, b: F.group_norm(x, 2, s, b), x, s, b, weights=(1, 2))
    case(f, "group_norm without scale", lambda x: F.group_norm(x, 4), x)
    case(f, "group_norm, bias alone", lambda x, b: F.group_norm(x, 2, None, b), x, b, weights=(1,))
    case(f, "instance_norm", lambda x, s, b: F.instance_norm(x, weight=s, bias=b), x, s, b, weights=(1, 2))
    case(f, "softmax, last", lambda x: F.softmax(x, -1), x, dtypes=FLOATS)
    case(f, "softmax, middle", lambda x: F.softmax(x, 1), x, dtypes=FLOATS)
    case(f, "softmax, first", lambda x: F.softmax(x, 0), x)
    case(f, "softmax, dtype", lambda x: F.softmax(x, 1, dtype=torch.float32), x)
    case(f, "softmax of integers", lambda x: F.softmax(x, 0, dtype=torch.float32), whole(0, 9, 4))
    case(f, "softmax, infinite", lambda x: F.softmax(x, -1), torch.tensor([[0.0, float("-inf"), 1.0]]))
    case(f, "softmax of rank 0", lambda x: F.softmax(x, 0), real())
    case(f, "_safe_softmax of a row of nothing", lambda x: A._safe_softmax(x, -1), torch.tensor([[0.0, 1.0], [float("-inf")] * 2]))
    case(f, "log_softmax, middle", lambda x: F.log_softmax(x, 2), x)


def reducing():
    f = "reducing"
    x, i = real(2, 3, 4, 5), whole(-9, 10, 2, 3, 4)
    for name, op in (("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax), ("amin", torch.amin)):
        case(f, f"{name}, all", lambda x, op=op: op(x), x, dtypes=FLOATS)
        case(f, f"{name}, middle", lambda x, op=op: op(x, 1), x, dtypes=FLOATS)
        case(f, f"{name}, middle, kept", lambda x, op=op: op(x, 2, keepdim=True), x)
        case(f, f"{name}, dims", lambda x, op=op: op(x, (-1, 1)), x)
        case(f, f"{name}, empty list", lambda x, op=op: op(x, ()), x)
        case(f, f"{name} of rank 0", lambda x, op=op: op(x), real())
        if name != "mean":
            case(f, f"{name} of integers", lambda x, op=op: op(x, 1), i)
            case(f, f"{name} of int32", lambda x, op=op: op(x, 0), i.int())
        case(f, f"{name} of special values", lambda x, op=op: op(x, 1), special()[1:])
    case(f, "sum of bools", lambda x: torch.sum(x), truth(9))
    case(f, "sum, dtype", lambda x: torch.sum(x, 1, dtype=torch.float64), x)
    case(f, "sum of bf16 in f32", lambda x: torch.sum(x, 1, dtype=torch.float32), x)
    case(f, "sum over nothing", lambda x: torch.sum(x, 1), real(3, 0))
    case(f, "mean over nothing", lambda x: torch.mean(x, 1), real(3, 0))
    case(f, "mean of integers, dtype", lambda x: torch.mean(x, 1, dtype=torch.float32), i)
    case(f, "amax of bools", lambda x: torch.amax(x, 0), truth(3, 4))
    case(f, "prod", lambda x: torch.prod(x, 1), x)
    case(f, "any", lambda x: torch.any(x, 1), truth(4, 2))
    case(f, "all", lambda x: torch.all(x), truth(4, 2))
    case(f, "argmax", lambda x: torch.argmax(x, 1), x)
    case(f, "argmax, all", lambda x: torch.argmax(x), x)
    case(f, "argmin, kept", lambda x: torch.argmin(x, -1, keepdim=True), x)
    case(f, "max, dim", lambda x: torch.max(x, 1), x)
    case(f, "max, all", lambda x: torch.max(x), x)
    case(f, "min, two tensors", lambda x, y: torch.min(x, y), x, real(5))
    case(f, "var", lambda x: torch.var(x, 1), x)
    case(f, "var, population", lambda x: torch.var(x, (1, 2), correction=0, keepdim=True), x)
    case(f, "std", lambda x: torch.std(x, -1), x)
    case(f, "var_mean", lambda x: torch.var_mean(x, 1), x)
    case(f, "vector norm", lambda x: torch.linalg.vector_norm(x, 2, 1), x)
    case(f, "norm 1", lambda x: torch.norm(x, 1, -1), x)
    case(f, "norm 3", lambda x: torch.linalg.vector_norm(x, 3, 1), x)
    case(f, "logsumexp", lambda x: torch.logsumexp(x, 1), x)
    case(f, "cumsum", lambda x: torch.cumsum(x, 1), x)
    case(f, "cumsum of integers", lambda x: torch.cumsum(x, -1), i.int())
    case(f, "diff", lambda x: torch.diff(x), x, dtypes=FLOATS)
    case(f, "diff, three times", lambda x: torch.diff(x, 3, 1), real(2, 6, 3))
    case(f, "diff, more often than it has elements", lambda x: torch.diff(x, 9, 0), x)
    case(f, "diff of integers, prepend", lambda x, y: torch.diff(x, prepend=y), i, i[..., :1] - 1)
    case(f, "diff, append of another dtype", lambda x, y: torch.diff(x, dim=0, append=y), i, real(1, 3, 4))
    case(f, "diff of bools, prepend and append", lambda x, y: torch.diff(x, 2, prepend=y, append=y), truth(3, 4), truth(3, 2))
    case(f, "diff, no times", lambda x, y: torch.diff(x, 0, prepend=y), x, x)
    case(f, "diff, one element", lambda x: torch.diff(x), real(3, 1))
    case(f, "topk", lambda x: torch.topk(x, 2, 1), x, dtypes=ONLY)
    case(f, "topk, smallest", lambda x: torch.topk(x, 3, -1, largest=False)[0], x, dtypes=ONLY)
    case(f, "sort", lambda x: torch.sort(x, 1, descending=True), x, dtypes=ONLY)


def making():
    f = "making"
    x = real(2, 3)
    case(f, "arange", lambda x: torch.arange(5) + whole_of(x), x)
    case(f, "arange, step", lambda x: torch.arange(7, 0, -2) + whole_of(x), x)
    case(f, "arange, fractions", lambda x: torch.arange(0.5, 2.0, 0.3) + x.sum() * 0, x, dtypes=ONLY)
    case(f, "arange, dtype", lambda x: torch.arange(4, dtype=torch.float32) + x.sum() * 0, x, dtypes=ONLY)
    case(f, "arange, one third", lambda x: torch.arange(0, 1, 1 / 3) + x.sum() * 0, x, dtypes=ONLY)
    case(f, "arange, bf16", lambda x: torch.arange(0, 3, 0.25, dtype=torch.bfloat16) + x.sum() * 0, x)
    case(f, "full", lambda x: torch.full((2, 3), 1.5) + x, x)
    case(f, "full of a bool", lambda x: torch.full((2, 3), True) & (x > 0), x)
    case(f, "full of a whole number", lambda x: torch.full((3,), 7) + whole_of(x), x)
    case(f, "full, infinite", lambda x: torch.maximum(torch.full((3,), float("-inf"), dtype=x.dtype), x), x)
    case(f, "full_like, dtype", lambda x: torch.full_like(x, 2.5, dtype=torch.int32) + 0, x)
    case(f, "full_like of integers", lambda x: torch.full_like(x, 2) + x, whole(0, 9, 3))
    case(f, "ones_like", lambda x: torch.ones_like(x) + x, x)
    case(f, "zeros_like", lambda x: torch.zeros_like(x, dtype=torch.int64) + 1, x)
    case(f, "new_zeros", lambda x: x.new_zeros((4, 3)) + x[0], x)
    case(f, "eye", lambda x: torch.eye(2, 3) + x, x)
    case(f, "scalar_tensor", lambda x: torch.scalar_tensor(2.5) * x, x)
    case(f, "fill", lambda x: torch.fill(x, 3), x)


def whole_of(x):
    return (x.sum() * 0).to(torch.int64)


def attending():
    f = "attending"
    q, k, v = real(2, 4, 3, 8), real(2, 4, 5, 8), real(2, 4, 5, 6)
    attend = F.scaled_dot_product_attention
    case(f, "attention", attend, q, k, v, dtypes=FLOATS)
    case(f, "attention, scale", lambda q, k, v: attend(q, k, v, scale=0.7), q, k, v)
    case(f, "attention, causal", lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v)
    case(f, "attention, causal square", lambda q: attend(q, q, q, is_causal=True), real(1, 2, 6, 4))
    case(f, "attention, mask of truths", lambda q, k, v, m: attend(q, k, v, m), q, k, v, truth(3, 5) | torch.eye(3, 5).bool())
    case(f, "attention, a row masked wholly", lambda q, k, v, m: attend(q, k, v, m), q, k, v,
         torch.tensor([[True] * 5, [False] * 5, [True, False, True, False, False]]))
    case(f, "attention, mask of numbers", lambda q, k, v, m: attend(q, k, v, m), q, k, v, real(2, 1, 3, 5))
    case(f, "attention, a row of minus infinity", lambda q, k, v, m: attend(q, k, v, m), q, k, v,
         torch.tensor([[0.0] * 5, [float("-inf")] * 5, [0.0, float("-inf"), 1.0, 0.5, 0.25]]))
    case(f, "attention, groups", lambda q, k, v: attend(q, k, v, enable_gqa=True), q, k[:, :2].contiguous(), v[:, :2].contiguous())
    case(f, "attention of rank 3", attend, q[0].contiguous(), k[0].contiguous(), v[0].contiguous())
    case(f, "attention, large scores", lambda q, k, v: attend(q, k, v, scale=4.0), q * 3, k, v)


def make_all():
    for family in (pointwise, arithmetic, selecting, shapes, joining, matrices, windows, normalising, reducing, making, attending):
        family()
    return CASES
