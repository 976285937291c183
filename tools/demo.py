"""`make demo`: splits a ResNet-50 with random weights between a virtual NPU and the CPU, runs it, checks the result, and draws the plan."""
import os
import subprocess
import sys
import tempfile

import numpy as np

import models
from graph_builder import save

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.path.join("build", "cleave")
MODEL = os.path.join("demo", "resnet50.onnx")
PICTURE = os.path.join("demo", "resnet50.svg")
# The virtual NPU could run all nodes. Pooling is forced to the CPU, because many real NPUs do not support it.
SPLIT = ["--devices", "npu,cpu", "--force", "MaxPool=cpu", "--force", "GlobalAveragePool=cpu"]
TOLERANCE = 1e-4  # largest allowed difference of a result in f32, relative to its largest magnitude


def cleave(*arguments):
    command = [COMMAND, *arguments]
    print("$ " + " ".join(command), flush=True)
    status = subprocess.run(command).returncode
    if status != 0:
        sys.exit(f"demo: '{' '.join(command)}' ended with status {status}")


def main():
    os.chdir(ROOT)
    os.makedirs("demo", exist_ok=True)
    model, inputs = models.make("resnet50", seed=0, full=True)
    save(model, MODEL)
    print(f"{MODEL}: ResNet-50, random weights, {os.path.getsize(MODEL) / 1e6:.0f} MB", flush=True)
    cleave("plan", MODEL, *SPLIT, "--svg", PICTURE)
    with tempfile.TemporaryDirectory(prefix="cleave-demo-") as folder:
        np.save(os.path.join(folder, "data.npy"), inputs["data"])
        data = ["--input", "data=" + os.path.join(folder, "data.npy")]
        split, alone = os.path.join(folder, "split"), os.path.join(folder, "alone")
        cleave("run", MODEL, *SPLIT, *data, "--output-dir", split)
        cleave("run", MODEL, "--devices", "cpu", *data, "--output-dir", alone)
        got, expected = np.load(os.path.join(split, "prob.npy")), np.load(os.path.join(alone, "prob.npy"))
    if got.shape != expected.shape:
        sys.exit(f"demo: the output has the shape {got.shape} on NPU and CPU, but {expected.shape} on the CPU alone")
    difference = float(np.abs(got - expected).max() / np.abs(expected).max())
    print("largest difference between the result on NPU and CPU and that on the CPU alone: "
          f"{difference:.1e} of the largest magnitude "
          f"({'within' if difference <= TOLERANCE else 'MORE THAN'} the allowed {TOLERANCE:g})")
    print(f"picture: {PICTURE}")
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
