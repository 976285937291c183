"""Converts graphs of PyTorch to Cleave's IR JSON (docs/ir-json.md). It needs PyTorch alone: tools/torch_to_ir.py reads this file where
Cleave is not installed."""
from __future__ import annotations

import contextlib
import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import torch

Json = dict[str, Any]

DTYPES: dict[torch.dtype, str] = {
    torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64",
    torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.uint16: "uint16", torch.uint32: "uint32",
    torch.uint64: "uint64", torch.bool: "bool"}
STORED: dict[torch.dtype, str] = {
    torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
    torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64",
    torch.bool: "BOOL"}
GETITEM = "<built-in function getitem>"
# Products whose operands must all have the same dtype. PyTorch rejects operands of different dtypes when it computes, but not
# when it traces.
PRODUCTS = {"linear", "matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
            "conv_transpose3d", "convolution"}


class ExportError(Exception):
    """The format cannot represent the module; the message names the node."""


@contextlib.contextmanager
def replacing(path: str, mode: str, **more: Any) -> Iterator[IO[Any]]:
    """Opens a file that replaces `path` when it is complete. After an error, `path` is unchanged."""
    temporary = f"{path}.part"
    try:
        with open(temporary, mode, **more) as out:
            yield out
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


# ---- safetensors ---------------------------------------------------------------------------------------------------------------


def write_safetensors(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes named tensors. Those with the widest elements come first, so that each is aligned to its element size."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, at = {}, 0
    for name in order:
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": STORED[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            flat = tensors[name].detach().cpu().contiguous().reshape(-1)
            if flat.numel() > 0:
                out.write(flat.view(torch.uint8).numpy().data)


# ---- The text of a call, by its ATen schema ----


def type_text(kind: Any) -> str:
    """Returns an argument's type as ATen's schemas write it: Tensor?, int[], Scalar, ScalarType?, ..."""
    name: str = kind.kind()
    if name == "OptionalType":
        return type_text(kind.getElementType()) + "?"
    if name == "ListType":
        return type_text(kind.getElementType()) + "[]"
    names = {"TensorType": "Tensor", "IntType": "int", "SymIntType": "int", "FloatType": "float", "SymFloatType": "float", "BoolType": "bool",
             "SymBoolType": "bool", "NumberType": "Scalar", "StringType": "str", "ScalarTypeType": "ScalarType",
             "DeviceObjType": "Device", "LayoutType": "Layout", "MemoryFormatType": "MemoryFormat", "GeneratorType": "Generator"}
    return names.get(name, name)


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.fx.Node)


def is_tensor_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(is_tensor(item) for item in value)


