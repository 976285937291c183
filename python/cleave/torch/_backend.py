"""The backend of torch.compile: divides a graph of ATen operators into regions for Cleave, and nodes that stay with PyTorch."""
from __future__ import annotations

import logging
import operator
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .._errors import Error
from ._engine import Engine, engine_of
from ._ir import DTYPES, ExportError
from ._region import Bindings, Region, RegionWriter, computed_outputs, is_symbolic, write_region

_LOGGER = logging.getLogger("cleave.torch")


@dataclass(frozen=True)
class Left:
    """A node that stays with PyTorch, and why."""

    name: str
    operator: str
    reason: str


@dataclass
class Compiled:
    """What became of one graph of Dynamo."""

    node_count: int
    regions: list[Region]
    left: list[Left] = field(default_factory=list)
    hints: Bindings = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.node_count} nodes: {self.node_count - len(self.left)} in {len(self.regions)} parts for Cleave, "
                 f"{len(self.left)} left to PyTorch"]
        lines += [f"  {left.name} ({left.operator}): {left.reason}" for left in self.left]
        return "\n".join(lines)


class _Observers(threading.local):
    def __init__(self) -> None:
        self.lists: list[list[Compiled]] = []


observers = _Observers()  # lists that are told what is compiled in this thread, for explain()


