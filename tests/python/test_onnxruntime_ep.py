"""Tests the execution provider for ONNX Runtime (integrations/onnxruntime): ONNX Runtime with it must give the results of ONNX
Runtime alone.

    python tests/python/test_onnxruntime_ep.py [--quick] [PART...]

PART: only parts whose name contains this text; the functions of PARTS are the parts. --quick: a tenth of the operator tests.
The library is libcleave_onnxruntime_ep.so in the build folder. Skipped with an ONNX Runtime before 1.24.
"""
import argparse
import concurrent.futures
import contextlib
import ctypes
import glob
import io
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import oracle
import models  # from tools/, which oracle adds to the path
import random_graphs
import test_directories

NAME = "CleaveExecutionProvider"
LIBRARY = os.path.join(oracle.BUILD, "libcleave_onnxruntime_ep.so")
F32, I64 = TensorProto.FLOAT, TensorProto.INT64
LEVEL = onnxruntime.GraphOptimizationLevel
devices = []


def register():
    """Registers the library, once per process."""
    if devices:
        return
    os.environ["CLEAVE_CACHE_DIR"] = ""
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.register_execution_provider_library("cleave", LIBRARY)
    devices.extend(device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME)


def session(model, provider=True, level=None, **options):
    """A session of ONNX Runtime. `options`: provider options; ':' in a key is written as '__'."""
    register()
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    if level is not None:
        settings.graph_optimization_level = level
    model = model if isinstance(model, str) else model.SerializeToString()
    if not provider:
        return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"], enable_fallback=0)
    settings.add_provider_for_devices(devices, {"threads": "1"} | {key.replace("__", ":"): str(value) for key, value in options.items()})
    return onnxruntime.InferenceSession(model, settings, enable_fallback=0)


class Report:
    """What the provider wrote with the option `report`, while `with Report() as r: session(..., report=r.path)` made a session."""

    def __enter__(self):
        self.path = tempfile.mktemp(prefix="cleave-ep-", dir=oracle.MEMORY)
        return self

    def __exit__(self, *_):
        with open(self.path, encoding="utf-8") as file:
            self.graphs = [json.loads(line) for line in file]
        os.remove(self.path)

    def groups(self):
        """The number of groups of the main graph, which comes last."""
        return len({node["group"] for node in self.graphs[-1]["nodes"]} - {None})

    def refused(self):
        """The nodes of all graphs that the provider asked about and did not take."""
        return [node for graph in self.graphs if not graph["left_alone"] for node in graph["nodes"] if node["group"] is None]


def value(name, dtype, dims):
    return helper.make_tensor_value_info(name, dtype, dims)


def model_of(nodes, inputs, outputs, weights=(), opset=17, domains=("com.microsoft",)):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [numpy_helper.from_array(array, name) for name, array in weights])
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def difference(model, inputs, tolerance=1e-4, runs=2, **options):
    """None if ONNX Runtime computes the same with the provider and without it."""
    expected = session(model, provider=False).run(None, inputs)
    with_provider = session(model, **options)
    for _ in range(runs):
        reason = oracle.first_difference(expected, with_provider.run(None, inputs), tolerance)
        if reason is not None:
            return reason
    return None


