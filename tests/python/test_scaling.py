"""Checks that costs grow no faster than the graph: four times the nodes may take at most 4.6 times the instructions.

    python tests/python/test_scaling.py [SCENE...]        prints a table; fails if a ratio is above its limit

callgrind counts the instructions. The count for a model of 20 nodes is subtracted from the counts for both sizes. Models are
made from a seed, in one of several shapes. Together the scenes cover loading, planning, the plan file, compiling for the CPU
and the virtual NPU, and a first run. A part whose cost grows with the square of the nodes is detected if it is a twentieth of
the smaller count; at 100,000 nodes such a part would be four fifths of the total.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import oracle

sys.path.insert(0, os.path.join(oracle.ROOT, "tools"))
from graph_builder import GraphBuilder, save  # noqa: E402

NODES, MOST, SMALL = 1200, 4.6, 20
ROW = [1, 16]


def chain(b, count):
    value = b.input("x", ROW)
    for _ in range(count):
        value = b.op(["Relu", "Neg", "Abs", "Tanh", "Sigmoid"][int(b.rng.integers(5))], value)
    return value, ROW


def wide(b, count):
    """All nodes read the same value, and a last node reads all their results."""
    x = b.input("x", ROW)
    return b.op("Concat", *[b.op(["Relu", "Neg", "Tanh"][i % 3], x) for i in range(count - 1)], axis=0), [count - 1, 16]


def alive(b, count):
    """Half of the values are live at the same time, and are read for the last time in random order."""
    x = b.input("x", ROW)
    values = [b.op(["Relu", "Neg", "Tanh"][i % 3], x) for i in range(count // 2)]
    b.rng.shuffle(values)
    value = values[0]
    for other in values[1:]:
        value = b.op("Add", value, other)
    return value, ROW


def pick(b, values, near):
    return values[-int(b.rng.integers(1, min(len(values), near) + 1))] if b.rng.random() < 0.95 else values[int(b.rng.integers(len(values)))]


def branchy(b, count):
    """Many values are read several times; the nodes are functions, sums, concatenations and small products."""
    values, weights = [b.input("x", ROW)], b.normal([32, 16], 0.2)
    while len(b.nodes) < count:
        first, second, kind = pick(b, values, 40), pick(b, values, 40), int(b.rng.integers(4))
        if kind == 2:
            values.append(b.op("Tanh", b.op("MatMul", b.op("Concat", first, second, axis=1), weights)))
        else:
            values.append(b.op("Tanh", first) if kind == 0 else b.op(["Add", "Mul"][kind % 2], first, second))
    return values[-1], ROW


def mixed(b, count):
    """About every fifth node is a Softsign, which the default NPU does not support."""
    values = [b.input("x", ROW)]
    for _ in range(count):
        kind = int(b.rng.integers(10))
        first, second = pick(b, values, 20), pick(b, values, 20)
        values.append(b.op("Softsign", first) if kind < 2 else b.op("Add", first, second) if kind < 6 else b.op("Tanh", first))
    return values[-1], ROW


def constants(b, count):
    value = b.input("x", ROW)
    for i in range(count):
        value = b.op(["Add", "Mul", "Max"][i % 3], value, b.normal([16], 0.5))
    return value, ROW


def products(b, count):
    value = b.input("x", [4, 16])
    for _ in range(count // 4):
        inner = b.op("Relu", b.op("Add", b.op("MatMul", value, b.normal([16, 16], 0.2)), b.normal([16], 0.1)))
        value = b.op("Add", value, inner)
    return value, [4, 16]


def parts(b, count):
    """A node has many outputs, and another reads all that is computed from them."""
    pieces = b.op("Split", b.input("x", [count // 2, 16]), b.constant(np.ones(count // 2, np.int64)), outputs=count // 2, axis=0)
    return b.op("Concat", *[b.op("Relu", piece) for piece in pieces], axis=0), [count // 2, 16]


def by_data(b, count):
    """The sizes of all values are known only at run time."""
    value = b.op("NonZero", b.input("x", ROW))
    for i in range(count):
        value = b.op(["Abs", "Neg"][i % 2], value)
    return value, None


# (name, function that makes the model, arguments of the command before the model; PLAN is replaced by a temporary file)
SCENES = [
    ("chain, inspected", chain, ["inspect", "--devices", "npu,cpu"]),
    ("branches on the cpu", branchy, ["run"]),
    ("constants on the cpu", constants, ["run"]),
    ("fan-out and fan-in, cpu", wide, ["run"]),
    ("sizes that depend on data", by_data, ["run"]),
    ("many live values, npu", alive, ["run", "--devices", "npu", "--npu-spec", "all"]),
    ("node of many outputs, npu", parts, ["run", "--devices", "npu", "--npu-spec", "all"]),
    ("many partitions, run", mixed, ["run", "--devices", "npu,cpu", "--strategy", "contiguous"]),
    ("products, planned", products, ["plan", "--devices", "npu,cpu", "-o", "PLAN"]),
    ("fan-out and fan-in, planned", wide, ["plan", "--devices", "npu,cpu", "-o", "PLAN"]),
    ("many partitions, planned", mixed, ["plan", "--devices", "npu,cpu", "--objective", "throughput", "-o", "PLAN"]),
]


def write_model(draw, count, path):
    builder = GraphBuilder(draw.__name__, 7)
    value, shape = draw(builder, count)
    builder.output(value, *([] if shape else [7]), shape=shape or [2, None])
    save(builder.model(), path)


def instructions(draw, words, count):
    with tempfile.TemporaryDirectory(prefix="cleave-scaling-") as folder:
        model, out = os.path.join(folder, "model.onnx"), os.path.join(folder, "callgrind.out")
        write_model(draw, count, model)
        words = [os.path.join(folder, "plan.json") if word == "PLAN" else word for word in words]
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", oracle.COMMAND, *words, "--threads", "1", model],
                              capture_output=True, text=True, timeout=300, env={**os.environ, "CLEAVE_CACHE_DIR": "", "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main():
    tally = oracle.Tally()
    if shutil.which("valgrind") is None:
        tally.skip("scaling", "valgrind is not installed")
        return tally.finish()
    chosen = [scene for scene in SCENES if not sys.argv[1:] or any(word in scene[0] for word in sys.argv[1:])]

    def measure(scene):
        _, draw, words = scene
        least, few, many = (instructions(draw, words, count) for count in (SMALL, NODES, 4 * NODES))
        return (few - least) / NODES, (many - least) / (few - least)

    for (name, _, _), found in oracle.each(measure, chosen):
        if isinstance(found, Exception):
            tally.add(name, f"{type(found).__name__}: {found}")
            continue
        each, growth = found
        print(f"{name:28}{each:10.0f} instructions per node, {growth:.2f} times as many for 4 times the nodes", flush=True)
        tally.add(name, None if growth <= MOST else f"{growth:.2f} times the instructions for 4 times the nodes, limit {MOST}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
