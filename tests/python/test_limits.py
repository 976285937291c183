"""Tests that Cleave respects limits of the system: models made to need too much memory, and limits on memory and on processes.

    python tests/python/test_limits.py [--full]

1. 25 models made from seeds (100 with --full), whose constants would fill the memory if they were computed. For `inspect`,
   `plan` and, if the model is accepted, `run`, the peak memory may exceed that for a model of one node by 200 MB plus the size
   of the model's file.
2. `cleave run` with less and less address space (ulimit -v): it must end with a result or an error, never by a signal. The
   limits go from 40 MB to 400 MB in steps of 60 MB; with --full, from 100 MB to 1 GB in steps of 10 MB.
3. `cleave run` with few processes per user (ulimit -u): it runs with fewer threads and says so. Needs root, to become another user.
"""
import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle
import models

MODELS, MOST_BYTES = 100, 200e6
SANITIZED = 80e6  # a build that needs more than this for a single node has a sanitizer
SMALL = 48 << 20  # a model with a value larger than this at run time may need more memory to run
UNKNOWN = 1 << 62
PATIENCE = 120  # seconds to wait for what should take a few seconds
SOME_USER = 54321  # a user id that no process has
MEGA = 1 << 20


# --- hostile models

class Model:
    """Collects the nodes and constants of a model whose output `y` is small."""

    def __init__(self, seed):
        self.random, self.nodes, self.constants = random.Random(seed), [], []

    def op(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def fill(self, *shape):
        value = helper.make_tensor("value", TensorProto.FLOAT, [1], [self.random.uniform(-2, 2)])
        return self.op("ConstantOfShape", self.ints(*shape), value=value)


def filled(m):
    return m.op("Neg", m.fill(MEGA << m.random.randint(0, 11)))


def enormous(m):
    return m.op("Abs", m.fill(1 << m.random.randint(31, 62)))


def overflowing(m):
    return m.op("Abs", m.fill(1 << m.random.randint(20, 40), 1 << m.random.randint(20, 40), m.random.randint(1, 1 << 20)))


def many_fills(m):
    """Many constants with different elements, each too large to be computed."""
    large = [m.op("Slice", m.fill(MEGA << m.random.randint(2, 14)), m.ints(0), m.ints(8)) for _ in range(60)]
    return m.op("Concat", *large, axis=0)


def doubling(m):
    value = m.fill(m.random.choice((64, MEGA)))
    for _ in range(m.random.randint(10, 60)):
        value = m.op("Concat", value, value, axis=0)
    return value


def tiled(m):
    return m.op("Tile", m.fill(3), m.ints(MEGA << m.random.randint(0, 11)))


def expanded(m):
    return m.op("Relu", m.op("Expand", m.fill(1024), m.ints(MEGA * m.random.randint(1, 4), 1024)))


def outer(m):
    return m.op("MatMul", m.fill(m.random.randint(10000, 100000), 1), m.fill(1, m.random.randint(10000, 100000)))


def padded(m):
    return m.op("Pad", m.fill(7), m.ints(0, MEGA << m.random.randint(0, 11)))


def resized(m):
    scales = m.constant(np.array([1, 1, m.random.choice((1e3, 1e4)), 1e4], np.float32))
    return m.op("Resize", m.fill(1, 1, 4, 4), "", scales, mode="nearest")


def ranged(m):
    value = m.op("Range", m.constant(np.array(0, np.int64)), m.constant(np.array(MEGA * m.random.randint(100, 4000), np.int64)),
                 m.constant(np.array(1, np.int64)))
    return m.op("Cast", value, to=TensorProto.FLOAT)


def one_hot(m):
    depth, values = m.constant(np.array(MEGA * m.random.randint(1, 50), np.int64)), m.constant(np.array([0, 1], np.float32))
    return m.op("OneHot", m.ints(*range(64)), depth, values)


def chained(m):
    value = m.fill(m.random.choice((4, 12, 100)) * MEGA)
    for i in range(30):
        value = m.op(("Sigmoid", "Sqrt", "Exp")[i % 3], value)
    return value


def found(m):
    return m.op("Cast", m.op("NonZero", m.fill(64 * MEGA)), to=TensorProto.FLOAT)


KINDS = [filled, enormous, overflowing, many_fills, doubling, tiled, expanded, outer, padded, resized, ranged, one_hot, chained, found]


def hostile(seed, path):
    """Writes the model of a seed. Returns the name of its kind."""
    m = Model(seed)
    kind = KINDS[seed % len(KINDS)]
    large = kind(m)
    branch = m.random.random() < 0.25
    if branch:  # the same in both branches of an If whose condition is known
        bodies = [helper.make_graph(m.nodes, name, [], [helper.make_tensor_value_info(large, TensorProto.FLOAT, None)], m.constants)
                  for name in ("then", "else")]
        m.nodes, m.constants = [], []
        large = m.op("If", m.constant(np.array(True)), then_branch=bodies[0], else_branch=bodies[1])
    size = m.op("Size", large)
    element = m.op("Slice", m.op("Reshape", large, m.ints(-1)), m.ints(0), m.ints(1))
    m.nodes.append(helper.make_node("Add", [m.op("Mul", "x", m.op("Cast", size, to=TensorProto.FLOAT)), element], ["y"]))
    graph = helper.make_graph(m.nodes, kind.__name__, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])], m.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return kind.__name__ + (" in a branch" if branch else "")


