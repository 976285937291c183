#!/usr/bin/env python3
"""Exports a PyTorch module to Cleave's IR JSON (docs/ir-json.md) and its weights to safetensors.

    python tools/torch_to_ir.py model.py Net --input 1x3x224x224 -o net.json       writes net.json and net.safetensors
    build/cleave run net.json --params net.safetensors

Net, in the file model.py, is a subclass of torch.nn.Module, a function that returns a module, or a module. Python programs can
call `export()` instead. Needs PyTorch (tools/requirements-torch.txt). The module is traced by torch.export on the CPU, and the
exported model has the sizes of the example inputs.

A buffer that the module changes (such as a cache) becomes an input of the model. Its new contents become an output, after the
other outputs. The key `state` of the JSON pairs these inputs with these outputs. The file of weights has the initial contents."""
import argparse
import contextlib
import importlib.util
import json
import logging
import operator
import os
import re
import sys
import traceback
import warnings

try:
    import torch
except (ImportError, OSError, KeyboardInterrupt) as missing:
    if __name__ != "__main__":
        raise
    if isinstance(missing, KeyboardInterrupt):
        sys.exit("torch_to_ir: interrupted")
    sys.exit(f"torch_to_ir: PyTorch is missing ({missing}): 'tools/setup torch' installs it in .venv; run .venv/bin/python {sys.argv[0]}")

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64",
          torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.uint16: "uint16",
          torch.uint32: "uint32", torch.uint64: "uint64", torch.bool: "bool"}
STORED = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
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
def replacing(path, mode, **more):
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


def write_safetensors(path, tensors):
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


def type_text(kind):
    """Returns an argument's type as ATen's schemas write it: Tensor?, int[], Scalar, ScalarType?, ..."""
    name = kind.kind()
    if name == "OptionalType":
        return type_text(kind.getElementType()) + "?"
    if name == "ListType":
        return type_text(kind.getElementType()) + "[]"
    names = {"TensorType": "Tensor", "IntType": "int", "SymIntType": "int", "FloatType": "float", "SymFloatType": "float", "BoolType": "bool",
             "SymBoolType": "bool", "NumberType": "Scalar", "StringType": "str", "ScalarTypeType": "ScalarType",
             "DeviceObjType": "Device", "LayoutType": "Layout", "MemoryFormatType": "MemoryFormat", "GeneratorType": "Generator"}
    return names.get(name, name)


def is_tensor(value):
    return isinstance(value, torch.fx.Node)


def is_tensor_list(value):
    return isinstance(value, (list, tuple)) and any(is_tensor(item) for item in value)


def plain(value, where):
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


def literal(value, number_of):
    """Returns the text of an argument's value. A tensor is %0, %1, ...: its index among the node's inputs, from
    number_of(tensor)."""
    if is_tensor(value):
        return f"%{number_of(value)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item, number_of) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if isinstance(value, (bool, int, float, type(None))) else str(value)


