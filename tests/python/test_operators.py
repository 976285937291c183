"""Compares single nodes of signal and image operators with NumPy or with the reference evaluator of the onnx package.

    python tests/python/test_operators.py [OPERATOR...] [--count N] [--first SEED]

Shapes, attributes, dtypes and absent inputs are random. Randomly chosen inputs are constants. So the output's size is known in
advance for some nodes, and for others only when the node runs.
"""
import argparse
import os
import random
import shutil
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle

F32, F64, F16, BF16 = (np.dtype(t) for t in ("float32", "float64", "float16", ml_dtypes.bfloat16))
FLOATS = [F32, F32, F64, F16, BF16]
# allowed relative and absolute error; other dtypes must be equal
TOLERANCES = {F32: (1e-4, 2e-5), F64: (1e-9, 1e-11), F16: (5e-3, 2e-3), BF16: (4e-2, 2e-2)}
# Operators whose coordinates the reference evaluator computes in f32 for every dtype.
NARROW = {"GridSample", "DeformConv", "RoiAlign"}


class Case:
    """A node. Inputs are arrays, or None if absent. If `expected` is None, the reference evaluator computes the expected
    output."""

    def __init__(self, op, inputs, opset=22, expected=None, **attributes):
        self.op, self.inputs, self.opset, self.expected, self.attributes = op, inputs, opset, expected, attributes


class Random(random.Random):
    def __init__(self, seed):
        super().__init__(seed)
        self.numpy = np.random.default_rng(seed)

    def array(self, shape, dtype, low=-2, high=2):
        values = self.numpy.uniform(low, high, shape) if dtype in TOLERANCES else self.numpy.integers(low, high, shape)
        return np.asarray(values).astype(dtype)

    def maybe(self, value, share=0.5):
        return value if self.random() < share else None


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


# --- images

def cubic_border(x, grid, align):
    """Computes GridSample with cubic interpolation and padding "border". The reference evaluator clamps a point to the border
    before it reads the point's neighbours; PyTorch and ONNX Runtime do not. To avoid that, this pads the image with copies of its
    border, so that all points are inside."""
    sizes, width = np.array(x.shape[:1:-1]), 9
    wide = np.pad(x.astype(F32), [(0, 0), (0, 0)] + [(width, width)] * (x.ndim - 2), mode="edge")
    at = (grid.astype(F64) + 1) / 2 * (sizes - 1) if align else ((grid.astype(F64) + 1) * sizes - 1) / 2
    inner = ((at + width) * 2 + 1) / (sizes + 2 * width) - 1
    return reference(Case("GridSample", [wide, inner], 20, mode="cubic"), F32)


def grid_sample(r):
    spatial = r.choice([1, 2, 2, 2, 3])
    mode = r.choice(["linear", "nearest", "cubic"] if spatial < 3 else ["linear", "nearest"])
    n, c = r.randint(1, 2), r.randint(1, 3)
    x = r.array((n, c, *[r.randint(2, 6) for _ in range(spatial)]), r.choice(FLOATS))
    opset = 22 if x.dtype == BF16 else r.choice([16, 20, 22]) if spatial == 2 else 20
    grid = r.array((n, *[r.randint(1, 5) for _ in range(spatial)], spatial), r.choice([F32, F32, F64, x.dtype]), -1.6, 1.6)
    if r.random() < 0.4:
        grid = np.round(grid.astype(F64) * 4).astype(grid.dtype) / np.asarray(4, grid.dtype)  # points halfway between two elements
    padding, align = r.choice(["zeros", "border", "reflection"]), r.randint(0, 1)
    expected = None
    if mode == "cubic" and padding == "border":
        expected = cubic_border(x, grid, align)
    if opset < 20:
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return Case("GridSample", [x, grid], opset, expected, mode=mode, align_corners=align, padding_mode=padding)


def affine_grid(r):
    spatial = r.choice([2, 3])
    n, align = r.randint(1, 3), r.randint(0, 1)
    theta = r.array((n, spatial, spatial + 1), r.choice(FLOATS))
    sizes = [r.randint(2, 6) for _ in range(spatial)]
    axes = [np.linspace(-1, 1, d) if align else (2 * np.arange(d) + 1) / d - 1 for d in sizes]
    points = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(sizes)], -1)
    expected = np.einsum("nij,...j->n...i", theta.astype(F64), points)
    return Case("AffineGrid", [theta, np.array([n, 3, *sizes])], 20, expected, align_corners=align)