# ---- Sizes ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbols:
    """The symbols of a graph, and where a call has their values: (index of a placeholder, dimension), or without a dimension for an
    argument that is a number."""

    names: tuple[Any, ...]
    places: tuple[tuple[int, int | None], ...]
    hints: Bindings

    def values(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        return tuple([arguments[i] if axis is None else arguments[i].shape[axis] for i, axis in self.places])


def find_symbols(placeholders: Sequence[torch.fx.Node]) -> Symbols:
    places: dict[Any, tuple[int, int | None]] = {}
    hints: dict[Any, int] = {}

    def see(size: Any, place: tuple[int, int | None]) -> None:
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and size.node.expr not in places and size.node.has_hint():
            places[size.node.expr] = place
            hints[size.node.expr] = int(size.node.hint)
    for i, node in enumerate(placeholders):
        see(node.meta.get("val"), (i, None))
    for i, node in enumerate(placeholders):
        value = node.meta.get("val")
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            see(size, (i, axis))
    return Symbols(tuple(places), tuple(places.values()), hints)


# ---- Capture -------------------------------------------------------------------------------------------------------------------


def lift_constants(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """Makes tensors that the graph holds further arguments, which it returns."""
    constants: list[torch.Tensor] = []
    graph = module.graph
    last = [node for node in graph.nodes if node.op == "placeholder"][-1:]
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        value: Any = module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            continue
        with graph.inserting_after(last[-1]) if last else graph.inserting_before(next(iter(graph.nodes))):
            made = graph.placeholder(f"constant_{len(constants)}")
        made.meta["val"] = node.meta["val"] if isinstance(node.meta.get("val"), torch.Tensor) else value.detach()
        last.append(made)
        constants.append(value)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    if constants:
        graph.lint()
        module.recompile()
    return module, constants


def is_contiguous_view(node: torch.fx.Node) -> bool:
    """Returns whether an as_strided node has the elements of its input, which is contiguous, in their order, for all sizes."""
    source = node.args[0]
    value = source.meta.get("val") if isinstance(source, torch.fx.Node) else None
    made = node.meta.get("val")
    offset = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
    if not isinstance(value, torch.Tensor) or not isinstance(made, torch.Tensor) or offset not in (None, 0):
        return False
    if not value.is_contiguous() or value.storage_offset() != 0:
        return False
    expected: Any = 1
    for size, stride in reversed(list(zip(made.shape, made.stride(), strict=True))):
        if isinstance(size, int) and size == 1:
            continue
        if not bool(statically_known_true(stride == expected)):
            return False
        expected = expected * size
    return bool(statically_known_true(expected == value.numel()))


def simplify(module: torch.fx.GraphModule) -> None:
    """Replaces operators that tracing makes by equal ones that Cleave has."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is torch.ops.prims.convert_element_type.default:
            node.target, node.args, node.kwargs = torch.ops.aten._to_copy.default, (node.args[0],), {"dtype": node.args[1]}
        elif node.target is torch.ops.aten.as_strided.default and is_contiguous_view(node):
            node.target, node.args, node.kwargs = torch.ops.aten.reshape.default, (node.args[0], node.args[1]), {}


def is_computation(node: torch.fx.Node) -> bool:
    """Returns whether a node computes tensors, and not sizes, and not one item of a list."""
    return node.op == "call_function" and node.target is not operator.getitem and not is_number(node)


def is_number(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return is_symbolic(value) or isinstance(value, (bool, int, float))


def tensors_of(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    return [item for item in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(item, torch.Tensor)]


# ---- What Cleave runs ----------------------------------------------------------------------------------------------------------


class Probe:
    """Asks whether Cleave can run a node, and why not."""

    def __init__(self, engine: Engine, bindings: Bindings) -> None:
        self.engine, self.bindings = engine, bindings
        self.known: dict[torch.fx.Node, str | None] = {}

    def reason(self, node: torch.fx.Node) -> str | None:
        """Returns why Cleave cannot run a node, or None."""
        if node not in self.known:
            self.known[node] = self.ask(node)
        return self.known[node]

    def ask(self, node: torch.fx.Node) -> str | None:
        if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
            return self.reason(node.args[0])
        if not isinstance(node.target, torch._ops.OpOverload):
            return f"{node.target} is not an operator of ATen"
        if node.target._schema.is_mutable:
            return "it writes to its arguments"
        for tensor in [tensor for near in (node, *node.all_input_nodes) for tensor in tensors_of(near)]:
            if tensor.device.type != "cpu":
                return f"a tensor is on the device {tensor.device}"
            if tensor.dtype not in DTYPES or tensor.layout != torch.strided:
                return f"a tensor has the dtype {tensor.dtype} and the layout {tensor.layout}"
        alone = torch.fx.Graph()
        made: dict[torch.fx.Node, torch.fx.Node] = {}
        for near in node.all_input_nodes:
            made[near] = alone.placeholder(near.name)
            made[near].meta = near.meta
            if isinstance(near.meta.get("val"), (list, tuple)):
                return "it reads a list"
        copy = alone.node_copy(node, lambda near: made[near])
        read = [copy]
        if isinstance(node.meta.get("val"), (list, tuple)):
            read = []
            for user in node.users:
                if user.target is operator.getitem:
                    read.append(alone.node_copy(user, lambda near: copy))
        alone.output(tuple(read))
        return self.plan(alone)

    def plan(self, graph: torch.fx.Graph, weights: set[torch.fx.Node] | None = None) -> str | None:
        """Returns why no plan can be made for a graph, or None."""
        try:
            if outputs := computed_outputs(graph):
                self.engine.plan(write_region(graph, weights or set(), self.bindings, outputs))
        except (Error, ExportError) as error:
            return str(error)
        return None


class _Support(OperatorSupportBase):
    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        return node.op == "call_function" and not is_number(node) and self.probe.reason(node) is None


def decompose(module: torch.fx.GraphModule, probe: Probe) -> torch.fx.GraphModule:
    """Replaces the operators that Cleave lacks by what PyTorch's core decompositions make of them, as far as there are any."""
    table = torch.export.default_decompositions()
    found: dict[Any, Callable[..., Any]] = {}
    for node in module.graph.nodes:
        if is_computation(node) and node.target in table and probe.reason(node) is not None:
            found[node.target] = table[node.target]
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    if not found:
        return module
    values = [node.meta["val"] for node in placeholders]
    interpreter = torch.fx.Interpreter(module)
    made = make_fx(lambda *arguments: interpreter.run(*arguments), decomposition_table=found, tracing_mode="real",
                   _allow_non_fake_inputs=True)(*values)
    return made


# ---- A graph -------------------------------------------------------------------------------------------------------------------


def static_inputs(count: int) -> list[int]:
    """The indices of placeholders that are parameters or buffers which the graph does not write to."""
    context = torch._guards.TracingContext.try_get()
    meta = None if context is None else context.fw_metadata
    if meta is None or len(meta.input_info) != count:
        return []
    return [i for i in meta.static_input_indices if i < count and not meta.input_info[i].mutates_data]


class _Called(torch.nn.Module):
    """A region as a module of a divided graph, which returns a list or one tensor, as the region's graph does."""

    def __init__(self, region: Region, returns_list: bool) -> None:
        super().__init__()
        self.region, self.returns_list = region, returns_list

    def forward(self, sizes: tuple[int, ...], *arguments: Any) -> Any:
        made = self.region(sizes, *arguments)
        return made if self.returns_list else made[0]


class Division:
    """Divides a graph into regions. `call` runs it: a function of the flat list of arguments."""

    def __init__(self, module: torch.fx.GraphModule, engine: Engine) -> None:
        count = sum(node.op == "placeholder" for node in module.graph.nodes)
        fixed = static_inputs(count)
        module, constants = lift_constants(module)
        self.constants = constants
        simplify(module)
        module.graph.eliminate_dead_code()
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.symbols = find_symbols(placeholders)
        probe = Probe(engine, self.symbols.hints)
        self.fixed = fixed + list(range(count, count + len(constants)))
        whole = self.whole_reason(module, placeholders, probe)
        if whole is not None:
            module = decompose(module, probe)
            simplify(module)
            module.graph.eliminate_dead_code()
            placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
            probe = Probe(engine, self.symbols.hints)
            whole = self.whole_reason(module, placeholders, probe)
        nodes = [node for node in module.graph.nodes if is_computation(node)]
        self.result = Compiled(len(nodes), [], hints=self.symbols.hints)
        if whole is None:
            region = Region(module, engine, self.symbols.names, self.fixed)
            self.result.regions.append(region)
            self.call = self.call_region(region)
        else:
            self.call = self.divide(module, engine, probe)

    def whole_reason(self, module: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node], probe: Probe) -> str | None:
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "output", "call_function"):
                return f"a node is a {node.op}"
            if any(tensor.device.type != "cpu" for tensor in tensors_of(node)):
                return "a tensor is on another device"
        if not any(is_computation(node) for node in module.graph.nodes):
            return "the graph computes nothing"
        return probe.plan(module.graph, {placeholders[i] for i in self.fixed})

    def call_region(self, region: Region) -> Callable[[list[Any]], list[Any]]:
        symbols, constants = self.symbols, self.constants
        if not symbols.places and not constants:
            return lambda arguments: region((), *arguments)
        return lambda arguments: region(symbols.values(arguments), *arguments, *constants)

    def divide(self, module: torch.fx.GraphModule, engine: Engine, probe: Probe) -> Callable[[list[Any]], list[Any]]:
        partitioner = CapabilityBasedPartitioner(module, _Support(probe), allows_single_node_partition=False)
        partitions = [partition for partition in partitioner.propose_partitions()
                      if sum(is_computation(node) for node in partition.nodes) > 1]
        fused = partitioner.fuse_partitions(partitions)
        static = {node.name for i, node in enumerate(node for node in fused.graph.nodes if node.op == "placeholder") if i in set(self.fixed)}
        first = next(iter(fused.graph.nodes))
        with fused.graph.inserting_before(first):
            sizes = fused.graph.placeholder("cleave_sizes")
        for node in list(fused.graph.nodes):
            if node.op == "call_module":
                self.add_region(fused, node, sizes, static, engine, probe)
            elif is_computation(node):
                self.result.left.append(Left(node.name, str(node.target), probe.reason(node) or "it has no neighbours that Cleave runs"))
        fused.graph.lint()
        fused.recompile()
        forward, symbols, constants = fused.forward, self.symbols, self.constants
        return lambda arguments: forward(symbols.values(arguments), *arguments, *constants)

    def add_region(self, fused: torch.fx.GraphModule, node: torch.fx.Node, sizes: torch.fx.Node, static: set[str], engine: Engine,
                   probe: Probe) -> None:
        inner = getattr(fused, str(node.target))
        reason = probe.plan(inner.graph)
        if reason is not None:
            self.result.left += [Left(each.name, str(each.target), reason) for each in inner.graph.nodes if is_computation(each)]
            return
        weights = [i for i, argument in enumerate(node.args) if isinstance(argument, torch.fx.Node) and argument.name in static]
        region = Region(inner, engine, self.symbols.names, weights)
        self.result.regions.append(region)
        fused.set_submodule(str(node.target), _Called(region, isinstance(inner.graph.output_node().args[0], (list, tuple))))
        node.args = (sizes, *node.args)