# ---- The graph -----------------------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, program, name):
        self.program = program
        self.names = {node.name for node in program.graph.nodes}
        self.tensors = {}  # FX node -> a list with the JSON of each of its outputs, for the nodes that read them
        self.model = {"model_name": name, "pytorch_version": torch.__version__, "graph_inputs": [], "graph_outputs": [], "weights": [],
                      "weight_name_mapping": {}, "nodes": []}
        self.weights = {}  # name -> tensor
        self.places = {}  # (address, dtype, shape, ...) of a weight -> its name, so that a weight with two names is stored once

    def fresh(self, name):
        made, k = name, 0
        while made in self.names:
            k += 1
            made = f"{name}_{k}"
        self.names.add(made)
        return made

    def tensor(self, name, value, where):
        if not isinstance(value, torch.Tensor) or value.dtype not in DTYPES:
            said = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
            raise ExportError(f"{where} is {said}, which is not a tensor of a dtype that IR JSON has")
        if value.layout != torch.strided:
            raise ExportError(f"{where} has the layout {value.layout}, but only dense tensors can be exported")
        if not all(isinstance(size, int) for size in value.shape):
            raise ExportError(f"{where} has the shape {tuple(value.shape)}, but all sizes must be numbers: export without dynamic shapes")
        return {"name": name, "shape": [int(size) for size in value.shape], "dtype": DTYPES[value.dtype]}

    # ---- Inputs

    def add_weight(self, node, target):
        value = self.program.state_dict.get(target)
        if value is None:
            value = self.program.constants.get(target)
        if value is None:
            raise ExportError(f"weight '{target}' is not in the exported program")
        place = (value.data_ptr(), value.dtype, tuple(value.shape), tuple(value.stride()), value.storage_offset())
        name = self.places.setdefault(place, target) if value.numel() > 0 else target
        described = self.tensor(name, value, f"weight '{target}'")
        if name not in self.weights:
            self.weights[name] = value
            self.model["weights"].append(described)
        self.model["weight_name_mapping"][node.name] = name
        self.tensors[node] = [dict(described, name=node.name)]

    def add_input(self, node, name, value):
        described = self.tensor(name, value, f"input '{name}'")
        self.model["graph_inputs"].append(described)
        self.tensors[node] = [dict(described, producer_node=name, producer_output_idx=0)]

    def add_inputs(self, mutated):
        kinds = torch.export.graph_signature.InputKind
        nodes = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            node = nodes.get(getattr(spec.arg, "name", None))
            if node is None or (not node.users and spec.target not in mutated and spec.kind != kinds.USER_INPUT):
                continue
            value = node.meta.get("val")
            if spec.kind == kinds.USER_INPUT:
                if isinstance(value, torch.Tensor):
                    self.add_input(node, node.name, value)
                elif node.users:
                    raise ExportError(f"input '{node.name}' is {type(value).__name__}, but an input must be a tensor")
            elif spec.target in mutated:
                name = self.fresh(spec.target)
                self.add_input(node, name, value)
                mutated[spec.target] = name
                held = self.program.state_dict.get(spec.target)
                self.weights[name] = held if held is not None else self.program.constants[spec.target]
            elif spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
                self.add_weight(node, spec.target)
            else:
                raise ExportError(f"input '{node.name}' is a {spec.kind.name}, which IR JSON cannot represent")

    # ---- Nodes

    def outputs_of(self, node):
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

    def finish_node(self, node, name, op_type, inputs, attrs, outputs, **more):
        self.model["nodes"].append({"name": name, "op_type": op_type, "inputs": inputs, "outputs": outputs, "attrs": attrs, **more})
        if node is not None:
            self.tensors[node] = [dict(described, producer_node=name, producer_output_idx=i) for i, described in enumerate(outputs)]

    def add_getitem(self, node):
        source, index = node.args
        if not isinstance(index, int):
            raise ExportError(f"node '{node.name}': the index {index!r} is not an integer")
        outputs = self.outputs_of(node)
        self.finish_node(node, node.name, GETITEM, list(self.tensors[source]), {"index": index}, outputs)

    def one(self, node, where):
        known = self.tensors.get(node)
        if known is None or len(known) != 1:
            raise ExportError(f"{where}: '{node.name}' is read as a tensor, but it is a list of tensors or has no value")
        return known[0]

    def add_call(self, node):
        schema = node.target._schema
        where = f"node '{node.name}' ({node.target})"
        inputs, attrs, call = [], {}, []
        def number_of(argument):
            def add(value):
                inputs.append(dict(self.one(value, where), argument=argument))
                return len(inputs) - 1
            return add
        for i, argument in enumerate(schema.arguments):
            given = argument.name in node.kwargs or i < len(node.args)
            value = node.kwargs[argument.name] if argument.name in node.kwargs else node.args[i] if i < len(node.args) else argument.default_value
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

    def add_nodes(self):
        live = set(self.program.graph.output_node().all_input_nodes)
        for node in reversed(self.program.graph.nodes):
            if node in live:
                live.update(node.all_input_nodes)
        for node in self.program.graph.nodes:
            if node.op in ("placeholder", "output") or node not in live:
                continue
            if node.op != "call_function":
                raise ExportError(f"node '{node.name}' is a {node.op}, which IR JSON cannot represent")
            if node.target is operator.getitem:
                self.add_getitem(node)
            elif isinstance(node.target, torch._ops.OpOverload):
                self.add_call(node)
            else:
                raise ExportError(f"node '{node.name}' calls {node.target}, which is not a tensor operator")

    # ---- Outputs

    def add_output(self, node, taken):
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
        return made["name"]

    def add_outputs(self, mutated):
        kinds = torch.export.graph_signature.OutputKind
        nodes = {node.name: node for node in self.program.graph.nodes}
        taken, state, later = set(), {}, []
        for spec in self.program.graph_signature.output_specs:
            name = getattr(spec.arg, "name", None)
            if spec.kind == kinds.USER_OUTPUT:
                if name in nodes:
                    self.add_output(nodes[name], taken)
                elif getattr(spec.arg, "value", None) is not None:
                    raise ExportError(f"an output is {spec.arg.value!r}, but an output must be a tensor")
            elif spec.kind in (kinds.BUFFER_MUTATION, kinds.USER_INPUT_MUTATION):
                later.append((mutated.get(spec.target, spec.target), nodes[name]))
            else:
                raise ExportError(f"output '{name}' is a {spec.kind.name}, which IR JSON cannot represent")
        for name, node in later:
            state[name] = self.add_output(node, taken)
        if state:
            self.model["state"] = state

    def write(self):
        kinds = torch.export.graph_signature.OutputKind
        mutated = {spec.target: spec.target for spec in self.program.graph_signature.output_specs if spec.kind == kinds.BUFFER_MUTATION}
        self.add_inputs(mutated)
        self.add_nodes()
        self.add_outputs(mutated)
        return self.model


