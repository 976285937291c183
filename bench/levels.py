"""Measures the fast kernels with the instructions of each x86-64 level, v2 to v4, which CLEAVE_ISA selects.

    python3 bench/levels.py [--cleave build/cleave] [--beside NAME=CLEAVE ...] [--rounds 5] [--threads 1]

--beside adds a column NAME for another cleave command, which runs without CLEAVE_ISA. Each model has one node. First, `cleave run
--verify` compares its result with that of the reference kernels. Then `cleave bench` measures it in --rounds rounds, in which the
levels alternate. The table shows the median run of the best round, in GFLOP/s for matrix products (a multiply-add counts as 2
operations), or in GB/s (bytes that must be read and written).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

LEVELS = ("v2", "v3", "v4")


def recurrent(op, gates, batch, size=256, steps=64):
    rng = np.random.default_rng(16)
    weights = [rng.uniform(-0.1, 0.1, (1, gates * size, size)).astype(np.float32) for _ in "WR"]
    node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=size)
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, batch, size])],
                              [onnx.numpy_helper.from_array(w, name) for w, name in zip(weights, "wr")])
    return graph, "GFLOP/s", 2 * 2 * steps * batch * gates * size * size, {}


def attention(length, heads=8, size=64, dtype=TensorProto.FLOAT):
    names = ["q", "k", "v"]
    shape = [1, heads, length, size]
    graph = helper.make_graph([helper.make_node("Attention", names, ["y"])], "attention",
                              [helper.make_tensor_value_info(name, dtype, shape) for name in names],
                              [helper.make_tensor_value_info("y", dtype, shape)])
    return graph, "GFLOP/s", 2 * 2 * heads * length * length * size, {}


def rowwise(op, shape, inputs=1, dtype=TensorProto.FLOAT, **attributes):
    names = [f"x{i}" for i in range(inputs)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], op,
                              [helper.make_tensor_value_info(name, dtype, shape) for name in names],
                              [helper.make_tensor_value_info("y", dtype, shape)])
    size_bytes = int(np.prod(shape)) * (4 if dtype == TensorProto.FLOAT else 2)
    return graph, "GB/s", (inputs + 1) * size_bytes, {"cpu:onednn": "off"}


def aggregate(rows=20000, degree=16, columns=128):
    rng = np.random.default_rng(16)
    offsets = np.arange(rows + 1, dtype=np.int64) * degree
    sources = rng.integers(0, rows, rows * degree).astype(np.int64)
    node = helper.make_node("SparseAggregate", ["x", "o", "s"], ["y"], domain="ai.cleave")
    graph = helper.make_graph([node], "aggregate", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
                              [onnx.numpy_helper.from_array(offsets, "o"), onnx.numpy_helper.from_array(sources, "s")])
    return graph, "GB/s", 4 * columns * rows * (degree + 1), {}


def row_f16(depth=4096, columns=4096):
    rng = np.random.default_rng(16)
    weights = rng.uniform(-0.1, 0.1, (depth, columns)).astype(np.float16)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "row",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, depth])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, columns])],
                              [onnx.numpy_helper.from_array(weights, "w")])
    return graph, "GB/s", 2 * depth * columns, {}


SUBJECTS = {
    "LSTM, batch 1": lambda: recurrent("LSTM", 4, 1),
    "LSTM, batch 8": lambda: recurrent("LSTM", 4, 8),
    "GRU, batch 1": lambda: recurrent("GRU", 3, 1),
    "GRU, batch 8": lambda: recurrent("GRU", 3, 8),
    "Attention, 128 tokens": lambda: attention(128),
    "Attention, 1024 tokens": lambda: attention(1024),
    "Softmax, rows of 1000": lambda: rowwise("Softmax", [256, 1000]),
    "Softmax, rows of 16": lambda: rowwise("Softmax", [16384, 16]),
    "Sigmoid": lambda: rowwise("Sigmoid", [256, 1024]),
    "Add, f16": lambda: rowwise("Add", [256, 1024], 2, TensorProto.FLOAT16),
    "SparseAggregate": aggregate,
    "row x f16 matrix": row_f16,
}


def run(cleave, level, arguments):
    environment = dict(os.environ, CLEAVE_CACHE_DIR="")
    environment.pop("CLEAVE_ISA", None)
    if level is not None:
        environment["CLEAVE_ISA"] = level
    done = subprocess.run([cleave, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"levels.py: {' '.join(done.args)}: {done.stderr.strip()}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cleave", default="build/cleave")
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=CLEAVE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="measure only models whose name contains this text")
    options = parser.parse_args()
    sides = [tuple(text.split("=", 1)) + (None,) for text in options.beside]
    sides += [(level, options.cleave, level) for level in LEVELS]
    print(f"{'':24}" + "".join(f"{name:>12}" for name, _, _ in sides))
    with tempfile.TemporaryDirectory() as folder:
        for subject, make in SUBJECTS.items():
            if options.only not in subject:
                continue
            graph, unit, amount, settings = make()
            path = os.path.join(folder, "model.onnx")
            imports = [helper.make_opsetid("", 23), helper.make_opsetid("ai.cleave", 1)]
            onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
            device = ["--devices", "cpu", "--threads", str(options.threads)]
            for key, value in settings.items():
                device += ["--device-option", key + "=" + value]
            best = {}
            for name, cleave, level in sides:
                run(cleave, level, ["run", path, *device, "--verify", "-q"])
            for _ in range(options.rounds):
                for name, cleave, level in sides:
                    figures = json.loads(run(cleave, level, ["bench", path, *device, "--runs", "30", "--json"]))
                    best[name] = min(best.get(name, 1e9), figures["latency_ms"]["median"])
            print(f"{subject:24}" + "".join(f"{amount / best[name] / 1e6:12.1f}" for name, _, _ in sides), unit, flush=True)


if __name__ == "__main__":
    main()