def error_of(call):
    """The text of the exception that the call raises. Fails if there is none."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            call()
    except Exception as error:
        return str(error)
    return "no error"


def expect(text, *parts):
    """None if the text contains all parts."""
    missing = [part for part in parts if part not in text]
    return None if not missing else f"'{text}' does not contain {missing}"


# ---- Parts

def registration(tally, _):
    register()
    tally.add("one device is listed", None if len(devices) == 1 else f"{len(devices)} devices: {devices}")
    device = devices[0]
    tally.add("its vendor", None if device.ep_vendor == "Cleave" else device.ep_vendor)
    tally.add("its hardware", None if device.device.type == onnxruntime.OrtHardwareDeviceType.CPU else str(device.device.type))
    version = device.ep_metadata.get("version", "")
    tally.add("its version", None if version == "0.1.0" else f"{device.ep_metadata}")
    onnxruntime.register_execution_provider_library("again", LIBRARY)
    onnxruntime.unregister_execution_provider_library("again")
    tally.add("registered a second time", difference(model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", F32, [3])], [value("y", F32, [3])]),
                                                     {"x": np.arange(3, dtype=np.float32) - 1}))
    tally.add("an older ONNX Runtime is refused", old_version())


def old_version():
    """Passes the library an ONNX Runtime that says that it is version 1.23.2."""
    created = []
    create_status = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    status = create_status(lambda code, message: created.append(message.decode()) or 4711)
    table = (ctypes.c_void_p * 3)(ctypes.cast(status, ctypes.c_void_p), None, None)
    get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda version: ctypes.addressof(table) if version == 1 else None)
    text = ctypes.create_string_buffer(b"1.23.2")
    get_version = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(text))
    base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p), ctypes.cast(get_version, ctypes.c_void_p))
    create = ctypes.CDLL(LIBRARY).CreateEpFactories
    create.restype = ctypes.c_void_p
    factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(9)
    result = create(b"cleave", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count))
    if result != 4711 or count.value != 0:
        return f"the result is {result}, with {count.value} factories"
    return expect(created[0], "1.23.2", "needs version 1.24 or later")


def fnv(data):
    number = 14695981039346656037
    for byte in data:
        number = (number ^ byte) * 1099511628211 % 2**64
    return f"{number:016x}"


def tensor_entry(tensor):
    if tensor.data_type == TensorProto.STRING:
        data = b"".join(tensor.string_data)
    else:
        array = numpy_helper.to_array(tensor)
        data = tensor.raw_data if tensor.HasField("raw_data") else array.tobytes()
    return {"dims": list(tensor.dims), "bytes": len(data), "hash": fnv(data)}


def attribute_entry(attribute):
    kind = attribute.type
    read = lambda text: text.decode("utf-8")
    single = lambda number: float(np.float32(number))
    return {onnx.AttributeProto.INT: lambda: attribute.i, onnx.AttributeProto.INTS: lambda: list(attribute.ints),
            onnx.AttributeProto.FLOAT: lambda: single(attribute.f), onnx.AttributeProto.FLOATS: lambda: list(map(single, attribute.floats)),
            onnx.AttributeProto.STRING: lambda: read(attribute.s), onnx.AttributeProto.STRINGS: lambda: list(map(read, attribute.strings)),
            onnx.AttributeProto.TENSOR: lambda: tensor_entry(attribute.t)}[kind]()


def read_back(given, found):
    """A reported attribute, in the form of attribute_entry(): floats are written as hexadecimal texts."""
    if isinstance(given, float):
        return float.fromhex(found)
    if isinstance(given, list) and given and isinstance(given[0], float):
        return list(map(float.fromhex, found))
    return {key: found[key] for key in given} if isinstance(given, dict) else found


def dims_of(info):
    if not info.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_param or (d.dim_value if d.HasField("dim_value") else None) for d in info.type.tensor_type.shape.dim]


def outer_names(node):
    """The names of outer values that the bodies of a node read."""
    outer = set()
    for graph in (attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH):
        inner = {name for node in graph.node for name in node.output} | {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
        read = {name for node in graph.node for name in [*node.input, *outer_names(node)] if name}
        outer |= read - inner
    return outer


def node_reason(given, found):
    captured = set(found["captures"])
    for what, expected, actual in [("name", given.name, found["name"]), ("op", given.op_type, found["op"]), ("domain", given.domain, found["domain"]),
                                   ("inputs", list(given.input), found["inputs"]), ("outputs", list(given.output), found["outputs"])]:
        if expected != actual:
            return f"node '{given.name}': {what} {actual}, expected {expected}"
    bodies = sorted(a.name for a in given.attribute if a.type == onnx.AttributeProto.GRAPH)
    if bodies != sorted(found["bodies"]):
        return f"node '{given.name}': bodies {found['bodies']}, expected {bodies}"
    outer = outer_names(given)
    for attribute in given.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            continue
        expected = attribute_entry(attribute)
        actual = read_back(expected, found["attributes"][attribute.name])
        if expected != actual:
            return f"node '{given.name}': attribute {attribute.name} is {actual}, expected {expected}"
    since = onnx.defs.get_schema(given.op_type, found["opset"], given.domain).since_version if not given.domain else found["since"]
    if since != found["since"]:
        return f"node '{given.name}': since {found['since']}, expected {since}"
    return None if outer == captured else f"node '{given.name}': captures {captured}, expected {outer}"


def graph_reason(model, graph, found):
    """Compares what the provider read of a graph with the onnx package's view of it."""
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if {domain: found["opsets"].get(domain) for domain in opsets} != opsets:
        return f"opsets {found['opsets']}, expected {opsets}"
    if found["ir_version"] != model.ir_version or found["graph"] != graph.name:
        return f"IR version {found['ir_version']}, graph '{found['graph']}'; expected {model.ir_version}, '{graph.name}'"
    for key, infos in ("inputs", graph.input), ("outputs", graph.output):
        if [info.name for info in infos] != [entry["name"] for entry in found[key]]:
            return f"{key} {found[key]}, expected {[info.name for info in infos]}"
        for info, entry in zip(infos, found[key]):
            if dims_of(info) not in (None, entry["dims"]):  # without a declared shape, ONNX Runtime infers one
                return f"'{info.name}': dims {entry['dims']}, expected {dims_of(info)}"
            uses = sum(list(node.input).count(info.name) or info.name in outer_names(node) for node in graph.node)
            outputs = [output.name for output in graph.output]
            if entry["is_output"] != (info.name in outputs) or (key == "inputs" and entry["consumers"] != uses):
                return f"'{info.name}': {entry}, expected {uses} consumers"
    weights = {tensor.name: tensor for tensor in graph.initializer}
    if sorted(weights) != sorted(entry["name"] for entry in found["initializers"]):
        return f"initializers {found['initializers']}, expected {sorted(weights)}"
    for entry in found["initializers"]:
        tensor = weights[entry["name"]]
        expected = tensor_entry(tensor)
        if expected != {key: entry[key] for key in expected}:
            return f"initializer {entry}, expected {expected}"
    if len(graph.node) != len(found["nodes"]):
        return f"{len(found['nodes'])} nodes, expected {len(graph.node)}"
    by_output = {node["outputs"][0]: node for node in found["nodes"]}
    reasons = (node_reason(node, by_output[node.output[0]] | {"opset": opsets[""]}) for node in graph.node)
    return next((reason for reason in reasons if reason), None)


