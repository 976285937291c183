"""Tests the Python package in build/python against ONNX Runtime and the command: values of every dtype, open shapes, strings, threads,
asyncio, time limits, Ctrl-C, errors, plans and their documents, compiled directories, memory.

    test_package.py [--all]

--all: also opens and closes 10,000 sessions in 8 threads.
"""
import argparse
import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

import oracle

sys.path.insert(0, os.path.join(oracle.BUILD, "python"))
import cleave  # noqa: E402
import models  # noqa: E402

passed = failed = 0
PATIENCE = 60  # seconds to wait for what should take one or two, because the machine may be busy


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("failed:", what, flush=True)


def raises(kind, text, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        check(text in str(error), f"the error should say '{text}': {error}")
    except Exception as error:  # noqa: BLE001
        check(False, f"{type(error).__name__} instead of {kind.__name__}: {error}")
    else:
        check(False, f"no {kind.__name__} that says '{text}'")


def model_of(nodes, inputs, outputs, weights=(), opset=21):
    """inputs, outputs: {name: (dtype, shape)}."""
    graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info(name, *type) for name, type in inputs.items()],
                              [helper.make_tensor_value_info(name, *type) for name, type in outputs.items()], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def test_models():
    """Outputs equal ONNX Runtime's, and each partition the reference's."""
    for name, devices in (("resnet50", "npu,cpu"), ("bert", "cpu"), ("lstm", "npu,cpu"), ("multi_output", "cpu")):
        model, inputs = models.make(name, seed=3)
        session = cleave.Session(model, devices)
        expected = dict(zip([o.name for o in model.graph.output], oracle.run_onnxruntime(model, inputs)))
        for way in (inputs, list(inputs.values()), {key: np.asfortranarray(value) for key, value in inputs.items()}):
            outputs = session.run(way)
            difference = oracle.first_difference(list(expected.values()), [outputs[key] for key in expected])
            check(difference is None, f"{name} on {devices}: {difference}")
        verification = session.verify(inputs)
        check(verification.equal and "match the reference" in str(verification), f"{name}: {verification}")
        last = list(expected)[-1:]
        check(list(session.run(inputs, last)) == last, f"{name}: outputs that were not asked for are returned")


