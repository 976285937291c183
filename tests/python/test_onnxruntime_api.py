"""Compares cleave.onnxruntime with ONNX Runtime: every element of the API that it has, on the same models and values.

    python tests/python/test_onnxruntime_api.py [PATTERN]      PATTERN: only checks whose name contains it

A check is a function of (the module, a model); its result, or the class of the exception that it raises, must be that of ONNX
Runtime. DIFFERENT lists what is meant to differ. Random graphs run with random choices of outputs in both. Also checks that
sys.modules["onnxruntime"] can be replaced, and that a run of one Relu costs at most as much as ONNX Runtime's.
"""
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle
import random_graphs

sys.path.insert(0, os.path.join(oracle.BUILD, "python"))

RANDOM_GRAPHS = 60
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.ones((1, 3), np.float32)
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


# --- models

def small(**changes):
    """z = x + y, r = relu(z), with a default d."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"]), helper.make_node("Relu", ["z"], ["r0"]), helper.make_node("Mul", ["r0", "d"], ["r"])],
        "small graph", [info("x", TensorProto.FLOAT, ["n", 3]), info("y", TensorProto.FLOAT, [1, 3]), info("d", TensorProto.FLOAT, [3])],
        [info("z", TensorProto.FLOAT, ["n", 3]), info("r", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(np.array([1, 2, 3], np.float32), "d")], doc_string="what the graph does")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="maker", doc_string="what the model is",
                              model_version=7, domain="example.org", ir_version=8)
    for key, value in {"labels": "cat,dog", "größe": "1"}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    return model


def identity(dtype, shape):
    """Casts to the dtype of the input, so that the value passes unchanged."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", [info("x", dtype, shape)], [info("y", dtype, [None])],
                              [numpy_helper.from_array(np.array([-1], np.int64), "shape")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def strings():
    """An output that is an input: Cleave has no operators for strings."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Neg", ["f"], ["g"])], "g", [info("x", TensorProto.STRING, [None]), info("f", TensorProto.FLOAT, [1])],
                              [info("x", TensorProto.STRING, [None]), info("g", TensorProto.FLOAT, [1])],
                              [numpy_helper.from_array(np.ones(1, np.float32), "f")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def endless():
    """A Loop of 2^40 turns."""
    info = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["c1"]), helper.make_node("Add", ["v", "one"], ["v1"])], "body",
                             [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, [1])],
                             [info("c1", TensorProto.BOOL, []), info("v1", TensorProto.FLOAT, [1])])
    graph = helper.make_graph([helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)], "g", [info("x", TensorProto.FLOAT, [1])],
                              [info("y", TensorProto.FLOAT, [1])],
                              [numpy_helper.from_array(np.array(2**40, np.int64), "turns"), numpy_helper.from_array(np.ones(1, np.float32), "one")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SMALL = small().SerializeToString()


def session(api, model=SMALL, **options):
    return api.InferenceSession(model, **options)


def arg(node):
    return node.name, node.type, list(node.shape)


# --- descriptions

@check
def inputs_and_outputs(api):
    s = session(api)
    return [arg(a) for a in s.get_inputs()], [arg(a) for a in s.get_outputs()], [arg(a) for a in s.get_overridable_initializers()]


@check
def metadata(api):
    meta = session(api).get_modelmeta()
    return (meta.custom_metadata_map, meta.description, meta.domain, meta.graph_description, meta.graph_name, meta.producer_name,
            meta.version)


@check
def from_a_path(api):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        onnx.save(small(), path)
        s = api.InferenceSession(path)
        return s.run(None, {"x": X, "y": Y}), s.get_modelmeta().producer_name


for name in ("FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64"):
    def value_of_type(api, dtype=getattr(TensorProto, name)):
        s = session(api, identity(dtype, [2, "n"]).SerializeToString())
        value = np.arange(6).reshape(2, 3).astype(helper.tensor_dtype_to_np_dtype(dtype))
        return arg(s.get_inputs()[0]), arg(s.get_outputs()[0])[:2], s.run(None, {"x": value})
    value_of_type.__name__ = f"value_of_{name.lower()}"
    check(value_of_type)


@check
def type_of_bfloat16(api):
    s = session(api, identity(TensorProto.BFLOAT16, [2]).SerializeToString())
    value = api.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([1, 2], ml_dtypes.bfloat16).view(np.uint16), TensorProto.BFLOAT16)
    result = s.run_with_ort_values(None, {"x": value})[0]
    return arg(s.get_inputs()[0]), result.data_type(), result.element_type(), result.shape(), value.data_type()


@check
def strings_of_str(api):
    return session(api, strings().SerializeToString()).run(None, {"x": np.array(["a", "größe", ""])})


@check
def strings_of_objects(api):
    return session(api, strings().SerializeToString()).run(None, {"x": np.array(["a", "b"], object)})


@check
def strings_of_a_list(api):
    return session(api, strings().SerializeToString()).run(None, {"x": ["a", "b"]})


@check
def strings_of_numbers(api):
    return session(api, strings().SerializeToString()).run(None, {"x": np.array([1, 2])})


# --- runs

RUNS = {
    "all outputs": (None, {"x": X, "y": Y}), "no names": ([], {"x": X, "y": Y}), "one name": (["r"], {"x": X, "y": Y}),
    "names in a tuple": (("r",), {"x": X, "y": Y}), "names in another order": (["r", "z"], {"x": X, "y": Y}),
    "a name twice": (["r", "z", "r"], {"x": X, "y": Y}), "an unknown name": (["q"], {"x": X, "y": Y}),
    "an empty name": (["r", ""], {"x": X, "y": Y}), "a name, not a sequence": ("r", {"x": X, "y": Y}),
    "a missing input": (None, {"x": X}), "no inputs": (None, {}), "an unknown input": (None, {"x": X, "y": Y, "q": X}),
    "None for an input": (None, {"x": X, "y": None}), "a default that is replaced": (None, {"x": X, "y": Y, "d": Y[0] * 5}),
    "a wrong dtype": (None, {"x": X.astype(np.float64), "y": Y}), "a wrong integer dtype": (None, {"x": X.astype(np.int32), "y": Y}),
    "a dtype without ONNX": (None, {"x": X.astype(np.complex64), "y": Y}), "a wrong rank": (None, {"x": X[0], "y": Y}),
    "a wrong size": (None, {"x": X[:, :2], "y": Y}), "two wrong sizes": (None, {"x": X, "y": X[:, :2]}),
    "a list": (None, {"x": X.tolist(), "y": Y}), "a strided array": (None, {"x": X[:, ::-1], "y": Y}),
    "columns first": (None, {"x": np.asfortranarray(X), "y": Y}), "another size": (None, {"x": np.ones((5, 3), np.float32), "y": Y}),
    "no rows": (None, {"x": np.ones((0, 3), np.float32), "y": Y}), "read-only": (None, {"x": np.broadcast_to(X[:1], (4, 3)), "y": Y}),
    "an object that is no tensor": (None, {"x": object(), "y": Y}), "a sequence of inputs": (None, [X, Y]),
}
for name, (output_names, feed) in RUNS.items():
    def run(api, output_names=output_names, feed=feed):
        return session(api).run(output_names, feed)
    run.__name__ = f"run: {name}"
    check(run)


@check
def run_with_another_mapping(api):
    import collections
    return session(api).run(None, collections.OrderedDict(y=Y, x=X))


@check
def results_are_kept(api):
    """A run does not change the results of an earlier one."""
    s = session(api)
    first = s.run(["z"], {"x": X, "y": Y})[0]
    s.run(["z"], {"x": X * 9, "y": Y})
    return first


@check
def run_with_options(api):
    options = api.RunOptions()
    options.log_severity_level, options.logid, options.only_execute_path_to_fetches = 3, "tag", True
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return (session(api).run(["r"], {"x": X, "y": Y}, options), options.log_severity_level, options.logid, options.terminate,
            options.get_run_config_entry("memory.enable_memory_arena_shrinkage"))


@check
def unknown_run_entry(api):
    return api.RunOptions().get_run_config_entry("absent")


@check
def wrong_run_options(api):
    return session(api).run(None, {"x": X, "y": Y}, 5)


@check
def unknown_run_option(api):
    api.RunOptions().absent = 1


@check
def terminated_before(api):
    options = api.RunOptions()
    options.terminate = True
    return session(api).run(None, {"x": X, "y": Y}, options)


@check
def terminated_during(api):
    s, options, outcome = session(api, endless().SerializeToString()), api.RunOptions(), []

    def work():
        try:
            s.run(None, {"x": np.zeros(1, np.float32)}, options)
        except Exception as error:
            outcome.append(type(error).__name__)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(0.2)
    options.terminate = True
    thread.join(20)
    return outcome, thread.is_alive()


@check
def threads(api):
    s, results = session(api), [None] * 8

    def work(i):
        results[i] = [s.run(["z"], {"x": X + i + turn, "y": Y})[0] for turn in range(50)]
    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def run_async(api, feed, names):
    ended, outcome = threading.Event(), []

    def callback(results, user_data, error):
        outcome.extend([list(results), user_data, bool(error)])
        ended.set()
    session(api).run_async(names, feed, callback, "what the caller gave")
    return ended.wait(20), outcome


@check
def run_async_succeeds(api):
    return run_async(api, {"x": X, "y": Y}, ["r"])


@check
def run_async_fails(api):
    return run_async(api, {"x": X[0], "y": Y}, ["r"])


@check
def run_async_without_input(api):
    return run_async(api, {"x": X}, ["r"])


# --- loading

def changed(change):
    model = small()
    change(model)
    return model.SerializeToString()


@check
def load_no_file(api):
    api.InferenceSession("/nonexistent/model.onnx")


@check
def load_garbage(api):
    api.InferenceSession(b"this is not a model")


@check
def load_cut_off(api):
    api.InferenceSession(SMALL[:len(SMALL) // 2])


@check
def load_a_number(api):
    api.InferenceSession(5)


@check
def load_a_bytearray(api):
    api.InferenceSession(bytearray(SMALL))


@check
def load_unknown_operator(api):
    def change(model):
        model.graph.node[0].op_type = "Absent"
    api.InferenceSession(changed(change))


@check
def load_unknown_value(api):
    def change(model):
        model.graph.node[0].input[0] = "absent"
    api.InferenceSession(changed(change))


@check
def load_future_opset(api):
    def change(model):
        model.opset_import[0].version = 99
    api.InferenceSession(changed(change))


# --- options

@check
def session_options(api):
    options = api.SessionOptions()
    names = ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "inter_op_num_threads",
             "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid", "optimized_model_filepath", "profile_file_prefix",
             "use_deterministic_compute", "use_per_session_threads")
    before = [getattr(options, name) for name in names], options.execution_mode.name, options.graph_optimization_level.name
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = 2, 1, 3
    options.graph_optimization_level = api.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.execution_mode = api.ExecutionMode.ORT_PARALLEL
    options.execution_order = api.ExecutionOrder.PRIORITY_BASED
    options.enable_cpu_mem_arena = options.enable_mem_pattern = options.enable_mem_reuse = False
    options.use_deterministic_compute, options.logid = True, "tag"
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    s = session(api, sess_options=options)
    return (before, [getattr(options, name) for name in names], options.get_session_config_entry("session.intra_op.allow_spinning"),
            s.get_session_options().intra_op_num_threads, options.graph_optimization_level.name, s.run(None, {"x": X, "y": Y}))


for name, value in {"intra_op_num_threads": "two", "log_severity_level": None, "graph_optimization_level": 99, "execution_mode": 0,
                    "enable_mem_pattern": "yes", "absent": 1}.items():
    def wrong_option(api, name=name, value=value):
        setattr(api.SessionOptions(), name, value)
    wrong_option.__name__ = f"wrong_session_option: {name}"
    check(wrong_option)


@check
def unknown_session_entry(api):
    return api.SessionOptions().get_session_config_entry("absent")


@check
def fixed_dimension(api):
    options = api.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    s = session(api, sess_options=options)
    return arg(s.get_inputs()[0]), s.run(None, {"x": X, "y": Y})


@check
def fixed_dimension_of_another_size(api):
    options = api.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    return session(api, sess_options=options).run(None, {"x": X, "y": Y})


@check
def profiling(api):
    with tempfile.TemporaryDirectory() as folder:
        options = api.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "profile")
        s = session(api, sess_options=options)
        s.run(None, {"x": X, "y": Y})
        path = s.end_profiling()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return os.path.dirname(path) == folder, path.endswith(".json"), "Relu" in text or "cpu" in text, s.get_profiling_start_time_ns() > 0


@check
def no_profiling(api):
    return session(api).end_profiling(), session(api).get_profiling_start_time_ns()


@check
def enumerations(api):
    return [[(name, int(value)) for name, value in getattr(api, kind).__members__.items()]
            for kind in ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder")]


# --- providers

def providers_of(api, *arguments, **options):
    """The warnings, what is printed apart from the texts of errors, and the providers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = session(api, SMALL, **options)
    texts = [str(w.message).split(" is not in available")[0] for w in caught]
    return texts, s.get_providers(), s.get_provider_options(), s.run(["r"], {"x": X, "y": Y})


CPU = "CPUExecutionProvider"
PROVIDERS = {
    "CPU": {"providers": [CPU]}, "none": {"providers": []}, "not given": {}, "with options": {"providers": [(CPU, {"arena": 1})]},
    "options apart": {"providers": [CPU], "provider_options": [{"arena": 1}]}, "twice": {"providers": [CPU, CPU]},
    "CUDA first": {"providers": ["CUDAExecutionProvider", CPU]}, "CUDA alone": {"providers": [("CUDAExecutionProvider", {"device_id": 0})]},
    "unknown": {"providers": ["AbsentExecutionProvider", CPU]},
    "unknown, no fallback": {"providers": ["AbsentExecutionProvider"], "enable_fallback": 0},
    "options of another length": {"providers": [CPU], "provider_options": [], "enable_fallback": 0},
    "a number": {"providers": [5], "enable_fallback": 0},
    "options that are no dict": {"providers": [CPU], "provider_options": [5], "enable_fallback": 0},
}
for name, options in PROVIDERS.items():
    def providers(api, options=options):
        return providers_of(api, **options)
    providers.__name__ = f"providers: {name}"
    check(providers)


@check
def providers_set_later(api):
    s = session(api)
    s.set_providers([CPU])
    return s.get_providers(), s.run(["r"], {"x": X, "y": Y})


@check
def provider_of_options(api):
    options = api.SessionOptions()
    options.add_provider(CPU, {})
    return options.has_providers(), session(api, sess_options=options).get_providers()


@check
def cpu_is_available(api):
    return CPU in api.get_available_providers(), CPU in api.get_all_providers(), api.get_device(), api.get_version_string().split(".")[0]


# --- values

def described(value):
    return (value.shape(), value.data_type(), value.element_type(), value.tensor_size_in_bytes(), value.device_name(), value.has_value(),
            value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence(), value.numpy())


@check
def value_from_numpy(api):
    array = X.copy()
    value = api.OrtValue.ortvalue_from_numpy(array)
    return described(value), np.shares_memory(value.numpy(), array), value.data_ptr() == array.ctypes.data, np.asarray(value), value.__dlpack_device__()


@check
def value_from_integers(api):
    return described(api.OrtValue.ortvalue_from_numpy(np.arange(4, dtype=np.int64).reshape(2, 2)))


@check
def value_from_strided(api):
    return api.OrtValue.ortvalue_from_numpy(X[:, ::-1]).numpy()


@check
def value_from_strings(api):
    return api.OrtValue.ortvalue_from_numpy(np.array(["a"]))


@check
def value_from_list(api):
    return api.OrtValue.ortvalue_from_numpy(X.tolist())


@check
def value_on_cuda(api):
    return api.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


@check
def value_from_type(api):
    value = api.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    before = value.shape(), value.data_type()
    value.update_inplace(X)
    return before, value.numpy()


@check
def value_from_number_of_type(api):
    value = api.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.INT64)
    return value.shape(), value.data_type(), value.element_type()