def compile_aten(module: torch.fx.GraphModule, engine: Engine) -> Callable[..., Any]:
    """Compiles a graph of ATen operators. Returns a function of the flat list of its arguments, as AOTAutograd calls it."""
    division = Division(module, engine)
    for observer in observers.lists:
        observer.append(division.result)
    _LOGGER.info("%s", division.result)
    call = division.call

    def run(arguments: list[Any]) -> list[Any]:
        return call(arguments)
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


_told_training = False


def leave_training(module: torch.fx.GraphModule) -> Callable[..., Any]:
    """What a graph that needs gradients gets: PyTorch itself."""
    global _told_training
    if not _told_training:
        _told_training = True
        warnings.warn("the backend 'cleave' is for inference: a graph that needs gradients runs eagerly. "
                      "Call the model under torch.no_grad() or torch.inference_mode()", stacklevel=2)
    return module.forward


def compile_graph(module: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
                  mode: str | None = None) -> Callable[..., Any]:
    """The backend 'cleave' of torch.compile: torch.compile(model, backend="cleave", options={"devices": "npu,cpu"}).

    options: `devices`, `threads` (default: torch.get_num_threads()), `npu_specs`, `device_options`, `plugins`, `cache`, `capture`,
    `strategy`, `objective`, `split`, `profile`, `pins`, `forces`, `deterministic`, `tune` and `precision`, as for cleave.Session;
    and `shapes`: for how many sets of sizes sessions are kept (16).

    It is for inference: under torch.no_grad() or torch.inference_mode(). A graph that needs gradients runs eagerly."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    if mode not in (None, "default"):
        raise ValueError(f"the backend 'cleave' has no mode '{mode}': pass options, such as {{'tune': True}}")
    engine = engine_of(options)
    if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs):
        return leave_training(module)

    def inference(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return compile_aten(graph, engine)

    def training(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        leave_training(graph)
        boxed: Callable[..., Any] = make_boxed_func(graph.forward)
        return boxed
    made: Callable[..., Any] = aot_autograd(fw_compiler=training, inference_compiler=inference, keep_inference_input_mutations=False)(module, inputs)
    return made
