"""Where ONNX Runtime defines its sessions and values."""
from cleave.onnxruntime import InferenceSession, IOBinding, OrtDevice, OrtDeviceVendorId, OrtValue, copy_tensors

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session", "copy_tensors"]