def attributes_model():
    """Attributes of all kinds, and values of several types."""
    tensor = numpy_helper.from_array(np.array([7], np.int64), "v")
    nodes = [helper.make_node("LeakyRelu", ["x"], ["a"], name="float", alpha=0.1), helper.make_node("Cast", ["a"], ["b"], name="int", to=F32),
             helper.make_node("Transpose", ["b"], ["c"], name="ints", perm=[1, 0]),
             helper.make_node("Conv", ["image", "w"], ["d"], name="string", auto_pad="SAME_UPPER", strides=[1, 1]),
             helper.make_node("ConstantOfShape", ["size"], ["e"], name="tensor", value=tensor),
             helper.make_node("LSTM", ["seq", "lw", "lr"], ["", "f"], name="lists", hidden_size=2, activations=["Sigmoid", "Tanh", "Tanh"], clip=2.5)]
    weights = [("w", np.ones((2, 2, 3, 3), np.float32)), ("lw", np.ones((1, 8, 3), np.float32)), ("lr", np.ones((1, 8, 2), np.float32)),
               ("unused_half", np.ones(3, np.float16))]
    return model_of(nodes, [value("x", F32, ["M", "N"]), value("image", F32, [1, 2, None, 5]), value("size", I64, [2]), value("seq", F32, [4, 1, 3])],
                    [value("c", F32, ["N", "M"]), value("d", F32, None), value("e", I64, [None, None]), value("f", F32, [1, 1, 2])], weights[:3])


def bodies_model(inner="Tanh", domain=""):
    """y = flag ? loop : x * w, where the Loop is inside the If, reads values of both outer graphs, and has `inner` in its body."""
    loop_body = helper.make_graph([helper.make_node("Add", ["s", "w"], ["t"], name="add"), helper.make_node(inner, ["t"], ["u"], name="inner", domain=domain),
                                   helper.make_node("Mul", ["u", "x"], ["s_out"], name="mul"), helper.make_node("Identity", ["go"], ["go_out"], name="go")],
                                  "loop_body", [value("i", I64, []), value("go", TensorProto.BOOL, []), value("s", F32, [4])],
                                  [value("go_out", TensorProto.BOOL, []), value("s_out", F32, [4])])
    then = helper.make_graph([helper.make_node("Loop", ["count", "", "start"], ["loop"], name="loop", body=loop_body)], "then", [], [value("loop", F32, [4])],
                             [numpy_helper.from_array(np.full(4, 0.5, np.float32), "start")])
    other = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["product"], name="product")], "else", [], [value("product", F32, [4])])
    return model_of([helper.make_node("If", ["flag"], ["y"], name="if", then_branch=then, else_branch=other)],
                    [value("flag", TensorProto.BOOL, []), value("count", I64, []), value("x", F32, [4])], [value("y", F32, [4])],
                    [("w", np.arange(4, dtype=np.float32))])


