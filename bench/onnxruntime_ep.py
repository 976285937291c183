"""Measures how much longer a run takes through ONNX Runtime and Cleave's execution provider than in Cleave used directly.

    python bench/onnxruntime_ep.py [MODEL...] [--full] [--threads N] [--turns N] [--check]

MODEL is a name of tools/models.py, or "tiny", two nodes on eight numbers; default: tiny, resnet50, mobilenet, bert, gpt. --full: the
published sizes. Both ways run in one process, in turns of 50 ms, with the model taken whole by the provider and the results
compared. The table shows the median time of a run each way, and the median over the turns of the difference, which includes the
calls of ONNX Runtime's Python package; inputs and outputs are bound. --check fails if it is above both 3 % and 30 us; it needs an idle machine.
"""
import argparse
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import sides

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import models  # noqa: E402

BUILD = os.environ.get("CLEAVE_BUILD", os.path.join(ROOT, "build"))
MOST_RATIO, MOST_US, TURN_SECONDS = 0.03, 30.0, 0.05


def make(name, full):
    if name != "tiny":
        return models.make(name, full=full)
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4])
    nodes = [helper.make_node("Sigmoid", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "tiny", [value("x")], [value("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": np.ones((2, 4), np.float32)}


def open_provider(path, threads, devices):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1  # the provider's kernels have their own threads
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")  # an error unless the provider takes every node
    settings.add_provider_for_devices(devices, {"threads": str(threads)})
    return onnxruntime.InferenceSession(path, settings, enable_fallback=0)


def measure(path, inputs, arguments, devices):
    """Returns the median ms of Cleave alone and with the provider, and the median difference in ms."""
    alone, to_arrays = sides.open_cleave(path, inputs, arguments.threads, os.path.join(BUILD, "libcleave.so"), "cpu")
    session = open_provider(path, arguments.threads, devices)
    for expected, found in zip(to_arrays(alone()), session.run(None, inputs)):
        # not equal bit for bit: ONNX Runtime folds normalisations into convolutions before it asks the provider
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for output in session.get_outputs():
        binding.bind_output(output.name)
    ways = [alone, lambda: session.run_with_iobinding(binding)]
    times = [[], []]
    for turn in range(arguments.turns):
        for way in (0, 1) if turn % 2 == 0 else (1, 0):
            times[way].append(sides.burst_ms(ways[way], TURN_SECONDS))
    return statistics.median(times[0]), statistics.median(times[1]), statistics.median(b - a for a, b in zip(*times))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", default=["tiny", "resnet50", "mobilenet", "bert", "gpt"])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    os.environ["CLEAVE_CACHE_DIR"] = ""
    onnxruntime.register_execution_provider_library("cleave", os.path.join(BUILD, "libcleave_onnxruntime_ep.so"))
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "CleaveExecutionProvider"]
    failed = False
    print(f"{'model':12} {'alone ms':>10} {'provider ms':>12} {'overhead us':>12} {'%':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            model, inputs = make(name, arguments.full)
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            alone, beside, more = measure(path, inputs, arguments, devices)
            print(f"{name:12} {alone:10.4f} {beside:12.4f} {1e3 * more:12.1f} {100 * more / alone:7.2f}", flush=True)
            failed |= more > MOST_RATIO * alone and 1e3 * more > MOST_US
    return 1 if failed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
