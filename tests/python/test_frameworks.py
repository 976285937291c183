"""Runs models on the devices of frameworks (ONNX Runtime and OpenVINO), alone and together with NPU and CPU.

    python tests/python/test_frameworks.py [NAME...] [--devices DEVICE]... [--random N]

The models are the light ones, the generated ones (NAME: only those whose name contains it), N random graphs, and one that has
an operator which only the framework supports. Also checks the errors if the file of the framework's library is missing or is
something else. Devices that are not available are skipped. CLEAVE_DATA is the folder that contains onnx-light/.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle
import light_to_tests  # from tools/, which oracle adds to the path
import models
import random_graphs
import test_directories

LIGHT_TOLERANCE = ["--rtol", "1e-3", "--atol", "1e-7"]


def site_packages():
    return os.path.join(oracle.ROOT, ".venv", "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")


class Framework:
    """A device of a framework, the environment variable with the path of the framework's library, and the library's folder in the
    tests' Python environment."""

    def __init__(self, device, variable, folder, has_all, foreign, may_fall_back=()):
        self.may_fall_back = may_fall_back  # texts of errors: if one of them occurs, it is right that a partition of a random graph falls back to another device
        self.device, self.variable, self.has_all, self.foreign = device, variable, has_all, foreign
        self.folder = os.path.join(site_packages(), folder)

    def lists(self):
        """Yields (list of devices, whether these devices together support all nodes of the models of this test)."""
        yield self.device, self.has_all
        yield f"npu,{self.device},cpu", True


# `has_all`: whether the device alone runs every model of this test. `foreign`: (domain, operator) that only this device supports.
FRAMEWORKS = [
    Framework("onnxruntime:CPU", "CLEAVE_ONNXRUNTIME", "onnxruntime/capi", True, ("com.microsoft", "QuickGelu")),
    Framework("openvino:CPU", "CLEAVE_OPENVINO", "openvino/libs", False, None,
              ("has no elements", "Default output not supported", "have the expected names")),
]


# --- models

def squeezenet_difference(device, path, data):
    """Compares the input of light_squeezenet's softmax on the device with that on the CPU. The logits are so large (9.5e9)
    that the softmax itself is as expected only if all channels are added up in one particular order. Returns None, or
    what is wrong."""
    last = next(node for node in onnx.load(path, load_external_data=False).graph.node if node.op_type == "Softmax")
    found = []
    for devices in (device, "cpu"):
        with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
            oracle.cleave("run", path, "--input", data, "--devices", devices, "--dump", last.input[0], "--output-dir", folder, "-q")
            found.append(np.load(os.path.join(folder, oracle.output_file_name(last.input[0]))))
    actual, expected = found
    worst = np.abs(actual - expected).max() / np.abs(expected).max()
    return None if worst <= 1e-3 else f"'{last.input[0]}' differs by {worst:.3g} of its largest magnitude, 1e-3 is allowed"


def check_light(framework, names, tally):
    source = os.path.join(oracle.DATA, "onnx-light")
    if not os.path.isdir(source):
        tally.skip("light models", f"no folder {source} (set CLEAVE_DATA to the folder that holds onnx-light)")
        return
    directories = light_to_tests.convert(source, oracle.build_folder("light"))
    directories = [d for d in directories if not names or any(name in os.path.basename(d) for name in names)]
    for devices, has_all in framework.lists() if directories else []:
        try:
            cases = oracle.cleave_test(directories, "--devices", devices, *LIGHT_TOLERANCE)
        except oracle.CleaveError as error:
            tally.add(f"light models on {devices}", str(error))
            continue
        for directory, case in zip(directories, cases):
            label = f"{os.path.basename(directory)} --devices {devices}"
            if case["status"] == "UNSUPPORTED" and not has_all:
                tally.skip(label, case.get("reason"))
            elif case["status"] == "FAIL" and os.path.basename(directory) == "light_squeezenet":
                path, data = os.path.join(directory, "model.onnx"), os.path.join(directory, "test_data_set_0", "input_0.pb")
                tally.add(f"{label}, before the softmax", squeezenet_difference(framework.device, path, data))
            else:
                tally.add(label, None if case["status"] == "PASS" else f"{case['status']}: {case.get('reason')}")
        print(f"light models, {devices}: {sum(case['status'] == 'PASS' for case in cases)} of {len(cases)} pass", flush=True)


