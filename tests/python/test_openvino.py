"""Tests runs on OpenVINO that need special treatment: fixed shapes only, failed compilations, and wrong results.

    python tests/python/test_openvino.py

An NPU supports only fixed shapes. Partitions may fail to compile although each of their nodes is supported. The NPU is
simulated by openvino_npu.c, a library that is compiled here and wraps OpenVINO's. Models that OpenVINO computes correctly are
tested by test_frameworks.py. Skipped if OpenVINO is not installed. CLEAVE_DATA is the folder that contains onnx-light/.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle
import light_to_tests  # from tools/, which oracle adds to the path
import test_frameworks

DEVICE, VARIABLE = "openvino:CPU", "CLEAVE_OPENVINO"


def chain(batch, height=8):
    """Makes a chain of Conv, Relu, Sigmoid and GlobalAveragePool. The batch and the height may be symbolic dimensions. A batch
    can be padded to a fixed size, a height cannot."""
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32) * 0.3
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="first", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"], name="second"),
             helper.make_node("Sigmoid", ["b"], ["c"], name="third"), helper.make_node("GlobalAveragePool", ["c"], ["y"], name="fourth")]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, height, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 4, 1, 1])], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def build_npu(folder):
    """Compiles the simulated NPU's library. Returns (path, None), or (None, the reason) if that fails."""
    real = glob.glob(os.path.join(os.environ[VARIABLE], "libopenvino_c.so*"))
    if not real:
        return None, f"no libopenvino_c.so* in {os.environ[VARIABLE]}"
    library = os.path.join(folder, "libopenvino_c.so.0")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openvino_npu.c")
    done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, source, real[0],
                           f"-Wl,-rpath,{os.path.dirname(real[0])}", "-Wl,--no-as-needed"], capture_output=True, text=True, check=False)
    return (library, None) if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1])


class Runs:
    """A model that is run with different options and compared with ONNX Runtime."""

    def __init__(self, folder, model, name, shape=(2, 3, 8, 8)):
        self.path = os.path.join(folder, f"{name}.onnx")
        onnx.save(model, self.path)
        inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        self.arguments = oracle.save_inputs(os.path.join(folder, name), inputs)
        self.expected, self.tolerance = oracle.run_onnxruntime(model, inputs), oracle.tolerance_of(model)

    def run(self, environment, *options):
        """Runs the model. Returns (None or what is wrong, fallbacks, stderr)."""
        with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
            done = subprocess.run([oracle.COMMAND, "run", self.path, *self.arguments, "--output-dir", folder, "--json", *options],
                                  capture_output=True, text=True, env=dict(os.environ, **environment), check=False)
            if done.returncode != 0:
                return done.stderr.strip(), [], done.stderr
            wrong = oracle.compare(self.expected[0], np.load(os.path.join(folder, "y.npy")), self.tolerance)
            return wrong, json.loads(done.stdout)["fallbacks"], done.stderr

    def devices(self, environment, *options):
        """Returns {node: device} of the model's plan, or the error."""
        done = subprocess.run([oracle.COMMAND, "plan", self.path, "--json", *options], capture_output=True, text=True,
                              env=dict(os.environ, **environment), check=False)
        return {node["name"]: node["device"] for node in json.loads(done.stdout)["nodes"]} if done.returncode == 0 else done.stderr.strip()


def check_npu(folder, tally):
    library, problem = build_npu(folder)
    if library is None:
        tally.skip("an NPU", problem)
        return
    npu = {VARIABLE: library}
    fixed, open_sizes = Runs(folder, chain(2), "fixed"), Runs(folder, chain(2, "H"), "open")
    lists = ["--devices", "openvino:NPU,cpu", "--strategy", "contiguous"]
    wrong, fallbacks, _ = fixed.run(npu, *lists)
    tally.add("fixed shapes on an NPU", wrong or (f"fell back: {fallbacks}" if fallbacks else None))
    found = fixed.devices(npu, *lists)
    tally.add("fixed shapes: all nodes are on the NPU", None if set(found.values()) == {"openvino:NPU"} else found)

    wrong, fallbacks, _ = open_sizes.run(npu, *lists)
    tally.add("dynamic shapes on NPU and CPU", wrong or (f"fell back: {fallbacks}" if fallbacks else None))
    found = open_sizes.devices(npu, *lists)
    tally.add("dynamic shapes: the first and fourth node are not on the NPU", None if found.get("first") == found.get("fourth") == "cpu" else found)
    alone = open_sizes.devices(npu, "--devices", "openvino:NPU")
    tally.add("dynamic shapes on the NPU alone: rejected with the reason",
              None if isinstance(alone, str) and "'first' (Conv)" in alone and "openvino:NPU: " in alone and "\n" not in alone else alone)
    wrong, fallbacks, _ = Runs(folder, chain("N"), "batch").run(npu, *lists)
    tally.add("a dynamic batch, padded for an NPU", wrong or (f"fell back: {fallbacks}" if fallbacks else None))
    # with shapes=open the device is offered dynamic shapes, but every node fails to compile when planning tries it
    found = open_sizes.devices(npu, *lists, "--device-option", "openvino:NPU:shapes=open")
    tally.add("dynamic shapes with shapes=open: no node is on the NPU", None if set(found.values()) == {"cpu"} else found)

    # the library does not compile a model that contains the name in OPENVINO_NPU_REFUSES
    for what, refused in (("a node", "third"), ("a group", "fourth")):
        environment = dict(npu, OPENVINO_NPU_REFUSES=refused)
        found = fixed.devices(environment, *lists)
        tally.add(f"{what} that does not compile is placed elsewhere", None if found.get(refused) == "cpu" and found.get("first") == "openvino:NPU"
                  else found)
        wrong, fallbacks, text = fixed.run(environment, *lists)
        tally.add(f"{what} that does not compile: the run is right", wrong)


