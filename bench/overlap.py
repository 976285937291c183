"""Measures how much time devices save by working at the same time, in two tables.

    python bench/overlap.py [--runs N] [--json FILE]

branches: a model with two independent branches, one on the CPU, and one on a virtual NPU that waits instead of computing, so that
it does not use the CPU. Each branch runs alone, then both run in one request. The ratio is the time of both divided by that of
the longer branch: 1 is perfect overlap, about 2 is none.

pipeline: a chain of two nodes on two virtual NPUs. The table shows requests per second with 1 to 4 requests in flight, and the
ratio to the requests per second with one in flight: 2 is perfect.

The variants of a table are measured in turns, several times, and the medians are shown. The result of each plan is verified once.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.environ.get("CLEAVE_COMMAND", os.path.join(ROOT, "build", "cleave"))
SIDE, NPU_US, ROUNDS = 384, 20000, 5


def cleave(*arguments):
    done = subprocess.run([COMMAND, *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cleave {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def model(path, branches, layers, seed=1):
    """Writes a model with these branches: "cpu" is a chain of MatMuls, "npu" one Mul. Each branch has its own input and
    output."""
    rng = np.random.default_rng(seed)
    nodes, inputs, outputs, weights = [], [], [], []
    for branch in branches:
        inputs.append(helper.make_tensor_value_info(f"{branch}_in", TensorProto.FLOAT, [SIDE, SIDE]))
        outputs.append(helper.make_tensor_value_info(f"{branch}_out", TensorProto.FLOAT, [SIDE, SIDE]))
        last = f"{branch}_in"
        for i in range(layers if branch == "cpu" else 1):
            weight = (rng.standard_normal((SIDE, SIDE)) / SIDE ** 0.5).astype(np.float32)
            weights.append(numpy_helper.from_array(weight, f"{branch}_w{i}"))
            out = f"{branch}_out" if i == (layers if branch == "cpu" else 1) - 1 else f"{branch}_{i}"
            nodes.append(helper.make_node("MatMul" if branch == "cpu" else "Mul", [last, f"{branch}_w{i}"], [out], f"{branch}_{i}"))
            last = out
    graph = helper.make_graph(nodes, "branches", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def chain(path, seed=2):
    """Writes a model of a Mul and an Add, one for each of the two devices."""
    rng = np.random.default_rng(seed)
    weights = [numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), f"w{i}") for i in range(2)]
    nodes = [helper.make_node("Mul", ["x", "w0"], ["y"], "first"), helper.make_node("Add", ["y", "w1"], ["z"], "second")]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64])
    graph = helper.make_graph(nodes, "chain", [value("x")], [value("z")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def spec(path, name, operators):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"name": name, "static_shapes": True, "operators": {op: {} for op in operators},
                   "speed": {"launch_overhead_us": NPU_US, "copy_latency_us": 10}}, file)
    return path


def branches(folder, runs):
    npu = spec(os.path.join(folder, "npu.json"), "waiting", ["Mul"])
    path = {kind: os.path.join(folder, f"{'_'.join(kind)}.onnx") for kind in (("cpu",), ("npu",), ("cpu", "npu"))}
    options = ["--devices", "waiting,cpu", "--npu-spec", npu, "--strategy", "contiguous", "--split", "convex"]
    bench = lambda kind: cleave("bench", path[kind], *options, "--runs", str(runs), "--warmup", "2")["latency_ms"]["median"]
    layers = 8
    model(path[("cpu",)], ["cpu"], layers)
    # With this number of layers, the branch on the CPU takes a little less time than the branch on the NPU.
    layers = max(1, round(layers * NPU_US / 1e3 / bench(("cpu",)) * 0.9))
    for kind in path:
        model(path[kind], kind, layers)
        if not cleave("run", path[kind], *options, "--verify")["verify"]["equal"]:
            sys.exit(f"{kind}: the result is wrong")
    rounds = [{kind: bench(kind) for kind in path} for _ in range(ROUNDS)]
    ratio = statistics.median(r[("cpu", "npu")] / max(r[("cpu",)], r[("npu",)]) for r in rounds)
    median = {kind: statistics.median(r[kind] for r in rounds) for kind in path}
    return {"cpu_ms": median[("cpu",)], "npu_ms": median[("npu",)], "both_ms": median[("cpu", "npu")], "ratio_to_longer": ratio}


def pipeline(folder, runs):
    path = os.path.join(folder, "chain.onnx")
    chain(path)
    first, second = spec(os.path.join(folder, "a.json"), "one", ["Mul"]), spec(os.path.join(folder, "b.json"), "two", ["Add"])
    options = ["--devices", "one,two,cpu", "--npu-spec", first, "--npu-spec", second, "--strategy", "contiguous"]
    if not cleave("run", path, *options, "--verify")["verify"]["equal"]:
        sys.exit("chain: the result is wrong")
    bench = lambda n: cleave("bench", path, *options, "--runs", str(runs), "--warmup", "2", "--in-flight", str(n))["runs_per_second"]
    rounds = [{n: bench(n) for n in (1, 2, 3, 4)} for _ in range(ROUNDS)]
    return [{"in_flight": n, "runs_per_second": statistics.median(r[n] for r in rounds),
             "ratio": statistics.median(r[n] / r[1] for r in rounds)} for n in (1, 2, 3, 4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {"branches": branches(folder, arguments.runs), "pipeline": pipeline(folder, arguments.runs)}
    b = result["branches"]
    print(f"branches   cpu {b['cpu_ms']:.2f} ms, npu {b['npu_ms']:.2f} ms, both {b['both_ms']:.2f} ms: "
          f"{b['ratio_to_longer']:.3f} of the longer branch's time")
    print("\npipeline   in flight  requests/s  ratio to 1 in flight")
    for row in result["pipeline"]:
        print(f"{row['in_flight']:20}  {row['runs_per_second']:10.1f}  {row['ratio']:5.2f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
