"""Runs one model on the CPU, under random placements and strategies, and compares every run with what the oracles expect."""
import functools
import os
import random

import oracle


STRATEGIES = ["optimal", "contiguous", "propagate", "propagate-graph", "delegate", "ready"]
DEVICES = [["--devices", "npu,cpu"], ["--devices", "cpu,npu"], ["--devices", "npu,npu1,cpu", "--npu-spec", "default", "--npu-spec", "all"]]


OPENCL_SHARE = 0.2  # of the models also run there: its compiler takes long
OPENCL = ["--devices", "opencl,cpu", "--strategy", "contiguous"]


@functools.cache
def has_opencl():
    return oracle.missing_device("opencl") is None


def random_strategy(chance):
    """A strategy, a split, an objective and devices."""
    return (chance.choice(DEVICES) + ["--strategy", chance.choice(STRATEGIES), "--objective", chance.choice(["latency", "overlap", "throughput"])]
            + chance.choice([[], [], ["--split", "linear"], ["--split", "convex"], ["--split", "fewest"]]))


def configurations(model_path, count, seed):
    """(label, options) of the CPU alone, of an NPU that takes everything, of two strategies, and of `count` random placements."""
    yield "cpu", ["--devices", "cpu"]
    everything = ["--devices", "npu,cpu", "--npu-spec", "all", "--strategy", "contiguous"]
    yield "npu,cpu", everything
    for number in range(2):
        options = random_strategy(random.Random(f"{seed}/strategy/{number}"))
        yield " ".join(options), options
    nodes = [node for node in oracle.plan_nodes(model_path, "--devices", "cpu") if node["cause"] != "const"]
    for number in range(count):
        # the file stays beside the model for whoever looks into a failure
        pins = os.path.join(os.path.dirname(model_path), f"placement_{number}.pins")
        with open(pins, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in oracle.random_pins(nodes, random.Random(f"{seed}/{number}"))))
        yield f"--pins {pins}", everything + ["--pins", pins]
    if has_opencl() and random.Random(f"{seed}/opencl").random() < OPENCL_SHARE:
        yield "opencl,cpu", OPENCL


def results(model_path, model, input_arguments, expected, count, seed, timeout=120):
    """[(label, None or why it is wrong)] of every configuration."""
    found, tolerance = [], oracle.tolerance_of(model)
    output_names = [value.name for value in model.graph.output]
    try:
        for label, options in configurations(model_path, count, seed):
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
