"""Measures how much longer a run takes through Cleave than in a framework used directly, if one partition is the whole model.

    python bench/frameworks.py [MODEL...] [--devices DEVICE]... [--runs N] [--threads N] [--rounds N]
                                [--as-they-are] [--check]

MODEL is a file, or the name of a light model (squeezenet, for example); default: a model of one tiny node, and the light models.
`bench_frameworks` (built by `make bench`) measures bursts of runs through Cleave and directly, alternately in one process, and
compares the results. It reports the median times of a run, and the median difference of neighbouring bursts. Of --rounds rounds,
the table shows the one with the median difference. --check fails if the overhead is above both 3 % and 30 us per run; it needs an
idle machine. A framework that is not installed is skipped with a message.

The light models compute their weights with ConstantOfShape nodes. These are replaced by stored weights, as real models have them,
because ONNX Runtime optimises models with computed weights differently: it runs light_inception_v2 5 % faster with them, with and
without Cleave. --as-they-are measures the original models.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CLEAVE_BUILD", os.path.join(ROOT, "build"))
DATA = os.environ.get("CLEAVE_DATA", os.path.join(ROOT, "..", "shared", "data"))
MOST_RATIO, MOST_US = 0.03, 30.0

# Device, the environment variable with its library's folder, and that folder in the site-packages of the tests' Python
# environment.
FRAMEWORKS = [
    ("onnxruntime:CPU", "CLEAVE_ONNXRUNTIME", "onnxruntime/capi"),
    ("openvino:CPU", "CLEAVE_OPENVINO", "openvino/libs"),
]


def write_tiny(path):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [value("x")], [value("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def store_weights(path, folder):
    """Copies a model, with initializers instead of its ConstantOfShape nodes. Returns the copy's path."""
    model = onnx.load(path)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        value = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.full(shapes[node.input[0]], value[0], value.dtype), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    target = os.path.join(folder, os.path.basename(path))
    onnx.save(model, target)
    return target


def find_models(names, folder, as_they_are):
    tiny = os.path.join(folder, "tiny.onnx")
    write_tiny(tiny)
    light = sorted(glob.glob(os.path.join(DATA, "onnx-light", "light_*.onnx")))
    if names:
        light = [path for path in light if any(name in os.path.basename(path) for name in names)]
    found = [name for name in names if os.path.isfile(name)]
    if not names or any(name in "tiny.onnx" for name in names):
        found.append(tiny)
    return found + (light if as_they_are else [store_weights(path, folder) for path in light])


def measure(device, models, arguments):
    """Returns {model: [figures of each round]}, or None if the device is not available."""
    figures = {model: [] for model in models}
    for _ in range(arguments.rounds):
        command = [os.path.join(BUILD, "bench", "bench_frameworks"), "--device", device, "--runs", str(arguments.runs), "--threads",
                   str(arguments.threads), "--json", *models]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, CLEAVE_CACHE_DIR=""))
        if done.returncode != 0:
            sys.exit(f"bench_frameworks: {done.stderr.strip()}")
        if not done.stdout.startswith("{"):
            print(done.stdout.strip())
            return None
        for line in done.stdout.splitlines():
            found = json.loads(line)
            figures[found["model"]].append(found)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--devices", action="append", metavar="DEVICE")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--as-they-are", action="store_true", help="do not replace the nodes that compute the weights of light models")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    above = 0
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        models = find_models(arguments.models, folder, arguments.as_they_are)
        print("| model | device | time of the framework alone, us | time through Cleave, us | overhead per run, us | overhead |\n| --- | --- | --- | --- | --- | --- |")
        for device, variable, wheel in FRAMEWORKS:
            if arguments.devices and device not in arguments.devices:
                continue
            here = glob.glob(os.path.join(ROOT, ".venv", "lib", "python3*", "site-packages", wheel))
            if here:
                os.environ.setdefault(variable, here[0])
            for model, rounds in (measure(device, models, arguments) or {}).items():
                median = sorted(rounds, key=lambda found: found["overhead_us"])[len(rounds) // 2]
                more, direct = median["overhead_us"], median["direct_us"]
                is_above = more > MOST_RATIO * direct + MOST_US
                above += is_above
                name = os.path.basename(model).removesuffix(".onnx")
                print(f"| {name} | {device} | {direct:.1f} | {median['cleave_us']:.1f} | {more:+.1f} | {more / direct:+.2%}"
                      f"{', above the limit' if is_above else ''} |", flush=True)
    return 1 if arguments.check and above else 0


if __name__ == "__main__":
    sys.exit(main())