def is_functional(program):
    """Returns whether no node modifies its inputs or contains a graph. detach_, which changes no data, counts as functional."""
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if node.target is torch.ops.aten.detach_.default:
            continue
        if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
            return False
    return True


def convert(program, name="model"):
    """Converts a torch.export.ExportedProgram. Returns (model, weights): the JSON document as a dictionary, and {name:
    tensor}."""
    if not is_functional(program):
        program = program.run_decompositions({})
    writer = Writer(program, name)
    model = writer.write()
    return model, writer.weights


def check_outputs(path, params):
    """Raises an ExportError if the files cannot be written. Called before the export, which may take minutes."""
    if os.path.realpath(path) == os.path.realpath(params):
        raise ExportError(f"{path} cannot be both the model and its weights: name it FILE.json, or name the weights with --params")
    for file in (path, params):
        folder = os.path.dirname(os.path.abspath(file))
        if os.path.isdir(file) or not os.path.isdir(folder):
            raise ExportError(f"{file} cannot be written: " + (f"there is no folder {folder}" if not os.path.isdir(folder) else "it is a folder"))


def register_caches():
    """Makes torch.export return the keys and values of a DynamicCache, the cache that decoders of the package transformers
    return. torch.export rejects other caches."""
    if "transformers" in sys.modules:
        with contextlib.suppress(ImportError):
            from transformers.integrations.executorch import register_dynamic_cache_export_support
            register_dynamic_cache_export_support()


def export(module, args, kwargs=None, path="model.json", params=None, name=None):
    """Exports `module`, traced with the example inputs `args` and `kwargs`. Writes the JSON to `path`, and the weights to
    `params` (default: `path`, ending in .safetensors). Returns the JSON document as a dictionary."""
    params = params or os.path.splitext(path)[0] + ".safetensors"
    check_outputs(path, params)
    register_caches()
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), kwargs or {})
    model, weights = convert(program, name or type(module).__name__)
    write_safetensors(params, weights)
    with replacing(path, "w", encoding="utf-8") as out:
        json.dump(model, out, separators=(",", ":"))
        out.write("\n")
    return model


# ---- The command ---------------------------------------------------------------------------------------------------------------


def parse_dtype(text):
    dtype = getattr(torch, text, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise argparse.ArgumentTypeError(f"'{text}' is not a floating-point dtype of PyTorch, such as bfloat16")
    return dtype


def parse_input(text):
    """Parses [NAME=]SHAPE[:DTYPE], such as 1x3x224x224 or, for a tensor of rank 0, scalar. Returns (name or None, shape, dtype or
    None)."""
    match = re.fullmatch(r"(?:(\w+)=)?(scalar|\d+(?:x\d+)*)(?::(\w+))?", text)
    dtype = getattr(torch, match.group(3) or "float32", None) if match else None
    if not isinstance(dtype, torch.dtype):
        raise argparse.ArgumentTypeError(f"'{text}' is not [NAME=]SIZExSIZE...[:DTYPE] with a dtype of PyTorch, such as 1x3x224x224 or ids=1x16:int64")
    shape = [] if match.group(2) == "scalar" else [int(size) for size in match.group(2).split("x")]
    return match.group(1), shape, dtype if match.group(3) else None


def make_input(shape, dtype):
    """Makes an example input: random floats, or zeros if the dtype is an integer, because these may be indices."""
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)


