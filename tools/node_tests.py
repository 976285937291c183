"""Writes ONNX's own operator tests (from the onnx package) as ONNX test directories, and a list of their properties.

    python tools/node_tests.py TO

Each test is written to TO/NAME/. TO/cases.json lists {name, operators, dtypes, rtol, atol} of all tests.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto

import test_directories


def operators_of(graph, found):
    """Adds the operators of a graph and its bodies to the set `found`, as DOMAIN.NAME, or NAME for the default domain."""
    for node in graph.node:
        domain = "" if node.domain in ("", "ai.onnx") else node.domain + "."
        found.add(domain + node.op_type)
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                operators_of(body, found)


def type_name(type_proto):
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return TensorProto.DataType.Name(type_proto.tensor_type.elem_type).lower()
    return kind[: -len("_type")]


def cast_targets(graph):
    """Yields the dtypes that Casts and constants produce: a test with float inputs and outputs may use other dtypes in
    between."""
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type in ("Cast", "ConstantOfShape", "Constant") and attribute.name in ("to", "value"):
                dtype = attribute.i if attribute.name == "to" else attribute.t.data_type
                if dtype:
                    yield TensorProto.DataType.Name(dtype).lower()
            if attribute.HasField("g"):
                yield from cast_targets(attribute.g)


def describe(case):
    found = set()
    operators_of(case.model.graph, found)
    for function in case.model.functions:
        operators_of(function, found)
    found -= {f"{f.domain}.{f.name}" if f.domain else f.name for f in case.model.functions}
    graph = case.model.graph
    values = list(graph.input) + list(graph.output) + list(graph.value_info)
    dtypes = {type_name(value.type) for value in values} | set(cast_targets(graph))
    dtypes |= {TensorProto.DataType.Name(t.data_type).lower() for t in graph.initializer}
    return {"name": case.name, "operators": sorted(found), "dtypes": sorted(dtypes), "rtol": case.rtol, "atol": case.atol}


def write_all(target):
    """Writes every test; returns the list for cases.json."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        cases = sorted(collect_testcases(), key=lambda case: case.name)
    described = []
    for case in cases:
        test_directories.write(os.path.join(target, case.name), case.model, case.data_sets)
        described.append(describe(case))
    with open(os.path.join(target, "cases.json"), "w", encoding="utf-8") as file:
        json.dump({"onnx": onnx.__version__, "cases": described}, file, indent=1)
    return described


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    written = write_all(sys.argv[1])
    print(f"{len(written)} test directories in {sys.argv[1]}, {len({o for c in written for o in c['operators']})} operators")