@check
def value_updated_by_value(api):
    value = api.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    value.update_inplace(api.OrtValue.ortvalue_from_numpy(X))
    return value.numpy()


@check
def value_updated_to_another_size(api):
    api.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(X[0])


@check
def value_by_dlpack(api):
    return np.from_dlpack(api.OrtValue.ortvalue_from_numpy(X.copy()))


@check
def value_from_dlpack(api):
    return described(api.OrtValue.from_dlpack(X.copy()))


@check
def copied_values(api):
    target = api.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    api.copy_tensors([api.OrtValue.ortvalue_from_numpy(X)], [target])
    return target.numpy()


@check
def run_of_values(api):
    value = api.OrtValue.ortvalue_from_numpy
    return [described(v) for v in session(api).run_with_ort_values(["r", "z"], {"x": value(X), "y": value(Y)})]


@check
def run_of_values_all(api):
    value = api.OrtValue.ortvalue_from_numpy
    return [v.numpy() for v in session(api).run_with_ort_values(None, {"x": value(X), "y": value(Y)})]


@check
def run_of_arrays_and_values(api):
    return session(api).run(None, {"x": api.OrtValue.ortvalue_from_numpy(X), "y": Y})


@check
def run_of_values_with_arrays(api):
    return session(api).run_with_ort_values(None, {"x": X, "y": Y})


