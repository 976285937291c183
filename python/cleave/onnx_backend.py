"""The backend interface of the package onnx (onnx.backend.base), on Cleave.

    import cleave.onnx_backend as backend
    outputs = backend.run_model(model, [x, y])
    prepared = backend.prepare(model, "npu,cpu", strategy="contiguous")
    outputs = prepared.run([x, y])

A device is "CPU", or a list of Cleave's devices in order of priority. Further arguments are those of `cleave.Session`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._errors import Error
from ._session import Session
from ._session import devices as _open
from ._tensors import DTYPES, STRING

Array = np.ndarray[Any, Any]


class CleaveRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._tuple = namedtupledict("Outputs", [value.name for value in session.model.outputs])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs once. inputs: in the order of the model's inputs, or by name, or one array if the model has one input. Returns the
        outputs in order, as a tuple that can also be indexed by names. kwargs: `timeout` of `Session.run()`."""
        if isinstance(inputs, np.ndarray) or not isinstance(inputs, (Mapping, Sequence)):
            inputs = [inputs]
        arrays = self.session.run(inputs, **kwargs)
        return self._tuple(*arrays.values())


def _type_of(array: Array) -> int:
    return STRING if array.dtype.kind in "OUST" else DTYPES[array.dtype.name]


def _model_of(node: onnx.NodeProto, inputs: Sequence[Any], outputs_info: Any, opset: int | None) -> onnx.ModelProto:
    """A model of one node. Types of outputs that are not given are inferred."""
    names = [name for name in node.input if name]
    if len(inputs) != len(names):
        raise ValueError(f"{len(inputs)} inputs are given, but the node reads {len(names)}: {', '.join(names)}")
    arrays = dict(zip(names, (np.asarray(value) for value in inputs)))
    values = [helper.make_tensor_value_info(name, _type_of(array), array.shape) for name, array in arrays.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    if outputs_info is not None:
        outputs = [helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                   for value, (dtype, shape) in zip(outputs, outputs_info)]
    imports = {node.domain: 1} if node.domain else {}
    imports[""] = onnx.defs.onnx_opset_version() if opset is None else opset
    graph = helper.make_graph([node], "node", values, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version) for domain, version in imports.items()])


class CleaveBackend(Backend):
    """The class of the functions of this module."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns whether the devices can run the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> CleaveRep:
        """Plans and compiles a model: an onnx.ModelProto, bytes or a path. kwargs: arguments of `cleave.Session`."""
        return CleaveRep(Session(model, "cpu" if device == "CPU" else device, **kwargs))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepares a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node. inputs: those that the node has, absent ones left out. outputs_info: (dtype, shape) of each output; if it
        is not given, types are inferred. kwargs: `opset_version`, by default that of the package onnx, and arguments of
        `cleave.Session`."""
        opset = kwargs.pop("opset_version", None)
        arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        return cls.run_model(_model_of(node, arrays, outputs_info, opset), arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether every device of the list is on this machine."""
        if device == "CPU":
            return True
        try:
            _open(device)
        except Error:
            return False
        return True


is_compatible = CleaveBackend.is_compatible
prepare = CleaveBackend.prepare
run_model = CleaveBackend.run_model
run_node = CleaveBackend.run_node
supports_device = CleaveBackend.supports_device
