"""Another name of onnxruntime_pybind11_state."""
from cleave.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
