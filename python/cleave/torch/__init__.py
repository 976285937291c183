"""PyTorch models on Cleave: torch.compile(model, backend="cleave"), and export() without a file.

Importing `cleave` does not import PyTorch; importing `cleave.torch` does."""
from __future__ import annotations

from ._backend import Compiled, Left, compile_graph
from ._ir import ExportError

__all__ = ["Compiled", "ExportError", "Left", "compile_graph"]
