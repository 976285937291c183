"""OrtValue, OrtDevice and the types of values. All memory is the host's: devices of Cleave copy from and to it."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NoReturn

import numpy as np

from .._tensors import BITS, DTYPES, STRING, numpy_dtype

Array = np.ndarray[Any, Any]

_TYPE_NAMES = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
               10: "float16", 11: "double", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
               19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2",
               26: "int2"}


def type_text(number: int) -> str:
    """ONNX Runtime's name of a type: "tensor(float)"."""
    return f"tensor({_TYPE_NAMES.get(number, number)})"


def number_of(element_type: Any) -> int:
    """The number in ONNX of a type of numpy, or of a number."""
    if isinstance(element_type, int):
        return int(element_type)
    dtype = np.dtype(element_type)
    if dtype.kind in "OUST":
        return STRING
    if dtype.name not in DTYPES:
        raise RuntimeError(f"there is no ONNX type for {dtype}")
    return DTYPES[dtype.name]


class OrtDeviceVendorId(IntEnum):
    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "dml": 1, "webgpu": 1, "gpu": 1, "npu": 3, "cann": 3}


class OrtDevice:
    """A kind of memory. Values can only be made in that of "cpu"."""

    def __init__(self, device_type: int, device_id: int, vendor_id: int) -> None:
        self._type, self._id, self._vendor = device_type, device_id, vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        if ort_device_name not in _DEVICE_TYPES:
            raise Exception("Unsupported device type: " + ort_device_name)
        return OrtDevice(_DEVICE_TYPES[ort_device_name], device_id, max(vendor_id, 0))

    def device_type(self) -> int:
        return self._type

    def device_id(self) -> int:
        return self._id

    def device_vendor_id(self) -> int:
        return self._vendor

    def device_mem_type(self) -> int:
        return 0


def require_cpu(device_type: str) -> None:
    """Raises RuntimeError unless the memory is the host's."""
    if device_type.lower() != "cpu":
        raise RuntimeError(f"Cleave's values are in the memory of the host, 'cpu', not of '{device_type}': its devices copy from and to "
                           "it. Name the devices that compute in the options of CleaveExecutionProvider.")


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"Cleave has no {what}: its values are tensors")


def array_at(address: int, number: int, shape: Sequence[int]) -> Array:
    """An array of the memory at an address, which must stay valid as long as the array."""
    if number == STRING or number in BITS:
        raise RuntimeError(f"memory at an address cannot be of {type_text(number)}")
    dtype = numpy_dtype(number)
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    array: Array = np.ctypeslib.as_array(memory).view(dtype).reshape(tuple(shape))
    return array


class OrtValue:
    """A tensor in the memory of the host. One made from a numpy array shares its memory, if that is contiguous."""

    __slots__ = ("_array", "_number")

    def __init__(self, array: Array, number: int) -> None:
        self._array, self._number = array, number

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        require_cpu(device_type)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUST":
            raise RuntimeError("Creation of OrtValues is currently only supported from non-string numpy arrays")
        return cls(np.require(numpy_obj, requirements="C"), number_of(numpy_obj.dtype))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        dtype = numpy_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError(f"an array of {data.dtype} cannot be seen as {type_text(onnx_element_type)}: their sizes differ")
        return cls(np.require(data, requirements="C").view(dtype), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
                                     vendor_id: int = -1) -> OrtValue:
        require_cpu(device_type)
        number = number_of(element_type)
        return cls(np.empty(tuple(shape), numpy_dtype(number)), number)

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool | None = None) -> OrtValue:
        array = np.from_dlpack(data)
        if is_bool_tensor:
            array = array.view(np.bool_)
        return cls(np.require(array, requirements="C"), number_of(array.dtype))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> OrtValue:
        _refuse("sparse tensors")

    def as_sparse_tensor(self) -> Any:
        _refuse("sparse tensors")

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return type_text(self._number)

    def element_type(self) -> int:
        return self._number

    def tensor_size_in_bytes(self) -> int:
        """For types of less than a byte, the size of the array, which has one element per byte."""
        return int(self._array.nbytes)

    def has_value(self) -> bool:
        return True

    def is_tensor(self) -> bool:
        return True

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return False

    def numpy(self) -> Array:
        """The array itself, not a copy. Types that numpy lacks are those of ml_dtypes."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy) if copy is not None else np.asarray(self._array, dtype=dtype)

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def to_dlpack(self) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Copies data of the same type and size."""
        source = data._array if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        if source.size != self._array.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if source.dtype != self._array.dtype:
            raise RuntimeError(f"the OrtValue has {self.data_type()}, not {type_text(number_of(source.dtype))}")
        np.copyto(self._array, source.reshape(self._array.shape))


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each value of `src` to the value of `dst` at the same place."""
    if len(src) != len(dst):
        raise RuntimeError(f"{len(src)} values cannot be copied to {len(dst)}")
    for source, target in zip(src, dst):
        target.update_inplace(source)
