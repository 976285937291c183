"""Values that are not plain buffers: what speaks DLPack, strings, and the small dtypes that numpy lacks."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np

STRING = 8
# The numbers of ONNX's TensorProto.DataType, by the names of numpy and ml_dtypes.
DTYPES: dict[str, int] = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "uint32": 12, "uint64": 13, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19,
    "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
}
NAMES: dict[int, str] = {number: name for name, number in DTYPES.items()}
BITS: dict[int, int] = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # dtypes that are packed: several elements per byte


def numpy_dtype(number: int) -> np.dtype[Any]:
    """Returns the dtype of arrays with these elements. Those that numpy lacks come from the package ml_dtypes."""
    if number == STRING:
        return np.dtype(object)
    name = NAMES[number]
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"numpy has no dtype {name}: install the package ml_dtypes") from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def _pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Packs one element per byte into several per byte, the first in the low bits."""
    per_byte = 8 // bits
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[:flat.size] = flat
    columns = padded.reshape(-1, per_byte)
    packed = np.zeros(columns.shape[0], np.uint8)
    for i in range(per_byte):
        packed |= columns[:, i] << (bits * i)
    return packed


def _unpack(packed: np.ndarray[Any, Any], bits: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64))
    columns = [(packed >> (bits * i)) & ((1 << bits) - 1) for i in range(8 // bits)]
    values = np.stack(columns, axis=-1).reshape(-1)[:count].astype(np.uint8)
    if dtype.name.startswith("int"):
        signed = values.astype(np.int8)
        signed[signed >= 1 << (bits - 1)] -= 1 << bits
        return signed.astype(dtype).reshape(shape)
    return (values.view(dtype) if dtype.name.startswith("float") else values.astype(dtype)).reshape(shape)


def _encode(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    return str(item).encode("utf-8", "surrogateescape")


def _to_array(value: Any, wanted: int) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        name = str(getattr(value, "dtype", "")).rpartition(".")[2]
        if hasattr(value, "detach"):  # a tensor of PyTorch
            value = value.detach()
            if name in DTYPES and DTYPES[name] >= 16:  # DLPack to numpy lacks these; their bits travel
                torch = importlib.import_module("torch")
                raw = value.contiguous().cpu().view(torch.int16 if name == "bfloat16" else torch.uint8)
                return np.from_dlpack(raw).view(numpy_dtype(DTYPES[name]))
            value = value.cpu()
        return np.from_dlpack(value)
    array = np.asarray(value)
    is_list = not hasattr(value, "__array__") and not hasattr(value, "__array_interface__")
    if is_list and wanted not in (0, STRING) and array.dtype.kind in "biuf":
        return array.astype(numpy_dtype(wanted))  # lists and numbers of Python have no dtype of their own
    return array


def prepare(value: Any, wanted: int, name: str) -> tuple[Any, int, tuple[int, ...]]:
    """For the extension: (a C-contiguous buffer or a list of bytes, dtype, shape) of an input that is not such a buffer."""
    try:
        array = _to_array(value, wanted)
    except (ValueError, BufferError, RuntimeError) as error:
        raise TypeError(f"input '{name}': cannot make a tensor of {type(value).__name__}: {error}") from error
    if array.dtype.kind in "USO" or array.dtype.kind == "T":
        return [_encode(item) for item in array.reshape(-1).tolist()], STRING, array.shape
    number = DTYPES.get(array.dtype.name)
    if number is None:
        raise TypeError(f"input '{name}': arrays of {array.dtype} are not supported")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if number in BITS:
        return _pack(array, BITS[number]), number, array.shape
    contiguous = np.ascontiguousarray(array)
    if number >= 16:
        contiguous = contiguous.view(np.uint8 if contiguous.dtype.itemsize == 1 else np.uint16)
    return contiguous, number, array.shape


def complete(contents: Any, number: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """For the extension: an array of an output's raw bytes, or of a list of strings."""
    if number == STRING:
        array = np.empty(len(contents), dtype=object)
        array[:] = contents
        return array.reshape(shape)
    raw = np.asarray(contents)
    dtype = numpy_dtype(number)
    if number in BITS:
        return _unpack(raw, BITS[number], dtype, shape)
    return raw.view(dtype).reshape(shape)
