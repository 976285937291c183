"""PyTorch models on Cleave.

    compiled = torch.compile(model.eval(), backend="cleave", options={"devices": "npu,cpu"})
    with torch.no_grad():
        y = compiled(x)
    print(cleave.torch.explain(model, x))

    session = cleave.Session(cleave.torch.export(model, (x,)), devices="npu,cpu")

Importing `cleave` does not import PyTorch; importing `cleave.torch` does."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch as _torch

from ._backend import Compiled, Left, compile_graph
from ._engine import Loaded as Exported
from ._explain import Explanation, explain
from ._ir import ExportError, dump, trace


def export(module: _torch.nn.Module, args: Iterable[Any], kwargs: Mapping[str, Any] | None = None, *, name: str | None = None) -> Exported:
    """Traces a module with example inputs, whose sizes the model has. The result is a model for cleave.plan() and cleave.Session, without
    a file. It borrows the module's weights: do not write to them while it, or a session of it, is used. Buffers that the module
    writes to become inputs, and their new contents outputs, after the others.

    Raises ExportError, which names the node, if IR JSON cannot represent the module, and the errors of torch.export."""
    model, weights = trace(module, args, kwargs, name)
    return Exported(dump(model), weights)


__all__ = ["Compiled", "ExportError", "Explanation", "Exported", "Left", "compile_graph", "explain", "export"]
