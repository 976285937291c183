"""Tests 8-bit and 4-bit floats, and 4-bit and 2-bit integers, with ml_dtypes and NumPy as the oracle.

    python tests/python/test_small_dtypes.py [--count N] [--first SEED]

Tests casts of every value of these dtypes to wider ones, casts of wide numbers to each of them, quantisation with scales per
tensor, per slice and per block, operators that move data, and cases that must be rejected: on the CPU alone, and with a device
before the CPU that does not support these dtypes.
"""
import argparse
import os
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import oracle
import test_directories  # from tools/, which oracle adds to the path

FLOATS8 = {T.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, T.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz, T.FLOAT8E5M2: ml_dtypes.float8_e5m2,
           T.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz}
FLOAT4, POWERS = {T.FLOAT4E2M1: ml_dtypes.float4_e2m1fn}, {T.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu}
PACKED = {T.INT4: ml_dtypes.int4, T.UINT4: ml_dtypes.uint4, T.INT2: ml_dtypes.int2, T.UINT2: ml_dtypes.uint2}
SMALL = FLOATS8 | FLOAT4 | POWERS | PACKED
WIDE = {T.FLOAT: np.float32, T.FLOAT16: np.float16, T.BFLOAT16: ml_dtypes.bfloat16, T.DOUBLE: np.float64}
INTEGERS = {T.INT8: np.int8, T.UINT8: np.uint8, T.INT32: np.int32, T.INT64: np.int64}
NUMPY = SMALL | WIDE | INTEGERS | {T.BOOL: np.bool_}


class Case:
    """A model of a few nodes. inputs: {name: (array, ONNX dtype)}; expected: the same for outputs. refused: whether `cleave
    test` must report the model as unsupported."""

    def __init__(self, name, nodes, inputs, expected, initializers=(), refused=False):
        self.name, self.refused, self.expected = name, refused, expected
        self.inputs = inputs
        values = [helper.make_tensor_value_info(key, dtype, array.shape) for key, (array, dtype) in inputs.items()]
        results = [helper.make_tensor_value_info(key, dtype, array.shape) for key, (array, dtype) in expected.items()]
        graph = helper.make_graph(nodes, "g", values, results, list(initializers))
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)

    def write(self, folder):
        sets = [tuple([numpy_helper.from_array(array, key) for key, (array, _) in side.items()] for side in (self.inputs, self.expected))]
        test_directories.write(folder, self.model, sets)


def name_of(dtype):
    return T.DataType.Name(dtype).lower()


def every_code(dtype):
    bits = 8 if dtype in FLOATS8 or dtype in POWERS else 2 if dtype in (T.INT2, T.UINT2) else 4
    if dtype in (T.INT4, T.INT2):
        return np.arange(-(1 << bits - 1), 1 << bits - 1).astype(np.int8).astype(NUMPY[dtype])
    if dtype in PACKED:
        return np.arange(1 << bits).astype(np.uint8).astype(NUMPY[dtype])
    return np.arange(1 << bits, dtype=np.uint8).view(NUMPY[dtype])


def cast(name, array, source, target, expected, like=False, **attributes):
    if like:
        other = numpy_helper.from_array(np.zeros((1,)).astype(NUMPY[target]), "like")
        return Case(name, [helper.make_node("CastLike", ["x", "like"], ["y"], **attributes)], {"x": (array, source)},
                    {"y": (expected, target)}, [other])
    return Case(name, [helper.make_node("Cast", ["x"], ["y"], to=target, **attributes)], {"x": (array, source)}, {"y": (expected, target)})


def widened(_):
    """Yields casts of every bit pattern of the small dtypes to all wider dtypes."""
    for source in SMALL:
        array = every_code(source)
        for target in WIDE:
            with np.errstate(over="ignore"):
                expected = array.astype(np.float64).astype(NUMPY[target])
            yield cast(f"{name_of(source)}_to_{name_of(target)}", array, source, target, expected)
        for target in INTEGERS if source not in POWERS else ():
            exact = array.astype(np.float64)
            limits = np.iinfo(NUMPY[target])
            fits = np.isfinite(exact) & (np.trunc(exact) >= limits.min) & (np.trunc(exact) <= limits.max)
            yield cast(f"{name_of(source)}_to_{name_of(target)}", array[fits], source, target, np.trunc(exact[fits]).astype(NUMPY[target]))
        yield cast(f"{name_of(source)}_to_bool", array, source, T.BOOL, array.astype(np.float64) != 0)


def rounded(x, target, saturate):
    """Rounds as specified by the table of ONNX's Cast. ml_dtypes rounds half to even, and overflows instead of saturating."""
    dtype = NUMPY[target]
    if target in PACKED:
        return np.trunc(x.astype(np.float64)).astype(np.int64).astype(dtype)
    if saturate and target in FLOATS8:
        most = ml_dtypes.finfo(dtype)
        x = np.where(np.isnan(x), x, np.clip(x, np.asarray(most.min).astype(x.dtype), np.asarray(most.max).astype(x.dtype)))
    return x.astype(dtype)