def graphs_of(graph):
    """The graph and the graphs in it, the innermost first, as ONNX Runtime asks about them."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)
    yield graph


def accessors(tally, _):
    cases = {name: models.make(name)[0] for name in ("mobilenet", "bert", "lstm", "branchy")}
    cases |= {"attributes": attributes_model(), "bodies": bodies_model()}
    for name, model in cases.items():
        with Report() as report:
            session(model, level=LEVEL.ORT_DISABLE_ALL, report=report.path)
        expected = {graph.name: graph for graph in graphs_of(model.graph)}
        reason = None if [graph["graph"] for graph in report.graphs][-1] == model.graph.name else "the main graph is not the last one"
        reason = reason or (None if {g["graph"] for g in report.graphs} == set(expected) else f"graphs {[g['graph'] for g in report.graphs]}")
        for found in report.graphs:
            reason = reason or graph_reason(model, expected[found["graph"]], found)
        tally.add(f"read as the onnx package reads it: {name}", reason)


def to_values(items, infos):
    return {info.name: item for info, item in zip(infos, items)}


def is_close(expected, actual, rtol=1e-3, atol=1e-5):
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(is_close, expected, actual))
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return False
    try:
        return bool(np.allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True))
    except (TypeError, ValueError):
        return expected.tolist() == actual.tolist()


def attempt(make, inputs, expected):
    """'right', 'wrong', or the error."""
    try:
        outputs = make().run(None, inputs)
    except Exception as error:
        return str(error)[:300]
    return "right" if len(outputs) == len(expected) and all(map(is_close, expected, outputs)) else "wrong"


def operator_chunk(share, shares, step):
    """Runs a share of the operator tests. Returns [(name, result of ONNX Runtime alone, with the provider, nodes refused)]."""
    import warnings
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases
    with np.errstate(all="ignore"):
        cases = sorted(collect_testcases(), key=lambda case: case.name)[::step]
    results = []
    for case in cases[share::shares]:
        inputs, expected = case.data_sets[0]
        inputs = to_values(inputs, case.model.graph.input)
        alone = attempt(lambda: session(case.model, provider=False), inputs, expected)
        path = tempfile.mktemp(prefix="cleave-ep-", dir=oracle.MEMORY)
        beside = attempt(lambda: session(case.model, report=path), inputs, expected)
        refused = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                graphs = [json.loads(line) for line in file]
            os.remove(path)
            refused = sum(node["group"] is None for graph in graphs if not graph["left_alone"] for node in graph["nodes"])
        results.append((case.name, alone, beside, refused))
    return results


def operators(tally, arguments):
    step = 10 if arguments.quick else 1
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = [row for rows in pool.map(operator_chunk, range(4), [4] * 4, [step] * 4) for row in rows]
    for name, alone, beside, _ in results:
        if alone == "right":
            tally.add(name, None if beside == "right" else f"with the provider: {beside}")
    asked = [refused for _, _, _, refused in results if refused is not None]  # ONNX Runtime does not load the other models
    taken = asked.count(0)
    more = sum(beside == "right" and alone != "right" for _, alone, beside, _ in results)
    print(f"{len(results)} operator tests; ONNX Runtime loads {len(asked)}, of which the provider takes {taken} whole; {more} are right only with it")
    tally.add("most operator tests are taken whole", None if taken > 0.9 * len(asked) else f"{taken} of {len(asked)}")


def whole_models(tally, _):
    for name in models.MODELS | models.QUANTISED:
        model, inputs = models.make(name)
        with Report() as report:
            session(model, report=report.path)
        tally.add(f"{name} is one group", None if report.groups() == 1 and not report.refused() else f"{report.groups()} groups; not taken: {report.refused()[:2]}")
        tally.add(name, difference(model, inputs, oracle.tolerance_of(model)))
    for name in "resnet50", "bert", "unet":
        model, inputs = models.make(name, seed=1)
        tally.add(f"{name} on npu,cpu", difference(model, inputs, devices="npu,cpu", strategy="contiguous", npu__guard=1))


def shapes(tally, _):
    model, _ = models.make("bert")
    alone, beside = session(model, provider=False), session(model)
    rng = np.random.default_rng(3)
    for batch, length in (1, 7), (2, 16), (1, 7), (3, 1), (4, 33), (2, 16):
        inputs = {"input_ids": rng.integers(0, 100, (batch, length)), "attention_mask": np.ones((batch, length), np.int64)}
        tally.add(f"bert, {batch} x {length}", oracle.first_difference(alone.run(None, inputs), beside.run(None, inputs)))
    nonzero = model_of([helper.make_node("NonZero", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["y"], ["s"])],
                       [value("x", F32, ["N"])], [value("y", I64, [1, "k"]), value("r", F32, ["N"]), value("s", I64, [2])])
    for numbers in [0, 1, -2], [1, 1, 1], [0, 0], [], [5]:
        tally.add(f"an output whose size depends on data: {numbers}", difference(nonzero, {"x": np.array(numbers, np.float32)}))
    lying = model_of([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], [value("x", F32, ["N"])], [value("y", F32, ["N"])])
    tally.add("an output of another size than declared", difference(lying, {"x": np.ones(3, np.float32)}))
    inner = model_of([helper.make_node("Concat", ["x", "x"], ["c"], axis=0), helper.make_node("Relu", ["c"], ["y"])], [value("x", F32, ["N"])], [value("y", F32, ["M"])])
    inner.graph.value_info.append(value("c", F32, [17]))
    tally.add("an inner value of another size than declared", difference(inner, {"x": np.ones(3, np.float32)}))
    nameless = model_of([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["z"], ["w"])], [value("x", F32, ["?"]), value("z", F32, ["?"])],
                        [value("y", F32, ["?"]), value("w", F32, ["?"])])
    tally.add("the name '?' of two different sizes", difference(nameless, {"x": np.ones(3, np.float32), "z": np.ones(4, np.float32)}))
    scalar = model_of([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [value("x", F32, ["N"])], [value("y", F32, [])])
    tally.add("a scalar", difference(scalar, {"x": np.ones(3, np.float32)}))
    through = model_of([helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Shape", ["w"], ["z"])], [value("x", F32, ["N"])],
                       [value("y", F32, ["N"]), value("z", I64, [2])], [("w", np.ones((2, 3), np.float32))])
    tally.add("an output that is an input, and one that is constant", difference(through, {"x": np.ones(3, np.float32)}))
    wrong = error_of(lambda: session(model_of([helper.make_node("MatMul", ["x", "z"], ["y"], name="product")], [value("x", F32, ["A", "B"]), value("z", F32, ["C", "D"])],
                                              [value("y", F32, ["E", "F"])])).run(None, {"x": np.ones((2, 3), np.float32), "z": np.ones((4, 5), np.float32)}))
    tally.add("sizes that do not fit name the node", expect(wrong, "product", "MatMul"))


def bodies(tally, _):
    inputs = [{"flag": np.array(flag), "count": np.array(count), "x": np.array([1, -2, 0.5, 0], np.float32)} for flag in (True, False) for count in (0, 3)]
    for label, inner, domain, groups in (("whole", "Tanh", "", 1), ("with a node of ONNX Runtime's", "Gelu", "com.microsoft", None)):
        model = bodies_model(inner, domain)
        with Report() as report:
            session(model, report=report.path)
        if groups:
            tally.add(f"bodies {label}: the If is taken", None if not report.refused() else str(report.refused()[0]))
        else:
            body = next(graph for graph in report.graphs if graph["graph"] == "loop_body")
            taken = [node["op"] for node in body["nodes"] if node["group"] is not None]
            tally.add(f"bodies {label}: the Loop's other nodes are taken", None if taken == ["Add", "Mul", "Identity"] or sorted(taken) == ["Add", "Identity", "Mul"] else str(taken))
        for given in inputs:
            tally.add(f"bodies {label}: {given['flag']}, {given['count']}", difference(model, given))


def random_mixed(rng):
    """A random graph of f32[4] in which some nodes are com.microsoft.Gelu, which only ONNX Runtime has."""
    values, nodes = ["x", "z", "w"], []
    for k in range(int(rng.integers(4, 30))):
        op, count = [("Relu", 1), ("Add", 2), ("Mul", 2), ("Tanh", 1), ("Gelu", 1)][rng.integers(5)]
        nodes.append(helper.make_node(op, [str(rng.choice(values[-8:])) for _ in range(count)], [f"v{k}"], name=f"n{k}", domain="com.microsoft" if op == "Gelu" else ""))
        values.append(f"v{k}")
    read = {name for node in nodes for name in node.input}
    outputs = [value(node.output[0], F32, [4]) for node in nodes if node.output[0] not in read or rng.random() < 0.1]
    return model_of(nodes, [value("x", F32, [4]), value("z", F32, [4])], outputs, [("w", rng.standard_normal(4).astype(np.float32))])


def least_groups(model):
    """The least possible number of groups in a row: the most, over all paths, of stretches without a Gelu."""
    level, top = {}, -1
    for node in model.graph.node:
        own = max((level.get(name, 0) for name in node.input), default=0)
        is_ours = node.op_type != "Gelu"
        own += own % 2 == (1 if is_ours else 0)
        level[node.output[0]] = own
        top = max(top, own // 2 if is_ours else -1)
    return len({own // 2 for name, own in level.items() if own % 2 == 0})


def groups(tally, arguments):
    rng = np.random.default_rng(7)
    for k in range(20 if arguments.quick else 150):
        model = random_mixed(rng)
        inputs = {name: rng.standard_normal(4).astype(np.float32) for name in ("x", "z")}
        with Report() as report:
            session(model, level=LEVEL.ORT_DISABLE_ALL, report=report.path)
        refused = {node["op"] for node in report.refused()}
        reason = None if refused <= {"Gelu"} and report.groups() == least_groups(model) else f"{report.groups()} groups, expected {least_groups(model)}; not taken: {refused}"
        tally.add(f"random graph {k}", reason or difference(model, inputs, devices="npu,cpu" if k % 2 else "cpu"))


def random_models(tally, arguments):
    """The random graphs of test_random_graphs.py, without ONNX Runtime's optimiser, which aborts on some of them."""
    folder = oracle.build_folder("onnxruntime_ep_random")
    directories, _, _ = random_graphs.generate(folder, 10 if arguments.quick else 60, 5000)
    ran = 0
    for directory in directories:
        model = oracle.without_names(onnx.load(os.path.join(directory, "model.onnx")))
        inputs, expected = (test_directories.read_tensors(os.path.join(directory, "test_data_set_0"), kind) for kind in ("input", "output"))
        inputs = to_values(inputs, model.graph.input)
        try:
            session(model, provider=False, level=LEVEL.ORT_DISABLE_ALL).run(None, inputs)
        except Exception:  # it has no kernels for some types
            continue
        ran += 1
        for given in "cpu", "npu,cpu", "npu":
            with_provider = session(model, level=LEVEL.ORT_DISABLE_ALL, devices=given, strategy="contiguous")
            reason = oracle.first_difference(expected, with_provider.run(None, inputs), oracle.tolerance_of(model))
            tally.add(f"{os.path.basename(directory)} on {given}", reason)
    tally.add("ONNX Runtime runs most random graphs", None if ran > len(directories) // 2 else f"{ran} of {len(directories)}")


def spec_file(folder, operators):
    path = os.path.join(folder, "npu.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"operators": {name: {} for name in operators}}, file)
    return path


def options(tally, _):
    folder = oracle.build_folder("onnxruntime_ep")
    model, inputs = models.make("resnet50")
    small = spec_file(folder, ["Conv", "Relu", "BatchNormalization"])
    with Report() as report:
        session(model, devices="npu", npu_spec=small, report=report.path)
    left = {node["op"] for node in report.refused()}
    tally.add("npu_spec: other operators stay with ONNX Runtime", None if "Add" in left and not left & {"Conv", "Relu"} else str(left))
    reasons = {node["reason"] for node in report.refused()}
    tally.add("the report says why", None if all(reason.startswith("npu: ") for reason in reasons) else str(reasons))
    tally.add("results with these", difference(model, inputs, devices="npu", npu_spec=small))
    for label, given in [("two NPUs", {"devices": "npu,npu1,cpu", "npu_spec": small, "npu_spec1": "all"}), ("NPU and CPU", {"devices": "npu,cpu", "npu_spec": "default"}),
                         ("strategy", {"devices": "npu,cpu", "strategy": "propagate", "split": "convex"}), ("objective", {"devices": "npu,cpu", "objective": "throughput"}),
                         ("force", {"devices": "npu,cpu", "force": "MaxPool=cpu;Gemm=cpu"}), ("pin", {"devices": "npu,cpu", "pin": "node_relu_1*=cpu"}),
                         ("threads", {"threads": 2}), ("capture", {"devices": "npu,cpu", "capture": "on", "capture_cache": 2, "capture_prefill": "on"}),
                         ("no capture", {"devices": "npu,cpu", "capture": "off"}), ("deterministic", {"deterministic": "yes"}), ("in_flight", {"in_flight": 4}),
                         ("prepared_shapes", {"prepared_shapes": 2}), ("device option", {"cpu__fuse": "off"}), ("bucket", {"bucket": 8})]:
        tally.add(label, difference(model, inputs, runs=3, **given))
    cache = os.path.join(folder, "cache")
    shutil.rmtree(cache, ignore_errors=True)
    tally.add("cache_dir", difference(model, inputs, devices="npu,cpu", strategy="contiguous", cache_dir=cache))
    tally.add("the cache has executables", None if glob.glob(os.path.join(cache, "**", "*"), recursive=True) else "it is empty")
    profile = os.path.join(folder, "costs.json")
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    oracle.cleave("profile", path, "--devices", "npu,cpu", "-o", profile, "--max-seconds", "2", check=False)
    if os.path.exists(profile):
        tally.add("profile", difference(model, inputs, devices="npu,cpu", profile=profile))
    tally.add("precision", difference(model, inputs, tolerance=0.05, precision="bf16"))


def errors(tally, _):
    relu = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", F32, [3])], [value("y", F32, [3])])
    for given, *parts in [({"devces": "cpu"}, "'devces' is unknown", "devices, npu_spec"), ({"threads": "x"}, "'threads': 'x' is not a whole number"),
                          ({"devices": "cpu,nope"}, "device 'nope' is unknown"), ({"strategy": "best"}, "strategy 'best' is unknown"), ({"tune": "maybe"}, "'tune': 'maybe'"),
                          ({"pin": "x"}, "'pin': 'x' is not a list"), ({"cpu__x": "1"}, "option 'x' is unknown"), ({"profile": "/nowhere.json"}, "/nowhere.json"),
                          ({"capture": "often"}, "off, on, auto"), ({"precision": "f8"}, "f32, bf16"), ({"device_time_limit": "-1"}, "a number of seconds"),
                          ({"report": "/nowhere/report.json"}, "/nowhere/report.json"), ({"devices": "npu", "npu_spec": "/nowhere.json"}, "/nowhere.json")]:
        tally.add(f"error: {given}", expect(error_of(lambda: session(relu, **given)), *parts))
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_provider_for_devices(devices, {})
    text = error_of(lambda: onnxruntime.InferenceSession(relu.SerializeToString(), settings, enable_fallback=0))
    tally.add("error: EPContext models", expect(text, "ep.context_enable", "cleave compile"))
    reshape = model_of([helper.make_node("Reshape", ["x", "s"], ["y"], name="form")], [value("x", F32, ["N"]), value("s", I64, [2])], [value("y", F32, ["a", "b"])])
    kept = session(reshape)
    text = error_of(lambda: kept.run(None, {"x": np.ones(6, np.float32), "s": np.array([4, 3])}))
    tally.add("error in a run", expect(text, "'form' (Reshape)", "f32[6] cannot be reshaped to f32[4,3]"))
    outputs = kept.run(None, {"x": np.ones(6, np.float32), "s": np.array([2, 3])})
    tally.add("the session goes on after an error", None if outputs[0].shape == (2, 3) else str(outputs))


def failing_devices(tally, _):
    model, inputs = models.make("resnet50")
    common = {"devices": "npu,cpu", "strategy": "contiguous"}
    for label, given in [("fails", {"npu__fail": 1}), ("fails later", {"npu__fail": 2, "capture": "off"}), ("hangs", {"npu__hang": 1, "device_time_limit": 0.5})]:
        tally.add(f"a device {label}: the session goes on", difference(model, inputs, runs=4, **common, **given))
    strict = session(model, **common, npu__fail=2, capture="off", no_fallback=1)
    strict.run(None, inputs)
    tally.add("no_fallback: the error names the device", expect(error_of(lambda: strict.run(None, inputs)), "partition 0 on npu", "launch 2 failed"))


def threads(tally, _):
    """Several threads run one session."""
    matrix = np.random.default_rng(5).standard_normal((16, 16)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    known = model_of(nodes, [value("x", F32, ["N", 16])], [value("y", F32, ["N", 16])], [("w", matrix)])
    opened = model_of([*nodes, helper.make_node("NonZero", ["x"], ["z"])], [value("x", F32, ["N", 16])], [value("y", F32, ["N", 16]), value("z", I64, [2, "k"])], [("w", matrix)])
    for label, model, given in ("one at a time", known, {}), ("several at a time", known, {"in_flight": 3}), ("sizes depend on data", opened, {"in_flight": 3}):
        alone, beside, wrong = session(model, provider=False), session(model, **given), []

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(40):
                inputs = {"x": (rng.standard_normal((int(rng.integers(1, 9)), 16)) * (rng.random((1, 16)) < 0.5)).astype(np.float32)}
                reason = oracle.first_difference(alone.run(None, inputs), beside.run(None, inputs))
                if reason:
                    wrong.append(reason)
        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        tally.add(f"six threads, {label}", wrong[0] if wrong else None)


def external_data(tally, _):
    folder = oracle.build_folder("onnxruntime_ep")
    model, inputs = models.make("resnet50")
    path = os.path.join(folder, "external.onnx")
    expected = session(model, provider=False).run(None, inputs)
    onnx.save(model, path, save_as_external_data=True, location="external.bin", size_threshold=64)  # also changes `model`
    with Report() as report:
        beside = session(path, level=LEVEL.ORT_DISABLE_ALL, report=report.path)
    entries = {entry["name"]: entry for entry in report.graphs[-1]["initializers"]}
    reason = None if report.graphs[-1]["model_path"] == path else f"path {report.graphs[-1]['model_path']}"
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        where = {entry.key: entry.value for entry in tensor.external_data}
        found = entries[tensor.name]
        if where and "file" in found and (found["file"], found["offset"], found["file_bytes"]) != (where["location"], int(where["offset"]), int(where["length"])):
            reason = reason or f"{found}, expected {where}"
    tally.add("external data: where it is", reason)
    tally.add("external data: results", oracle.first_difference(expected, beside.run(None, inputs)))
    tally.add("external data: results, optimised", oracle.first_difference(expected, session(path).run(None, inputs)))
    with open("/proc/self/maps", encoding="utf-8") as file:
        mapped = sum("external.bin" in line for line in file)
    tally.add("external data: the file is mapped", None if mapped else "it is not")
    with open(path, "rb") as file:
        data = file.read()
    here = os.getcwd()
    os.chdir(oracle.build_folder("onnxruntime_ep_elsewhere"))
    try:
        with open("external.bin", "wb") as file:
            file.truncate(os.path.getsize(os.path.join(folder, "external.bin")))  # zeros: not the model's file
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        settings.add_provider_for_devices(devices, {"threads": "1"})
        elsewhere = onnxruntime.InferenceSession(data, settings, enable_fallback=0).run(None, inputs)
    finally:
        os.chdir(here)
    tally.add("external data: of a model from memory", oracle.first_difference(expected, elsewhere))


PARTS = [registration, accessors, whole_models, shapes, bodies, groups, random_models, options, errors, failing_devices, threads, external_data, operators]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    version = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
    if version < (1, 24):
        tally.skip("the execution provider", f"ONNX Runtime is {onnxruntime.__version__}; 1.24 is needed")
        return tally.finish()
    for part in PARTS:
        if not arguments.parts or any(text in part.__name__ for text in arguments.parts):
            try:
                part(tally, arguments)
            except Exception as error:  # the other parts are tested all the same
                tally.add(part.__name__, f"{type(error).__name__}: {error}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