def compare_run(path, model, input_arguments, expected, devices, *options):
    """Runs the model and compares its outputs. Returns None, or what is wrong. A fallback to another device is an error, too."""
    names, outputs = [value.name for value in model.graph.output], []
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        try:
            text = oracle.cleave("run", path, *input_arguments, "--output-dir", folder, "--json", "--devices", devices, *options)
            outputs = [np.load(os.path.join(folder, oracle.output_file_name(name))) for name in names]
        except (oracle.CleaveError, OSError) as error:
            return str(error)
    tolerance = oracle.tolerance_of(model)
    for name, e, a in zip(names, expected, outputs):
        if difference := oracle.compare(e, a, tolerance):
            return f"output '{name}': {difference}"
    if fallbacks := json.loads(text)["fallbacks"]:
        return f"a partition fell back to another device: {fallbacks[0]['error']}"
    return None


def check_generated(framework, name):
    """Runs a generated model on all lists of devices. Returns [(label, reason)]; a reason that begins with "-" means skipped."""
    folder = os.path.join(oracle.build_folder("frameworks"), name)
    os.makedirs(folder, exist_ok=True)
    model, inputs = models.make(name, seed=1)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    arguments, expected = oracle.save_inputs(folder, inputs), oracle.run_onnxruntime(model, inputs, optimize=False)
    found = []
    for devices, has_all in framework.lists():
        for option in ([], ["--device-option", f"{framework.device}:async=yes"]):
            reason = compare_run(path, model, arguments, expected, devices, "--strategy", "contiguous", *option)
            if reason is not None and "integers=narrow allows it" in reason:  # the model has 64-bit indices and masks, whose values fit in 32 bits
                option = option + ["--device-option", f"{framework.device}:integers=narrow"]
                reason = compare_run(path, model, arguments, expected, devices, "--strategy", "contiguous", *option)
            if reason is not None and "no device can run it" in reason and not has_all:
                reason = "-" + reason
            found.append((" ".join([name, "--devices", devices, *option]), reason))
    return found


def check_random(framework, directory):
    """Runs a random graph, first with as many nodes as possible on the framework's device, then with nodes pinned at random to
    this device and the CPU. Returns None, or what is wrong."""
    path = os.path.join(directory, "model.onnx")
    model, data = onnx.load(path), os.path.join(directory, "test_data_set_0")
    files = test_directories.numbered_files(data, "input")
    inputs = [text for value, file in zip(model.graph.input, files) for text in ("--input", f"{value.name}={file}")]
    expected = test_directories.read_tensors(data, "output")
    devices = f"{framework.device},npu,cpu"
    nodes = [node for node in oracle.plan_nodes(path, "--devices", devices, "--strategy", "contiguous") if node["cause"] != "const"]
    pins = os.path.join(directory, "framework.pins")
    lines = oracle.random_pins(nodes, random.Random(directory), (framework.device, "cpu"),
                               lambda node, device: device in ("cpu", node["device"]))
    with open(pins, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    for options in ([], ["--pins", pins]):
        reason = compare_run(path, model, inputs, expected, devices, "--strategy", "contiguous", *options)
        if reason and not any(text in reason for text in framework.may_fall_back):
            return f"{' '.join(options)}: {reason}"
    return None


# --- an operator that only the framework supports

def foreign_model(domain, operator):
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32) * 0.2
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node(operator, ["b"], ["c"], domain=domain, name="foreign"),
             helper.make_node("Mul", ["c", "c"], ["d"]), helper.make_node("GlobalAveragePool", ["d"], ["y"])]
    graph = helper.make_graph(nodes, "foreign", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 1, 1])], [numpy_helper.from_array(weight, "w")],
                              value_info=[helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 4, 8, 8])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)], ir_version=8)


