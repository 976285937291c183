"""Peak memory of `cleave bench` beyond what it has for a model of one node, against bounds that follow from the model's sizes: weights
are held once, files leave the process while they are packed, scratch stays within what values take.

    python tests/python/test_memory.py        skipped where the command is built with a sanitizer, whose memory is its own
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle

SLACK = 12e6  # code that only one of the two models uses, primitives, small constants
SANITIZED = 80e6  # what no other build of the command takes for a single node
SCRATCH = 20 << 20  # of Winograd's algorithm, before it is made in parts
FLOAT = 4


def save(folder, name, nodes, weights, shape, rows):
    initializers = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, rows)]
    model = helper.make_model(helper.make_graph(nodes, name, inputs, outputs, initializers), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    return path


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def tiny(folder):
    return save(folder, "tiny", [helper.make_node("Relu", ["x"], ["y"])], {}, [16], [16]), 0


def product(folder):
    """64 MB of a matrix, read where it lies in the file and packed once."""
    depth, columns = 2048, 8192
    weights = {"w": random(1, depth, columns)}
    path = save(folder, "product", [helper.make_node("MatMul", ["x", "w"], ["y"])], weights, [1, depth], [1, columns])
    return path, weights["w"].nbytes + (16 << 20)  # and a slice of the file that has not left yet


def convolutions(folder):
    """Large images of many channels, where Winograd's algorithm has more scratch than all values together."""
    channels, extent = (128, 64, 128), 128
    nodes, weights, value = [], {}, "x"
    for i, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        weights[f"w{i}"] = random(i, outputs, inputs, 3, 3)
        made = "y" if i + 2 == len(channels) else f"v{i}"
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [made], pads=[1, 1, 1, 1]))
        value = made
    path = save(folder, "convolutions", nodes, weights, [1, channels[0], extent, extent], [1, channels[-1], extent, extent])
    images = 2 * channels[0] * extent * extent * FLOAT  # the input and the output, and as much again in blocks of channels
    return path, sum(array.nbytes for array in weights.values()) * 36 // 9 + 2 * images + SCRATCH


def peak(path):
    command = [oracle.COMMAND, "bench", path, "--devices", "cpu", "--threads", "1", "--runs", "3", "--json"]
    environment = dict(os.environ, OMP_NUM_THREADS="1", CLEAVE_CACHE_DIR="")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["peak_rss_bytes"]


def main():
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="cleave-memory-") as folder:
        base = peak(tiny(folder)[0])
        if base > SANITIZED:
            print(f"one node takes {base / 1e6:.0f} MB: a sanitizer's memory\n0 passed, 0 failed, 2 skipped")
            return 0
        for make in (product, convolutions):
            path, bound = make(folder)
            taken, bound = peak(path) - base, bound + SLACK
            passed, failed = passed + (taken <= bound), failed + (taken > bound)
            verdict = "FAIL" if taken > bound else "PASS"
            print(f"{verdict} {make.__name__}: {taken / 1e6:.1f} MB beyond one node's {base / 1e6:.1f}, bound {bound / 1e6:.1f}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
