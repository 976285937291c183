"""The nodes of random graphs. Each function adds a node or a small pattern to a graph, or returns False if no value is suitable.
size-ok: one function per operator family.

Correct implementations must agree on the results of the graphs. So values stay small. Discontinuous operators (comparisons,
rounding, casts to integers) read only exact values, for which any correct implementation computes the same bits.
"""
import numpy as np

F16, F32, F64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
I8, U8, I32, I64, BOOL = (np.dtype(t) for t in ("int8", "uint8", "int32", "int64", "bool"))
FLOATS, INTS = (F16, F32, F64), (I32, I64)
NUMBERS = FLOATS + INTS
MOST = {F16: 4.0, F32: 64.0, F64: 64.0, I32: 1e5, I64: 1e6}  # largest magnitude a value may have
MOST_ELEMENTS = 3000


def broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def partner(r, value):
    """Returns a second operand: the value itself, another value that broadcasts with it, or a constant."""
    kind = r.random.random()
    if kind < 0.15:
        r.features.add("value that is read twice by one node")
        return value
    if kind < 0.7:
        fits = [v for v in r.visible() if v.dtype == value.dtype and (s := broadcast(v.shape, value.shape)) is not None
                and np.prod(s) <= MOST_ELEMENTS]
        if fits:
            return r.random.choice(fits)
    shape = tuple(1 if r.random.random() < 0.3 else d for d in value.shape)[r.random.randint(0, len(value.shape)):]
    return r.constant(value.dtype, shape)


# --- elementwise

def unary_float(r):
    v = r.pick(FLOATS)
    if v is None:
        return False
    op, magnitude, exact, attributes = r.random.choice([
        ("Relu", v.magnitude, True, {}), ("Neg", v.magnitude, True, {}), ("Abs", v.magnitude, True, {}),
        ("Identity", v.magnitude, True, {}), ("Sigmoid", 1, False, {}), ("Tanh", 1, False, {}), ("Erf", 1, False, {}),
        ("LeakyRelu", v.magnitude, False, {"alpha": 0.1}), ("Elu", v.magnitude, False, {}),
        ("HardSigmoid", 1, False, {}), ("HardSwish", v.magnitude, False, {}), ("Softplus", v.magnitude + 1, False, {}),
        ("Softsign", 1, False, {}), ("Selu", 2 * v.magnitude, False, {}), ("Sin", 1, False, {}), ("Cos", 1, False, {})])
    too_new = op == "HardSwish" and r.g.opset < 14
    no_oracle = v.dtype == F64 and not exact and op not in ("Sigmoid", "Tanh", "Sin", "Cos")
    if magnitude > MOST[v.dtype] or too_new or no_oracle:
        op, magnitude, exact, attributes = "Tanh", 1, False, {}
    r.node(op, [v], v.dtype, v.shape, v.exact and exact, magnitude, **attributes)


def unary_exact(r):
    v = r.pick((F32, F64), exact=True)
    if v is None:
        return False
    r.node(r.random.choice(["Floor", "Ceil", "Round", "Sign"]), [v], v.dtype, v.shape, True, v.magnitude + 1)


def unary_int(r):
    v = r.pick(INTS)
    if v is None:
        return False
    r.node(r.random.choice(["Neg", "Abs", "Identity"]), [v], v.dtype, v.shape, True, v.magnitude)


def safe_root(r):
    """Adds a Sqrt, Reciprocal or Log of |x| + 0.5, because their errors are large near 0."""
    v = r.pick((F32, F64))
    if v is None or v.magnitude > 30:
        return False
    v = r.node("Abs", [v], v.dtype, v.shape, False, v.magnitude)
    v = r.node("Add", [v, r.number(v.dtype, 0.5)], v.dtype, v.shape, False, v.magnitude + 0.5)
    r.node(r.random.choice(["Sqrt", "Reciprocal", "Log"]), [v], v.dtype, v.shape, False, v.magnitude + 2)