def check_foreign(framework, tally):
    model = foreign_model(*framework.foreign)
    folder = oracle.build_folder("frameworks_foreign")
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)}
    arguments, expected = oracle.save_inputs(folder, inputs), oracle.run_onnxruntime(model, inputs)
    for devices in (framework.device, f"npu,{framework.device},cpu"):
        label = f"{'.'.join(framework.foreign)} --devices {devices}"
        tally.add(label, compare_run(path, model, arguments, expected, devices, "--strategy", "contiguous"))
        nodes = {node["name"]: node["device"] for node in oracle.plan_nodes(path, "--devices", devices, "--strategy", "contiguous")}
        tally.add(f"{label}: the operator is on the framework's device", None if nodes.get("foreign") == framework.device else f"it is on {nodes.get('foreign')}")
        others = [device for name, device in nodes.items() if name != "foreign"]
        alone = devices == framework.device or framework.device not in others
        tally.add(f"{label}: if there are other devices, the other nodes are on them", None if alone else f"they are on {sorted(set(others))}")
    refused = subprocess.run([oracle.COMMAND, "run", path, "--devices", "npu,cpu"], capture_output=True, text=True, check=False)
    named = refused.returncode != 0 and framework.foreign[1] in refused.stderr and refused.stderr.strip().count("\n") == 0
    tally.add(f"{'.'.join(framework.foreign)} --devices npu,cpu: rejected in one line that names the operator", None if named else refused.stderr)


# --- files that are not usable libraries

def check_libraries(framework, tally):
    """Checks the error for each kind of unusable library, and that a run without the framework's device still works."""
    model, inputs = models.make("lstm", seed=1)
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        garbage = os.path.join(folder, "garbage.so")
        with open(garbage, "wb") as file:
            file.write(random.Random(1).randbytes(4096))
        other = next((os.path.join(numpy_folder, name) for numpy_folder in [os.path.join(site_packages(), "numpy", "linalg")]
                      for name in sorted(os.listdir(numpy_folder)) if name.endswith(".so")), garbage)
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        arguments = oracle.save_inputs(folder, inputs)
        for what, said in (("missing", os.path.join(folder, "missing.so")), ("garbage", garbage), ("another library", other),
                           ("an empty folder", empty), ("no path", "libnothing.so")):
            environment = dict(os.environ, **{framework.variable: said})
            command = [oracle.COMMAND, "run", path, *arguments, "-q"]
            alone = subprocess.run([*command, "--devices", framework.device], capture_output=True, text=True, env=environment, check=False)
            lines = alone.stderr.strip().splitlines()
            good = alone.returncode == 1 and len(lines) == 1 and framework.device in lines[0]
            tally.add(f"{framework.device}, {what}: error in one line", None if good else f"exit status {alone.returncode}: {alone.stderr[:400]}")
            without = subprocess.run([*command, "--devices", "npu,cpu"], capture_output=True, text=True, env=environment, check=False)
            tally.add(f"{framework.device}, {what}: a run on other devices succeeds", None if without.returncode == 0 and not without.stderr else without.stderr[:400])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--devices", action="append", metavar="DEVICE")
    parser.add_argument("--random", type=int, default=40)
    arguments = parser.parse_args()
    tally = oracle.Tally()
    for framework in FRAMEWORKS:
        if arguments.devices and framework.device not in arguments.devices:
            continue
        os.environ.setdefault(framework.variable, framework.folder)
        if (absent := oracle.missing_device(framework.device)) is not None:
            tally.skip(framework.device, absent)
            continue
        check_light(framework, arguments.names, tally)
        names = [name for name in models.MODELS if not arguments.names or any(word in name for word in arguments.names)]
        for name, found in oracle.each(lambda name: check_generated(framework, name), names):
            if isinstance(found, Exception):
                tally.add(f"{name} on {framework.device}", f"{type(found).__name__}: {found}")
                continue
            for label, reason in found:
                if reason is not None and reason.startswith("-"):
                    tally.skip(label, reason[1:])
                else:
                    tally.add(label, reason)
        directories = [] if arguments.names else random_graphs.generate(oracle.build_folder("frameworks_random"), arguments.random, 700000)[0]
        for directory, reason in oracle.each(lambda directory: check_random(framework, directory), directories):
            tally.add(f"{os.path.basename(directory)} on {framework.device}", None if reason is None else str(reason))
        if framework.foreign and not arguments.names:
            check_foreign(framework, tally)
        if not arguments.names:
            check_libraries(framework, tally)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
