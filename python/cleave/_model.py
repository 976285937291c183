"""Opening what a plan needs: a context, devices, and a model from a path, bytes, or an onnx.ModelProto."""
from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _cleave
from ._tensors import numpy_dtype

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]
Log = Callable[[int, str], object]

_LOGGER = logging.getLogger("cleave")
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_CAPTURES = {None: 0, "off": 1, "on": 2, "auto": 3}


def _log(level: int, text: str) -> None:
    _LOGGER.log(_LEVELS[level] if 0 <= level < len(_LEVELS) else logging.DEBUG, "%s", text)


@dataclass(frozen=True)
class Value:
    """An input or an output of a model. `shape` is None if the rank is not known; a size that is not known is the name of a symbolic
    dimension, or None."""

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int | str | None, ...] | None
    has_default: bool
    number: int  # the dtype's number in ONNX


@dataclass(frozen=True)
class Model:
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True)
class Device:
    """An open device. `memory_limit_bytes` is 0 without a limit."""

    name: str
    kind: str
    description: str
    fingerprint: str
    memory_space: str
    memory_limit_bytes: int
    static_shapes_only: bool
    is_synchronous: bool
    max_partition_inputs: int
    max_partition_nodes: int


@dataclass(frozen=True)
class Opened:
    """What plans and sessions are made from."""

    context: _cleave.Context
    devices: _cleave.Devices
    graph: _cleave.Graph
    model: Model
    devices_options: dict[str, Any]


def open_context(log: Log | None = None, capture: str | None = None, cache: str | os.PathLike[str] | None = None,
                 plugins: Sequence[str | os.PathLike[str]] = (), fold_bytes: int = 0) -> _cleave.Context:
    if capture not in _CAPTURES:
        raise ValueError(f"capture is {capture!r}: expected 'off', 'on', 'auto' or None")
    options = {"capture": _CAPTURES[capture], "cache_directory": cache, "fold_bytes": fold_bytes}
    context = _cleave.Context(options, log if log is not None else _log)
    for plugin in plugins:
        context.load_plugin(os.path.abspath(plugin))
    return context


def devices_options(devices: str | Sequence[str], threads: int = 0, npu_specs: Sequence[str | os.PathLike[str]] = (),
                    device_options: Sequence[str] | Mapping[str, Any] = (), no_fallback: bool = False) -> dict[str, Any]:
    if isinstance(device_options, Mapping):
        device_options = [f"{key}={value}" for key, value in device_options.items()]
    return {"list": devices if isinstance(devices, str) else ",".join(devices), "thread_count": threads, "npu_specs": npu_specs,
            "device_options": device_options, "no_fallback": no_fallback}


def _values(graph: _cleave.Graph, rows: list[tuple[str, int, tuple[int, ...] | None, bool]]) -> tuple[Value, ...]:
    values = []
    for name, number, dims, has_default in rows:
        shape: tuple[int | str | None, ...] | None = None
        if dims is not None:
            shape = tuple(size if size >= 0 else None if size == -1 else graph.symbol(-2 - size) for size in dims)
        try:
            dtype = numpy_dtype(number) if number != 0 else None
        except TypeError:
            dtype = None
        values.append(Value(name, dtype, shape, has_default, number))
    return tuple(values)


def load_graph(context: _cleave.Context, model: Any, params: Sequence[str | os.PathLike[str]] = ()) -> tuple[_cleave.Graph, Model]:
    if hasattr(model, "_cleave_graph"):  # such as what cleave.torch.export() returns
        graph = model._cleave_graph(context)
        return graph, Model(_values(graph, graph.inputs()), _values(graph, graph.outputs()))
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        graph = _cleave.Graph(context, bytes(model), False)
    elif isinstance(model, (str, os.PathLike)):
        graph = _cleave.Graph(context, model, True, list(params))
    else:
        raise TypeError(f"model is a {type(model).__name__}: expected a path, bytes or an onnx.ModelProto")
    return graph, Model(_values(graph, graph.inputs()), _values(graph, graph.outputs()))


def open_all(model: Any, params: Sequence[str | os.PathLike[str]], context: _cleave.Context, options: dict[str, Any]) -> Opened:
    devices = _cleave.Devices(context, options)
    graph, description = load_graph(context, model, params)
    return Opened(context, devices, graph, description, options)


def pairs(given: Pairs | None) -> list[tuple[str, str]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(a, b) for a, b in given]


def sizes(shapes: Mapping[str, Sequence[int]] | None, dims: Mapping[str, int] | None) -> list[tuple[str, Any]]:
    result: list[tuple[str, Any]] = [(name, [int(size) for size in shape]) for name, shape in (shapes or {}).items()]
    return result + [(name, int(size)) for name, size in (dims or {}).items()]
