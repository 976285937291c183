"""Random calls of PyTorch operators for test_torch.py. torch_runs.py leaves out the calls that PyTorch rejects."""
import random

import torch
import torch.nn.functional as F

from torch_cases import Case, real, truth, whole


def sizes(r, low, high):
    return [r.randint(1, 5) for _ in range(r.randint(low, high))]


def reducible(r):
    """Returns two random shapes, which broadcast together to the first of them."""
    shape = sizes(r, 1, 4)
    other = [size if r.random() < 0.6 else 1 for size in shape]
    return shape, other[r.randint(0, len(shape)) :]


def convolution(r):
    groups, more = r.choice([1, 1, 2, 3]), r.randint(1, 3)
    kernel = [r.randint(1, 3), r.randint(1, 3)]
    stride, padding, dilation = ([r.randint(low, 3) for _ in range(2)] for low in (1, 0, 1))
    bias = [real(groups * more)] if r.random() < 0.5 else []
    call = lambda x, w, *b: F.conv2d(x, w, *(b or (None,)), stride, padding, dilation, groups)
    return f"conv2d {kernel} {stride} {padding} {dilation} {groups}", call, [real(r.randint(1, 2), groups * 2, r.randint(3, 11), r.randint(3, 11)),
                                                                         real(groups * more, 2, *kernel), *bias], (1, 2)


def transposed(r):
    stride, padding, extra, dilation = r.randint(1, 3), r.randint(0, 2), r.randint(0, 2), r.randint(1, 2)
    call = lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, extra, 1, dilation)
    return f"conv_transpose2d {stride} {padding} {extra} {dilation}", call, [real(1, 2, r.randint(2, 6), r.randint(2, 6)), real(2, 3, 3, r.randint(1, 3))], (1,)


def pool(r):
    kernel, stride, ceil = [r.randint(1, 4), r.randint(1, 4)], [r.randint(1, 3), r.randint(1, 3)], r.random() < 0.5
    padding = [r.randint(0, k // 2) for k in kernel]
    x = real(2, 2, r.randint(4, 10), r.randint(4, 10))
    if r.random() < 0.5:
        dilation = r.randint(1, 2)
        return f"max_pool2d {kernel} {stride} {padding} {dilation} {ceil}", lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, ceil), [x], ()
    counted = r.random() < 0.5
    return f"avg_pool2d {kernel} {stride} {padding} {ceil} {counted}", lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil, counted), [x], ()


def adaptive(r):
    to = [r.randint(1, 7), r.randint(1, 7)]
    op = r.choice([F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
    return f"{op.__name__} {to}", lambda x: op(x, to), [real(2, 3, r.randint(1, 9), r.randint(1, 9))], ()


def reduction(r):
    shape = sizes(r, 1, 5)
    dims = r.sample(range(-len(shape), 0), r.randint(1, len(shape)))
    name, keep = r.choice(["sum", "mean", "amax", "amin"]), r.random() < 0.5
    return f"{name} of {shape} over {dims}, {keep}", lambda x: getattr(torch, name)(x, dims, keepdim=keep), [real(*shape)], ()


def arithmetic(r):
    shape, other = reducible(r)
    name = r.choice(["add", "sub", "mul", "div", "maximum", "lt", "eq", "remainder", "floor_divide"])
    a, b = real(*shape) * 3, real(*other) * 2
    if r.random() < 0.4:
        b = whole(1, 9, *other, dtype=r.choice([torch.int64, torch.int32, torch.uint8]))
    if r.random() < 0.3:
        a = whole(-9, 9, *shape)
    if name in ("add", "sub") and r.random() < 0.5:
        alpha = r.choice([2, -3])
        return f"{name} {shape} {other}, alpha {alpha}", lambda a, b: getattr(torch, name)(a, b, alpha=alpha), [a, b], ()
    return f"{name} {shape} {other}", getattr(torch, name), [a, b], ()


def by_number(r):
    shape = sizes(r, 0, 3)
    name, number = r.choice(["add", "sub", "mul", "div", "pow", "remainder", "gt", "ne"]), r.choice([2, 3, -1.5, 0.3, 0.125, 7, 1e-3])
    x = whole(1, 9, *shape) if r.random() < 0.4 else real(*shape).abs() + 0.1
    return f"{name} of {shape} {x.dtype} by {number}", lambda x: getattr(torch, name)(x, number), [x], ()


def view(r):
    shape = sizes(r, 2, 4)
    order = r.sample(range(len(shape)), len(shape))
    axis, at = r.randrange(len(shape)), r.randint(-3, 3)
    step = r.randint(1, 3)
    def call(x):
        y = torch.ops.aten.slice(x, axis, at, at + r_size, step).permute(order)
        return y.reshape(-1, y.shape[-1]) if y.numel() else y, y.flatten(), y.unsqueeze(axis - len(shape)).transpose(0, -1)
    r_size = r.randint(1, 6)
    return f"slice {shape} at {axis}: {at}, +{r_size}, {step}; permute {order}", call, [real(*shape)], ()


def joined(r):
    shape = sizes(r, 1, 4)
    axis = r.randrange(-len(shape), len(shape))
    parts = []
    for _ in range(r.randint(1, 4)):
        own = list(shape)
        own[axis] = r.randint(0, 3)
        parts.append(whole(0, 9, *own) if r.random() < 0.2 else real(*own))
    size = r.randint(1, 3)
    def call(*parts):
        y = torch.cat(parts, axis)
        return (y, *torch.split(y, size, axis)) if y.shape[axis] > 0 else y
    return f"cat {[list(part.shape) for part in parts]} at {axis}, split {size}", call, parts, ()


def picked(r):
    shape = sizes(r, 2, 4)
    axis = r.randrange(-len(shape), len(shape))
    count = r.randint(1, 4)
    index = whole(0, shape[axis], count)
    source = list(shape)
    source[axis] = 1
    where = truth(*[size if r.random() < 0.5 else 1 for size in shape])
    return f"picks of {shape} at {axis}", lambda x, i, s, m: (torch.index_select(x, axis, i), torch.index_copy(x, axis, i[:1], s),
                                                             x.masked_fill(m, -2), torch.where(m, x, 0.5)), [real(*shape), index, real(*source), where], ()


def product(r):
    m, k, n = r.randint(1, 4), r.randint(1, 5), r.randint(1, 4)
    left, right = ([size if r.random() < 0.6 else 1 for size in (2, 3)][r.randint(0, 2) :] for _ in range(2))
    return f"matmul {left} {right}", torch.matmul, [real(*left, m, k), real(*right, k, n)], ()


def soft(r):
    shape = sizes(r, 1, 4)
    axis = r.randrange(-len(shape), len(shape))
    return f"softmax of {shape} at {axis}", lambda x: (F.softmax(x, axis), F.log_softmax(x, axis), F.layer_norm(x, x.shape[-1:])), [real(*shape) * 4], ()


KINDS = (convolution, transposed, pool, adaptive, reduction, arithmetic, by_number, view, joined, picked, product, soft)


def draw(count, seed):
    r = random.Random(seed)
    made = []
    for k in range(count):
        name, call, inputs, weights = KINDS[k % len(KINDS)](r)
        made.append(Case(f"drawn {seed}.{k}: {name}", call, inputs, tuple(w for w in weights if w < len(inputs))))
    return made
