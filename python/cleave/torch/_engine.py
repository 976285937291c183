"""The options of the backend, and sessions for graphs of PyTorch with their weights."""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .. import _cleave
from .._model import Opened, devices_options, load_graph, open_context, pairs
from .._plan import Plan
from .._session import _PRECISIONS
from .._tensors import DTYPES as NUMBERS
from ._ir import DTYPES, Json, dump

_OPEN = ("devices", "threads", "npu_specs", "device_options", "plugins", "cache", "capture")
_PLAN = ("strategy", "objective", "split", "profile", "pins", "forces")
_SESSION = ("deterministic", "tune", "precision")
_OWN = ("shapes",)
NAMES = _OPEN + _PLAN + _SESSION + _OWN


def number_of(dtype: torch.dtype) -> int:
    """The number of a dtype in ONNX."""
    return NUMBERS[DTYPES[dtype]]


@dataclass(frozen=True)
class Weight:
    """A tensor in memory that a graph borrows. `tensor` is contiguous, and keeps the memory alive."""

    tensor: torch.Tensor

    def entry(self) -> tuple[int, int, tuple[int, ...], Any]:
        tensor = self.tensor
        return tensor.data_ptr(), number_of(tensor.dtype), tuple(tensor.shape), self


class Loaded:
    """IR JSON with weights in memory, in the form that cleave.plan() and cleave.Session take as a model."""

    def __init__(self, text: bytes, weights: Mapping[str, torch.Tensor]) -> None:
        self._text = text
        self._weights = {name: Weight(tensor.detach().cpu().contiguous()) for name, tensor in weights.items()}

    def _cleave_graph(self, context: _cleave.Context) -> _cleave.Graph:
        return _cleave.Graph(context, self._text, False, None, {name: weight.entry() for name, weight in self._weights.items()})


class Engine:
    """Open devices, and how to plan for them. All graphs that are compiled with equal options share one."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        given = dict(options)
        unknown = sorted(set(given) - set(NAMES))
        if unknown:
            raise TypeError(f"the backend 'cleave' has no option '{unknown[0]}'; it has {', '.join(NAMES)}")
        precision = given.get("precision")
        if precision not in _PRECISIONS:
            raise ValueError(f"precision is {precision!r}: expected 'f32', 'bf16' or None")
        self.shapes = int(given.get("shapes", 16))
        if self.shapes < 1:
            raise ValueError(f"shapes is {self.shapes}: expected how many sets of sizes to keep, at least 1")
        self.context = open_context(None, given.get("capture"), given.get("cache"), given.get("plugins", ()))
        self.devices_options = devices_options(given.get("devices", "cpu"), int(given.get("threads", torch.get_num_threads())),
                                               given.get("npu_specs", ()), given.get("device_options", ()))
        self.devices = _cleave.Devices(self.context, self.devices_options)
        self.plan_options: dict[str, Any] = {name: given.get(name) for name in ("strategy", "objective", "split", "profile")}
        self.plan_options.update(pins=pairs(given.get("pins")), forces=pairs(given.get("forces")))
        self.session_options = {"deterministic": bool(given.get("deterministic", False)), "tune": bool(given.get("tune", False)),
                                "precision": _PRECISIONS[precision]}

    def plan(self, model: Json, weights: Mapping[str, torch.Tensor] | None = None) -> Plan:
        """Plans a model. Without weights, the plan is for reading alone."""
        loaded: Any = dump(model) if weights is None else Loaded(dump(model), weights)
        graph, description = load_graph(self.context, loaded)
        made = _cleave.Plan(graph, self.devices, self.plan_options)
        return Plan(Opened(self.context, self.devices, graph, description, self.devices_options), made, ())

    def session(self, plan: Plan) -> _cleave.Session:
        return _cleave.Session(plan._plan, (), self.session_options, None)


_engines: dict[str, Engine] = {}
_lock = threading.Lock()


def engine_of(options: Mapping[str, Any] | None) -> Engine:
    """The engine for these options. With the default number of threads, it depends on torch.get_num_threads()."""
    given = dict(options or {})
    given.setdefault("threads", torch.get_num_threads())
    key = repr(sorted(given.items()))
    with _lock:
        engine = _engines.get(key)
        if engine is None:
            engine = _engines[key] = Engine(given)
        return engine


__all__: Sequence[str] = ("Engine", "Loaded", "engine_of")