@check
def devices(api):
    device = api.OrtDevice.make("cpu", 0)
    return device.device_type(), device.device_id(), device.device_vendor_id(), device.device_mem_type(), api.OrtDevice.make("cuda", 1).device_id()


@check
def device_of_another_name(api):
    return api.OrtDevice.make("abacus", 0)


# --- bindings

@check
def binding(api):
    s = session(api)
    b = s.io_binding()
    b.bind_cpu_input("x", X)
    b.bind_cpu_input("y", Y)
    b.bind_output("r")
    b.synchronize_inputs()
    s.run_with_iobinding(b)
    b.synchronize_outputs()
    first = b.copy_outputs_to_cpu(), [described(v)[:-1] for v in b.get_outputs()], len(b.get_outputs_as_ortvaluevector())
    b.bind_output("z")
    b.bind_cpu_input("x", X * 2)
    s.run_with_iobinding(b, api.RunOptions())
    return first, b.copy_outputs_to_cpu()


@check
def binding_to_memory(api):
    s, given, target = session(api), X.copy(), np.zeros((2, 3), np.float32)
    b = s.io_binding()
    b.bind_input("x", "cpu", 0, np.float32, [2, 3], given.ctypes.data)
    b.bind_input("y", "cpu", 0, TensorProto.FLOAT, [1, 3], Y.ctypes.data)
    b.bind_output("z", "cpu", 0, np.float32, [2, 3], target.ctypes.data)
    s.run_with_iobinding(b)
    first = target.copy()
    given += 1
    s.run_with_iobinding(b)
    return first, target, b.copy_outputs_to_cpu()