def plain(value: Any, where: str) -> Any:
    """Converts an attribute's value to a JSON value. `where` names the attribute in error messages."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value else "nan"
    if isinstance(value, (list, tuple)):
        return [plain(item, where) for item in value]
    if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return str(value)
    raise ExportError(f"{where} is {value!r} ({type(value).__name__}), which IR JSON cannot represent")


def literal(value: Any, number_of: Callable[[Any], int]) -> str:
    """Returns the text of an argument's value. A tensor is %0, %1, ...: its index among the node's inputs, from
    number_of(tensor)."""
    if is_tensor(value):
        return f"%{number_of(value)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item, number_of) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if isinstance(value, (bool, int, float, type(None))) else str(value)


# ---- Graphs --------------------------------------------------------------------------------------------------------------------


class GraphWriter:
    """Writes the nodes and outputs of an FX graph of ATen operators. Subclasses add the inputs."""

    def __init__(self, graph: torch.fx.Graph, name: str) -> None:
        self.graph = graph
        self.names = {node.name for node in graph.nodes}
        self.tensors: dict[torch.fx.Node, list[Json]] = {}  # the JSON of each output of a node, for the nodes that read it
        self.model: Json = {"model_name": name, "pytorch_version": torch.__version__, "graph_inputs": [], "graph_outputs": [],
                            "weights": [], "weight_name_mapping": {}, "nodes": []}

    def fresh(self, name: str) -> str:
        made, k = name, 0
        while made in self.names:
            k += 1
            made = f"{name}_{k}"
        self.names.add(made)
        return made

    def size(self, size: Any) -> int | None:
        """The number that a size is, or None if it has none."""
        return size if isinstance(size, int) else None

    def argument(self, value: Any) -> Any:
        """The value of a node's argument."""
        return value

    def tensor(self, name: str, value: Any, where: str) -> Json:
        if not isinstance(value, torch.Tensor) or value.dtype not in DTYPES:
            said = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
            raise ExportError(f"{where} is {said}, which is not a tensor of a dtype that IR JSON has")
        if value.layout != torch.strided:
            raise ExportError(f"{where} has the layout {value.layout}, but only dense tensors can be exported")
        shape = [self.size(size) for size in value.shape]
        if any(size is None for size in shape):
            raise ExportError(f"{where} has the shape {tuple(value.shape)}, but all sizes must be numbers: export without dynamic shapes")
        return {"name": name, "shape": shape, "dtype": DTYPES[value.dtype]}

    def add_input(self, node: torch.fx.Node, name: str, value: Any) -> None:
        described = self.tensor(name, value, f"input '{name}'")
        self.model["graph_inputs"].append(described)
        self.tensors[node] = [dict(described, producer_node=name, producer_output_idx=0)]

    def declare_weight(self, node: torch.fx.Node, name: str, value: Any) -> None:
        """Declares a weight that `node` stands for, unless a node before stands for the same weight."""
        described = self.tensor(name, value, f"weight '{name}'")
        if all(weight["name"] != name for weight in self.model["weights"]):
            self.model["weights"].append(described)
        self.model["weight_name_mapping"][node.name] = name
        self.tensors[node] = [dict(described, name=node.name)]

    # ---- Nodes

    def outputs_of(self, node: torch.fx.Node) -> list[Json]:
        value = node.meta.get("val")
        where = f"node '{node.name}' ({node.target}): its output"
        if value is None or (isinstance(value, (list, tuple)) and not value):
            return []
        if isinstance(value, torch.Tensor):
            return [self.tensor(node.name, value, where)]
        if not isinstance(value, (list, tuple)):
            raise ExportError(f"{where} is {type(value).__name__}, but it must be a tensor or a list of tensors")
        made = []
        for i, item in enumerate(value):
            made.append(self.tensor(self.fresh(f"{node.name}_{i}"), item, f"{where} {i}"))
        return made

    def finish_node(self, node: torch.fx.Node | None, name: str, op_type: str, inputs: list[Json], attrs: Json, outputs: list[Json],
                    **more: Any) -> None:
        self.model["nodes"].append({"name": name, "op_type": op_type, "inputs": inputs, "outputs": outputs, "attrs": attrs, **more})
        if node is not None:
            self.tensors[node] = [dict(described, producer_node=name, producer_output_idx=i) for i, described in enumerate(outputs)]

    def add_getitem(self, node: torch.fx.Node) -> None:
        source, index = node.args
        if not isinstance(index, int):
            raise ExportError(f"node '{node.name}': the index {index!r} is not an integer")
        if not isinstance(source, torch.fx.Node):
            raise ExportError(f"node '{node.name}' selects from {source!r}, which is not a node")
        outputs = self.outputs_of(node)
        self.finish_node(node, node.name, GETITEM, list(self.tensors[source]), {"index": index}, outputs)

    def one(self, node: torch.fx.Node, where: str) -> Json:
        known = self.tensors.get(node)
        if known is None or len(known) != 1:
            raise ExportError(f"{where}: '{node.name}' is read as a tensor, but it is a list of tensors or has no value")
        return known[0]

    def add_call(self, node: torch.fx.Node) -> None:
        assert isinstance(node.target, torch._ops.OpOverload)
        schema = node.target._schema
        where = f"node '{node.name}' ({node.target})"
        inputs: list[Json] = []
        attrs: Json = {}
        call: list[str] = []

        def number_of(argument: str) -> Callable[[torch.fx.Node], int]:
            def add(value: torch.fx.Node) -> int:
                inputs.append(dict(self.one(value, where), argument=argument))
                return len(inputs) - 1
            return add
        for i, argument in enumerate(schema.arguments):
            given = argument.name in node.kwargs or i < len(node.args)
            value: Any = node.kwargs[argument.name] if argument.name in node.kwargs else node.args[i] if i < len(node.args) else argument.default_value
            value = self.argument(value)
            kind = type_text(argument.real_type)
            if kind.rstrip("?").endswith("[]") and value is not None and not isinstance(value, (list, tuple)):
                value = [value]
            call.append(f"{kind} {argument.name}={literal(value, number_of(argument.name))}")
            if is_tensor_list(value):
                attrs.setdefault("_tensor_list_sizes", []).append(len(value))
                if any(item is None for item in value):
                    attrs.setdefault("_tensor_list_none_masks", []).append([item is None for item in value])
            elif given and value is not None and not is_tensor(value):
                attrs[argument.name] = plain(value, f"{where}: its argument '{argument.name}'")
        returns = [type_text(result.real_type) for result in schema.returns]
        namespace, _, rest = str(schema.name).partition("::")
        dtypes = sorted({tensor["dtype"] for tensor in inputs})
        if rest in PRODUCTS and len(dtypes) > 1:
            raise ExportError(f"{where} multiplies {' and '.join(dtypes)}, but PyTorch multiplies only tensors of the same dtype: "
                              "change the dtype of an input, or cast the module")
        overload = schema.overload_name or "default"
        self.finish_node(node, node.name, f"{namespace}.{rest}.{overload}", inputs, attrs, self.outputs_of(node), call=call, returns=returns)

    def add_node(self, node: torch.fx.Node) -> None:
        if node.op != "call_function":
            raise ExportError(f"node '{node.name}' is a {node.op}, which IR JSON cannot represent")
        if node.target is operator.getitem:
            self.add_getitem(node)
        elif isinstance(node.target, torch._ops.OpOverload):
            self.add_call(node)
        else:
            raise ExportError(f"node '{node.name}' calls {node.target}, which is not a tensor operator")

    def add_nodes(self) -> None:
        """Adds the nodes that the outputs depend on."""
        live = set(self.graph.output_node().all_input_nodes)
        for node in reversed(self.graph.nodes):
            if node in live:
                live.update(node.all_input_nodes)
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output") and node in live:
                self.add_node(node)

    # ---- Outputs

    def add_output(self, node: torch.fx.Node, taken: set[str]) -> str:
        """Adds an output. For an input, a weight, or a tensor that is already an output, first adds an alias node, and outputs
        that."""
        made = self.one(node, "the outputs")
        if node.op == "placeholder" or made["name"] in taken:
            name = self.fresh(f"{made['name']}_out")
            described = {"name": name, "shape": made["shape"], "dtype": made["dtype"]}
            self.finish_node(None, name, "aten.alias.default", [dict(made, argument="self")], {}, [described],
                             call=["Tensor self=%0"], returns=["Tensor"])
            made = dict(described, producer_node=name, producer_output_idx=0)
        taken.add(made["name"])
        self.model["graph_outputs"].append(made)
        return str(made["name"])


