"""Runs the blocks that `cleave gnn plan --export-dir` writes in other runtimes.

    python tests/python/test_gnn_blocks.py [--seed N] [--all]          without --all: 60 of the blocks

Every block of random layers of each type is exported by tests/gnn/write_blocks.c, with functions and with standard operators only
(--inline). The reference evaluator of onnx, ONNX Runtime, OpenVINO (only without functions) and Cleave must give the same results on
random graphs. Then ONNX Runtime and OpenVINO take part in `gnn profile`, `plan` and `run` as devices.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import oracle
from test_frameworks import site_packages
from test_gnn import random_model

WRITER = os.path.join(os.path.dirname(oracle.COMMAND), "tests", "write_blocks")
ROWS, EDGES = 24, 60  # of the files for devices that need fixed sizes, as in write_blocks.c
SAMPLE = 60
PLACES = (("onnxruntime:CPU", "CLEAVE_ONNXRUNTIME", "onnxruntime/capi"), ("openvino:CPU", "CLEAVE_OPENVINO", "openvino/libs"))
DTYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT32: np.int32, onnx.TensorProto.INT64: np.int64}


def sizes_of(rng, is_fixed):
    """Yields (rows, targets, edges, edges in use): the other edges are padding."""
    if is_fixed:
        yield ROWS, ROWS, EDGES, EDGES
        yield ROWS, ROWS, EDGES, int(rng.integers(0, EDGES))
        return
    rows = int(rng.integers(2, 60))
    yield rows, int(rng.integers(1, rows + 1)), 100, 100
    yield rows, rows, 150, int(rng.integers(20, 150))
    yield 1, 1, 1, int(rng.integers(0, 2))


def feed(graph, sizes, rng):
    """Returns random inputs for a block: a graph in compressed rows, with rows without edges and a hub, and its values."""
    rows, targets, edges, used = sizes
    ends = np.sort(rng.integers(0, used + 1, targets))
    ends[targets // 2:] = used  # vertex targets // 2 gets all remaining edges, as a hub; the vertices after it have none
    offsets = np.concatenate([[0], ends])
    sources = np.where(np.arange(edges) < used, rng.integers(0, rows, edges), rows - 1)
    destinations = np.minimum(np.searchsorted(ends, np.arange(edges), side="right"), targets - 1)
    known = {"offsets": offsets, "sources": sources, "destinations": destinations, "positions": np.arange(edges),
             "count": np.diff(offsets)[:, None], "degrees": rng.integers(1, 9, (rows, 1)), "own_degrees": rng.integers(1, 9, (targets, 1))}
    symbols = {"rows": rows, "targets": targets, "edges": edges, "offsets": targets + 1}
    inputs = {}
    for value in graph.input:
        kind = value.type.tensor_type
        shape = [symbols[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
        array = known[value.name] if value.name in known else rng.uniform(-1, 1, shape)
        inputs[value.name] = np.ascontiguousarray(array.astype(DTYPES[kind.elem_type]))
    return inputs


def run_openvino(path):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda inputs: [np.array(array) for array in compiled(list(inputs.values())).values()]


def runtimes(called, standard, has_openvino):
    """Returns {name: function from inputs to outputs} of the block in both forms."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
    def session(path):
        made = onnxruntime.InferenceSession(path)
        return lambda inputs: made.run(None, inputs)
    def cleave(path):
        names = [value.name for value in onnx.load(path).graph.output]
        def run(inputs):
            with tempfile.TemporaryDirectory(prefix="cleave-", dir=oracle.MEMORY) as folder:
                return oracle.cleave_run(path, oracle.save_inputs(folder, inputs), names, "--devices", "cpu")
        return run
    found = {"reference, inlined": lambda inputs: ReferenceEvaluator(standard).run(None, inputs), "ONNX Runtime": session(called),
             "ONNX Runtime, inlined": session(standard), "Cleave": cleave(called), "Cleave, inlined": cleave(standard)}
    if has_openvino:
        found["OpenVINO, inlined"] = run_openvino(standard)
    return found


def own_operators(path):
    """Returns the names of ai.cleave's operators that Cleave finds in the file."""
    described = json.loads(oracle.cleave("inspect", path, "--json"))
    return {item["op"] for item in described["operators"] if item["domain"] == "ai.cleave"}


def check_form(called, standard):
    """Returns None if only the file with functions has operators of ai.cleave, and Cleave recognises them; or what is wrong."""
    with_functions, without = onnx.load(called), onnx.load(standard)
    for model in (with_functions, without):
        onnx.checker.check_model(model, full_check=True)
    calls = {node.op_type for node in with_functions.graph.node if node.domain == "ai.cleave"}
    if without.functions or any(item.domain for item in [*without.graph.node, *without.opset_import]):
        return "the inlined file is not of standard operators only"
    if calls != {function.name for function in with_functions.functions}:
        return f"the file calls {calls}, but defines {[function.name for function in with_functions.functions]}"
    wanted = {name.split(".")[0] for name in calls}
    return None if own_operators(called) == wanted else f"Cleave reads {own_operators(called)}, expected {wanted}"


