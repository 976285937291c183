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
import importlib.util
import json
import logging
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

IR_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "cleave", "torch", "_ir.py")


def load_ir():
    """Loads the converter of the package, which need not be installed for it."""
    spec = importlib.util.spec_from_file_location("cleave_torch_ir", IR_FILE)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


ir = load_ir()
ExportError, convert, write_safetensors = ir.ExportError, ir.convert, ir.write_safetensors


def check_outputs(path, params):
    """Raises an ExportError if the files cannot be written. Called before the export, which may take minutes."""
    if os.path.realpath(path) == os.path.realpath(params):
        raise ExportError(f"{path} cannot be both the model and its weights: name it FILE.json, or name the weights with --params")
    for file in (path, params):
        folder = os.path.dirname(os.path.abspath(file))
        if os.path.isdir(file) or not os.path.isdir(folder):
            raise ExportError(f"{file} cannot be written: " + (f"there is no folder {folder}" if not os.path.isdir(folder) else "it is a folder"))


def export(module, args, kwargs=None, path="model.json", params=None, name=None):
    """Exports `module`, traced with the example inputs `args` and `kwargs`. Writes the JSON to `path`, and the weights to
    `params` (default: `path`, ending in .safetensors). Returns the JSON document as a dictionary."""
    params = params or os.path.splitext(path)[0] + ".safetensors"
    check_outputs(path, params)
    model, weights = ir.trace(module, args, kwargs, name)
    write_safetensors(params, weights)
    with ir.replacing(path, "w", encoding="utf-8") as out:
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