@check
def binding_of_values(api):
    s, target = session(api), api.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    b = s.io_binding()
    b.bind_ortvalue_input("x", api.OrtValue.ortvalue_from_numpy(X))
    b.bind_ortvalue_input("y", api.OrtValue.ortvalue_from_numpy(Y))
    b.bind_ortvalue_output("r", target)
    s.run_with_iobinding(b)
    return target.numpy(), b.copy_outputs_to_cpu()


def bound(api):
    s = session(api)
    b = s.io_binding()
    b.bind_cpu_input("x", X)
    b.bind_cpu_input("y", Y)
    return s, b


@check
def binding_to_wrong_memory(api):
    s, b = bound(api)
    target = np.zeros((3, 3), np.float32)
    b.bind_output("z", "cpu", 0, np.float32, [3, 3], target.ctypes.data)
    s.run_with_iobinding(b)


@check
def binding_without_outputs(api):
    s, b = bound(api)
    s.run_with_iobinding(b)


@check
def binding_without_inputs(api):
    s, b = bound(api)
    b.bind_output("r")
    b.clear_binding_inputs()
    s.run_with_iobinding(b)


@check
def binding_with_outputs_cleared(api):
    s, b = bound(api)
    b.bind_output("r")
    b.clear_binding_outputs()
    b.bind_output("z")
    s.run_with_iobinding(b)
    return b.copy_outputs_to_cpu()


