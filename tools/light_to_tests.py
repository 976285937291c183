"""Turns the nine light ONNX models (flat files: light_X.onnx with light_X_output_0.pb) into ONNX test directories.

    python tools/light_to_tests.py FROM TO

The flat files are in the folder FROM. The input of each test, which has n elements, is arange(n) / n in f32.
"""
import glob
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def convert(source, target):
    """Writes a test directory target/NAME for every model in the folder `source`; returns the directories."""
    directories = []
    for path in sorted(glob.glob(os.path.join(source, "light_*.onnx"))):
        name = os.path.basename(path)[: -len(".onnx")]
        directory = os.path.join(target, name)
        data = os.path.join(directory, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        shutil.copyfile(path, os.path.join(directory, "model.onnx"))
        shutil.copyfile(path[: -len(".onnx")] + "_output_0.pb", os.path.join(data, "output_0.pb"))
        graph = onnx.load(path).graph
        initializers = {initializer.name for initializer in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initializers]
        if len(inputs) != 1:
            raise SystemExit(f"{path}: the model must have one input, but it has {len(inputs)}")
        shape = [dim.dim_value for dim in inputs[0].type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        values = (np.arange(count, dtype=np.float32) / np.float32(count)).reshape(shape)
        with open(os.path.join(data, "input_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(values, inputs[0].name).SerializeToString())
        directories.append(directory)
    return directories


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    made = convert(sys.argv[1], sys.argv[2])
    print(f"{len(made)} test directories in {sys.argv[2]}")
    sys.exit(0 if made else 1)
