"""Runs the light models and the generated ones on an OpenCL device, alone and together with the CPU and the NPU.

    python tests/python/test_opencl.py [NAME...] [--all] [--placements N]       --all: all combinations, not a sample

A combination is a list of devices or a random placement, with `--graph on` or off, and with the device's own or shared memory.
Each combination runs three times in one process, and the outputs of the third run are compared. With `--graph on` the third run
is a replay, which the trace must show. The option `memory=own` makes a device that shares the host's memory use separate
memory, so that values are copied. Skipped if there is no OpenCL device. CLEAVE_DATA is the folder that contains onnx-light/.
"""
import argparse
import json
import os
import random
import sys

import numpy as np
import onnx

import oracle
import light_to_tests  # from tools/, which oracle adds to the path
import models

RUNS = 3
LISTS = ["opencl", "opencl,cpu", "npu,opencl,cpu"]
MODES = [("off", "auto"), ("on", "own"), ("on", "auto"), ("off", "own")]  # values of --graph and of the device option memory


class Model:
    """A model file, the options that give its inputs, its expected outputs, and a function that compares outputs with them."""

    def __init__(self, name, folder, input_arguments, shapes, expected, difference):
        self.name, self.folder, self.path = name, folder, os.path.join(folder, "model.onnx")
        self.input_arguments, self.shapes, self.expected, self.difference = input_arguments, shapes, expected, difference
        self.output_names = [value.name for value in onnx.load(self.path, load_external_data=False).graph.output]