@check
def binding_of_unknown_input(api):
    session(api).io_binding().bind_cpu_input("q", X)


@check
def binding_of_unknown_output(api):
    s, b = bound(api)
    b.bind_output("q")
    s.run_with_iobinding(b)


@check
def binding_of_wrong_dtype(api):
    s, b = bound(api)
    b.bind_cpu_input("x", X.astype(np.float64))
    b.bind_output("r")
    s.run_with_iobinding(b)


@check
def binding_of_list(api):
    session(api).io_binding().bind_cpu_input("x", X.tolist())


@check
def binding_of_another_session(api):
    _, b = bound(api)
    session(api).run_with_iobinding(b)


@check
def binding_without_shape(api):
    session(api).io_binding().bind_output("z", "cpu", 0, None, None, X.ctypes.data)


# Checks whose results are meant to differ: the class that Cleave raises, or None if it has a result, and the reason.
DIFFERENT = {
    "load_unknown_operator": ("NotImplemented", "Cleave loads the graph, and finds at planning that no device has the operator"),
    "copied_values": (None, "ONNX Runtime cannot copy between values on the CPU"),
    "load_unknown_value": ("InvalidGraph", "ONNX Runtime reports this one violation as InvalidArgument"),
    "load_future_opset": ("NotImplemented", "ONNX Runtime reports it as Fail"),
}


