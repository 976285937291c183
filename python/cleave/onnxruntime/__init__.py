"""The part of ONNX Runtime's Python API that programs use, on Cleave.

    import sys, cleave.onnxruntime
    cleave.onnxruntime.install(devices="npu,cpu")

makes `import onnxruntime` of this process mean this module, so that other people's packages run unchanged. The line
sys.modules["onnxruntime"] = cleave.onnxruntime does the same, with all sessions on the CPU.

docs/from-onnxruntime.md lists what is here. What is not raises an AttributeError or NotImplemented that says so."""
from __future__ import annotations

import sys
from typing import Any

import cleave

from . import _providers
from ._metadata import ModelMetadata
from ._options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtMemType, RunOptions, SessionOptions)
from ._session import InferenceSession, IOBinding, NodeArg, set_default_logger_severity
from ._values import OrtDevice, OrtDeviceVendorId, OrtValue, copy_tensors

# The version of ONNX Runtime whose API this is; the version of Cleave is cleave.__version__.
__version__ = "1.31.1"

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
           "OrtAllocatorType", "OrtDevice", "OrtDeviceVendorId", "OrtMemType", "OrtValue", "RunOptions", "SessionOptions", "copy_tensors",
           "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
           "get_device", "get_version_string", "install", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]


def install(**options: Any) -> None:
    """Makes `import onnxruntime` mean this module, in this process. Call it before the first import of a package that uses ONNX
    Runtime.

    options: those of CleaveExecutionProvider, such as devices="npu,cpu" or profile="laptop.json", for every session, also for
    those that ask for CPUExecutionProvider. Options of a session take precedence. Raises InvalidArgument for an unknown one."""
    _providers.defaults = _providers.check_options(options)
    for name in [name for name in sys.modules if name == "onnxruntime" or name.startswith("onnxruntime.")]:
        del sys.modules[name]
    sys.modules["onnxruntime"] = sys.modules[__name__]


def get_available_providers() -> list[str]:
    return list(_providers.AVAILABLE)


def get_all_providers() -> list[str]:
    return list(_providers.KNOWN)


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"Cleave {cleave.__version__}"


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: verbose messages have no levels."""


def set_seed(seed: int) -> None:
    """Random operators of Cleave take their seeds from the model: another seed has no effect."""


def disable_telemetry_events() -> None:
    """Does nothing: there is no telemetry."""


def enable_telemetry_events() -> None:
    """Does nothing: there is no telemetry."""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"cleave.onnxruntime has no '{name}': it is the part of ONNX Runtime's API that docs/from-onnxruntime.md lists")
