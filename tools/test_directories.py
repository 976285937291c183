"""Reads and writes ONNX test directories: model.onnx, and folders test_data_set_N with input_K.pb and output_K.pb."""
import os
import re
import shutil

import numpy as np
import onnx
from onnx import numpy_helper


def numbered_files(folder, kind):
    """Returns the paths of KIND_0.pb, KIND_1.pb, ... in numeric order; `kind` is input or output."""
    found = (re.fullmatch(kind + r"_(\d+)\.pb", name) for name in os.listdir(folder))
    return [os.path.join(folder, match.group()) for match in sorted((m for m in found if m), key=lambda m: int(m.group(1)))]


def serialize(value, type_proto, name):
    """Returns the bytes of a value's file. `type_proto` says whether the value is a tensor, a sequence, an optional or a map."""
    kind = type_proto.WhichOneof("value") if type_proto else "tensor_type"
    if isinstance(value, (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto, onnx.MapProto, onnx.SparseTensorProto)):
        return value.SerializeToString()
    if kind == "sequence_type":
        return numpy_helper.from_list(value, name).SerializeToString()
    if kind == "optional_type":
        return numpy_helper.from_optional(value, name).SerializeToString()
    if kind == "map_type":
        return numpy_helper.from_dict(value, name).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


def write(folder, model, data_sets):
    """Writes a test directory; each data set is (inputs, outputs), in the order of the graph's inputs and outputs."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model if isinstance(model, bytes) else model.SerializeToString())
    graph = onnx.load_from_string(model).graph if isinstance(model, bytes) else model.graph
    for number, (inputs, outputs) in enumerate(data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.mkdir(data)
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for index, value in enumerate(values):
                info = infos[index] if index < len(infos) else None
                with open(os.path.join(data, f"{kind}_{index}.pb"), "wb") as file:
                    file.write(serialize(value, info.type if info else None, info.name if info else ""))


def read_tensors(data_set, kind):
    """Returns the arrays of a data set's inputs or outputs, which must be tensors."""
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in numbered_files(data_set, kind)]
