"""An oracle for products of integers, computed exactly with NumPy.

The other oracles are not exact. On a processor without VNNI, ONNX Runtime adds pairs of u8 x s8 products in 16 bits, which
saturate. The reference evaluator of the onnx package applies the zero points of rows to columns, and supports scales per channel
only with two spatial dimensions. `evaluate` runs that evaluator with the operators of this file instead of its own.
"""
import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

F32, I32, I64 = np.float32, np.int32, np.int64


def along_rows(v):
    """Turns a vector of parameters per row into a column. Returns other values unchanged."""
    return v.reshape(-1, 1) if v is not None and v.ndim == 1 and v.size > 1 else v


def along_channels(v, rank):
    """Reshapes one parameter per output channel, or one for all, to broadcast against [channels, ...] of this rank."""
    return v.reshape((-1,) + (1,) * (rank - 1))


def centered(x, zero):
    """Returns x - zero as f64, in which all sums of products of such numbers are exact, and which BLAS multiplies fast."""
    return x.astype(np.float64) - (0 if zero is None else zero.astype(np.float64))


def matmul_integer(a, b, a_zero=None, b_zero=None):
    return (centered(a, along_rows(a_zero)) @ centered(b, b_zero)).astype(I64).astype(I32)


def requantized(sums, factor, zero):
    """Returns sums * factor, rounded to the nearest integer (ties to even), plus the zero point, saturated to the zero point's
    dtype."""
    with np.errstate(over="ignore"):
        scaled = np.rint(sums.astype(F32) * np.asarray(factor, F32)) + zero.astype(F32)
    info = np.iinfo(zero.dtype)
    return np.clip(scaled, info.min, info.max).astype(zero.dtype)


def qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    factor = along_rows(a_scale.astype(F32)) * b_scale.astype(F32) / y_scale.astype(F32)
    return requantized(matmul_integer(a, b, a_zero, b_zero), factor, y_zero)


def convolve(x, w, group, strides, dilations, pads):
    """Convolves two f64 tensors of integers, exactly. x is padded with zeros."""
    spatial = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:])])
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, extents, tuple(range(2, x.ndim)))
    steps = tuple(slice(None, None, s) for s in strides) + tuple(slice(None, None, d) for d in dilations)
    windows = windows[(slice(None), slice(None), *steps)]  # [batch, channels, *sizes, *kernel]
    out, inner, axes = w.shape[0] // group, w.shape[1], [1, *range(2 + spatial, 2 + 2 * spatial)]
    parts = [np.tensordot(windows[:, g * inner:(g + 1) * inner], w[g * out:(g + 1) * out], (axes, range(1, w.ndim))) for g in range(group)]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1).astype(I64).astype(I32)


def conv_integer(x, w, x_zero=None, w_zero=None, group=1, strides=None, dilations=None, pads=None):
    spatial = x.ndim - 2
    x_zero = None if x_zero is None else x_zero.reshape(())
    w_zero = None if w_zero is None else along_channels(w_zero, w.ndim)
    return convolve(centered(x, x_zero), centered(w, w_zero), group, strides or [1] * spatial, dilations or [1] * spatial,
                    pads or [0] * 2 * spatial)


def qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, **attributes):
    sums = conv_integer(x, w, x_zero, w_zero, **attributes)
    if bias is not None:
        sums = sums + along_channels(bias, x.ndim - 1)
    factor = (x_scale * w_scale / y_scale).astype(F32)
    return requantized(sums, along_channels(factor, x.ndim - 1), y_zero)


def dynamic_quantize(x):
    """DynamicQuantizeLinear by its definition, in f32."""
    low, high = np.minimum(F32(0), x.min(initial=0)), np.maximum(F32(0), x.max(initial=0))
    scale = F32(1) if low == high else (high - low) / F32(255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), np.asarray(scale, F32), np.asarray(zero).astype(np.uint8)


# --- the evaluator's operators

class MatMulInteger(OpRun):
    def _run(self, *inputs):
        return (matmul_integer(*inputs),)


class QLinearMatMul(OpRun):
    def _run(self, *inputs):
        return (qlinear_matmul(*inputs),)


class ConvInteger(OpRun):
    def _run(self, *inputs, **attributes):
        return (conv_integer(*inputs, **padded_by_numbers(attributes)),)


class QLinearConv(OpRun):
    def _run(self, *inputs, **attributes):
        return (qlinear_conv(*inputs, **padded_by_numbers(attributes)),)


class DynamicQuantizeLinear(OpRun):
    def _run(self, x):
        return dynamic_quantize(x)


class DequantizeLinear(OpRun):
    """DequantizeLinear for opset 10 to 19. The reference evaluator has none for opsets before 19."""

    def _run(self, x, scale, zero=None, axis=1, block_size=None, output_dtype=None):
        if block_size or output_dtype:
            raise NotImplementedError("DequantizeLinear with block_size or output_dtype")
        shape = [-1 if d == axis % max(x.ndim, 1) else 1 for d in range(x.ndim)] if scale.size > 1 else []
        zero = 0 if zero is None else zero.astype(I64).reshape(shape)
        return ((x.astype(I64) - zero).astype(scale.dtype) * scale.reshape(shape),)


def padded_by_numbers(attributes):
    if attributes.get("auto_pad") not in (None, "NOTSET"):
        raise NotImplementedError(f"auto_pad {attributes['auto_pad']}")
    return {name: attributes[name] for name in ("group", "strides", "dilations", "pads") if attributes.get(name)}


OPERATORS = [MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, DynamicQuantizeLinear, DequantizeLinear]


def evaluate(model, inputs):
    """Returns the outputs of a model of standard operators, in order."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model, new_ops=OPERATORS).run(None, inputs)