def load_module(path, name):
    spec = importlib.util.spec_from_file_location("exported_module", path)
    if spec is None:
        raise ExportError(f"{path}: expected a Python file, whose name ends in .py")
    source = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(source)
    found = getattr(source, name, None)
    if found is None:
        raise ExportError(f"{path} does not define '{name}'")
    if not callable(found):
        raise ExportError(f"{path}: '{name}' is of type {type(found).__name__}; expected a torch.nn.Module, or what returns one")
    module = found if isinstance(found, torch.nn.Module) else found()
    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"{path}: {name}() returns an object of type {type(module).__name__}, not a torch.nn.Module")
    return module


def explain(error):
    """Returns the message of an error of the user's module or of torch.export, without the advice and the stacks after it."""
    said = re.split(r"\n\n|\nException raised from ", str(error).strip())[0]
    if "is not a known type. If this type holds tensors" in said:
        said = said.partition(". If this type")[0] + ": outputs must be tensors; set config.use_cache = False in a model of transformers"
    if isinstance(error, SystemExit):
        said = f"it exits with {error.code!r}"
    return f"{type(error).__name__}: {said}"


def quiet():
    """Silences PyTorch's log, which has the stacks of errors that are reported anyway, and warnings about PyTorch's own code."""
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore", FutureWarning)
    warnings.simplefilter("ignore", DeprecationWarning)


def run(arguments):
    torch.manual_seed(arguments.seed)
    module = load_module(arguments.file, arguments.name).eval()
    if arguments.dtype:
        module = module.to(arguments.dtype)
    inputs = [(name, make_input(shape, dtype or arguments.dtype or torch.float32)) for name, shape, dtype in arguments.input]
    args = [tensor for name, tensor in inputs if name is None]
    kwargs = {name: tensor for name, tensor in inputs if name is not None}
    model = export(module, args, kwargs, arguments.output, arguments.params, arguments.name)
    print(f"{arguments.output}: {len(model['nodes'])} nodes, {len(model['weights'])} weights, "
          f"{len(model['graph_inputs'])} inputs, {len(model['graph_outputs'])} outputs", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a Python file that defines NAME")
    parser.add_argument("name", help="a subclass of torch.nn.Module, a function that returns a module, or a module")
    parser.add_argument("--input", action="append", default=[], type=parse_input, metavar="[NAME=]SHAPE[:DTYPE]",
                        help="the shape of an input, in the order of forward()'s arguments or with its name; repeat for each input")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.json")
    parser.add_argument("--params", metavar="FILE.safetensors", help="the file for the weights (default: that of --output, ending in .safetensors)")
    parser.add_argument("--dtype", type=parse_dtype,
                        help="cast the module's floating-point weights to this dtype first; also the dtype of inputs given without one")
    parser.add_argument("--traceback", action="store_true", help="if an error occurs, also print where in the Python code")
    parser.add_argument("--seed", type=int, default=0, help="seed of random weights and inputs")
    arguments = parser.parse_args()
    if not arguments.traceback:
        quiet()
    try:
        run(arguments)
    except KeyboardInterrupt:
        print("torch_to_ir: interrupted", file=sys.stderr)
        return 130
    except (ExportError, OSError) as error:
        print(f"torch_to_ir: {error}", file=sys.stderr)
        # Otherwise Python would write the buffered rest when it exits, and fail again if standard output is full or closed.
        sys.stdout = None
        return 1
    except (Exception, SystemExit) as error:  # of the user's module or of torch.export, which raises many kinds
        if arguments.traceback:
            traceback.print_exc()
        print(f"torch_to_ir: {arguments.file}: '{arguments.name}' cannot be exported: {explain(error)}", file=sys.stderr)
        if not arguments.traceback:
            print("torch_to_ir: --traceback shows where", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