def test_dtypes():
    """Every dtype goes in and comes out unchanged, also strided, empty and scalar."""
    rng = np.random.default_rng(1)
    dtypes = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_,
              ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4]
    for dtype in dtypes:
        number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": (number, None)}, {"y": (number, None)})
        session = cleave.Session(model)
        for shape in ((3, 5), (), (0, 4), (2, 3, 4), (7,)):
            x = rng.integers(0, 2 if dtype is np.bool_ else 7, shape).astype(dtype)
            for given in (x, x.T, x[..., ::2] if x.ndim else x):
                y = session.run({"x": given})["y"]
                good = y.dtype == given.dtype and y.shape == given.shape and (y == given).all()
                check(good, f"{np.dtype(dtype)} {given.shape}: {y.dtype} {y.shape}")
    session = cleave.Session(model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": (1, ["N", 2])}, {"y": (1, ["N", 2])}))
    check(session.model.inputs[0].shape == ("N", 2), f"the shape of a symbolic input is {session.model.inputs[0].shape}")
    check((session.run({"x": [[1, 2], [3, 4]]})["y"] == [[1, 2], [3, 4]]).all(), "a list of Python")
    check(session.run({"x": memoryview(np.ones((3, 2), np.float32))})["y"].shape == (3, 2), "a memoryview")
    check(session.run({"x": np.ones((3, 2), ">f4")})["y"].sum() == 6, "big-endian numbers")
    x = np.random.default_rng(2).standard_normal((4, 2), dtype=np.float32)

    class Exporter:  # speaks DLPack and nothing else
        def __dlpack__(self, **keywords):
            return x.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    check((session.run({"x": Exporter()})["y"] == x).all(), "DLPack")
    raises(TypeError, "not supported", session.run, {"x": np.ones((1, 2), np.complex64)})
    raises(TypeError, "cannot make a tensor", session.run, {"x": [[1, 2], [3]]})
    raises(cleave.InvalidArgument, "f64[1,2]", session.run, {"x": np.ones((1, 2))})


def test_strings():
    model = model_of([], {"y": (8, ["N"])}, {"y": (8, ["N"])})  # no operator computes with strings
    session = cleave.Session(model)
    for given in (np.array(["ab", "ü€", ""]), np.array(["ab", "x"], object), ["a"] * 40):
        y = session.run({"y": given})["y"]
        check([str(item) for item in given] == y.tolist(), f"strings: {y}")
    results = [None] * 8

    def work(i):
        results[i] = all(session.run({"y": [f"t{i}"] * 9})["y"].tolist() == [f"t{i}"] * 9 for _ in range(50))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    check(all(results), "strings in several threads")


def test_sizes_from_data():
    """Outputs whose sizes depend on data, in several threads: each thread gets its own."""
    model = model_of([helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Relu", ["x"], ["y"])], {"x": (1, ["N"])},
                     {"at": (7, [1, "M"]), "y": (1, ["N"])})
    session = cleave.Session(model, in_flight=3)
    wrong = []

    def work(i):
        rng = np.random.default_rng(i)
        for _ in range(100):
            x = rng.integers(-2, 3, rng.integers(0, 50)).astype(np.float32)
            outputs = session.run({"x": x})
            if not (np.array_equal(outputs["at"], np.nonzero(x)) and np.array_equal(outputs["y"], np.maximum(x, 0))):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    check(not wrong, f"sizes from data in threads {sorted(set(wrong))}")


def endless():
    body = helper.make_graph([helper.make_node("Add", ["s", "one"], ["t"]), helper.make_node("Identity", ["go"], ["on"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("s", TensorProto.FLOAT, [4])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])])
    weights = [onnx.numpy_helper.from_array(np.array(True), "yes"), onnx.numpy_helper.from_array(np.ones(4, np.float32), "one")]
    return model_of([helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)], {"n": (7, []), "x": (1, [4])}, {"y": (1, [4])}, weights)


def test_stopping():
    model, x = endless(), np.zeros(4, np.float32)
    session = cleave.Session(model, no_fallback=True)
    check(session.run({"n": 3, "x": x})["y"].tolist() == [3] * 4, "three iterations of a loop")
    begin = time.monotonic()
    raises(cleave.TimedOut, "time limit", session.run, {"n": 1 << 60, "x": x}, timeout=0.2)
    check(time.monotonic() - begin < PATIENCE / 4, "a run with a time limit ends too late")

    async def cancel():
        task = asyncio.ensure_future(session.run_async({"n": 1 << 60, "x": x}))
        await asyncio.sleep(0.2)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    check(asyncio.run(cancel()), "a cancelled task does not end its run")
    check(session.run({"n": 2, "x": x})["y"].tolist() == [2] * 4, "a session after cancelled runs")
    with tempfile.TemporaryDirectory() as folder:  # Ctrl-C
        path = os.path.join(folder, "endless.onnx")
        onnx.save(model, path)
        code = f"""
            import sys; sys.path.insert(0, {os.path.join(oracle.BUILD, "python")!r})
            import cleave
            session = cleave.Session({path!r})
            print("ready", flush=True)
            try:
                session.run({{"n": 1 << 60, "x": [0] * 4}})
            except KeyboardInterrupt:
                print("interrupted", session.run({{"n": 5, "x": [0] * 4}})["y"].tolist())
        """
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        check(out == "interrupted [5.0, 5.0, 5.0, 5.0]\n" and process.returncode == 0, f"Ctrl-C: {out!r}, status {process.returncode}")


def test_asyncio():
    model, inputs = models.make("resnet50", seed=1)
    session = cleave.Session(model, "npu,cpu", in_flight=3)
    expected = session.run(inputs)

    async def main():
        return await asyncio.gather(*(session.run_async(inputs) for _ in range(12)))

    for outputs in asyncio.run(main()):
        check(all((outputs[name] == expected[name]).all() for name in expected), "an asynchronous run differs")

    async def wrong():
        await session.run_async({"data": np.zeros(3, np.float32)})

    raises(cleave.InvalidArgument, "the plan was made for", asyncio.run, wrong())


def test_plans():
    model, inputs = models.make("resnet50", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        options = ["--devices", "npu,cpu", "--force", "MaxPool=cpu"]
        plan = cleave.plan(path, ["npu", "cpu"], forces={"MaxPool": "cpu"})
        printed = oracle.finished("plan", path, *options)
        check(str(plan).splitlines()[:-1] == printed.stdout.splitlines()[:-1], f"print(plan) is not what the command prints:\n{plan}\n{printed.stdout}")
        told = json.loads(oracle.finished("plan", path, *options, "--json").stdout)
        check(plan.to_json()["partitions"] == told["partitions"], "to_json() is not the plan file")
        check(len(plan.partitions) == len(told["partitions"]) >= 2, "the number of partitions")
        check(sum(len(p.nodes) for p in plan.partitions) + sum(n.device is None for n in plan.nodes) == len(plan.nodes), "nodes are in one partition")
        check(plan.predicted >= plan.bound * (1 - 1e-9) and abs(plan.gap - (plan.predicted - plan.bound) / plan.bound) < 1e-6, "predicted, bound, gap")
        check("node_maxpool (MaxPool) on cpu" in str(plan.explain("node_maxpool")), f"explain: {plan.explain('node_maxpool')}")
        check(plan.explain("node_maxpool").data[0]["device"] == "cpu", "explain's data")
        raises(cleave.NotFound, "nix", plan.explain, "nix")
        check("this plan" in str(plan.compare()), f"compare: {plan.compare()}")
        check("MaxPool@npu" in str(plan.what_if("MaxPool@npu")), "what_if")
        check(plan._repr_html_().lstrip().startswith("<"), "the picture of a notebook")
        for name in ("a.svg", "a.dot", "a.html"):
            plan.draw(os.path.join(folder, name))
            check(os.path.getsize(os.path.join(folder, name)) > 500, name)
        raises(ValueError, ".svg", plan.draw, os.path.join(folder, "a.png"))
        plan.write(os.path.join(folder, "plan.json"))
        again = cleave.read_plan(os.path.join(folder, "plan.json"), path, "npu,cpu")
        outputs = [cleave.Session(p).run(inputs) for p in (plan, again)]
        check(all((outputs[0][name] == outputs[1][name]).all() for name in outputs[0]), "a plan that was written and read")
        oracle.cleave("compile", path, *options, "-o", os.path.join(folder, "compiled"))
        compiled = cleave.Session(os.path.join(folder, "compiled")).run(inputs)
        check(all((outputs[0][name] == compiled[name]).all() for name in compiled), "a compiled directory")
        session = cleave.Session(plan)
        with session.trace(os.path.join(folder, "trace.json"), operators_of=inputs):
            session.run(inputs)
        with open(os.path.join(folder, "trace.json")) as file:
            check(len(json.load(file)["traceEvents"]) > 5, "the trace is empty")
        kept = cleave.Session(path, keep=["maxpool"]).run(inputs)
        check("maxpool" in kept, f"a kept value is not returned: {list(kept)}")
        raises(TypeError, "takes no options", cleave.Session, plan, "cpu")


def test_measuring():
    """bench, profile and compile do what the commands do."""
    model, inputs = models.make("multi_output", seed=2)
    session = cleave.Session(model, "npu,cpu")
    bench = session.bench(inputs, 20, warmup=2, steps=True)
    check(len(bench.samples) == 20 and 0 < min(bench.samples) <= bench.median and bench.first_run > 0, f"bench: {bench.samples}")
    check("median" in str(bench) and bench.data["runs"] == 20, f"the documents of bench: {bench}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "costs.json")
        profile = cleave.profile(model, "npu,cpu", path, runs=2)
        check(profile.complete and {device["name"] for device in profile.data["devices"]} >= {"npu", "cpu"}, f"profile: {profile}")
        measured = cleave.plan(model, "npu,cpu", profile=path)
        check("profile of" in str(measured), f"a plan with a profile: {measured}")

        def times():
            with open(path) as file:
                return {(d["name"], o["signature"]): o["time_ns"] for d in json.load(file)["devices"] for o in d["operators"] if "time_ns" in o}

        before = times()
        cleave.profile(model, "npu,cpu", path, runs=2, resume=True)
        check(times() == before, f"resume measures again: {before} {times()}")
        session.compile(os.path.join(folder, "compiled"))
        again = cleave.Session(os.path.join(folder, "compiled")).run(inputs)
        expected = session.run(inputs)
        check(all((expected[name] == again[name]).all() for name in expected), "a directory that Python compiled")


def test_gnn():
    """Over the graphs of tests/gnn/models, results equal those of PyTorch Geometric; over a random graph, those of one piece."""
    import cleave.gnn
    folder = os.path.join(oracle.ROOT, "tests", "gnn", "models")
    for name in ("gcn", "gat", "graphsage"):
        files = [os.path.join(folder, f"{name}_{what}.npz") for what in ("graph", "expected")]
        arrays, expected = np.load(files[0]), np.load(files[1])["out"]
        graph = cleave.gnn.Graph(arrays["edge_index"], arrays["x"])
        check((graph.num_vertices, graph.num_edges) == (len(arrays["x"]), arrays["edge_index"].shape[1]), f"{name}: counts")
        for k in (1, 3):
            plan = cleave.gnn.plan(os.path.join(folder, f"{name}_dynamo.onnx"), graph, "npu,cpu", k=k, npu_specs=["all"])
            out = plan.run()
            check(out.shape == expected.shape and np.abs(out - expected).max() < 1e-4 * np.abs(expected).max(), f"{name}, k {k}: the result")
            check(plan.verify() < 1e-5 and "layer 0" in str(plan.run_report()), f"{name}, k {k}: verify")
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 300, (2, 2000))
    graph = cleave.gnn.Graph(edges, rng.standard_normal((300, arrays["x"].shape[1])))
    plan = cleave.gnn.plan(os.path.join(folder, "gcn_dynamo.onnx"), graph, "cpu", k=[2, 4])
    check(plan.verify() < 1e-5, "a random graph")
    other = rng.standard_normal((300, arrays["x"].shape[1])).astype(np.float32)
    check(not np.array_equal(plan.run(other), plan.run()), "features that are given to run()")
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "plan.json")
        plan.write(path)
        plan.draw(os.path.join(temporary, "plan.html"))
        again = cleave.gnn.read_plan(path, os.path.join(folder, "gcn_dynamo.onnx"), graph, "cpu")
        check(np.array_equal(again.run(), plan.run()), "a plan that was written and read")
    raises(cleave.InvalidArgument, "source -1", cleave.gnn.Graph, [[0, -1], [1, 0]])
    raises(cleave.InvalidArgument, "2 vertices", cleave.gnn.Graph, [[0, 1], [1, 2]], np.zeros((2, 3)))
    raises(ValueError, "expected [2, edges]", cleave.gnn.Graph, [0, 1])
    raises(TypeError, "integers", cleave.gnn.Graph, [[0.5], [1]])
    raises(cleave.NotSupported, "", cleave.gnn.plan, models.make("lstm")[0], graph)


def test_readme():
    """The example of README.md ('In Python') runs as it is printed, on the demo's model at a smaller size."""
    with open(os.path.join(oracle.ROOT, "README.md"), encoding="utf-8") as file:
        code = file.read().split("## In Python", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    model, inputs = models.make("resnet50", seed=0)
    small = list(inputs["data"].shape)
    check("(1, 3, 224, 224)" in code, "the example of README.md does not name the input's shape")
    code = code.replace("(1, 3, 224, 224)", str(tuple(small)))
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "demo"))
        onnx.save(model, os.path.join(folder, "demo", "resnet50.onnx"))
        environment = dict(os.environ, PYTHONPATH=os.path.join(oracle.BUILD, "python"))
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=5 * PATIENCE)
        check(done.returncode == 0 and "node_maxpool (MaxPool) on cpu" in done.stdout and "median" in done.stdout,
              f"README.md, In Python: {done.stdout[-1000:]} {done.stderr[-2000:]}")
        check(os.path.getsize(os.path.join(folder, "plan.html")) > 5000, "README.md, In Python: the page")