def light_difference(expected, actual):
    """Compares outputs as `cleave test` does. Returns None, or how the outputs differ."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"the output is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    wrong = ~np.isclose(actual, expected, rtol=1e-3, atol=1e-7, equal_nan=True)
    return f"{wrong.sum()} of {wrong.size} elements differ, the most by {np.abs(actual - expected)[wrong].max():.3g}" if wrong.any() else None


def light_model(folder):
    data = os.path.join(folder, "test_data_set_0")
    expected = onnx.numpy_helper.to_array(onnx.load_tensor(os.path.join(data, "output_0.pb")))
    # no --shape is needed, because the shapes of these inputs are numbers
    return Model(os.path.basename(folder), folder, ["--input", os.path.join(data, "input_0.pb")], [], [expected], light_difference)


def generated_model(name):
    folder = os.path.join(oracle.build_folder("opencl"), name)
    os.makedirs(folder, exist_ok=True)
    model, inputs = models.make(name, seed=1)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    shapes = [option for key, value in inputs.items() for option in ("--shape", f"{key}={'x'.join(map(str, value.shape))}") if value.ndim]
    tolerance = oracle.tolerance_of(model)
    return Model(name, folder, oracle.save_inputs(folder, inputs), shapes, oracle.run_onnxruntime(model, inputs),
                 lambda expected, actual: oracle.compare(expected, actual, tolerance))


def partitions(trace, device):
    """Returns (executed, replayed): how many partitions of a device were executed and replayed, according to a trace. Both are 0
    if the device failed and its partitions ran elsewhere."""
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    lanes = {event["tid"] for event in events if event["name"] == "thread_name" and event["args"]["name"] == device}
    found = [event["args"].get("replayed", False) for event in events if event.get("tid") in lanes and event["name"].startswith("partition ")]
    return found.count(False), found.count(True)


def random_placement(model, nodes, number):
    """Writes a file of pins that places the nodes at random on three devices, but on OpenCL only those that it supports. Returns
    (the file, whether OpenCL has any node)."""
    chance = random.Random(f"{model.name}/{number}")
    path = os.path.join(model.folder, f"opencl_{number}.pins")
    lines = oracle.random_pins(nodes, chance, ("npu", "opencl", "cpu"), lambda node, device: device != "opencl" or node["device"] == "opencl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path, any(line.endswith("=opencl") for line in lines)


def configurations(model, nodes, alone, is_sample, placements):
    """Yields (options, whether a partition on OpenCL is expected) for every combination."""
    for position, devices in enumerate(LISTS):
        if devices == "opencl" and not alone:
            continue
        for graph, memory in MODES[position:position + 1] if is_sample else MODES:
            options = ["--devices", devices, "--strategy", "contiguous", "--graph", graph, "--device-option", f"opencl:memory={memory}"]
            yield options, not devices.startswith("npu")  # the NPU may get all nodes
    for number in range(placements):
        pins, has_opencl = random_placement(model, nodes, number)
        for graph in ["on"] if is_sample else ["off", "on"]:
            yield ["--devices", "npu,opencl,cpu", "--npu-spec", "all", "--strategy", "contiguous", "--pins", pins, "--graph", graph,
                   "--device-option", f"opencl:memory={'own' if number % 2 == 0 else 'auto'}"], has_opencl


def check(model, options, has_opencl):
    """Runs the model with these options. Returns None, or what is wrong."""
    trace = os.path.join(model.folder, "trace.json")
    try:
        outputs = oracle.cleave_run(model.path, model.input_arguments, model.output_names, *options, "--runs", RUNS, "--prefill-graph", "on",
                                    "--cache-dir", oracle.build_folder("opencl_cache"), "--trace", trace, timeout=300)
    except oracle.CleaveError as error:
        return str(error)
    for name, expected, actual in zip(model.output_names, model.expected, outputs):
        if reason := model.difference(np.asarray(expected), actual):
            return f"output '{name}': {reason}"
    executed, replayed = partitions(trace, "opencl")
    wrong, right = (executed, replayed) if "on" in options else (replayed, executed)
    if wrong or has_opencl and not right:
        return f"on OpenCL, {executed} partitions were executed and {replayed} replayed, but --graph is {'on' if 'on' in options else 'off'}"
    return None


def check_model(item, is_sample, placements):
    """Runs a model in all combinations. Returns ([(label, reason)], None or why the model cannot run on OpenCL alone)."""
    kind, source = item
    model = light_model(source) if kind == "light" else generated_model(source)
    nodes = [node for node in oracle.plan_nodes(model.path, "--devices", "opencl,cpu", "--strategy", "contiguous", *model.shapes)
             if node["cause"] != "const"]
    unsupported = None
    try:
        oracle.cleave("plan", model.path, "--devices", "opencl", *model.shapes)
    except oracle.CleaveError as error:
        unsupported = str(error)
    return [(" ".join(options), check(model, options, has_opencl))
            for options, has_opencl in configurations(model, nodes, unsupported is None, is_sample, placements)], unsupported


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--placements", type=int)
    arguments = parser.parse_args()
    placements = arguments.placements if arguments.placements is not None else 4 if arguments.all else 1
    # a folder of this test in which PoCL keeps the kernels that it has compiled
    os.environ.setdefault("POCL_CACHE_DIR", oracle.build_folder("opencl_pocl"))
    tally = oracle.Tally()
    if (absent := oracle.missing_device("opencl")) is not None:
        tally.skip("opencl", absent)
        return tally.finish()
    work = [("generated", name) for name in models.MODELS]
    source = os.path.join(oracle.DATA, "onnx-light")
    if os.path.isdir(source):
        work = [("light", folder) for folder in light_to_tests.convert(source, oracle.build_folder("light"))] + work
    else:
        tally.skip("light models", f"no folder {source} (set CLEAVE_DATA to the folder that holds onnx-light)")
    work = [item for item in work if not arguments.names or any(name in os.path.basename(item[1]) for name in arguments.names)]

    for (_, source), found in oracle.each(lambda item: check_model(item, not arguments.all, placements), work):
        label = os.path.basename(source)
        if isinstance(found, Exception):
            tally.add(label, f"{type(found).__name__}: {found}")
            continue
        results, unsupported = found
        if unsupported is not None:
            tally.skip(f"{label} --devices opencl", f"not supported: {unsupported}")
        for configuration, reason in results:
            tally.add(f"{label} {configuration}", reason)
        print(f"{label}: {sum(reason is None for _, reason in results)} of {len(results)} combinations are right", flush=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