def suppression(r):
    batches, classes, count = r.randint(1, 2), r.randint(1, 3), r.choice([0, 1, 5, 20, 40])
    centered = r.randint(0, 1)
    boxes = r.array((batches, count, 4), F32, 0, 3)
    if centered:
        boxes[..., 2:] = boxes[..., 2:] / 2 + 0.1
    if count > 4 and r.random() < 0.6:  # all near one box, so that they overlap
        boxes = (np.array([1, 1, 2, 2] if not centered else [1, 1, 1, 1], F32) + boxes / 8).astype(F32)
    scores = np.round(r.array((batches, classes, count), F32, 0, 1), r.choice([1, 3]))  # rounded, so that some scores are equal
    return Case("NonMaxSuppression", [boxes, scores, np.array([r.choice([0, 2, 5, 100])]), np.array([r.uniform(0, 0.8)], F32),
                                      r.maybe(np.array([r.uniform(0, 0.8)], F32))], r.choice([10, 11, 22]),
                center_point_box=centered)


def roi_align(r):
    n, c = r.randint(1, 3), r.randint(1, 4)
    x = r.array((n, c, *r.choice([(r.randint(1, 9), r.randint(1, 9)), (8, 9)])), r.choice(FLOATS), -2, r.choice([2, 0]))
    count = r.randint(1, 4)
    rois = r.array((count, 4), x.dtype, -2, 12)
    rois[:, 2:] = rois[:, :2] + np.abs(rois[:, 2:]) / 2
    attributes = {"mode": r.choice(["avg", "max"]), "output_height": r.randint(1, 4), "output_width": r.randint(1, 4),
                  "sampling_ratio": r.choice([0, 0, 1, 2, 3]), "spatial_scale": r.choice([1.0, 0.5, 0.25])}
    if min(x.shape[2:]) >= 7 and r.random() < 0.6:  # few samples, so far apart that one is inside the feature map and the next outside
        rois[:] = [2.5, 2.5, 14.5, 14.5]
        attributes |= {"output_height": 1, "output_width": 1, "sampling_ratio": 2, "spatial_scale": 1.0}
    opset = 22 if x.dtype == BF16 else r.choice([10, 16, 22])
    if opset >= 16:
        attributes["coordinate_transformation_mode"] = r.choice(["half_pixel", "output_half_pixel"])
    return Case("RoiAlign", [x, rois, np.array([r.randrange(n) for _ in range(count)])], opset, **attributes)