def check_claimed(folder, tally):
    """Tests stored verdicts that are out of date: when they were stored, the library could compile the node, so the plan places
    it on the NPU, but now compilation fails."""
    library, problem = build_npu(folder)
    if library is None:
        tally.skip("claimed and not compiled", problem)
        return
    runs = Runs(folder, chain(2), "claimed")
    lists = ["--devices", "openvino:NPU,cpu", "--strategy", "contiguous"]
    npu = {VARIABLE: library, "CLEAVE_CACHE_DIR": os.path.join(folder, "cache")}
    found = runs.devices(npu, *lists)
    tally.add("claimed: planned on the NPU", None if set(found.values()) == {"openvino:NPU"} else found)
    wrong, fallbacks, text = runs.run(dict(npu, OPENVINO_NPU_REFUSES="fourth"), *lists)
    tally.add("claimed and not compiled: the run is right", wrong)
    said = len(fallbacks) == 1 and "openvino:NPU" in fallbacks[0]["error"] and "compile" in fallbacks[0]["error"] and "\n" not in fallbacks[0]["error"]
    tally.add("claimed and not compiled: one reason, on one line", None if said else f"{fallbacks} {text}")
    tally.add("claimed and not compiled: --no-fallback fails", None if runs.run(dict(npu, OPENVINO_NPU_REFUSES="fourth"), *lists, "--no-fallback")[0]
              else "the run succeeded")


def check_wrong_results(tally):
    """Runs light_squeezenet, whose softmax depends on the order in which channels are added up. If OpenVINO's result differs from
    the expected one, --verify must name the value."""
    source = os.path.join(oracle.DATA, "onnx-light")
    if not os.path.isdir(source):
        tally.skip("light_squeezenet", f"no folder {source} (set CLEAVE_DATA to the folder that holds onnx-light)")
        return
    directory = next(d for d in light_to_tests.convert(source, oracle.build_folder("light")) if d.endswith("light_squeezenet"))
    path, data = os.path.join(directory, "model.onnx"), os.path.join(directory, "test_data_set_0", "input_0.pb")
    case = oracle.cleave_test([directory], "--devices", DEVICE, *test_frameworks.LIGHT_TOLERANCE)[0]
    done = subprocess.run([oracle.COMMAND, "run", path, "--input", data, "--devices", DEVICE, "--verify"], capture_output=True, text=True,
                          check=False)
    text = done.stdout + done.stderr
    if case["status"] == "PASS":
        tally.add("light_squeezenet is right: --verify succeeds", None if done.returncode == 0 else text)
        return
    print(f"light_squeezenet on {DEVICE}: {case['reason']}")
    named = re.search(r"partition \d+ on openvino:CPU: value 'softmaxout_1' \[[\d,]+\] is [-\d.e+]+, expected ", text)
    tally.add("light_squeezenet is wrong: --verify names partition, value and element", None if named and done.returncode == 1 else text)
    tally.add("light_squeezenet before the softmax", test_frameworks.squeezenet_difference(DEVICE, path, data))


def main():
    tally = oracle.Tally()
    os.environ.setdefault(VARIABLE, os.path.join(test_frameworks.site_packages(), "openvino", "libs"))
    if (absent := oracle.missing_device(DEVICE)) is not None:
        tally.skip(DEVICE, absent)
        return tally.finish()
    os.environ["CLEAVE_CACHE_DIR"] = ""  # no cache, because the verdicts that one test stores would affect the next
    folder = oracle.build_folder("openvino")
    with tempfile.TemporaryDirectory(prefix="cleave-", dir=folder) as own:
        check_npu(own, tally)
    with tempfile.TemporaryDirectory(prefix="cleave-", dir=folder) as own:
        check_claimed(own, tally)
    check_wrong_results(tally)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
