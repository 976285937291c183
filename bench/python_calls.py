"""Measures what a call from Python costs on a model of one Relu, one thread: Session.run() of the package beside clv_session_run() itself,
and the drop-in for ONNX Runtime beside onnxruntime. Turns alternate; the outputs are compared before.

    bench/python_calls.py [ROUNDS]

Needs a build with -DCLEAVE_PYTHON=ON. The first ratio's target is a difference of at most 5 µs, the second's at most 1.
"""
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ.get("CLEAVE_BUILD", os.path.join(ROOT, "build")), "python"))

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import cleave  # noqa: E402
import cleave.onnxruntime  # noqa: E402

CALLS = 5000


def relu(size):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def microseconds(call):
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - begin) / CALLS / 1000


def session_of(module, model):
    options = module.SessionOptions()
    options.intra_op_num_threads = 1
    return module.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    model, x = relu(16), np.linspace(-1, 1, 16, dtype=np.float32)
    feeds = {"x": x}
    session = cleave.Session(model, threads=1)
    theirs, ours = session_of(onnxruntime, model), session_of(cleave.onnxruntime, model)
    expected = np.maximum(x, 0)
    for result in (session.run(feeds)["y"], theirs.run(None, feeds)[0], ours.run(None, feeds)[0]):
        assert np.array_equal(result, expected)
    ways = {
        "clv_session_run": lambda: session.bench(feeds, CALLS, warmup=10, progress=False).median * 1e6,
        "Session.run": lambda: microseconds(lambda: session.run(feeds)),
        "onnxruntime": lambda: microseconds(lambda: theirs.run(None, feeds)),
        "cleave.onnxruntime": lambda: microseconds(lambda: ours.run(None, feeds)),
    }
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            times[name].append(measure())
    for name, values in times.items():
        print(f"{name:20} {statistics.median(values):7.2f} µs  ({min(values):.2f} to {max(values):.2f})")
    overhead = statistics.median(b - a for a, b in zip(times["clv_session_run"], times["Session.run"]))
    ratio = statistics.median(b / a for a, b in zip(times["onnxruntime"], times["cleave.onnxruntime"]))
    print(f"Session.run takes {overhead:.2f} µs more than clv_session_run; cleave.onnxruntime {ratio:.2f} of onnxruntime's time")


if __name__ == "__main__":
    main()