def peak(*command):
    """Runs the command. Returns (exit status, peak memory in bytes, standard error). A limit on address space ends a command
    that would fill the memory of the machine."""
    def limit():
        most = (1 << 30) if command[0] == "run" else (4 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    reader, writer = os.pipe()
    with subprocess.Popen([oracle.COMMAND, *command], stdout=subprocess.DEVNULL, stderr=writer, preexec_fn=limit,
                          env=dict(os.environ, CLEAVE_CACHE_DIR="", OMP_NUM_THREADS="1")) as process:
        os.close(writer)
        with os.fdopen(reader, errors="replace") as file:
            text = file.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024, text.strip()


def largest_value(path):
    """Returns an upper bound of the bytes of the largest value that the model computes at run time, or a large number if
    that is unknown."""
    done = subprocess.run([oracle.COMMAND, "inspect", path, "--nodes", "--json"], capture_output=True, text=True, check=False)

    def walk(part):
        if isinstance(part, list):
            return max(map(walk, part), default=0)
        if not isinstance(part, dict):
            return 0
        if isinstance(part.get("shape"), list):
            dims = part["shape"]
            return 8 * math.prod(dims) if all(isinstance(d, int) for d in dims) else UNKNOWN
        return max(map(walk, part.values()), default=0)

    return walk(json.loads(done.stdout)) if done.returncode == 0 else UNKNOWN


def test_hostile(tally, folder, count):
    base = onnx.helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [helper.make_tensor_value_info("x", 1, [16])],
                                  [helper.make_tensor_value_info("y", 1, [16])])
    path = os.path.join(folder, "hostile.onnx")
    onnx.save(helper.make_model(base, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    least = peak("run", path)[1]
    if least > SANITIZED:
        return tally.skip("hostile models", f"a model of one node needs {least / 1e6:.0f} MB: the command has a sanitizer")
    worst, counts = 0, {"refused": 0, "run": 0, "too large to run": 0}
    for seed in range(count):
        kind = hostile(seed, path)
        is_small, accepted = "branch" not in kind and largest_value(path) <= SMALL, False  # largest_value() omits bodies
        for verb in ("inspect", "plan", "run"):
            status, taken, text = peak(verb, path)
            taken -= least + os.path.getsize(path)
            is_bounded = verb != "run" or is_small
            reason = None
            if status not in (0, 1) or (status == 1 and not text):
                reason = f"status {status}: {text[-300:]}"
            elif verb == "run" and (accepted, status) in ((True, 1), (False, 0)) and is_small:
                reason = f"plan and run disagree: {text[-300:]}"
            elif is_bounded and taken > MOST_BYTES:
                reason = f"{taken / 1e6:.0f} MB more than for a model of one node, {MOST_BYTES / 1e6:.0f} MB are allowed"
            worst = max(worst, taken if is_bounded else 0)
            accepted = status == 0 if verb == "plan" else accepted
            tally.add(f"model {seed} ({kind}): {verb}", reason)
        counts["refused" if not accepted else "run" if is_small else "too large to run"] += 1
    return print(f"{count} hostile models: at most {worst / 1e6:.0f} MB more than a model of one node; {counts}")


# --- ulimit -v

def limited(limits, path, devices, **options):
    """Runs the model under limits of the system. Returns the result of subprocess.run()."""
    def apply():
        for which, value in limits.items():
            resource.setrlimit(which, (value, value))
    return subprocess.run([oracle.COMMAND, "run", path, "--devices", devices, "-q", "--threads", "2"], capture_output=True, text=True,
                          errors="replace", check=False, timeout=PATIENCE, preexec_fn=apply,
                          env=dict(os.environ, CLEAVE_CACHE_DIR="", CLEAVE_PLUGIN_PATH=""), **options)


def ends_well(done):
    """Returns None if the command printed a result, or an error of one line; otherwise what is wrong."""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    if done.returncode == 127 and "loading shared libraries" in done.stderr:
        return None  # the system's loader failed, before the command began
    if not lines or not any(line.startswith("cleave: ") or "error while loading" in line for line in lines):
        return f"status {done.returncode}: {done.stderr[-300:]}"
    return None


def test_memory_limits(tally, folder, full):
    for name, large in (("resnet50", full), ("bert", False), ("lstm", False)):
        path = os.path.join(folder, name + ".onnx")
        onnx.save(models.make(name, full=large)[0], path)
        for devices in ("npu,cpu", "cpu"):
            results = {}
            for megabytes in range(100 if full else 40, 1001 if full else 400, 10 if full else 60):
                done = limited({resource.RLIMIT_AS: megabytes * 1000000}, path, devices)
                results[megabytes] = done.returncode
                tally.add(f"{name} on {devices} with {megabytes} MB", ends_well(done))
            runs = [megabytes for megabytes, status in results.items() if status == 0]
            print(f"{name} on {devices}: {len(results)} limits, runs from {min(runs, default='–')} MB on")


# --- ulimit -u

def test_process_limits(tally, folder):
    if os.geteuid() != 0:
        return tally.skip("ulimit -u", "only root can become a user without processes")
    path = os.path.join(folder, "mobilenet.onnx")
    onnx.save(models.make("mobilenet")[0], path)
    os.chmod(folder, 0o755)
    told = 0
    for devices in ("cpu", "npu,cpu"):
        for processes in range(1, 8):
            done = limited({resource.RLIMIT_NPROC: processes}, path, devices, user=SOME_USER, extra_groups=[])
            told += "threads can be created" in done.stderr
            reason = ends_well(done) or (None if done.returncode == 0 else f"status {done.returncode}: {done.stderr[-300:]}")
            tally.add(f"{devices} with {processes} processes", reason)
    tally.add("some run says that it has fewer threads", None if told > 0 else "no run says that it has fewer threads")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    tally, folder = oracle.Tally(), oracle.build_folder("limits")
    test_hostile(tally, folder, MODELS if arguments.full else MODELS // 4)
    test_memory_limits(tally, folder, arguments.full)
    test_process_limits(tally, folder)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