def exponential(r):
    v = r.pick((F32,))
    if v is None or v.magnitude > 3:
        return False
    r.node("Exp", [v], v.dtype, v.shape, False, 21)


def binary(r):
    v = r.pick(NUMBERS)
    if v is None:
        return False
    w = partner(r, v)
    shape = broadcast(v.shape, w.shape)
    op = r.random.choice(["Add", "Sub", "Mul", "Max", "Min"])
    magnitude = {"Add": v.magnitude + w.magnitude, "Sub": v.magnitude + w.magnitude, "Mul": v.magnitude * w.magnitude}.get(
        op, max(v.magnitude, w.magnitude))
    if magnitude > MOST[v.dtype] or int(np.prod(shape)) > MOST_ELEMENTS:
        return False
    operands = [v, w] if r.random.random() < 0.5 else [w, v]
    # sums and products of floats may need more bits than the dtype has, so they do not count as exact
    exact = v.exact and w.exact and (op in ("Max", "Min") or v.dtype in INTS)
    r.node(op, operands, v.dtype, shape, exact, magnitude)


def variadic(r):
    v = r.pick((F32, F64))
    if v is None:
        return False
    operands = [v] + [partner(r, v) for _ in range(r.random.randint(0, 3))]
    shape = v.shape
    for w in operands[1:]:
        shape = None if shape is None else broadcast(shape, w.shape)
    if shape is None or np.prod(shape) > MOST_ELEMENTS:
        return False
    op = r.random.choice(["Sum", "Mean", "Max", "Min"] if v.dtype == F32 else ["Sum", "Max", "Min"])
    magnitude = sum(w.magnitude for w in operands)
    if magnitude > MOST[v.dtype]:
        return False
    r.node(op, operands, v.dtype, shape, False, magnitude)


def divide(r):
    v = r.pick(FLOATS)
    if v is None:
        return False
    r.node("Div", [v, r.number(v.dtype, r.random.choice([-2.5, 1.5, 3.0]))], v.dtype, v.shape, False, v.magnitude)


def modulo(r):
    v = r.pick(INTS)
    if v is None:
        return False
    r.node("Mod", [v, r.number(v.dtype, r.random.choice([2, 3, 7]))], v.dtype, v.shape, True, 7)


def power(r):
    v = r.pick((F32,))
    if v is None or v.magnitude > 7:
        return False
    r.node("Pow", [v, r.number(F32, 2)], v.dtype, v.shape, False, v.magnitude ** 2)


def clip(r):
    v = r.pick((F32, F64))
    if v is None:
        return False
    low, high = r.number(v.dtype, -0.75), r.number(v.dtype, 1.25)
    operands = r.random.choice([[v, low, high], [v, None, high], [v, low]])
    if None in operands:
        r.features.add("absent optional input")
    r.node("Clip", operands, v.dtype, v.shape, v.exact, max(v.magnitude, 1.25))


