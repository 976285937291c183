"""Regions: parts of a graph that Cleave runs. A region has a session for each set of sizes that it is called with."""
from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .. import _cleave
from .._errors import Error
from .._plan import Plan
from ._engine import Engine
from ._ir import ExportError, GraphWriter, Json

_LOGGER = logging.getLogger("cleave.torch")
Sizes = tuple[int, ...]  # the value of each symbol of a graph
Bindings = Mapping[Any, int]
# A weight that has changed this often becomes an input of the session, which costs packing in each run, but no new sessions.
CHANGES = 3


def is_symbolic(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def number(value: Any, bindings: Bindings) -> Any:
    """The number that a symbolic one is, or None if `bindings` lack one of its symbols."""
    if not is_symbolic(value):
        return value
    known = sympy.sympify(value.node.expr.xreplace(bindings))
    if isinstance(value, torch.SymBool):
        return {True: True, False: False}.get(bool(known)) if not known.free_symbols else None
    if known.free_symbols or not known.is_number:
        return None
    return int(known) if isinstance(value, torch.SymInt) else float(known)


class RegionWriter(GraphWriter):
    """Writes a region for given values of its symbols."""

    def __init__(self, graph: torch.fx.Graph, bindings: Bindings) -> None:
        super().__init__(graph, "region")
        self.bindings = bindings

    def size(self, size: Any) -> int | None:
        value = number(size, self.bindings)
        return value if isinstance(value, int) else None

    def argument(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, torch.fx.Node) and not isinstance(value.meta.get("val"), (torch.Tensor, list, tuple)):
            value = value.meta.get("val")
        if is_symbolic(value):
            known = number(value, self.bindings)
            if known is None:
                raise ExportError(f"the size {value} is not known before the graph runs")
            return known
        return value

    def add_node(self, node: torch.fx.Node) -> None:
        if not is_symbolic(node.meta.get("val")) and not isinstance(node.meta.get("val"), (int, float)):
            super().add_node(node)


def is_read(node: torch.fx.Node) -> bool:
    """Returns whether a placeholder is a tensor that nodes read."""
    return isinstance(node.meta.get("val"), torch.Tensor) and any(user.op != "output" for user in node.users)


def write_region(graph: torch.fx.Graph, weights: set[torch.fx.Node], bindings: Bindings, outputs: Sequence[torch.fx.Node]) -> Json:
    """Returns the JSON of a region, of which the placeholders `weights` are weights by their names."""
    writer = RegionWriter(graph, bindings)
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not is_read(node):
            continue
        if node in weights:
            writer.declare_weight(node, f"weight:{node.name}", value)
        else:
            writer.add_input(node, node.name, value)
    writer.add_nodes()
    taken: set[str] = set()
    for node in outputs:
        writer.add_output(node, taken)
    return writer.model


def results(graph: torch.fx.Graph) -> list[Any]:
    """What a graph returns, as a list."""
    value: Any = graph.output_node().args[0]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def computed_outputs(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    found = [value for value in results(graph)
             if isinstance(value, torch.fx.Node) and value.op != "placeholder" and isinstance(value.meta.get("val"), torch.Tensor)]
    return list(dict.fromkeys(found))


def find_aliases(outputs: Sequence[torch.fx.Node]) -> dict[torch.fx.Node, torch.fx.Node]:
    """Finds outputs that are views of other outputs, such as y.t() beside y. Returns {view: the output that has all of the memory}."""
    def storage(node: torch.fx.Node) -> int:
        return int(node.meta["val"].untyped_storage()._cdata)

    bases: dict[int, torch.fx.Node] = {}
    for node in outputs:
        value = node.meta["val"]
        is_whole = statically_known_true(value.storage_offset() == 0) and statically_known_true(
            value.numel() * value.element_size() == value.untyped_storage().nbytes())
        if is_whole and is_non_overlapping_and_dense_or_false(value):
            bases.setdefault(storage(node), node)
    return {node: bases[storage(node)] for node in outputs
            if bases.get(storage(node), node) is not node and bases[storage(node)].meta["val"].dtype == node.meta["val"].dtype}


class Variant:
    """A session for one set of sizes, and for the present weights."""

    def __init__(self, region: Region, bindings: Bindings, arguments: Sequence[Any]) -> None:
        fixed = region.fixed
        model = write_region(region.graph, {region.placeholders[i] for i in fixed}, bindings, region.computed)
        tensors = {f"weight:{region.placeholders[i].name}": arguments[i] for i in fixed}
        self.weights = [(i, arguments[i], arguments[i].data_ptr(), arguments[i]._version) for i in fixed]
        self.plan: Plan = region.engine.plan(model, tensors)
        self.session: _cleave.Session = region.engine.session(self.plan)
        self.run = self.session.run_addresses
        self.inputs = tuple(i for i in region.used if i not in fixed)
        self.outputs: list[tuple[tuple[int, ...], tuple[int, ...] | None, torch.dtype]] = []
        for node in region.computed:
            value = node.meta["val"]
            shape = tuple(int(number(size, bindings)) for size in value.shape)
            strides = tuple(int(number(stride, bindings)) for stride in value.stride())
            plain = torch.empty_strided(shape, strides, device="meta").is_contiguous()
            self.outputs.append((shape, None if plain else strides, value.dtype))
        # What to return: the index of an output, or of an argument, or a number.
        places = {node: k for k, node in enumerate(region.computed)}

        def known(sizes: Sequence[Any]) -> tuple[int, ...]:
            return tuple(int(number(size, bindings)) for size in sizes)
        self.returns: list[tuple[str, Any]] = []
        for item in results(region.graph):
            if not isinstance(item, torch.fx.Node):
                self.returns.append(("value", item))
            elif item in places:
                self.returns.append(("output", places[item]))
            elif item in region.aliases:
                value = item.meta["val"]
                self.returns.append(("view", (places[region.aliases[item]], known(value.shape), known(value.stride()),
                                              int(number(value.storage_offset(), bindings)))))
            elif item.op == "placeholder":
                self.returns.append(("argument", region.placeholders.index(item)))
            else:
                self.returns.append(("value", number(item.meta["val"], bindings)))
        self.returns_outputs = self.returns == [("output", k) for k in range(len(self.outputs))]

    def changed(self, arguments: Sequence[Any]) -> list[int]:
        """The indices of the weights that are not those that the session was made with."""
        return [i for i, tensor, address, version in self.weights
                if arguments[i].data_ptr() != address or arguments[i]._version != version]

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        kept: list[torch.Tensor] = []
        inputs: list[int] = []
        for i in self.inputs:
            tensor = arguments[i]
            if not tensor.is_contiguous():
                tensor = tensor.contiguous()
                kept.append(tensor)
            inputs.append(tensor.data_ptr())
        made = [torch.empty(shape, dtype=dtype) for shape, _, dtype in self.outputs]
        self.run(tuple(inputs), tuple([tensor.data_ptr() for tensor in made]))
        for k, (shape, strides, dtype) in enumerate(self.outputs):
            if strides is not None:
                made[k] = torch.empty_strided(shape, strides, dtype=dtype).copy_(made[k])
        if self.returns_outputs:
            return made
        returned: list[Any] = []
        for kind, value in self.returns:
            if kind == "view":
                returned.append(made[value[0]].as_strided(*value[1:]))
            else:
                returned.append(made[value] if kind == "output" else arguments[value] if kind == "argument" else value)
        return returned


class Region:
    """A graph of ATen operators that Cleave runs. Called with the values of the symbols, and one argument per placeholder.

    weights: the indices of placeholders that are parameters and buffers. They are packed when a session is made. They must not be
    written to while a call is in progress."""

    def __init__(self, module: torch.fx.GraphModule, engine: Engine, symbols: Sequence[Any], weights: Sequence[int]) -> None:
        self.module, self.graph, self.engine, self.symbols = module, module.graph, engine, tuple(symbols)
        self.placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.used = [i for i, node in enumerate(self.placeholders) if is_read(node)]
        outputs = computed_outputs(self.graph)
        self.aliases = find_aliases(outputs)
        self.computed = [node for node in outputs if node not in self.aliases]
        self.fixed = [i for i in weights if i in self.used]
        self.changes = {i: 0 for i in self.fixed}
        self.seen: dict[int, tuple[int, int]] = {}  # index of a weight -> (address, version) of the newest session
        self.variants: OrderedDict[Sizes, Variant] = OrderedDict()
        self.lock = threading.Lock()
        self.is_eager = False

    def nodes(self) -> list[torch.fx.Node]:
        return [node for node in self.graph.nodes if node.op == "call_function"]

    def make(self, sizes: Sizes, arguments: Sequence[Any]) -> Variant:
        """Makes the session for these sizes, unless another thread has made it."""
        with self.lock:
            variant = self.variants.get(sizes)
            changed = [] if variant is None else variant.changed(arguments)
            if variant is not None and not changed:
                return variant
            for i in changed:
                place = (arguments[i].data_ptr(), arguments[i]._version)
                self.changes[i] += i in self.seen and self.seen[i] != place
            unversioned = [i for i in self.fixed if arguments[i].is_inference()]
            inputs = [i for i in self.fixed if self.changes[i] >= CHANGES or i in unversioned]
            if inputs:
                self.fixed = [i for i in self.fixed if i not in inputs]
                self.variants.clear()
            variant = Variant(self, dict(zip(self.symbols, sizes, strict=True)), arguments)
            self.variants[sizes] = variant
            self.seen.update((i, (address, version)) for i, _, address, version in variant.weights)
            while len(self.variants) > self.engine.shapes:
                self.variants.popitem(last=False)
            return variant

    def __call__(self, sizes: Sizes, *arguments: Any) -> list[Any]:
        if self.is_eager:
            return self.eager(arguments)
        variant = self.variants.get(sizes)
        if variant is None or variant.changed(arguments):
            try:
                variant = self.make(sizes, arguments)
            except (Error, ExportError) as error:
                _LOGGER.warning("a part of %d nodes is left to PyTorch: %s", len(self.nodes()), error)
                self.is_eager = True
                return self.eager(arguments)
        return variant(arguments)

    def eager(self, arguments: Sequence[Any]) -> list[Any]:
        value = self.module(*arguments)
        return list(value) if isinstance(value, (list, tuple)) else [value]
