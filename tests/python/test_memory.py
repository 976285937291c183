"""Checks that the peak memory of `cleave bench` stays below bounds that are computed from the model's sizes.

    python tests/python/test_memory.py        skipped if the command is built with a sanitizer, which needs memory itself

The peak memory for a model of one node is subtracted first. The bounds are exceeded if weights are in memory twice, if the
model file stays mapped while weights are packed, or if scratch memory exceeds the size of the values.
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

SLACK = 12e6  # for code that the model of one node does not use, oneDNN primitives and small constants
SANITIZED = 80e6  # a build that needs more than this for a single node has a sanitizer
SCRATCH = 20 << 20  # the most scratch for Winograd's algorithm, which divides its work into parts if it would need more
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
    """A product with a matrix of 64 MB, which is packed once, directly from the mapped file. Returns (path, bound)."""
    depth, columns = 2048, 8192
    weights = {"w": random(1, depth, columns)}
    path = save(folder, "product", [helper.make_node("MatMul", ["x", "w"], ["y"])], weights, [1, depth], [1, columns])
    return path, weights["w"].nbytes + (16 << 20)  # the packed matrix, and a slice of the file that is mapped while it is packed


def convolutions(folder):
    """Convolutions of large images with many channels, for which Winograd's algorithm could need more scratch than all values
    need together. Returns (path, bound)."""
    channels, extent = (128, 64, 128), 128
    nodes, weights, value = [], {}, "x"
    for i, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        weights[f"w{i}"] = random(i, outputs, inputs, 3, 3)
        made = "y" if i + 2 == len(channels) else f"v{i}"
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [made], pads=[1, 1, 1, 1]))
        value = made
    path = save(folder, "convolutions", nodes, weights, [1, channels[0], extent, extent], [1, channels[-1], extent, extent])
    # The input and the output. They are counted twice below, because their copies in blocks of channels are as large.
    images = 2 * channels[0] * extent * extent * FLOAT
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
            print(f"skipped: a model of one node needs {base / 1e6:.0f} MB, so the command is built with a sanitizer\n0 passed, 0 failed, 2 skipped")
            return 0
        for make in (product, convolutions):
            path, bound = make(folder)
            taken, bound = peak(path) - base, bound + SLACK
            passed, failed = passed + (taken <= bound), failed + (taken > bound)
            verdict = "FAIL" if taken > bound else "PASS"
            print(f"{verdict} {make.__name__}: {taken / 1e6:.1f} MB more than a model of one node, limit {bound / 1e6:.1f} MB")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