# --- comparing

def outcome(function, api):
    """("result", value) or ("raised", class)."""
    try:
        return "result", function(api)
    except Exception as error:
        return "raised", type(error).__name__


def difference(expected, actual):
    """Returns None if the results agree."""
    if isinstance(expected, np.ndarray) or isinstance(actual, np.ndarray):
        return oracle.compare(expected, actual)
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            return f"{len(actual)} items, expected {len(expected)}: {actual!r}"
        return next((found for e, a in zip(expected, actual) if (found := difference(e, a)) is not None), None)
    return None if expected == actual else f"{actual!r}, expected {expected!r}"


def compare_check(function, real, ours):
    (kind, expected), (our_kind, actual) = outcome(function, real), outcome(function, ours)
    if function.__name__ in DIFFERENT:
        wanted, _ = DIFFERENT[function.__name__]
        got = actual if our_kind == "raised" else None
        if (kind, expected) == (our_kind, actual):
            return "agrees with ONNX Runtime, but is listed in DIFFERENT"
        return None if got == wanted else f"{our_kind} {actual!r}, expected {wanted}"
    if kind != our_kind:
        return f"{our_kind} {actual!r}, but ONNX Runtime {kind} {expected!r}"
    return difference(expected, actual)


# --- random graphs, replacement and cost

def compare_graph(seed, ours):
    """A random graph with some of its outputs, by names, in a random order. Returns False if ONNX Runtime cannot run it."""
    model, feed = random_graphs.RandomGraph(seed).make()
    names = [o.name for o in model.graph.output]
    rng = np.random.default_rng(seed)
    chosen = [names[i] for i in rng.permutation(len(names))[:rng.integers(1, len(names) + 1)]]
    results = oracle.isolated([functools.partial(oracle.run_onnxruntime, model, feed)])[0]
    if isinstance(results, Exception):
        return False
    options = ours.SessionOptions()
    options.intra_op_num_threads = 1
    s = ours.InferenceSession(model.SerializeToString(), options)
    by_name = dict(zip(names, results))
    wanted = [arg for arg in s.get_outputs()]
    if [a.name for a in wanted] != names:
        return f"outputs {[a.name for a in wanted]}, expected {names}"
    return oracle.first_difference([by_name[n] for n in chosen], s.run(chosen, feed), oracle.tolerance_of(model))


PROGRAM = """
import sys
import cleave.onnxruntime
{install}
import numpy as np
import onnxruntime as ort
from onnxruntime import InferenceSession, SessionOptions, GraphOptimizationLevel
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
import onnxruntime.capi._pybind_state as C
import importlib.util
assert importlib.util.find_spec("onnxruntime") is not None and ort.__version__ >= "1.10"
session = InferenceSession(sys.argv[1])
try:
    session.run(["absent"], {{"x": np.ones((1, 3), np.float32), "y": np.ones((1, 3), np.float32)}})
except ort.capi.onnxruntime_pybind11_state.InvalidArgument as error:
    assert isinstance(error, InvalidArgument) and isinstance(error, C.InvalidArgument)
try:
    InferenceSession("/nonexistent")
except NoSuchFile:
    print("caught", *session.get_providers(), session._sess.plan.strategy, *[p.device for p in session._sess.plan.partitions])
for name in ("LoraAdapter", "quantization"):
    try:
        getattr(ort, name)
    except AttributeError as error:
        assert "cleave.onnxruntime has no" in str(error)
"""
INSTALLS = {
    "sys.modules": ("sys.modules['onnxruntime'] = cleave.onnxruntime", "caught CPUExecutionProvider optimal cpu"),
    "install()": ("cleave.onnxruntime.install(devices='npu,cpu', strategy='contiguous')",
                  "caught CleaveExecutionProvider CPUExecutionProvider contiguous npu"),
}


def replaced(install, expected, path):
    environment = dict(os.environ, PYTHONPATH=os.path.join(oracle.BUILD, "python"))
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(install=install), path], env=environment, capture_output=True, text=True, timeout=60)
    return None if done.stdout.strip() == expected else f"{done.stdout.strip()!r}, expected {expected!r}: {done.stderr[-600:]}"


