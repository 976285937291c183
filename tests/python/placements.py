"""Runs a model on the CPU alone and with random strategies and placements, and compares the outputs with the expected ones."""
import functools
import os
import random
import re
import shutil

import onnx

import oracle


STRATEGIES = ["optimal", "contiguous", "propagate", "propagate-graph", "delegate", "ready"]
# The memory of these NPUs is inaccessible while no engine works, and poisoned before each run: docs/virtual-npu.md.
GUARD, GUARD_1 = ["--device-option", "npu:guard=1"], ["--device-option", "npu1:guard=1"]
DEVICES = [["--devices", "npu,cpu"] + GUARD, ["--devices", "cpu,npu"] + GUARD,
           ["--devices", "npu,npu1,cpu", "--npu-spec", "default", "--npu-spec", "all"] + GUARD + GUARD_1]


OPENCL_SHARE = 0.2  # share of the models that also run on OpenCL, whose compiler is slow
OPENCL = ["--devices", "opencl,cpu", "--strategy", "contiguous"]


@functools.cache
def has_opencl():
    return oracle.missing_device("opencl") is None


def random_strategy(chance):
    """Returns options for random devices, with a random strategy, objective and split."""
    return (chance.choice(DEVICES) + ["--strategy", chance.choice(STRATEGIES), "--objective", chance.choice(["latency", "overlap", "throughput"])]
            + chance.choice([[], [], ["--split", "linear"], ["--split", "convex"], ["--split", "fewest"]]))


EVERYTHING = ["--devices", "npu,cpu", "--npu-spec", "all", "--strategy", "contiguous"] + GUARD


def shared_configurations(seed):
    """Yields (label, options) for the CPU alone, for an NPU that supports every operator, for two random strategies and, for some
    models, for OpenCL."""
    yield "cpu", ["--devices", "cpu"]
    yield "npu,cpu", EVERYTHING
    for number in range(2):
        options = random_strategy(random.Random(f"{seed}/strategy/{number}"))
        yield " ".join(options), options
    if has_opencl() and random.Random(f"{seed}/opencl").random() < OPENCL_SHARE:
        yield "opencl,cpu", OPENCL


def write_pins(folder, nodes, seed, number):
    """Writes a random placement of these nodes to a file and returns its path. The file is kept, so that failures can be
    investigated."""
    pins = os.path.join(folder, f"placement_{number}.pins")
    with open(pins, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in oracle.random_pins(nodes, random.Random(f"{seed}/{number}"))))
    return pins


def pinned_configurations(model_path, count, seed):
    """Yields (label, options) for `count` random placements on the CPU and on an NPU that supports every operator."""
    nodes = [node for node in oracle.plan_nodes(model_path, "--devices", "cpu") if node["cause"] != "const"]
    for number in range(count):
        pins = write_pins(os.path.dirname(model_path), nodes, seed, number)
        yield f"--pins {pins}", EVERYTHING + ["--pins", pins]


def results(model_path, model, input_arguments, expected, count, seed, timeout=120):
    """Runs every configuration. Returns [(label, None or what is wrong)]."""
    found, tolerance = [], oracle.tolerance_of(model)
    output_names = [value.name for value in model.graph.output]
    try:
        for label, options in (*shared_configurations(seed), *pinned_configurations(model_path, count, seed)):
            try:
                outputs = oracle.cleave_run(model_path, input_arguments, output_names, *options, timeout=timeout)
            except oracle.CleaveError as error:
                found.append((label, str(error)))
                continue
            wrong = (f"output '{name}': {difference}" for name, e, a in zip(output_names, expected, outputs)
                     if (difference := oracle.compare(e, a, tolerance)))
            found.append((label, next(wrong, None)))
    except oracle.CleaveError as error:
        found.append(("plan", str(error)))
    return found


def add(cases, directory, model, expected, count):
    """Adds cases to a batch: a test directory with the configurations of results(), and `count` random placements."""
    tolerance, name = oracle.tolerance_of(model), os.path.basename(directory)
    for label, options in shared_configurations(name):
        cases.add(f"{name} {label}", directory, expected, options, tolerance=tolerance)
    # Cases that share a process with pins need node names that no other case has. Unusual names are part of the test and must
    # stay, so these cases run alone.
    if not all(re.fullmatch(r"node_\w+", node.name) for node in model.graph.node):
        for label, options in pinned_configurations(os.path.join(directory, "model.onnx"), count, name):
            cases.add(f"{name} {label}", directory, expected, options, tolerance=tolerance)
        return
    for number in range(count):
        own = f"{directory}_{number}"
        pins = write_named(own, directory, model, name, number)
        cases.add(f"{name} --pins {pins}", own, expected, EVERYTHING, tolerance=tolerance, pins=pins)


def write_named(target, directory, model, name, number):
    """Copies the directory, with node names that no other directory has, so that one process can run many directories with pins.
    Writes a random placement, and returns its file."""
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    os.symlink(os.path.join(directory, "test_data_set_0"), os.path.join(target, "test_data_set_0"))
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for node in named.graph.node:
        node.name = f"{name}_{number}.{node.name}"
    onnx.save(named, os.path.join(target, "model.onnx"))
    return write_pins(target, [{"name": node.name} for node in named.graph.node], name, number)
