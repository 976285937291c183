"""Compiles random graphs ahead of time with random placements, and runs them from the compiled directory.

    python tests/python/test_compile.py [--count N] [--first SEED]

The results of `cleave run DIR` must have the same bits as those of `cleave run MODEL`, and every executable of the NPU must be
loaded from the directory, not compiled. Before the run, the directory is moved and the model is hidden. The directory also has
an ONNX file per partition: if ONNX Runtime runs these in order, the results must be the same within the tolerance.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

import oracle
import random_graphs
import test_directories  # from tools/, which oracle adds to the path

DEVICES = ["--devices", "npu,cpu"]


def read_inputs(directory, model):
    """Returns the inputs in a test directory as {name: (file, array)}."""
    data = os.path.join(directory, "test_data_set_0")
    files = test_directories.numbered_files(data, "input")
    return {value.name: (file, tensor) for value, file, tensor
            in zip(model.graph.input, files, test_directories.read_tensors(data, "input"))}


def compile_model(path, to, seed, sizes):
    """Compiles the model under a random placement. Returns (the options of the plan, the command's JSON output)."""
    spec = ["--npu-spec", "all"]
    nodes = [node for node in oracle.plan_nodes(path, *DEVICES, *spec) if node["cause"] != "const"]
    pins = f"{to}.pins"
    with open(pins, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in oracle.random_pins(nodes, random.Random(f"{seed}/compile"))))
    options = [*DEVICES, *spec, "--pins", pins, "--strategy", "contiguous"]
    document = json.loads(oracle.cleave("compile", path, *options, *sizes, "-o", to, "--json"))
    return options, document


def run_folder(folder, input_arguments, names):
    """Runs a compiled directory. Returns (outputs, the log). The log says where each executable came from."""
    out = f"{folder}.out"
    done = subprocess.run([oracle.COMMAND, "run", folder, *input_arguments, "--output-dir", out, "-v"], capture_output=True, text=True,
                          errors="replace", timeout=120, check=False)
    if done.returncode != 0:
        raise oracle.CleaveError(f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    return [np.load(os.path.join(out, oracle.output_file_name(name))) for name in names], done.stderr


def check_origins(said, document):
    """Checks that the NPU's executables were loaded from the directory. Also checks that the command's report gives each
    partition on the NPU an executable, and each on the CPU a reason why it has none. Returns None, or what is wrong."""
    loaded = re.findall(r"partition (\d+) on npu: loaded from the compiled directory", said)
    wanted = [str(one["id"]) for one in document["partitions"] if one["device"] == "npu"]
    if sorted(loaded, key=int) != wanted and len(set(wanted)) > 0:
        found = re.findall(r"partition (\d+) on npu: found in memory", said)  # equal partitions share an executable, which is loaded for the first of them
        if sorted(loaded + found, key=int) != wanted:
            return f"the executables of partitions {wanted} on npu must be loaded, but only {loaded} were; the log ends: {said[-500:]}"
    for one in document["partitions"]:
        if (one["device"] == "npu") != (len(one["executables"]) > 0) or (one["device"] == "cpu") != (one["reason"] is not None):
            return (f"partition {one['id']} on {one['device']} has {len(one['executables'])} executables and the reason {one['reason']}; on npu there "
                    "must be an executable, on cpu a reason why there is none")
    return None


def run_partition(model, inputs):
    """Runs the ONNX file of a partition with ONNX Runtime, without optimisations, because these abort on some graphs. If ONNX
    Runtime has no kernel, the reference evaluator runs it."""
    try:
        return oracle.run_onnxruntime(model, inputs, optimize=False)
    except Exception as first:  # ONNX Runtime has several types of exceptions
        try:
            return oracle.run_reference(model, inputs)
        except Exception:
            raise first from None


def check_partitions(folder, document, fed, expected, tolerance):
    """Runs the ONNX files of the partitions in order. Returns None, or what is wrong with the results."""
    values = dict(fed)
    for one in document["partitions"]:
        path = os.path.join(folder, one["onnx"])
        model = onnx.load(path)
        if not model.graph.output:  # nothing reads the results of this partition
            continue
        values_of = {value.name: values[value.name] for value in model.graph.input if value.name in values}
        missing = {value.name for value in model.graph.input} - values_of.keys() - {tensor.name for tensor in model.graph.initializer}
        if missing:
            return f"{one['onnx']}: no earlier partition computes its inputs {missing}"
        outputs = run_partition(model, values_of)
        values |= {value.name: output for value, output in zip(model.graph.output, outputs)}
    for name, e in expected.items():
        if name in values and (wrong := oracle.compare(e, values[name], tolerance)):
            return f"output '{name}', computed with the ONNX files of the partitions: {wrong}"
    return None


def check(directory):
    """Checks the model in a test directory. Yields (name of the check, None or what is wrong)."""
    path = os.path.join(directory, "model.onnx")
    model = onnx.load(path)
    names = [value.name for value in model.graph.output]
    inputs = read_inputs(directory, model)
    arguments = [text for name, (file, _) in inputs.items() for text in ("--input", f"{name}={file}")]
    sizes = [text for name, (_, tensor) in inputs.items() if np.asarray(tensor).ndim > 0
             for text in ("--shape", f"{name}={'x'.join(map(str, np.asarray(tensor).shape))}")]
    built, moved, hidden = os.path.join(directory, "built"), os.path.join(directory, "moved"), f"{path}.hidden"
    for old in (built, moved, f"{moved}.out"):
        shutil.rmtree(old, ignore_errors=True)
    options, document = compile_model(path, built, os.path.basename(directory), sizes)
    wanted = oracle.cleave_run(path, arguments, names, *options)
    os.rename(built, moved)
    os.rename(path, hidden)
    try:
        outputs, said = run_folder(moved, arguments, names)
    finally:
        os.rename(hidden, path)
    differs = next((f"output '{name}' differs from that of 'cleave run MODEL'" for name, a, b in zip(names, wanted, outputs)
                    if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes()), None)
    fed = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}  # default values of inputs
    fed |= {name: np.asarray(tensor) for name, (_, tensor) in inputs.items()}
    expected = dict(zip(names, test_directories.read_tensors(os.path.join(directory, "test_data_set_0"), "output")))
    yield "the results have the same bits as those of the model", differs
    yield "the NPU's executables are loaded, not compiled", check_origins(said, document)
    yield "the ONNX files of the partitions give the same results", check_partitions(moved, document, fed, expected, oracle.tolerance_of(model))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=70000)
    arguments = parser.parse_args()
    directories, _, passed_over = random_graphs.generate(oracle.build_folder("compile"), arguments.count, arguments.first)
    print(f"{len(directories)} graphs made, {len(passed_over)} seeds skipped because no oracle can be used")
    tally = oracle.Tally()
    for directory, found in oracle.each(lambda directory: list(check(directory)), directories):
        name = os.path.basename(directory)
        if isinstance(found, Exception):
            tally.add(name, f"{type(found).__name__}: {found}")
            continue
        for what, reason in found:
            tally.add(f"{name}, {what}", reason)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