def deform_conv(r):
    groups, offset_groups = r.choice([1, 2]), r.choice([1, 2])
    n, c, outputs = r.randint(1, 2), 2 * r.randint(1, 2), 2 * r.randint(1, 2)
    dtype, h, w = r.choice(FLOATS), r.randint(4, 7), r.randint(4, 7)
    kernel, strides, dilations = ([r.randint(1, most) for _ in range(2)] for most in (3, 2, 1 if h < 5 else 2))
    pads = [r.randint(0, 1) for _ in range(4)]
    sizes = [(d + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, d in enumerate((h, w))]
    if min(sizes) < 1:
        return deform_conv(r)
    taps = offset_groups * kernel[0] * kernel[1]
    bias, mask = r.maybe(r.array((outputs,), dtype)), r.maybe(r.array((n, taps, *sizes), dtype, 0, 1))
    return Case("DeformConv", [r.array((n, c, h, w), dtype), r.array((outputs, c // groups, *kernel), dtype, -1, 1),
                               r.array((n, 2 * taps, *sizes), dtype), bias, mask], 22 if dtype == BF16 else r.choice([19, 22]),
                kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups, offset_group=offset_groups)


def max_unpool(r):
    spatial = r.choice([1, 2, 2, 3])
    kernel, strides = ([r.randint(1, 3) for _ in range(spatial)] for _ in range(2))
    shape = [r.randint(1, 2), r.randint(1, 2), *[r.randint(1, 4) for _ in range(spatial)]]
    whole = shape[:2] + [(d - 1) * s + k for d, s, k in zip(shape[2:], strides, kernel)]
    x = r.array(shape, r.choice(FLOATS))
    index = r.numpy.permutation(int(np.prod(whole)))
    if index.size < x.size:
        return max_unpool(r)
    return Case("MaxUnpool", [x, index[:x.size].reshape(shape), r.maybe(np.array([d + r.randint(0, 2) for d in whole]))],
                22 if x.dtype == BF16 else r.choice([9, 11, 22]), kernel_shape=kernel, strides=strides)


def column_to_image(r):
    spatial = r.choice([1, 2, 2, 3])
    image = [r.randint(3, 6) for _ in range(spatial)]
    block, strides, dilations = ([r.randint(1, 2) for _ in range(spatial)] for _ in range(3))
    pads = [r.randint(0, 1) for _ in range(2 * spatial)]
    counts = [(d + pads[i] + pads[i + spatial] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, d in enumerate(image)]
    x = r.array((r.randint(1, 2), r.randint(1, 2) * int(np.prod(block)), int(np.prod(counts))),
                r.choice([F32, F64, F16, np.dtype("int32")]), -9, 9)
    return Case("Col2Im", [x, np.array(image), np.array(block)], r.choice([18, 22]), strides=strides, dilations=dilations, pads=pads)


def center_crop_pad(r):
    shape = [r.randint(1, 6) for _ in range(r.randint(1, 4))]
    x = r.array(shape, r.choice([F32, F64, F16, BF16, np.dtype("int64"), np.dtype("uint8"), np.dtype("bool")]), 0, 9)
    axes = r.sample(range(len(shape)), r.randint(1, len(shape)))
    sizes = np.array([r.randint(1, 8) for _ in axes], r.choice([np.int32, np.int64]))
    return Case("CenterCropPad", [x, sizes], 18, axes=[a - len(shape) if r.random() < 0.3 else a for a in axes])


def determinant(r):
    size = r.choice([0, 1, 2, 3, 7])
    x = r.array((*[r.randint(1, 3) for _ in range(r.randint(0, 3))], size, size), r.choice(FLOATS))
    if size > 1 and r.random() < 0.3:
        x[..., 0, 0] = 0  # so that the elimination must swap rows
    return Case("Det", [x], r.choice([11, 22]) if x.dtype != BF16 else 22, np.asarray(np.linalg.det(x.astype(F64))))


# --- signals

def parts(x):
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(np.complex128)


def pair(values):
    return np.stack([values.real, values.imag], -1)


def fourier(r):
    inverse, onesided, opset = r.randint(0, 1), r.randint(0, 1), r.choice([17, 20])
    shape = [r.randint(1, 3) for _ in range(r.randint(1, 3))]
    axis = r.randrange(len(shape))
    shape[axis] = r.choice([2, 3, 5, 8, 12, 17, 32, 33, 37, 64, 77, 100])
    given = r.maybe(r.choice([1, 2, 7, 16, 40, 45, 64, 67]))
    x = r.array((*shape, 2 if inverse and onesided else 1 if onesided else r.choice([1, 2])), r.choice([F32, F64]))
    values, length = parts(x.astype(F64)), given or (2 * (shape[axis] - 1) if inverse and onesided else shape[axis])
    if inverse and onesided:
        expected = np.fft.irfft(values, length, axis)[..., None]
    elif inverse:
        expected = pair(np.fft.ifft(values, length, axis))
    else:
        expected = pair(np.fft.rfft(values.real, length, axis) if onesided else np.fft.fft(values, length, axis))
    written = axis if r.random() < 0.5 else axis - len(x.shape)
    length = None if given is None else scalar(given, r.choice([np.int32, np.int64]))
    attributes = {"inverse": inverse, "onesided": onesided}
    if opset == 17:
        return Case("DFT", [x, length], 17, expected, axis=written, **attributes)
    return Case("DFT", [x, length, None if axis == len(shape) - 1 else scalar(written)], opset, expected, **attributes)


def short_fourier(r):
    n, signal, complex_, step = r.randint(1, 3), r.randint(20, 90), r.randint(0, 1), r.randint(1, 9)
    onesided, length = 0 if complex_ else r.randint(0, 1), r.choice([1, 4, 7, 16, 20])
    x = r.array((n, signal, 1 + complex_), r.choice([F32, F64]))
    window, written = r.choice([(r.array((length,), x.dtype), scalar(length)), (r.array((length,), x.dtype), None), (None, scalar(length)),
                                (None, None)])
    length = signal if window is None and written is None else length
    frames = np.lib.stride_tricks.sliding_window_view(parts(x.astype(F64)), length, 1)[:, ::step]
    frames = frames if window is None else frames * window.astype(F64)
    expected = pair(np.fft.rfft(frames.real) if onesided else np.fft.fft(frames))
    return Case("STFT", [x, scalar(step), window, written], 17, expected, onesided=onesided)


def window(r):
    return Case(r.choice(["HannWindow", "HammingWindow", "BlackmanWindow"]), [scalar(r.randint(2, 50), r.choice([np.int32, np.int64]))], 17,
                periodic=r.randint(0, 1), output_datatype=r.choice([TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16]))


def mel_matrix(r):
    rate, length = r.choice([8000, 16000, 44100]), r.choice([16, 64, 255, 256])
    return Case("MelWeightMatrix", [scalar(r.randint(1, 12)), scalar(length), scalar(rate, np.int32), scalar(r.uniform(0, 500), F64),
                                    scalar(r.uniform(600, rate / 2 - 1), F64)], 17,
                output_datatype=r.choice([TensorProto.FLOAT, TensorProto.DOUBLE]))


OPERATORS = {"GridSample": grid_sample, "AffineGrid": affine_grid, "NonMaxSuppression": suppression, "RoiAlign": roi_align,
             "DeformConv": deform_conv, "MaxUnpool": max_unpool, "Col2Im": column_to_image, "CenterCropPad": center_crop_pad,
             "Det": determinant, "DFT": fourier, "STFT": short_fourier, "Window": window, "MelWeightMatrix": mel_matrix}


# --- running them

def reference(case, dtype):
    """Runs the reference evaluator. 16-bit dtypes are computed in f32 and rounded, because its 16-bit arithmetic is
    inaccurate."""
    inputs = [None if x is None else x.astype(F32) if x.dtype in (F16, BF16) else x for x in case.inputs]
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    if case.op == "GridSample" and case.opset < 20:  # the evaluator knows only the names that the modes have since opset 20
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(case.attributes["mode"], case.attributes["mode"])
        case = Case(case.op, case.inputs, 20, **(case.attributes | {"mode": mode}))
    if case.op == "RoiAlign" and case.opset < 16:  # before opset 16 there is one transformation, which is not the evaluator's default
        case = Case(case.op, case.inputs, 16, **(case.attributes | {"coordinate_transformation_mode": "output_half_pixel"}))
    model = build(case, inputs, F32 if dtype in (F16, BF16) else dtype, set())
    return oracle.run_reference(model, feeds)[0]


def output_dtype(case):
    written = case.attributes.get("output_datatype")
    if written is not None:
        return np.dtype(helper.tensor_dtype_to_np_dtype(written))
    return np.dtype("int64") if case.op == "NonMaxSuppression" else case.inputs[0].dtype


def build(case, inputs, dtype, constants):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    while names[-1] == "":
        names.pop()
    node = helper.make_node(case.op, names, ["y"], **case.attributes)
    kind = helper.np_dtype_to_tensor_dtype
    fed = [(i, x) for i, x in enumerate(inputs) if x is not None and i not in constants]
    ins = [helper.make_tensor_value_info(f"x{i}", kind(x.dtype), x.shape) for i, x in fed]
    out = helper.make_tensor_value_info("y", kind(dtype), None)
    kept = [numpy_helper.from_array(inputs[i], f"x{i}") for i in sorted(constants)]
    return helper.make_model(helper.make_graph([node], "g", ins, [out], kept), ir_version=10,
                             opset_imports=[helper.make_opsetid("", case.opset)])


def write(case, folder, r):
    """Writes an ONNX test directory. Returns its tolerances."""
    dtype = output_dtype(case)
    expected = np.asarray(reference(case, dtype) if case.expected is None else case.expected).astype(dtype)
    later = [i for i, x in enumerate(case.inputs) if x is not None and i > 0]
    constants = set(later if r.random() < 0.5 else r.sample(later, r.randint(0, len(later))))
    shutil.rmtree(folder, ignore_errors=True)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(build(case, case.inputs, dtype, constants), os.path.join(folder, "model.onnx"))
    fed = [(i, x) for i, x in enumerate(case.inputs) if x is not None and i not in constants]
    for number, (i, x) in enumerate(fed):
        onnx.save_tensor(numpy_helper.from_array(x, f"x{i}"), os.path.join(data, f"input_{number}.pb"))
    onnx.save_tensor(numpy_helper.from_array(expected, "y"), os.path.join(data, "output_0.pb"))
    return TOLERANCES.get(F32 if dtype == F64 and case.op in NARROW else dtype, (0, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--devices", default="cpu")
    arguments = parser.parse_args()
    root, tally, folders = oracle.build_folder("operators"), oracle.Tally(), {}
    for name in arguments.operators or OPERATORS:
        for seed in range(arguments.first, arguments.first + arguments.count):
            r = Random(seed * 1000 + sorted(OPERATORS).index(name))
            folder = os.path.join(root, f"{name}_{seed}")
            folders.setdefault(write(OPERATORS[name](r), folder, r), []).append(folder)
    for (rtol, atol), group in folders.items():
        for result in oracle.cleave_test(group, "--devices", arguments.devices, "--rtol", rtol, "--atol", atol):
            passed = result["status"] == "PASS"
            tally.add(result["name"], None if passed else f"{result['status']}: {result.get('reason')}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