def check_block(tally, called, standard, rng, has_openvino):
    """Compares all runtimes with the reference evaluator. Returns whether the file has functions (True if it does not load)."""
    name = "/".join(called.split("/")[-2:])
    tally.add(f"{name}: only the file with functions has operators of ai.cleave, and Cleave recognises them", check_form(called, standard))
    model = onnx.load(called)
    try:
        runs = runtimes(called, standard, has_openvino)
    except Exception as error:
        tally.add(name, f"does not load: {error}")
        return True
    from onnx.reference import ReferenceEvaluator
    for sizes in sizes_of(rng, "_n" in os.path.basename(called)):
        inputs = feed(model.graph, sizes, rng)
        expected = ReferenceEvaluator(model).run(None, inputs)
        for runtime, run in runs.items():
            try:
                reason = oracle.first_difference(expected, run(inputs))
            except Exception as error:
                reason = str(error)
            tally.add(f"{name}: {runtime}, {sizes}", reason)
    return len(model.functions) > 0


def check_blocks(tally, seed, runs_all, rng):
    folder = oracle.build_folder("gnn_blocks")
    called, standard = os.path.join(folder, "called"), os.path.join(folder, "standard")
    for path in (called, standard):
        shutil.rmtree(path, ignore_errors=True)
    subprocess.run([WRITER, called, standard, str(seed)], check=True)
    files = sorted(glob.glob(os.path.join(glob.escape(called), "*", "*.onnx")))
    if not runs_all:
        files = sorted(rng.choice(files, SAMPLE, replace=False))
    try:
        import openvino  # noqa: F401
        has_openvino = True
    except ImportError:
        tally.skip("blocks in OpenVINO", "the package openvino is not installed")
        has_openvino = False
    with_functions = sum(check_block(tally, path, os.path.join(standard, os.path.relpath(path, called)), rng, has_openvino) for path in files)
    print(f"{len(files)} blocks, {with_functions} with functions", flush=True)


# --- as devices

def check_device(tally, folder, kind, graph, device, rng):
    model, *_ = random_model(folder, kind, [12, 16, 8, 5], 2, rng, f"blocks_{kind}")
    path = lambda name: os.path.join(folder, f"blocks_{kind}_{name}")
    asked = ("--model", model, "--graph", graph, "--cache-dir", "")
    oracle.cleave("gnn", "run", *asked, "--devices", "cpu", "--output", path("cpu.npz"))
    for devices in (device, f"cpu,{device}"):
        label = f"{kind} on {devices}"
        for attempt in range(3):  # on a busy machine, times may differ so much that they do not give prices
            try:
                if os.path.exists(path("costs.json")):
                    os.remove(path("costs.json"))
                oracle.cleave("gnn", "profile", *asked, "--devices", devices, "--kset", "1,2", "--runs", "2", "--seconds", "2", "--output",
                              path("costs.json"), timeout=300)
                told = json.loads(oracle.cleave("gnn", "run", *asked, "--devices", devices, "--kset", "2", "--profile", path("costs.json"),
                                                "--output", path("out.npz"), "--json"))
                break
            except oracle.CleaveError as error:
                if attempt == 2 or "the fit of" not in str(error):
                    told = None
                    tally.add(label, str(error))
                    break
        if told is None:
            continue
        used = {block["device"] for block in told["blocks"]}
        expected, actual = np.load(path("cpu.npz"))["out"], np.load(path("out.npz"))["out"]
        reason = oracle.compare(expected, actual, 1e-5)
        tally.add(label, reason or (None if device in used or devices != device else f"only {used} was used"))


def check_devices(tally, rng):
    folder = oracle.build_folder("gnn_blocks")
    graph = os.path.join(folder, "graph.npz")
    np.savez(graph, edge_index=rng.integers(0, 700, (2, 5000)), x=rng.standard_normal((700, 12)).astype(np.float32))
    for device, variable, place in PLACES:
        os.environ.setdefault(variable, os.path.join(site_packages(), *place.split("/")))
        if missing := oracle.missing_device(device):
            tally.skip(f"GNNs on {device}", missing)
            continue
        for kind in ("graphsage", "gcn", "gat"):
            check_device(tally, folder, kind, graph, device, rng)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    tally, rng = oracle.Tally(), np.random.default_rng(options.seed)
    check_blocks(tally, options.seed, options.all, rng)
    check_devices(tally, rng)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