# ---- Exported programs ---------------------------------------------------------------------------------------------------------


class ProgramWriter(GraphWriter):
    """Writes a torch.export.ExportedProgram."""

    def __init__(self, program: torch.export.ExportedProgram, name: str) -> None:
        super().__init__(program.graph, name)
        self.program = program
        self.weights: dict[str, torch.Tensor] = {}
        self.places: dict[Any, str] = {}  # (address, dtype, shape, ...) of a weight -> its name, so that a weight with two names is stored once

    def stored(self, target: str) -> torch.Tensor:
        value = self.program.state_dict.get(target)
        if value is None:
            value = self.program.constants.get(target)
        if not isinstance(value, torch.Tensor):
            raise ExportError(f"weight '{target}' is not in the exported program")
        return value

    def add_weight(self, node: torch.fx.Node, target: str) -> None:
        value = self.stored(target)
        place = (value.data_ptr(), value.dtype, tuple(value.shape), tuple(value.stride()), value.storage_offset())
        name = self.places.setdefault(place, target) if value.numel() > 0 else target
        self.declare_weight(node, name, value)
        self.weights.setdefault(name, value)

    def add_inputs(self, mutated: dict[str, str]) -> None:
        kinds = torch.export.graph_signature.InputKind
        nodes = {node.name: node for node in self.graph.nodes if node.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            node = nodes.get(str(getattr(spec.arg, "name", None)))
            target = spec.target or ""
            if node is None or (not node.users and target not in mutated and spec.kind != kinds.USER_INPUT):
                continue
            value = node.meta.get("val")
            if spec.kind == kinds.USER_INPUT:
                if isinstance(value, torch.Tensor):
                    self.add_input(node, node.name, value)
                elif node.users:
                    raise ExportError(f"input '{node.name}' is {type(value).__name__}, but an input must be a tensor")
            elif target in mutated:
                name = self.fresh(target)
                self.add_input(node, name, value)
                mutated[target] = name
                self.weights[name] = self.stored(target)
            elif spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
                self.add_weight(node, target)
            else:
                raise ExportError(f"input '{node.name}' is a {spec.kind.name}, which IR JSON cannot represent")

    def add_outputs(self, mutated: dict[str, str]) -> None:
        kinds = torch.export.graph_signature.OutputKind
        nodes = {node.name: node for node in self.graph.nodes}
        taken: set[str] = set()
        state: dict[str, str] = {}
        later: list[tuple[str, torch.fx.Node]] = []
        for spec in self.program.graph_signature.output_specs:
            name = str(getattr(spec.arg, "name", None))
            if spec.kind == kinds.USER_OUTPUT:
                if name in nodes:
                    self.add_output(nodes[name], taken)
                elif getattr(spec.arg, "value", None) is not None:
                    raise ExportError(f"an output is {getattr(spec.arg, 'value')!r}, but an output must be a tensor")
            elif spec.kind in (kinds.BUFFER_MUTATION, kinds.USER_INPUT_MUTATION):
                target = spec.target or ""
                later.append((mutated.get(target, target), nodes[name]))
            else:
                raise ExportError(f"output '{name}' is a {spec.kind.name}, which IR JSON cannot represent")
        for name, node in later:
            state[name] = self.add_output(node, taken)
        if state:
            self.model["state"] = state

    def write(self) -> Json:
        kinds = torch.export.graph_signature.OutputKind
        mutated = {spec.target: spec.target for spec in self.program.graph_signature.output_specs
                   if spec.kind == kinds.BUFFER_MUTATION and spec.target is not None}
        self.add_inputs(mutated)
        self.add_nodes()
        self.add_outputs(mutated)
        return self.model


def is_functional(program: torch.export.ExportedProgram) -> bool:
    """Returns whether no node modifies its inputs or contains a graph. detach_, which changes no data, counts as functional."""
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if node.target is torch.ops.aten.detach_.default:
            continue
        if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
            return False
    return True


def convert(program: torch.export.ExportedProgram, name: str = "model") -> tuple[Json, dict[str, torch.Tensor]]:
    """Converts a torch.export.ExportedProgram. Returns (model, weights): the JSON document as a dictionary, and {name:
    tensor}."""
    if not is_functional(program):
        program = program.run_decompositions({})
    writer = ProgramWriter(program, name)
    model = writer.write()
    return model, writer.weights


def register_caches() -> None:
    """Makes torch.export return the keys and values of a DynamicCache, the cache that decoders of the package transformers
    return. torch.export rejects other caches."""
    if "transformers" in sys.modules:
        with contextlib.suppress(ImportError):
            from transformers.integrations.executorch import register_dynamic_cache_export_support
            register_dynamic_cache_export_support()  # type: ignore[no-untyped-call]


def trace(module: torch.nn.Module, args: Iterable[Any], kwargs: Mapping[str, Any] | None = None,
          name: str | None = None) -> tuple[Json, dict[str, torch.Tensor]]:
    """Traces a module with example inputs. Returns what convert() returns."""
    register_caches()
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), dict(kwargs or {}))
    return convert(program, name or type(module).__name__)


def dump(model: Json) -> bytes:
    """The text of a JSON document, as a file has it."""
    return json.dumps(model, separators=(",", ":")).encode()


__all__: Sequence[str] = ("DTYPES", "ExportError", "GraphWriter", "convert", "dump", "register_caches", "replacing", "trace", "write_safetensors")