def compare(r):
    v = r.pick((F32, I32, I64), exact=True)
    if v is None:
        return False
    w = partner(r, v)
    if not w.exact:
        return False
    shape = broadcast(v.shape, w.shape)
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    op = r.random.choice(["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
    r.node(op, [v, w], BOOL, shape, True, 1)


def logic(r):
    v = r.pick((BOOL,))
    if v is None:
        return False
    if r.random.random() < 0.3:
        r.node("Not", [v], BOOL, v.shape, True, 1)
        return
    w = partner(r, v)
    shape = broadcast(v.shape, w.shape)
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    r.node(r.random.choice(["And", "Or", "Xor"]), [v, w], BOOL, shape, True, 1)


def where(r):
    c, v = r.pick((BOOL,)), r.pick((F32, F64, I32, I64))
    if c is None or v is None:
        return False
    w = partner(r, v)
    shape = broadcast(v.shape, w.shape)
    shape = None if shape is None else broadcast(shape, c.shape)
    if shape is None or np.prod(shape) > MOST_ELEMENTS:
        return False
    r.node("Where", [c, v, w], v.dtype, shape, v.exact and w.exact, max(v.magnitude, w.magnitude))


def cast(r):
    v = r.pick(NUMBERS + (BOOL,))
    if v is None:
        return False
    targets = [F32, F64] + ([F16] if v.magnitude <= MOST[F16] else [])
    if v.exact:
        targets += [I32, I64, BOOL]
    target = r.random.choice(targets)
    if v.magnitude > MOST.get(target, 1e9):
        return False
    exact = v.exact and (target != F16 or v.dtype == BOOL)
    r.node("Cast", [v], target, v.shape, exact, 1 if target == BOOL else v.magnitude, to=r.onnx_type(target))


def quantize(r):
    v = r.pick((F32,), exact=True)
    if v is None:
        return False
    target = r.random.choice([I8, U8])
    scale, zero = r.number(F32, 0.0625), r.number(target, 3)
    q = r.node("QuantizeLinear", [v, scale, zero], target, v.shape, True, 255)
    r.node("DequantizeLinear", [q, scale, zero], F32, v.shape, True, 16)


# --- views and movement

def any_value(r, **conditions):
    return r.pick(NUMBERS + (BOOL,), **conditions)


def factors(r, count):
    """Returns a random shape with `count` elements."""
    shape, rest = [], count
    while rest > 1 and len(shape) < 3:
        choices = [d for d in range(2, rest + 1) if rest % d == 0]
        d = r.random.choice(choices[:4])
        shape.append(d)
        rest //= d
    if rest > 1:
        shape.append(rest)
    if r.random.random() < 0.3:
        shape.insert(r.random.randint(0, len(shape)), 1)
    return tuple(shape)


def moved(r, op, v, shape, *more, **attributes):
    return r.node(op, [v, *more], v.dtype, shape, v.exact, v.magnitude, **attributes)


def reshape(r):
    v = any_value(r)
    if v is None:
        return False
    if v.size == 0:
        shape = v.shape[::-1]
        return moved(r, "Reshape", v, shape, r.ints(shape), allowzero=1) if r.g.opset >= 14 else False
    shape = factors(r, v.size)
    written = list(shape)
    if written and r.random.random() < 0.5:
        written[r.random.randrange(len(written))] = -1
    for axis in range(min(len(written), len(v.shape))):
        if written[axis] == v.shape[axis] and r.random.random() < 0.5:
            written[axis] = 0
    moved(r, "Reshape", v, shape, r.ints(written))


def reshape_by_shape(r):
    """Adds Shape -> Gather -> Mul -> Concat -> Reshape, as exporters write `x.view(n, -1)`."""
    v = any_value(r, min_rank=1, nonempty=True)
    if v is None:
        return False
    r.features.add("shape computed by nodes")
    axis = r.random.randrange(len(v.shape))
    shape = r.node("Shape", [v], I64, (len(v.shape),), True, 100)
    d = r.node("Gather", [shape, r.number(I64, axis)], I64, (), True, 100, axis=0)
    if r.random.random() < 0.5:
        d = r.node("Unsqueeze", [d, r.ints([0])], I64, (1,), True, 100)
        rest = r.ints([-1])
    else:
        whole = r.node("ReduceProd", [shape], I64, (), True, 1e6, keepdims=0)
        rest = r.node("Div", [whole, d], I64, (), True, 1e6)
        rest = r.node("Unsqueeze", [rest, r.ints([0])], I64, (1,), True, 1e6)
        d = r.node("Reshape", [d, r.ints([1])], I64, (1,), True, 100)
    target = r.node("Concat", [d, rest], I64, (2,), True, 1e6, axis=0)
    moved(r, "Reshape", v, (v.shape[axis], v.size // v.shape[axis]), target)


def fill_by_shape(r):
    v = r.pick((F32,))
    if v is None:
        return False
    r.features.add("shape computed by nodes")
    shape = r.node("Shape", [v], I64, (len(v.shape),), True, 100)
    fill = r.node("ConstantOfShape", [shape], F32, v.shape, True, 1, value=r.tensor(np.array([0.5], np.float32)))
    r.node("Add", [v, fill], F32, v.shape, False, v.magnitude + 1)


def range_by_shape(r):
    v = any_value(r, min_rank=1)
    if v is None:
        return False
    r.features.add("shape computed by nodes")
    shape = r.node("Shape", [v], I64, (len(v.shape),), True, 100)
    d = r.node("Gather", [shape, r.number(I64, -1)], I64, (), True, 100, axis=0)
    r.node("Range", [r.number(I64, 0), d, r.number(I64, 1)], I64, (v.shape[-1],), True, 100)


def count(r):
    v = any_value(r)
    if v is None:
        return False
    r.node("Size", [v], I64, (), True, MOST_ELEMENTS)


def flatten(r):
    v = any_value(r)
    if v is None or r.g.opset < 13:
        return False
    axis = r.random.randint(0, len(v.shape))
    moved(r, "Flatten", v, (int(np.prod(v.shape[:axis])), int(np.prod(v.shape[axis:]))), axis=axis)


def squeeze(r):
    v = any_value(r)
    ones = [i for i, d in enumerate(v.shape) if d == 1] if v else []
    if not ones:
        return False
    if r.random.random() < 0.3:
        moved(r, "Squeeze", v, tuple(d for d in v.shape if d != 1))
        return
    axis = r.random.choice(ones)
    written = axis - len(v.shape) if r.random.random() < 0.5 else axis
    moved(r, "Squeeze", v, v.shape[:axis] + v.shape[axis + 1:], r.ints([written]))


def unsqueeze(r):
    v = any_value(r, max_rank=4)
    if v is None:
        return False
    axis = r.random.randint(0, len(v.shape))
    moved(r, "Unsqueeze", v, v.shape[:axis] + (1,) + v.shape[axis:], r.ints([axis]))


def view_chain(r):
    """Adds a chain of views, whose first value other nodes can also read."""
    v = r.pick((F32, F64, I64), nonempty=True, max_rank=3)
    if v is None:
        return False
    r.features.add("view of a view")
    w = moved(r, "Identity", v, v.shape)
    w = moved(r, "Unsqueeze", w, (1,) + w.shape, r.ints([0]))
    w = moved(r, "Reshape", w, (w.size,), r.ints([-1]))
    w = moved(r, "Reshape", w, v.shape, r.ints(v.shape))
    if 2 * v.magnitude <= MOST[v.dtype]:
        r.node("Add", [v, w], v.dtype, v.shape, v.exact and v.dtype == I64, 2 * v.magnitude)


def transpose(r):
    v = any_value(r, min_rank=2)
    if v is None:
        return False
    perm = list(range(len(v.shape)))
    r.random.shuffle(perm)
    moved(r, "Transpose", v, tuple(v.shape[p] for p in perm), perm=perm)


def expand(r):
    v = any_value(r, max_rank=3)
    if v is None:
        return False
    shape = tuple(r.random.choice([2, 3]) if d == 1 else d for d in v.shape)
    if r.random.random() < 0.5:
        shape = (2,) + shape
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    moved(r, "Expand", v, shape, r.ints(shape))


def tile(r):
    v = any_value(r, min_rank=1)
    if v is None:
        return False
    repeats = [r.random.choice([1, 1, 2]) for _ in v.shape]
    shape = tuple(d * n for d, n in zip(v.shape, repeats))
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    moved(r, "Tile", v, shape, r.ints(repeats))


def concat(r):
    v = any_value(r, min_rank=1)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    fits = [w for w in r.visible() if w.dtype == v.dtype and len(w.shape) == len(v.shape)
            and all(i == axis or a == b for i, (a, b) in enumerate(zip(w.shape, v.shape)))]
    parts = [v] + [r.random.choice(fits) for _ in range(r.random.randint(1, 3))]
    if len({id(p) for p in parts}) < len(parts):
        r.features.add("value that is read twice by one node")
    shape = v.shape[:axis] + (sum(p.shape[axis] for p in parts),) + v.shape[axis + 1:]
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    r.node("Concat", parts, v.dtype, shape, all(p.exact for p in parts), max(p.magnitude for p in parts), axis=axis)


def split(r):
    v = any_value(r, min_rank=1)
    axes = [i for i, d in enumerate(v.shape) if d >= 2] if v else []
    if not axes:
        return False
    axis = r.random.choice(axes)
    first = r.random.randint(0 if r.random.random() < 0.2 else 1, v.shape[axis] - 1)
    sizes = [first, v.shape[axis] - first]
    if 0 in sizes:
        r.features.add("zero-size tensor")
    shapes = [v.shape[:axis] + (s,) + v.shape[axis + 1:] for s in sizes]
    r.nodes("Split", [v, r.ints(sizes)], [(v.dtype, s, v.exact, v.magnitude) for s in shapes], axis=axis)


def slice_(r):
    v = any_value(r, min_rank=1)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    d = v.shape[axis]
    if r.random.random() < 0.1:
        start, end, step = 0, 0, 1
        r.features.add("zero-size tensor")
    elif r.random.random() < 0.3:
        start, end, step = -1, -(2 ** 31), r.random.choice([-1, -2])
    else:
        start, end, step = r.random.randint(0, max(0, d - 1)), r.random.choice([d, 2 ** 62, -1]), r.random.choice([1, 1, 2])
    length = len(range(d)[slice(start, end, step)])
    shape = v.shape[:axis] + (length,) + v.shape[axis + 1:]
    moved(r, "Slice", v, shape, r.ints([start]), r.ints([end]), r.ints([axis]), r.ints([step]))


def gather(r):
    v = any_value(r, min_rank=1)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    d = v.shape[axis]
    if d == 0:
        return False
    index_shape = r.random.choice([(), (2,), (1, 3), (0,)])
    if index_shape == (0,):
        r.features.add("zero-size tensor")
    index = r.array(np.array(r.numpy.integers(-d, d, index_shape), r.random.choice([np.int32, np.int64])))
    shape = v.shape[:axis] + index_shape + v.shape[axis + 1:]
    moved(r, "Gather", v, shape, index, axis=axis)


def gather_elements(r):
    v = any_value(r, min_rank=1, nonempty=True)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    index = r.array(r.numpy.integers(0, v.shape[axis], v.shape).astype(np.int64))
    moved(r, "GatherElements", v, v.shape, index, axis=axis)


def scatter(r):
    v = r.pick((F32, I64), min_rank=1, nonempty=True)
    if v is None:
        return False
    if r.random.random() < 0.5:
        index = r.array(np.array([[r.random.randrange(v.shape[0])]], np.int64))
        updates = r.constant(v.dtype, (1,) + v.shape[1:])
        moved(r, "ScatterND", v, v.shape, index, updates)
    else:
        rows = list(range(v.shape[0]))
        r.random.shuffle(rows)
        index = np.zeros(v.shape, np.int64) + np.array(rows).reshape([-1] + [1] * (len(v.shape) - 1))
        moved(r, "ScatterElements", v, v.shape, r.array(index), r.constant(v.dtype, v.shape), axis=0)


def pad(r):
    v = r.pick((F32, F64), min_rank=1, nonempty=True)
    if v is None:
        return False
    mode = r.random.choice(["constant", "edge", "reflect"])
    most = [min(2, d - 1) if mode == "reflect" else 2 for d in v.shape]
    begin, end = ([r.random.randint(0, m) for m in most] for _ in range(2))
    shape = tuple(b + d + e for b, d, e in zip(begin, v.shape, end))
    if np.prod(shape) > MOST_ELEMENTS:
        return False
    moved(r, "Pad", v, shape, r.ints(begin + end), mode=mode)


def trilu(r):
    v = r.pick((F32, I64), min_rank=2, nonempty=True)
    if v is None or r.g.opset < 14:
        return False
    moved(r, "Trilu", v, v.shape, r.number(I64, r.random.randint(-1, 1)), upper=r.random.randint(0, 1))


def dropout(r):
    v = r.pick((F32,))
    if v is None:
        return False
    r.features.add("unused node output")
    r.nodes("Dropout", [v], [(v.dtype, v.shape, v.exact, v.magnitude), (BOOL, v.shape, True, 1)])


# --- products, windows, reductions

def matmul(r):
    v = r.pick((F32, F64, F16), min_rank=1, nonempty=True)
    if v is None:
        return False
    k = v.shape[-1]
    if r.random.random() < 0.3 and len(v.shape) >= 2 and v.dtype != F16:
        perm = list(range(len(v.shape)))
        perm[-1], perm[-2] = perm[-2], perm[-1]
        t = moved(r, "Transpose", v, v.shape[:-2] + (v.shape[-1], v.shape[-2]), perm=perm)
        if k * v.magnitude ** 2 <= MOST[v.dtype]:
            r.node("MatMul", [v, t], v.dtype, v.shape[:-1] + (v.shape[-2],), False, k * v.magnitude ** 2)
        return
    n = r.random.choice([1, 2, 5])
    w = r.array((r.numpy.standard_normal((k, n)) / (2 * k)).clip(-1.0 / k, 1.0 / k).astype(v.dtype))
    r.node("MatMul", [v, w], v.dtype, v.shape[:-1] + (n,), False, v.magnitude)


def gemm(r):
    v = r.pick((F32,), rank=2, nonempty=True)
    if v is None:
        return False
    k, n, transposed = v.shape[1], r.random.choice([1, 3, 4]), r.random.randint(0, 1)
    w = (r.numpy.standard_normal((n, k) if transposed else (k, n)) / k).clip(-1.0 / k, 1.0 / k).astype(np.float32)
    operands = [v, r.array(w)] + ([r.constant(F32, (n,))] if r.random.random() < 0.5 else [])
    r.node("Gemm", operands, F32, (v.shape[0], n), False, v.magnitude + 2, alpha=0.5, transB=transposed)


def einsum(r):
    v = r.pick((F32,), rank=2, nonempty=True)
    if v is None or v.magnitude > 3:
        return False
    equation, shape = r.random.choice([("ij,kj->ik", (v.shape[0],) * 2), ("ij,ij->i", (v.shape[0],))])
    if v.shape[1] * v.magnitude ** 2 > MOST[F32]:
        return False
    r.features.add("value that is read twice by one node")
    r.node("Einsum", [v, v], F32, shape, False, v.shape[1] * v.magnitude ** 2, equation=equation)


def convolution(r):
    v = r.pick((F32,), rank=4, nonempty=True)
    if v is None:
        return False
    n, c, h, w = v.shape
    m, k = r.random.choice([1, 2, 4]), r.random.choice([1, 3])
    groups = c if r.random.random() < 0.3 else 1
    m = c * 2 if groups > 1 else m
    fan = c // groups * k * k
    weight = r.array((r.numpy.standard_normal((m, c // groups, k, k)) / fan).clip(-1.0 / fan, 1.0 / fan).astype(np.float32))
    bias = [r.constant(F32, (m,))] if r.random.random() < 0.5 else []
    stride = r.random.choice([1, 2])
    shape = (n, m, (h - 1) // stride + 1, (w - 1) // stride + 1)
    y = r.node("Conv", [v, weight, *bias], F32, shape, False, v.magnitude + 2, kernel_shape=[k, k], strides=[stride] * 2,
               pads=[k // 2] * 4, group=groups)
    if r.random.random() < 0.5:
        y = r.node("BatchNormalization", [y] + [r.array(a.astype(np.float32)) for a in (
            np.linspace(0.5, 1, m), np.linspace(-1, 1, m), np.linspace(-0.5, 0.5, m), np.linspace(0.5, 1, m))], F32, shape, False,
            2 * y.magnitude + 2)
    if r.random.random() < 0.5:
        r.node("Relu", [y], F32, shape, False, y.magnitude)


def pool(r):
    v = r.pick((F32,), rank=4, nonempty=True)
    if v is None:
        return False
    n, c, h, w = v.shape
    kind = r.random.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "indices"])
    if kind.startswith("Global"):
        r.node(kind, [v], F32, (n, c, 1, 1), False, v.magnitude)
        return
    if min(h, w) < 2:
        return False
    shape = (n, c, h - 1, w - 1)
    if kind == "indices":
        r.features.add("unused node output")
        r.nodes("MaxPool", [v], [(F32, shape, v.exact, v.magnitude), (I64, shape, v.exact, MOST_ELEMENTS)],
                kernel_shape=[2, 2])
    else:
        r.node(kind, [v], F32, shape, v.exact and kind == "MaxPool", v.magnitude, kernel_shape=[2, 2])


def resize(r):
    v = r.pick((F32,), rank=4, nonempty=True)
    if v is None or 4 * v.size > MOST_ELEMENTS:
        return False
    n, c, h, w = v.shape
    scales = r.array(np.array([1, 1, 2, 2], np.float32))
    r.features.add("absent optional input")
    r.node("Resize", [v, None, scales], F32, (n, c, 2 * h, 2 * w), v.exact, v.magnitude, mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def depth_space(r):
    v = r.pick((F32,), rank=4)
    if v is None:
        return False
    n, c, h, w = v.shape
    if c % 4 == 0 and c:
        moved(r, "DepthToSpace", v, (n, c // 4, 2 * h, 2 * w), blocksize=2, mode=r.random.choice(["DCR", "CRD"]))
    elif h % 2 == 0 and w % 2 == 0 and h * w:
        moved(r, "SpaceToDepth", v, (n, 4 * c, h // 2, w // 2), blocksize=2)
    else:
        return False


def reduce(r):
    v = r.pick((F32, F64, I32, I64))
    if v is None:
        return False
    ops = {"ReduceSum": v.size * v.magnitude, "ReduceMean": v.magnitude, "ReduceMax": v.magnitude, "ReduceMin": v.magnitude,
           "ReduceL1": v.size * v.magnitude, "ReduceSumSquare": v.size * v.magnitude ** 2}
    op = r.random.choice(list(ops)) if v.dtype in FLOATS else r.random.choice(["ReduceSum", "ReduceMax", "ReduceMin"])
    if v.size == 0:
        op = "ReduceSum"
    if ops[op] > MOST[v.dtype]:
        op = "ReduceMean" if v.dtype in FLOATS and v.size else "ReduceSum" if v.size == 0 else "ReduceMax"
    axes = sorted(a for a in range(len(v.shape)) if r.random.random() < 0.6)
    keep = r.random.randint(0, 1)
    every = not axes  # without axes, all axes are reduced
    shape = [1 if every or a in axes else d for a, d in enumerate(v.shape)] if keep else [
        d for a, d in enumerate(v.shape) if not every and a not in axes]
    if v.size and axes and v.size != 0 and r.random.random() < 0.3:
        axes = [a - len(v.shape) for a in axes]
    operands, attributes = [v], {"keepdims": keep}
    if axes and (op == "ReduceSum" or r.g.opset >= 18):
        operands.append(r.ints(axes))
    elif axes:
        attributes["axes"] = axes
    exact = v.exact and (v.dtype in INTS or op in ("ReduceMax", "ReduceMin"))
    if not shape:
        r.features.add("rank-0 tensor")
    r.node(op, operands, v.dtype, tuple(shape), exact, min(ops[op], MOST[v.dtype]), **attributes)


def softmax(r):
    v = r.pick((F32, F64), min_rank=1, nonempty=True)
    if v is None:
        return False
    op = r.random.choice(["Softmax", "LogSoftmax"])
    r.node(op, [v], v.dtype, v.shape, False, 1 if op == "Softmax" else 2 * v.magnitude + 8,
           axis=r.random.randint(-len(v.shape), len(v.shape) - 1))


def layer_normalization(r):
    v = r.pick((F32,), min_rank=1, nonempty=True)
    if v is None or r.g.opset < 17:
        return False
    d = v.shape[-1]
    operands = [v, r.constant(F32, (d,))] + ([r.constant(F32, (d,))] if r.random.random() < 0.7 else [])
    r.node("LayerNormalization", operands, F32, v.shape, False, 8, axis=-1, epsilon=0.1)


def arg_extreme(r):
    v = r.pick((F32, I32), exact=True, min_rank=1, nonempty=True)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    keep = r.random.randint(0, 1)
    shape = v.shape[:axis] + ((1,) if keep else ()) + v.shape[axis + 1:]
    r.node(r.random.choice(["ArgMax", "ArgMin"]), [v], I64, shape, True, 100, axis=axis, keepdims=keep)


def top_k(r):
    v = r.pick((F32, I64), exact=True, min_rank=1, nonempty=True)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    k = r.random.randint(1, v.shape[axis])
    shape = v.shape[:axis] + (k,) + v.shape[axis + 1:]
    r.nodes("TopK", [v, r.ints([k])], [(v.dtype, shape, True, v.magnitude), (I64, shape, True, 100)], axis=axis,
            largest=r.random.randint(0, 1))


def cumulative_sum(r):
    v = r.pick((F32, I64), min_rank=1, nonempty=True)
    if v is None:
        return False
    axis = r.random.randrange(len(v.shape))
    magnitude = v.magnitude * v.shape[axis]
    if magnitude > MOST[v.dtype]:
        return False
    r.node("CumSum", [v, r.number(I64, axis)], v.dtype, v.shape, v.exact and v.dtype == I64, magnitude,
           exclusive=r.random.randint(0, 1), reverse=r.random.randint(0, 1))


def one_hot(r):
    v = r.pick((I64,), min_rank=1, max_rank=2)
    if v is None:
        return False
    if 4 * v.size > MOST_ELEMENTS:
        return False
    v = r.node("Mod", [v, r.number(I64, 4)], I64, v.shape, True, 4)
    values = r.array(np.array([-0.5, 2], np.float32))
    r.node("OneHot", [v, r.number(I64, 4), values], F32, v.shape + (4,), True, 2, axis=-1)


def selected_by_data(r):
    """Adds values whose size depends on the data, and sums them up: NonZero -> Transpose -> GatherND -> ReduceSum."""
    v = r.pick((F32,), exact=True, min_rank=1, nonempty=True)
    if v is None or v.size * v.magnitude > MOST[F32]:
        return False
    r.features.add("size that depends on the data")
    chosen = r.node("Greater", [v, r.number(F32, 0.3)], BOOL, v.shape, True, 1)
    index = r.node("NonZero", [chosen], I64, None, True, 100)
    index = r.node("Transpose", [index], I64, None, True, 100, perm=[1, 0])
    picked = r.node("GatherND", [v, index], F32, None, True, v.magnitude)
    r.node("ReduceSum", [picked], F32, (), False, v.size * v.magnitude, keepdims=0)


COMMON = [unary_float, unary_float, binary, binary, binary, variadic, divide, clip, reshape, transpose, concat, split, slice_, gather,
          matmul, reduce, softmax, convolution, pool]
OTHERS = [unary_exact, unary_int, safe_root, exponential, modulo, power, compare, logic, where, cast, quantize, reshape_by_shape,
          fill_by_shape, range_by_shape, count, flatten, squeeze, unsqueeze, view_chain, expand, tile, gather_elements, scatter, pad,
          trilu, dropout, gemm, einsum, resize, depth_space, layer_normalization, arg_extreme, top_k, cumulative_sum, one_hot,
          selected_by_data]
# The reference evaluator of onnx is wrong for indices of MaxPool, groups of convolutions, a OneHot whose depth has the shape
# [1], and Resize.
ONNX_REFERENCE_ERRS = [pool, convolution, one_hot, resize]