def devices_of_provider(ours):
    """The options of CleaveExecutionProvider reach the session."""
    options = {"devices": "npu,cpu", "strategy": "contiguous", "in_flight": 2, "threads": 1}
    s = ours.InferenceSession(SMALL, providers=[("CleaveExecutionProvider", options)])
    devices = {p.device for p in s._sess.plan.partitions}
    if devices != {"npu"} or s.get_providers() != ["CleaveExecutionProvider", CPU]:
        return f"{devices}, {s.get_providers()}"
    if s.get_provider_options()["CleaveExecutionProvider"] != {key: str(value) for key, value in options.items()}:
        return f"{s.get_provider_options()}"
    return oracle.first_difference([np.maximum(X + Y, 0) * [1, 2, 3]], [a.astype(np.float64) for a in s.run(["r"], {"x": X, "y": Y})], 1e-5)


def wrong_provider_options(ours):
    for options, text in (({"absent": 1}, "has no option 'absent'"), ({"threads": "two"}, "expected a number"),
                          ({"tune": "perhaps"}, "expected 0 or 1"), ({"devices": "abacus"}, "abacus"), ({"strategy": "guess"}, "guess")):
        try:
            ours.InferenceSession(SMALL, providers=[("CleaveExecutionProvider", options)])
        except Exception as error:
            if text not in str(error) or type(error).__module__ != "onnxruntime.capi.onnxruntime_pybind11_state":
                return f"{options}: {type(error).__name__}: {error}"
        else:
            return f"{options} was accepted"
    return None


def refused(ours):
    """What would change results, and Cleave does not have, is refused by name."""
    options = ours.SessionOptions()
    calls = [lambda: options.add_initializer("d", None), lambda: options.register_custom_ops_library("ops.so"),
             lambda: options.add_external_initializers([], []), lambda: ours.RunOptions().add_active_adapter(None),
             lambda: options.add_free_dimension_override_by_denotation("BATCH", 1), lambda: ours.InferenceSession("model.ort")]
    optimised = ours.SessionOptions()
    optimised.optimized_model_filepath = "optimised.onnx"
    calls.append(lambda: ours.InferenceSession(SMALL, optimised))
    for i, call in enumerate(calls):
        kind, name = outcome(lambda api: call(), ours)
        if name != "NotImplemented":
            return f"call {i}: {kind} {name}"
    kind, name = outcome(lambda api: ours.InferenceSession(SMALL).get_tuning_results(), ours)
    return None if name == "AttributeError" else f"get_tuning_results: {kind} {name}"


def cost(real, ours):
    """The median time of a run of one Relu, as a share of ONNX Runtime's, by turns."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info("x", TensorProto.FLOAT, [4])], [info("y", TensorProto.FLOAT, [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    runs, feed, times = [api.InferenceSession(model).run for api in (real, ours)], {"x": np.ones(4, np.float32)}, ([], [])
    for _ in range(60):
        for run, own in zip(runs, times):
            start = time.perf_counter()
            for _ in range(300):
                run(None, feed)
            own.append((time.perf_counter() - start) / 300)
    theirs, own = (float(np.median(t)) for t in times)
    print(f"a run of one Relu: {own * 1e6:.1f} µs, ONNX Runtime {theirs * 1e6:.1f} µs, ratio {own / theirs:.2f}")
    return None if own <= theirs else f"{own * 1e6:.1f} µs, ONNX Runtime {theirs * 1e6:.1f} µs"


def main():
    import cleave.onnxruntime as ours
    import onnxruntime as real
    real.set_default_logger_severity(4)
    ours.set_default_logger_severity(4)
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    tally = oracle.Tally()
    for function in CHECKS:
        if pattern in function.__name__:
            tally.add(function.__name__, compare_check(function, real, ours))
    path = os.path.join(oracle.build_folder("onnxruntime_api"), "small.onnx")
    onnx.save(small(), path)
    for name, (install, expected) in INSTALLS.items():
        tally.add(f"replaced by {name}", replaced(install, expected, path))
    tally.add("devices of the provider", devices_of_provider(ours))
    tally.add("wrong options of the provider", wrong_provider_options(ours))
    tally.add("refusals", refused(ours))
    ran = 0
    for seed in range(RANDOM_GRAPHS) if not pattern else []:
        found = compare_graph(seed, ours)
        if found is False:
            continue
        ran += 1
        tally.add(f"random graph {seed}", found)
    if not pattern:
        tally.add("ONNX Runtime ran most random graphs", None if ran > RANDOM_GRAPHS / 2 else f"only {ran}")
        tally.add("cost of a run", cost(real, ours))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
