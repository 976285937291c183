"""Cleave runs one neural network on all devices of a machine.

    import cleave
    session = cleave.Session("model.onnx", devices="npu,cpu")
    y = session.run({"x": x})["y"]
    print(session.plan)
"""
from __future__ import annotations

import numpy as _numpy

from . import _cleave, _tensors
from ._errors import (Cancelled, DeviceError, Error, FileError, InvalidArgument, InvalidModel, NotFound, NotSupported, OutOfMemory,
                      TimedOut, TooLarge, raise_status)
from ._model import Device, Model, Value
from ._plan import Document, Node, Partition, Plan, Step, Table, Transfer
from ._session import Bench, Profile, Session, Verification, devices, plan, profile, read_plan

_cleave.set_up(raise_status, _numpy.asarray, _tensors.prepare, _tensors.complete)
__version__ = _cleave.version()

__all__ = ["Bench", "Cancelled", "Device", "DeviceError", "Document", "Error", "FileError", "InvalidArgument", "InvalidModel", "Model",
           "Node", "NotFound", "NotSupported", "OutOfMemory", "Partition", "Plan", "Profile", "Session", "Step", "Table", "TimedOut", "TooLarge",
           "Transfer", "Value", "Verification", "devices", "plan", "profile", "read_plan"]
