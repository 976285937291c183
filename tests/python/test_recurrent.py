"""Compares RNN, GRU and LSTM with constant weights, which the CPU packs once, with ONNX Runtime.

    python tests/python/test_recurrent.py [--count N] [--first SEED]

The sizes (near those of the kernel's panels and chunks), the directions, the sequence lengths, the peepholes, and the initial
and final states are random. The results must be equal bit for bit for any number of threads, and if the weights are packed in
each run.
"""
import sys

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper

import oracle

PACKED_EACH_RUN = ("--device-option", "cpu:onednn=0")


def make(seed):
    """Returns (model, inputs, label)."""
    rng = np.random.default_rng(seed)
    op = ("LSTM", "GRU", "RNN")[rng.integers(3)]
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    direction = ("forward", "reverse", "bidirectional")[rng.integers(3)]
    d = 2 if direction == "bidirectional" else 1
    hidden, size = (int(rng.choice([1, 15, 16, 17, 40, 64, 100, 129])) for _ in range(2))
    steps, batch = int(rng.choice([1, 2, 7, 30, 90])), int(rng.choice([1, 2, 3, 5, 8, 9, 15, 33]))
    attributes = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(2))
    if rng.integers(4) == 0:
        attributes["clip"] = float(rng.uniform(0.3, 2))
    feeds, constants = {"x": rng.standard_normal((steps, batch, size)).astype(np.float32)}, {}

    def normal(name, shape, spread, share=1.0, constant=True):
        if rng.random() >= share:
            return ""
        (constants if constant else feeds)[name] = (rng.standard_normal(shape) * spread).astype(np.float32)
        return name

    names = ["x", normal("w", (d, gates * hidden, size), size ** -0.5), normal("r", (d, gates * hidden, hidden), hidden ** -0.5),
             normal("b", (d, 2 * gates * hidden), 0.3, 0.7, bool(rng.integers(2))), ""]
    if rng.integers(3) == 0:
        names[4], feeds["lengths"] = "lengths", rng.integers(1, steps + 1, batch).astype(np.int32)
    names.append(normal("h0", (d, batch, hidden), 1, 0.5, bool(rng.integers(2))))
    if op == "LSTM":
        names.append(normal("c0", (d, batch, hidden), 1, 0.5, False))
        names.append(normal("p", (d, 3 * hidden), 0.5, 0.3, bool(rng.integers(2))))
    outputs = ["y", "last_h", "last_c"][:3 if op == "LSTM" else 2]
    if rng.integers(3) == 0:
        outputs[0] = ""
    node = helper.make_node(op, names, outputs, **attributes)
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in feeds.items()}
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, kinds[name], feeds[name].shape) for name in feeds],
                              [helper.make_tensor_value_info(name, T.FLOAT, None) for name in outputs if name],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, feeds, f"{op} {direction} steps {steps} batch {batch} inputs {size} hidden {hidden}"


def check(seed, folder):
    """Runs the model of a seed with several numbers of threads and options. Returns [(label, reason or None)]."""
    model, feeds, label = make(seed)
    names = [output.name for output in model.graph.output]
    expected = oracle.run_onnxruntime(model, feeds)
    (path, arguments), results, first = oracle.save_case(folder, seed, model, feeds), [], None
    for threads, options in ((1, ()), (2, ("--deterministic",)), (3, ()), (2, PACKED_EACH_RUN)):
        actual = oracle.cleave_run(path, arguments, names, "--devices", "cpu", "--threads", threads, *options, threads=threads)
        first = actual if first is None else first
        reason = next((r for r in (oracle.compare(e, a) for e, a in zip(expected, actual)) if r), None)
        if reason is None and any(a.tobytes() != f.tobytes() for a, f in zip(actual, first)):
            reason = "the bits differ from those of the run with one thread"
        results.append((f"{seed} {label}, {threads} threads {' '.join(options)}", reason))
    return results


def main():
    tally = oracle.Tally()
    for _, found in oracle.each_seed(__doc__, tally, "recurrent", 30, check):
        for label, reason in found:
            tally.add(label, reason)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
