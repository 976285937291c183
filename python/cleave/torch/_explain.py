"""What torch.compile with this backend makes of a model."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .._plan import Plan
from ._backend import Compiled, compile_graph, observers


@dataclass(frozen=True)
class Explanation:
    """graphs: one per graph that Dynamo made, with its nodes, its parts for Cleave, and the nodes that stay with PyTorch.
    break_reasons: why Dynamo interrupted the graph; empty if there is one graph.
    plans: those of the parts, in order."""

    graphs: tuple[Compiled, ...]
    break_reasons: tuple[str, ...]
    plans: tuple[Plan, ...]

    @property
    def graph_breaks(self) -> int:
        return len(self.break_reasons)

    @property
    def nodes(self) -> int:
        return sum(graph.node_count for graph in self.graphs)

    @property
    def nodes_left(self) -> int:
        return sum(len(graph.left) for graph in self.graphs)

    def __str__(self) -> str:
        lines = [f"{len(self.graphs)} graphs, {self.graph_breaks} graph breaks, {self.nodes} nodes, {self.nodes_left} left to PyTorch"]
        lines += [f"graph break: {reason}" for reason in self.break_reasons]
        for i, graph in enumerate(self.graphs):
            lines.append(f"graph {i}: {graph}")
        for plan in self.plans:
            lines.append(str(plan))
        return "\n".join(lines)


def explain(model: Callable[..., Any], *inputs: Any, options: Mapping[str, Any] | None = None, **named: Any) -> Explanation:
    """Compiles a model for these inputs, runs it once, and says what was made of it. print() shows it.

    Resets what torch.compile has compiled in this process (torch._dynamo.reset())."""
    seen: list[Compiled] = []
    torch._dynamo.reset()
    with torch.no_grad():
        reasons = torch._dynamo.explain(model)(*inputs, **named).break_reasons
        torch._dynamo.reset()
        observers.lists.append(seen)
        try:
            torch.compile(model, backend=compile_graph, options=dict(options or {}))(*inputs, **named)
        finally:
            observers.lists.remove(seen)
            torch._dynamo.reset()
    plans = [variant.plan for graph in seen for region in graph.regions for variant in region.variants.values()]
    return Explanation(tuple(seen), tuple(str(getattr(reason, "reason", reason)) for reason in reasons), tuple(plans))