def test_errors():
    raises(cleave.NotFound, "nothing.onnx", cleave.Session, "/tmp/nothing.onnx")
    raises(FileNotFoundError, "nothing.onnx", cleave.Session, "/tmp/nothing.onnx")
    raises(cleave.InvalidModel, "not an ONNX model", cleave.Session, b"abc")
    raises(TypeError, "expected a path", cleave.Session, 5)
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, [4])}, {"y": (1, [4])})
    raises(cleave.NotFound, "cup", cleave.Session, model, "cup")
    raises(TypeError, "nix", cleave.Session, model, nix=1)
    raises(cleave.InvalidArgument, "strategy", cleave.Session, model, strategy="best")
    raises(ValueError, "capture", cleave.Session, model, capture="yes")
    raises(cleave.InvalidArgument, "17", cleave.Session, model, in_flight=17)
    raises(ValueError, "out of range", cleave.Session, model, in_flight=1 << 40)
    raises(OverflowError, "", cleave.Session, model, in_flight=-1)
    raises(ValueError, "zero character", cleave.Session, model, "c\0pu")
    session = cleave.Session(model)
    raises(cleave.InvalidArgument, "'z'", session.run, {"z": np.zeros(4, np.float32)})
    raises(cleave.InvalidArgument, "no default", session.run, {})
    raises(cleave.InvalidArgument, "1 inputs", session.run, [1, 2])
    raises(cleave.NotFound, "'q'", session.run, [np.zeros(4, np.float32)], ["q"])
    raises(cleave.InvalidArgument, "time limit", session.run, [np.zeros(4, np.float32)], timeout=-5)
    raises(TypeError, "", session.run, 5)
    with session:
        pass
    raises(ValueError, "closed", session.run, [np.zeros(4, np.float32)])
    logged = []
    cleave.Session(model, "npu,cpu", log=lambda level, text: logged.append((level, text)))
    check(all(isinstance(level, int) for level, _ in logged), "the log")
    check(len(cleave.devices("npu,cpu")) == 2 and cleave.devices("npu")[0].kind == "npu", "devices")


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def test_memory(count):
    """Sessions that are opened, run and closed in 8 threads leave nothing behind."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], {"x": (1, [4, 64])}, {"y": (1, [4, 64])},
                     [onnx.numpy_helper.from_array(np.random.default_rng(1).standard_normal((64, 64), dtype=np.float32), "w")]).SerializeToString()
    x = np.ones((4, 64), np.float32)

    def work(times):
        for _ in range(times):
            with cleave.Session(model, "cpu", threads=1, cache="") as session:
                session.run({"x": x})

    def round_of(times):
        threads = [threading.Thread(target=work, args=(times // 8,)) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        gc.collect()
        return resident_kib()

    before = round_of(count // 5)
    after = round_of(count - count // 5)
    print(f"{count} sessions in 8 threads: {before} KiB after a fifth of them, {after} KiB after all", flush=True)
    check(after < before * 1.05 + 4096, f"resident memory grows from {before} to {after} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it, and so would the child
    for test in (test_models, test_dtypes, test_strings, test_sizes_from_data, test_stopping, test_asyncio, test_plans, test_measuring, test_gnn, test_readme, test_errors):
        test()
    test_memory(10000 if arguments.all else 400)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
