"""The exceptions of ONNX Runtime, and which of them an error of Cleave becomes. The text is Cleave's; its error is the cause."""
from __future__ import annotations

from typing import cast

from .. import _errors as _cleave_errors


class _OrtError(Exception):
    """An exception of ONNX Runtime, with its number and its name in the text."""

    _number: int
    _name: str

    @classmethod
    def of(cls, text: str) -> _OrtError:
        return cls(f"[ONNXRuntimeError] : {cls._number} : {cls._name} : {text}")


def _make(name: str, number: int, text: str) -> type[_OrtError]:
    attributes = {"_number": number, "_name": text, "__module__": "onnxruntime.capi.onnxruntime_pybind11_state"}
    return cast("type[_OrtError]", type(name, (_OrtError,), attributes))


Fail = _make("Fail", 1, "FAIL")
InvalidArgument = _make("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _make("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _make("NoModel", 4, "NO_MODEL")
EngineError = _make("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _make("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _make("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _make("ModelLoaded", 8, "MODEL_LOADED")
NotImplemented = _make("NotImplemented", 9, "NOT_IMPLEMENTED")
InvalidGraph = _make("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _make("EPFail", 11, "EP_FAIL")
ModelLoadCanceled = _make("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED")
ModelRequiresCompilation = _make("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION")
NotFound = _make("NotFound", 14, "NOT_FOUND")

_CLASSES: dict[type[_cleave_errors.Error], type[_OrtError]] = {
    _cleave_errors.InvalidArgument: InvalidArgument, _cleave_errors.InvalidModel: InvalidGraph,
    _cleave_errors.NotSupported: NotImplemented, _cleave_errors.NotFound: NoSuchFile,
    _cleave_errors.OutOfMemory: RuntimeException, _cleave_errors.DeviceError: EPFail,
}


def translated(error: _cleave_errors.Error) -> _OrtError:
    """Returns the exception of ONNX Runtime for an error of Cleave."""
    return _CLASSES.get(type(error), Fail).of(str(error))
