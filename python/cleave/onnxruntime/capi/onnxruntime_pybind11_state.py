"""The exceptions of ONNX Runtime, and the classes that it has here. Imports are absolute: this file may also be loaded as
onnxruntime.capi.onnxruntime_pybind11_state, and must then have the same classes."""
from typing import Any

from cleave.onnxruntime import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, ModelMetadata, NodeArg, OrtAllocatorType,
                                OrtDevice, OrtMemType, OrtValue, RunOptions, SessionOptions, get_all_providers,
                                get_available_providers, get_build_info, get_device, get_version_string,
                                set_default_logger_severity, set_default_logger_verbosity, set_seed)
from cleave.onnxruntime._errors import (EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                                        ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented,
                                        RuntimeException)

__all__ = ["EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "InvalidArgument", "InvalidGraph",
           "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile",
           "NodeArg", "NotFound", "NotImplemented", "OrtAllocatorType", "OrtDevice", "OrtMemType", "OrtValue", "RunOptions",
           "RuntimeException", "SessionOptions", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
           "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"cleave.onnxruntime has no '{name}': it is the part of ONNX Runtime's API that docs/from-onnxruntime.md lists")
