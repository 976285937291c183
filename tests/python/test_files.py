"""Tests the files that the command reads and writes: inputs in npz files, pipes instead of files, features of graphs, operators
in traces, and profiles that are measured within a time limit."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle

GNN = os.path.join(oracle.ROOT, "tests", "gnn", "models", "graphsage.json")


def bash(folder, line, **options):
    """Runs a line of bash in which $C is the command."""
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=False,
                          env=dict(os.environ, C=oracle.COMMAND, CLEAVE_CACHE_DIR=""), timeout=300, **options)


def expect(tally, folder, line, text="", fails=False, **options):
    """Checks that the line succeeds (if `fails`: fails with status 1 or 2) and prints the text. Returns its standard output."""
    done = bash(folder, line, **options)
    printed = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    good = (done.returncode in (1, 2)) if fails else done.returncode == 0
    tally.add(line, None if good and text in printed else f"status {done.returncode}; expected {'a failure' if fails else 'success'} and the text '{text}': {printed[-400:]}")
    return done.stdout.decode(errors="replace")


def make_model(path):
    """Writes a model: y = (a + b) @ w and z = Relu(y), where a and b are [2, 3] and w is [3, 4]."""
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "ab"]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "yz"]
    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    graph = helper.make_graph(nodes, "small", inputs, outputs, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_inputs(tally, folder):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((2, 3), dtype=np.float32) for _ in "ab")
    np.savez(os.path.join(folder, "both.npz"), a=a, b=b)
    np.savez_compressed(os.path.join(folder, "other.npz"), other=b)
    np.savez(os.path.join(folder, "more.npz"), a=a, b=b, c=a)
    np.save(os.path.join(folder, "a.npy"), a)
    with open(os.path.join(folder, "b.pb"), "wb") as file:
        file.write(numpy_helper.from_array(b, "b").SerializeToString())
    expected = (a + b) @ np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in ("--input both.npz", "--input a=both.npz --input b=both.npz", "--input a=a.npy --input b=other.npz",
                  "--input a=a.npy --input b=b.pb", "--input <(cat both.npz)", "--input a=<(cat a.npy) --input b=<(cat b.pb)"):
        expect(tally, folder, f"$C run small.onnx {given} -q --output-dir out")
        worst = oracle.compare(expected, np.load(os.path.join(folder, "out", "y.npy")))
        tally.add(f"result with {given}", worst)
        shutil.rmtree(os.path.join(folder, "out"))
    expect(tally, folder, "$C run small.onnx --input more.npz", "array 'c' of more.npz is not an input; the model's inputs: a, b", fails=True)
    expect(tally, folder, "$C run small.onnx --input b=more.npz -q")
    np.savez(os.path.join(folder, "wrong.npz"), c=a, d=a)
    expect(tally, folder, "$C run small.onnx --input b=wrong.npz", "has several arrays, and none is named 'b'", fails=True)
    expect(tally, folder, "$C run small.onnx --input b=small.txt", "is not a .npy, .npz or .pb file", fails=True)
    np.savez(os.path.join(folder, "double.npz"), a=a.astype(np.float64))
    expect(tally, folder, "$C run small.onnx --input double.npz", "double.npz contains f64, but the model expects f32", fails=True)


def test_pipes(tally, folder):
    spec = """<(echo '{"operators": {"Add": {}}}')"""
    for verb in ("inspect", "plan", "run", "bench --runs 2"):
        expect(tally, folder, f"$C {verb} - -q < small.onnx")
        expect(tally, folder, f"cat small.onnx | $C {verb} - -q --devices npu,cpu --npu-spec {spec}")
    expect(tally, folder, f"cat small.onnx | $C profile - -q --runs 2 --devices npu,cpu --npu-spec {spec} -o piped.json")
    expect(tally, folder, "$C plan <(cat small.onnx) --profile <(cat piped.json) --pins <(echo 'Relu*=cpu') -q", "profile of")
    expect(tally, folder, "$C plan - < /dev/null", fails=True)
    expect(tally, folder, "true | $C plan -", "the pipe is empty", fails=True)
    expect(tally, folder, "$C version", "cleave ")
    expect(tally, folder, "$C gnn help", "Verbs")
    expect(tally, folder, "$C gnn help run", "--features")


def test_features(tally, folder):
    rng = np.random.default_rng(2)
    edges = rng.integers(0, 40, (2, 200))
    np.savez(os.path.join(folder, "bare.npz"), edge_index=edges, num_nodes=40)
    with open(GNN, encoding="utf-8") as file:
        wide = json.load(file)["layers"][0]["in"]
    x = rng.standard_normal((40, wide), dtype=np.float32)
    np.savez(os.path.join(folder, "whole.npz"), edge_index=edges, x=x)
    np.save(os.path.join(folder, "x.npy"), x.astype(np.float64))
    np.save(os.path.join(folder, "short.npy"), x[:39])
    np.save(os.path.join(folder, "bad.npy"), np.where(np.arange(40)[:, None] == 7, np.nan, x))
    run = f"$C gnn run --model {GNN} -q"
    expect(tally, folder, f"{run} --graph bare.npz", f"use --x FILE or --features {wide}", fails=True)
    expect(tally, folder, f"{run} --graph whole.npz --output whole-out.npz")
    expect(tally, folder, f"{run} --graph bare.npz --x x.npy --output x-out.npz")
    expect(tally, folder, f"{run} --graph <(cat bare.npz) --x <(cat x.npy) --kset 1,2 --output piped-out.npz")
    arrays = [np.load(os.path.join(folder, f"{name}-out.npz"))["out"] for name in ("whole", "x", "piped")]
    tally.add("features from --x give the result of the graph with features", None if np.array_equal(arrays[0], arrays[1]) else "the result is not that of the graph with features")
    tally.add("features from a pipe give the same result", oracle.compare(arrays[0], arrays[2]))
    for seed in (0, 0, 1):
        expect(tally, folder, f"{run} --graph bare.npz --features {wide} --seed {seed} --output drawn{len(arrays)}-out.npz")
        arrays.append(np.load(os.path.join(folder, f"drawn{len(arrays)}-out.npz"))["out"])
    same, other = np.array_equal(arrays[3], arrays[4]), np.array_equal(arrays[3], arrays[5])
    tally.add("equal seeds of --features give equal results, other seeds other ones", None if same and not other else "they do not")
    expect(tally, folder, f"{run} --graph whole.npz --features {wide}", "--x FILE replaces them", fails=True)
    expect(tally, folder, f"{run} --graph bare.npz --features {wide} --x x.npy", "exclude each other", fails=True)
    expect(tally, folder, f"{run} --graph bare.npz --features {wide + 1}", f"layer 0 of the model reads {wide}", fails=True)
    expect(tally, folder, f"{run} --graph bare.npz --x short.npy", "expected numbers [40, F]", fails=True)
    expect(tally, folder, f"{run} --graph bare.npz --x bad.npy", "vertex 7: feature 0 is nan, but must be finite", fails=True)


def test_trace(tally, folder):
    for command in ("run small.onnx --devices cpu", "run small.onnx --devices npu,cpu --force MatMul=cpu", "bench small.onnx --runs 5",
                    "run small.onnx --runs 4 --graph on"):
        expect(tally, folder, f"$C {command} -q --trace trace.json")
        with open(os.path.join(folder, "trace.json"), encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        inside = [event for event in events if event.get("cat") == "operator"]
        steps = [event for event in events if "step" in event["args"] and "nodes" in event["args"]]
        names = " ".join(event["name"] for event in inside)
        reason = None if "MatMul" in names else f"no operator of the CPU in the trace: {names}"
        for event in inside:
            begin, end = event["ts"], event["ts"] + event["dur"]
            if not any(step["tid"] == event["tid"] and step["ts"] <= begin + 0.002 and end <= step["ts"] + step["dur"] + 0.002 for step in steps):
                reason = f"operator {event['name']} is not inside a partition"
        tally.add(f"operators in the trace of '{command}'", reason)


def test_budget(tally, folder):
    """Profiles with a time limit that suffices for a part of the nodes, then again for the rest."""
    nodes, value = [], "x"
    for i in range(60):  # each Pad enlarges its input, so that no two nodes have the same sizes
        nodes.append(helper.make_node("Pad", [value, f"p{i}"], [f"v{i}"]))
        value = f"v{i}"
    pads = [numpy_helper.from_array(np.array([0, 0, 0, i % 7 + 1]), f"p{i}") for i in range(60)]
    graph = helper.make_graph(nodes, "pads", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [600, 700])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)], pads)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), os.path.join(folder, "pads.onnx"))

    def measured():
        with open(os.path.join(folder, "budget.json"), encoding="utf-8") as file:
            profile = json.load(file)
        return profile.get("partial", False), sum("time_ns" in operator for operator in profile["devices"][0]["operators"])

    for seconds in (2, 1, 0.5, 0.25, 0.1):  # until a limit is too short on this machine
        first = expect(tally, folder, f"rm -f budget.json; $C profile pads.onnx -o budget.json --seconds {seconds} --json")
        partial, some = measured()
        if some < 60:
            break
    tally.add("a profile that reached its time limit is marked as partial", None if partial and json.loads(first)["partial"] else "the profile is not marked as partial")
    expect(tally, folder, "$C plan pads.onnx --profile budget.json -q")
    expect(tally, folder, "$C profile pads.onnx -o budget.json --continue", "measuring")
    partial, every = measured()
    tally.add("--continue measures the rest of the profile", None if not partial and every == 60 > some else f"{some}, then {every} of 60 nodes, partial: {partial}")
    expect(tally, folder, "$C profile pads.onnx -o budget.json --continue", "measuring 0 kinds of nodes")


def main():
    tally, folder = oracle.Tally(), oracle.build_folder("files")
    shutil.rmtree(folder)
    os.makedirs(folder)
    make_model(os.path.join(folder, "small.onnx"))
    for test in (test_inputs, test_pipes, test_features, test_trace, test_budget):
        test(tally, folder)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
