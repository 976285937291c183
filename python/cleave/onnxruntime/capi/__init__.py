"""The modules of ONNX Runtime from which programs import its exceptions."""
import sys

if __name__ != "cleave.onnxruntime.capi":  # imported as onnxruntime.capi: there is one package, with two names
    import cleave.onnxruntime.capi

    sys.modules[__name__] = cleave.onnxruntime.capi
