"""Compares cold with warm starts of ResNet-50.

    python bench/warm_start.py [--devices npu,cpu --devices opencl,cpu] [--rounds 5] [--small] [--check] [-o FILE.md]

A cold start has an empty cache of executables, a warm start the cache that a cold start filled. Each start is a new `cleave
bench` process. A round is a cold start and then a warm start, with a new cache directory. The table shows medians over the
rounds. "compiled" counts the executables that were compiled and put into the cache, "loaded" those that were loaded from the
cache, and "not cached" those of backends that cannot save executables, such as the CPU's: they are compiled in every start.
Before the rounds, the results of a cold start are compared with ONNX Runtime's, and those of a warm start must have the same
bits. Devices that are not available are skipped with a message.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

DEVICES = ["npu,cpu", "opencl,cpu"]
WAYS = {"compiled": "compiled", "from_disk": "loaded", "not_kept": "not cached"}


def run(*arguments):
    """Runs cleave with an empty cache of PoCL, the OpenCL driver, whose usual cache would hide the cost of a cold start."""
    import oracle
    with tempfile.TemporaryDirectory(prefix="cleave-pocl-") as folder:
        return subprocess.run([oracle.COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=dict(os.environ, POCL_CACHE_DIR=folder))


def why_not(devices):
    """Returns None, or the reason why the devices cannot be opened."""
    done = run("devices", "--devices", devices)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def start(model, inputs, devices, cache):
    """Starts one process and returns its figures."""
    done = run("bench", model, *inputs, "--devices", devices, "--strategy", "contiguous", "--runs", 1, "--warmup", 0, "--cache-dir", cache,
               "--json")
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    document = json.loads(done.stdout)
    figures = dict(document["timings_ms"], first=document["first_run_ms"])
    figures["start"] = document["load_ms"] + document["first_run_ms"]
    figures.update((name, document["executables"][way]) for way, name in WAYS.items())
    return figures


def outputs_of(model, inputs, names, devices, cache):
    import oracle
    return oracle.cleave_run(model, inputs, names, "--devices", devices, "--strategy", "contiguous", "--cache-dir", cache, threads=2)


def check(model, inputs, names, devices, folder, expected):
    """Returns None, or what is wrong with the results of a cold and a warm start."""
    import oracle
    cache = os.path.join(folder, "checked")
    cold, warm = (outputs_of(model, inputs, names, devices, cache) for _ in range(2))
    if any(a.tobytes() != b.tobytes() for a, b in zip(cold, warm)):
        return "the results of the cold and the warm start differ in some bits"
    return oracle.first_difference(expected, cold)


def measure(model, inputs, devices, folder, rounds):
    figures = {"cold": [], "warm": []}
    for number in range(rounds):
        cache = os.path.join(folder, f"cache{number}")
        for kind in figures:
            figures[kind].append(start(model, inputs, devices, cache))
    return figures


def rows(devices, figures):
    """Yields the lines of the table for these devices."""
    def middle(kind, key):
        return statistics.median(figure[key] for figure in figures[kind])
    for kind in figures:
        yield (f"| {devices} | {kind} | " + " | ".join(f"{middle(kind, key):.1f}" for key in ("load", "plan", "compile", "first", "start"))
               + " | " + " | ".join(f"{middle(kind, key):.0f}" for key in WAYS.values()) + " |")


def main():
    import onnx
    import oracle
    import models
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", action="append", help="a list of devices; repeat for several (default: npu,cpu and opencl,cpu)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="use the small size of the model, as the tests do")
    parser.add_argument("--check", action="store_true", help="fail if a warm start compiles an executable that the cold start had cached")
    parser.add_argument("-o", "--output", metavar="FILE.md", help="also write the table to this file")
    arguments = parser.parse_args()
    lines = [f"ResNet-50{' (small)' if arguments.small else ''}, {arguments.rounds} rounds, times in ms", "",
             "| devices | start | load | plan | compile | first run | sum | compiled | loaded | not cached |", "| --- " * 10 + "|"]
    print("\n".join(lines), flush=True)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="cleave-warm-") as top:
        model, inputs = models.make("resnet50", seed=0, full=not arguments.small)
        path, names = os.path.join(top, "resnet50.onnx"), [value.name for value in model.graph.output]
        onnx.save(model, path)
        expected, = oracle.isolated([lambda: oracle.run_onnxruntime(model, inputs, threads=2)])
        options = oracle.save_inputs(top, {name: np.asarray(value) for name, value in inputs.items()})
        for devices in arguments.devices or DEVICES:
            missing = why_not(devices)
            if missing:
                print(f"{devices} is skipped: {missing}", flush=True)
                continue
            folder = os.path.join(top, devices.replace(",", "-"))
            os.mkdir(folder)
            try:
                difference = check(path, options, names, devices, folder, expected)
                if difference is not None:
                    raise RuntimeError(f"wrong result: {difference}")
                figures = measure(path, options, devices, folder, arguments.rounds)
            except (RuntimeError, oracle.CleaveError) as error:
                wrong.append(f"{devices}: {error}")
                continue
            for line in rows(devices, figures):
                lines.append(line)
                print(line, flush=True)
            if arguments.check and (any(figure["compiled"] for figure in figures["warm"]) or
                                    any(figure["compiled"] != other["loaded"] for figure, other in zip(figures["cold"], figures["warm"]))):
                wrong.append(f"{devices}: a warm start compiled executables that the cold start had cached")
    for text in wrong:
        print(f"FAIL {text}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