def power_of(x, rounding):
    """Rounds positive numbers, which are in the range of f8e8m0, to a power of two, as ONNX's Cast defines it."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    up = {"up": fraction > 0.5, "down": np.zeros(x.shape, bool), "nearest": fraction >= 0.75}[rounding]
    return np.ldexp(1.0, exponent - 1 + up).astype(ml_dtypes.float8_e8m0fnu)


def narrowed(r):
    """Yields casts of wide numbers to each small dtype: numbers that it has, numbers between two of these, and far outside its
    range."""
    random_numbers = np.concatenate([r.normal(0, scale, 200) for scale in (1e-5, 1e-2, 1, 30, 1e3, 1e5)])
    for target in FLOATS8 | FLOAT4:
        codes = np.unique(every_code(target).astype(np.float64)[np.isfinite(every_code(target).astype(np.float64))])
        halves = (codes[1:] + codes[:-1]) / 2
        extreme = [0.0, -0.0, np.inf, -np.inf] + ([np.nan] if target in FLOATS8 else [])
        numbers = np.concatenate([random_numbers, codes, halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf), extreme])
        for source in WIDE:
            with np.errstate(all="ignore"):
                array = numbers.astype(NUMPY[source])
                if source == T.DOUBLE:  # ml_dtypes rounds f64 to f32 first, so only numbers that f32 has are used
                    array = numbers.astype(np.float32).astype(np.float64)
                for saturate in (1, 0):
                    name = f"{name_of(source)}_to_{name_of(target)}_{saturate}"
                    for like in (False, True):
                        yield cast(name + "_like" * like, array, source, target, rounded(array, target, saturate), like, saturate=saturate)
        for source in INTEGERS | PACKED:
            array = every_code(source) if source in PACKED else r.integers(0, 100, 77).astype(NUMPY[source])
            yield cast(f"{name_of(source)}_to_{name_of(target)}", array, source, target, array.astype(np.float32).astype(NUMPY[target]))
    for target in PACKED:
        for source in WIDE:
            array = r.uniform(-30, 30, (7, 11)).astype(NUMPY[source])
            yield cast(f"{name_of(source)}_to_{name_of(target)}", array, source, target, rounded(array, target, 1))
        for source in INTEGERS | PACKED:
            array = every_code(source) if source in PACKED else r.integers(0, 100, 77).astype(NUMPY[source])
            yield cast(f"{name_of(source)}_to_{name_of(target)}", array, source, target, array.astype(np.int64).astype(NUMPY[target]))
    for source in WIDE:
        for rounding in ("up", "down", "nearest"):
            array = np.exp2(r.uniform(-13, 14, 300)).astype(NUMPY[source])
            array[:40] = np.ldexp(1.0 + (np.arange(40) % 4) / 4, np.arange(40) // 4 - 5).astype(NUMPY[source])
            yield cast(f"{name_of(source)}_to_powers_{rounding}", array, source, T.FLOAT8E8M0, power_of(array, rounding),
                       round_mode=rounding)
    long = r.uniform(-8, 8, 300001).astype(np.float32)
    yield cast("on_several_threads", long, T.FLOAT, T.INT4, rounded(long, T.INT4, 1))


def spread(scale, shape, axis, block):
    """Expands scales per tensor, slice or block to one scale per element."""
    if scale.ndim == 0:
        return np.broadcast_to(scale, shape)
    if block:
        return np.repeat(scale, block, axis)[tuple(slice(size) for size in shape)]
    return np.broadcast_to(scale.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)


def granularity(r):
    shape = tuple(int(d) for d in r.integers(1, 8, r.integers(2, 5)))
    if r.random() < 0.3:
        shape = shape[:-1] + (int(r.integers(250, 600)),)
    axis = int(r.integers(len(shape)))
    kind, block = int(r.integers(3)), 0
    scales = () if kind == 0 else (shape[axis],)
    if kind == 2:
        block = int(r.integers(1, shape[axis] + 1))
        scales = shape[:axis] + (-(-shape[axis] // block),) + shape[axis + 1:]
    attributes = {"axis": axis - len(shape) if r.random() < 0.5 else axis} | ({"block_size": block} if block else {})
    return shape, axis, block, scales, attributes


def quantize(r, number):
    target = list(FLOATS8 | FLOAT4 | PACKED)[number % 9]
    source = [T.FLOAT, T.FLOAT16, T.BFLOAT16][r.integers(3)] if target in PACKED else T.FLOAT
    shape, axis, block, scales, attributes = granularity(r)
    x = r.normal(0, 8, shape).astype(NUMPY[source])
    powers = target not in PACKED and r.random() < 0.3
    scale = np.exp2(r.integers(-3, 3, scales).astype(np.float32)).astype(np.float32)
    full = spread(scale, shape, axis, block)
    zero = None
    if r.random() < 0.6:
        zero = np.zeros(scales).astype(NUMPY[target]) if target in FLOATS8 else r.integers(0, 2, scales).astype(NUMPY[target])
    shift = 0 if zero is None or target in FLOATS8 else spread(zero.astype(np.float64), shape, axis, block)
    quotient = x.astype(np.float64) / full
    if target in PACKED:
        limits = ml_dtypes.iinfo(NUMPY[target])
        expected = np.clip(np.rint(quotient) + shift, limits.min, limits.max).astype(np.int8).astype(NUMPY[target])
    else:
        expected = rounded((quotient + shift).astype(np.float32), target, 1)
    inputs = {"x": (x, source), "s": (scale.astype(NUMPY[T.FLOAT8E8M0]), T.FLOAT8E8M0) if powers else (scale, T.FLOAT)}
    if zero is not None:
        inputs["z"] = (zero, target)
    else:
        attributes["output_dtype"] = target
    return Case(f"quantize_{number}", [helper.make_node("QuantizeLinear", list(inputs), ["y"], **attributes)], inputs,
                {"y": (expected, target)})


def dequantize(r, number):
    source = list(FLOATS8 | FLOAT4 | PACKED)[number % 9]
    shape, axis, block, scales, attributes = granularity(r)
    codes = every_code(source)
    codes = codes[np.isfinite(codes.astype(np.float64))]
    x = r.choice(codes, shape)
    powers = r.random() < 0.3
    target = T.FLOAT if r.random() < 0.6 else T.FLOAT16 if source not in (T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ) else T.BFLOAT16
    scale = np.exp2(r.integers(-3, 3, scales).astype(np.float32)).astype(np.float32)
    zero = np.zeros(scales).astype(NUMPY[source]) if source in FLOATS8 else r.choice(codes, scales)
    zero = np.asarray(zero) if r.random() < 0.6 else None
    shift = 0 if zero is None else spread(zero.astype(np.float64), shape, axis, block)
    expected = ((x.astype(np.float64) - shift) * spread(scale, shape, axis, block)).astype(NUMPY[target])
    kept = T.FLOAT8E8M0 if powers else target
    inputs = {"x": (x, source), "s": (scale.astype(NUMPY[kept]), kept)}
    if zero is not None:
        inputs["z"] = (zero, source)
    if powers:
        attributes["output_dtype"] = target
    return Case(f"dequantize_{number}", [helper.make_node("DequantizeLinear", list(inputs), ["y"], **attributes)], inputs,
                {"y": (expected, target)})


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def moved(r):
    """Yields operators that move data. Those that copy whole tensors support every dtype, those that move elements only 8-bit
    dtypes. Constants of 4-bit and 2-bit dtypes are stored packed or unpacked."""
    for dtype in SMALL:
        array = r.choice(every_code(dtype), (3, 5, 7))
        shape, what = ints("shape", (7, 15)), name_of(dtype)
        for op, more, expected in (("Identity", [], array), ("Reshape", ["shape"], array.reshape(7, 15)),
                                   ("Flatten", [], array.reshape(3, 35))):
            yield Case(f"{op}_{what}", [helper.make_node(op, ["x"] + more, ["y"])], {"x": (array, dtype)}, {"y": (expected, dtype)},
                       [shape] if more else [])
        yield Case(f"Shape_{what}", [helper.make_node("Shape", ["x"], ["y"])], {"x": (array, dtype)},
                   {"y": (np.array(array.shape), T.INT64)})
        for raw in (True, False):
            tensor = numpy_helper.from_array(array, "w")
            if not raw:
                packed = list(tensor.raw_data)
                tensor.ClearField("raw_data")
                tensor.int32_data.extend(packed)
            nodes = [helper.make_node("Identity", ["w"], ["y"]), helper.make_node("Cast", ["w"], ["f"], to=T.FLOAT)]
            yield Case(f"initializer_{what}_{raw}", nodes, {}, {"y": (array, dtype), "f": (array.astype(np.float32), T.FLOAT)}, [tensor])
        branch = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "b", [], [helper.make_tensor_value_info("b", dtype, None)])
        chosen = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
        yield Case(f"If_{what}", [chosen], {"c": (np.array(True), T.BOOL), "x": (array, dtype)}, {"y": (array, dtype)})
        elements = [
            ("Transpose", [], {"perm": [2, 0, 1]}, array.transpose(2, 0, 1)),
            ("Concat", ["x"], {"axis": 1}, np.concatenate([array, array], 1)),
            ("Slice", ["from", "to", "axes"], {}, array[:, 1:4]), ("Gather", ["from"], {"axis": 2}, array[:, :, [1]]),
            ("Tile", ["twice"], {}, np.tile(array, (1, 2, 1))), ("Expand", ["longer"], {}, np.broadcast_to(array, (2, 3, 5, 7)))]
        given = [ints("from", [1]), ints("to", [4]), ints("axes", [1]), ints("twice", [1, 2, 1]), ints("longer", [2, 3, 5, 7])]
        for op, more, attributes, expected in elements:
            yield Case(f"{op}_{what}", [helper.make_node(op, ["x"] + more, ["y"], **attributes)], {"x": (array, dtype)},
                       {"y": (np.ascontiguousarray(expected), dtype)}, [g for g in given if g.name in more],
                       refused=dtype in FLOAT4 | PACKED)
        condition = r.random((3, 5, 7)) < 0.5
        for op, operands, inputs, expected in (
                ("Where", ["c", "x", "x"], {"c": (condition, T.BOOL), "x": (array, dtype)}, array),
                ("Add", ["x", "x"], {"x": (array, dtype)}, array), ("Relu", ["x"], {"x": (array, dtype)}, array),
                ("Equal", ["x", "x"], {"x": (array, dtype)}, condition)):
            yield Case(f"{op}_{what}", [helper.make_node(op, operands, ["y"])], inputs,
                       {"y": (expected, T.BOOL if op == "Equal" else dtype)}, refused=True)
        body = helper.make_graph(
            [helper.make_node("Identity", ["more"], ["again"]), helper.make_node("Identity", ["kept"], ["next"])], "b",
            [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("more", T.BOOL, []),
             helper.make_tensor_value_info("kept", dtype, None)],
            [helper.make_tensor_value_info("again", T.BOOL, []), helper.make_tensor_value_info("next", dtype, None)])
        yield Case(f"carried_{what}", [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": (array, dtype)},
                   {"y": (array, dtype)}, [ints("n", 3)])
        body = helper.make_graph(
            [helper.make_node("Identity", ["slice"], ["same"])], "b", [helper.make_tensor_value_info("slice", dtype, None)],
            [helper.make_tensor_value_info("same", dtype, None)])
        yield Case(f"Scan_{what}", [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)], {"x": (array, dtype)},
                   {"y": (array, dtype)}, refused=dtype in FLOAT4 | PACKED)
        body = helper.make_graph(
            [helper.make_node("Identity", ["more"], ["again"]), helper.make_node("Identity", ["x"], ["slice"])], "b",
            [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("more", T.BOOL, [])],
            [helper.make_tensor_value_info("again", T.BOOL, []), helper.make_tensor_value_info("slice", dtype, None)])
        yield Case(f"Loop_{what}", [helper.make_node("Loop", ["n", ""], ["y"], body=body)], {"x": (array, dtype)},
                   {"y": (np.stack([array] * 3), dtype)}, [ints("n", 3)], refused=dtype in FLOAT4 | PACKED)
    for source, target in ((T.FLOAT8E5M2, T.UINT8), (T.INT4, T.UINT4), (T.FLOAT4E2M1, T.INT4), (T.INT2, T.UINT2), (T.FLOAT8E8M0, T.INT8)):
        array = r.choice(every_code(source), (3, 7))
        bits = onnx.numpy_helper.from_array(array).raw_data
        tensor = T(data_type=target, dims=array.shape, raw_data=bits)
        yield Case(f"BitCast_{name_of(source)}", [helper.make_node("BitCast", ["x"], ["y"], to=target)], {"x": (array, source)},
                   {"y": (numpy_helper.to_array(tensor), target)})


def cases(count, first):
    r = np.random.default_rng(first)
    for maker in (widened, narrowed, moved):
        for case in maker(r):
            yield case
    for number in range(first, first + count):
        r = np.random.default_rng(number)
        yield quantize(r, number)
        yield dequantize(r, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    folder = oracle.build_folder("small_dtypes")
    tally = oracle.Tally()
    made = list(cases(arguments.count, arguments.first))
    for case in made:
        case.write(os.path.join(folder, case.name))
    for options in (["--devices", "cpu"], ["--devices", "npu,cpu", "--npu-spec", "all"]):
        for start in range(0, len(made), 64):
            part = made[start:start + 64]
            for case, found in zip(part, oracle.cleave_test([os.path.join(folder, case.name) for case in part], *options)):
                wanted = "UNSUPPORTED" if case.refused else "PASS"
                wrong = f"{found['status']}, expected {wanted}: {found.get('reason')}" if found["status"] != wanted else None
                tally.add(f"{case.name} on {options[1]}", wrong)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
