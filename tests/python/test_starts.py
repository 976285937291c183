"""Starts the command several times with one cache: every start must give right results, and only the first may compile.

    python tests/python/test_starts.py [DEVICES...]

Each model is started three times on each list of devices, in processes of its own, and its outputs are compared with ONNX Runtime's; a
fourth process says how many partitions it compiled. The same model, compiled ahead of time into a directory, is then started twice from
there. Lists with a device that is not available are skipped.
"""
import json
import os
import shutil
import sys


import oracle
import models  # from tools/, which oracle adds to the path

DEVICES = ["cpu", "npu,cpu", "opencl:0,cpu", "openvino:CPU,cpu", "onnxruntime:CPU,cpu", "npu,openvino:CPU,cpu"]
MODELS = ["resnet50", "unet", "bert", "lstm"]
STARTS, STARTS_OF_DIRECTORY = 3, 2


def make(name, folder):
    """Returns the model's path, its --input and --shape arguments, the names of its outputs, what ONNX Runtime computes, and the
    tolerance."""
    model, inputs = models.make(name, seed=11)
    path, arguments = oracle.save_case(folder, name, model, inputs)
    expected, = oracle.isolated([lambda: oracle.run_onnxruntime(model, inputs)])
    shapes = [text for input, value in inputs.items() for text in ("--shape", f"{input}={'x'.join(map(str, value.shape))}")]
    return path, arguments, shapes, [output.name for output in model.graph.output], expected, oracle.tolerance_of(model)


def compiled(path, arguments, *options):
    """Returns how many partitions a new process compiles."""
    report = oracle.cleave("bench", path, *arguments, "--runs", 1, "--warmup", 0, "--json", *options)
    return json.loads(report)["executables"]["compiled"]


def check(item):
    """Yields (label, reason or None) for one model on one list of devices."""
    devices, (name, (path, arguments, shapes, outputs, expected, tolerance)) = item
    folder = os.path.join(os.path.dirname(path), devices.replace(",", "_").replace(":", "_"), name)
    shutil.rmtree(folder, ignore_errors=True)
    cache, compiled_model = os.path.join(folder, "cache"), os.path.join(folder, "compiled")
    os.makedirs(folder)
    results = []
    for start in range(STARTS):
        found = oracle.cleave_run(path, arguments, outputs, "--devices", devices, "--cache-dir", cache)
        results.append((f"{name} on {devices}, start {start + 1}", oracle.first_difference(expected, found, tolerance)))
    count = compiled(path, arguments, "--devices", devices, "--cache-dir", cache)
    results.append((f"{name} on {devices}: start {STARTS + 1} compiles nothing", f"it compiled {count} partitions" if count else None))
    oracle.cleave("compile", path, *shapes, "-o", compiled_model, "--devices", devices, "--cache-dir", "")
    for start in range(STARTS_OF_DIRECTORY):
        found = oracle.cleave_run(compiled_model, arguments, outputs, "--cache-dir", "")
        results.append((f"{name} compiled for {devices}, start {start + 1}", oracle.first_difference(expected, found, tolerance)))
    return results


def main():
    tally = oracle.Tally()
    folder = oracle.build_folder("starts")
    lists = []
    for devices in sys.argv[1:] or DEVICES:
        reason = oracle.missing_device(devices)
        if reason is None:
            lists.append(devices)
        else:
            tally.skip(devices, reason)
    made = {name: make(name, folder) for name in MODELS}
    for item, results in oracle.each(check, [(devices, entry) for devices in lists for entry in made.items()]):
        if isinstance(results, Exception):
            tally.add(f"{item[1][0]} on {item[0]}", f"{type(results).__name__}: {results}")
            continue
        for label, reason in results:
            tally.add(label, reason)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
