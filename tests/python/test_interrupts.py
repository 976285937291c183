"""Tests commands that are interrupted at some moment: they must end soon with status 128 + the number of the signal, leave no
temporary files, and keep what was measured. Also tests that several processes which write to one name all succeed."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLEAVE = os.environ.get("CLEAVE_COMMAND", os.path.join(ROOT, "build", "cleave"))
PATIENCE = 60  # seconds to wait for what should take one or two, because the machine may be busy

passed = failed = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("failed:", what, flush=True)


def chain(path, layers, width):
    """Writes a model: a chain of products with random weights and Relus."""
    rng = np.random.default_rng(7)
    nodes, weights = [], []
    for i in range(layers):
        weights.append(onnx.numpy_helper.from_array(rng.standard_normal((width + i, width + i + 1), dtype=np.float32) / width, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Relu", [f"p{i}"], [f"v{i + 1}"]))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [64, width])],
                              [helper.make_tensor_value_info(f"v{layers}", TensorProto.FLOAT, [64, width + layers])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def endless(path):
    """Writes a model with a loop of 2^60 iterations."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "one"], ["t"]), helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("s", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)], "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [onnx.numpy_helper.from_array(np.array(1 << 60), "n"), onnx.numpy_helper.from_array(np.array(True), "yes"),
         onnx.numpy_helper.from_array(np.ones(4, np.float32), "one")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def start(folder, *arguments, **options):
    environment = dict(os.environ, CLEAVE_CACHE_DIR="")
    return subprocess.Popen([CLEAVE, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **options)


def interrupt(process, after, number=signal.SIGINT):
    """Sends the signal and returns (exit status, output, errors, seconds from the signal to the end)."""
    time.sleep(after)
    begin = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err, time.monotonic() - begin


def leftovers(folder):
    return [name for name in os.listdir(folder) if ".tmp-" in name or ".new-" in name]


def test_loop(folder):
    endless(os.path.join(folder, "endless.onnx"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        status, _, err, seconds = interrupt(start(folder, "run", "endless.onnx", "--no-fallback"), 0.5, number)
        check(status == 128 + number, f"an endless loop, signal {number}: status {status}: {err}")
        check("interrupted" in err, f"an endless loop does not say that it was interrupted: {err}")
        check(seconds < PATIENCE / 4, f"an endless loop ends only after {seconds:.1f} s")
    process = start(folder, "run", "endless.onnx", "--no-fallback",
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))  # as a shell does for background commands
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    check(process.poll() is None, "a command started with the signal ignored ends all the same")
    process.kill()
    process.communicate()


def test_products(folder):
    """A signal must not be handled on a thread that computes: generated code of oneDNN does not leave room for a handler's frame."""
    rng = random.Random(1)
    chain(os.path.join(folder, "products.onnx"), 8, 512)
    for i in range(24):
        process = start(folder, "run", "products.onnx", "--threads", "1", "--runs", "100000000")
        status, _, err, _ = interrupt(process, rng.uniform(0.2, 0.6))
        check(status in (130, -signal.SIGINT), f"products: status {status}: {err}")  # -2: the signal came before main()


def interrupt_bench(folder, *arguments):
    """Interrupts a bench while it measures runs."""
    for after in (1.5, 6, 24):  # a busy machine takes longer to begin
        status, out, err, _ = interrupt(start(folder, "bench", "small.onnx", "--runs", "100000000", *arguments), after)
        if out:
            break
    return status, out, err


def test_bench(folder):
    chain(os.path.join(folder, "small.onnx"), 4, 64)
    status, out, err = interrupt_bench(folder, "--json")
    check(status == 130, f"bench: status {status}: {err}")
    result = json.loads(out) if out else {}
    check(result.get("interrupted") is True and 0 < result["runs"] < 100000000, f"bench does not say that it was interrupted: {out[:300]}")
    status, out, err = interrupt_bench(folder, "--in-flight", "2")
    check(status == 130 and "median" in out and "interrupted after" in out, f"bench in flight: status {status}: {out} {err}")
    # The signal comes during the first configuration (--threads) or the first burst of runs (--compare-with).
    for several in (["--threads", "1,2"], ["--compare-with", "npu,cpu"]):
        status, out, err = interrupt_bench(folder, "--json", *several)
        result = json.loads(out) if out else {}
        check(status == 130, f"bench {several}: status {status}: {err}")
        check(result.get("interrupted") is True and len(result["rows"]) >= 1, f"bench {several} does not say that it was interrupted: {out[:300]}")
        check(all(row["runs"] == len(row["samples_ms"]) > 0 for row in result["rows"]), f"bench {several}: a row has no runs, or not one sample for each run: {out[:300]}")
    status, out, err = interrupt_bench(folder, "--threads", "1,2")
    check(status == 130 and "median ms" in out and "interrupted: 1 of 2 configurations" in out, f"bench of two: status {status}: {out} {err}")


def measured(profile, what, key):
    """Returns the times of the operators that have one (what, key: "operators", "signature"), or of the blocks ("blocks", "key")."""
    return {(device["name"], entry[key]): entry["time_ns"] for device in profile["devices"] for entry in device.get(what, [])
            if "time_ns" in entry}


def test_profile(folder):
    chain(os.path.join(folder, "long.onnx"), 24, 96)
    command = ["profile", "long.onnx", "--devices", "npu,cpu", "-q", "-o", "costs.json"]
    for attempt in range(6):  # until an attempt is interrupted after nodes were measured
        process = start(folder, *command, *(["--continue"] if attempt > 0 else []))
        status, _, err, _ = interrupt(process, 0.7)
        check(status == 130 and "--continue" in err, f"profile: status {status}: {err}")
        with open(os.path.join(folder, "costs.json")) as file:
            partial = json.load(file)
        check(partial.get("partial") is True, "the profile of an interrupted command is not marked")
        before, blocks = measured(partial, "operators", "signature"), measured(partial, "blocks", "key")
        if len(before) > 4:
            break
    check(len(before) > 0, "nothing was measured before the interruption")
    plan = subprocess.run([CLEAVE, "plan", "long.onnx", "--devices", "npu,cpu", "-q", "--profile", "costs.json"], cwd=folder,
                          stdout=subprocess.DEVNULL)
    check(plan.returncode == 0, "a partial profile cannot be planned with")
    whole = start(folder, *command, "--continue")
    _, err = whole.communicate(timeout=4 * PATIENCE)
    with open(os.path.join(folder, "costs.json")) as file:
        profile = json.load(file)
    after = measured(profile, "operators", "signature")
    check(whole.returncode == 0 and "partial" not in profile, f"profile --continue: status {whole.returncode}: {err}")
    check(all(after.get(key) == time_ns for key, time_ns in before.items()), "profile --continue measures operators again")
    # Blocks are measured after the nodes, and the signal may have come when all nodes were measured.
    check(len(after) + len(measured(profile, "blocks", "key")) > len(before) + len(blocks), "profile --continue measures nothing more")


def test_writes(folder):
    rng = random.Random(3)
    chain(os.path.join(folder, "wide.onnx"), 16, 700)
    ended = 0
    for i in range(24):
        process = start(folder, "compile", "wide.onnx", "--devices", "npu,cpu", "-q", "-o", "out")
        status, _, err, _ = interrupt(process, rng.uniform(0.002, 0.15))
        ended += status == 130
        check(status in (0, 130, -signal.SIGINT), f"compile: status {status}: {err}")  # -2: the signal came before main()
        check(not leftovers(folder), f"compile leaves {leftovers(folder)}")
    check(ended > 0, "no compile was interrupted")
    result = subprocess.run([CLEAVE, "compile", "wide.onnx", "--devices", "npu,cpu", "-q", "-o", "out"], cwd=folder,
                            stdout=subprocess.DEVNULL)
    check(result.returncode == 0, "the directory cannot be written after interruptions")


def test_together(folder):
    """Four processes compile to one folder at the same time. At first it does not exist, then it does."""
    chain(os.path.join(folder, "one.onnx"), 4, 48)
    for i in range(10):
        processes = [start(folder, "compile", "one.onnx", "--devices", "npu,cpu", "-q", "-o", f"shared{i // 2}") for _ in range(4)]
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE)
            check(process.returncode == 0, f"one of four processes that compile to one name: {err}")
    processes = []
    for width in (40, 41, 42):
        chain(os.path.join(folder, f"m{width}.onnx"), 2, width)
        processes.append(start(folder, "profile", f"m{width}.onnx", "-q", "--runs", "2", "-o", "costs.json"))
    for process in processes:
        _, err = process.communicate(timeout=PATIENCE)
        check(process.returncode == 0, f"one of three processes that measure into one file: {err}")
    with open(os.path.join(folder, "costs.json")) as file:
        text = file.read()
    for width in (40, 41, 42):
        check(f"f32[64,{width}]" in text, f"measurements are lost when three processes write one file: those of width {width}")
    check(not leftovers(folder), f"processes that compile together leave {leftovers(folder)}")
    run = subprocess.run([CLEAVE, "run", "shared0", "-q"], cwd=folder, stdout=subprocess.DEVNULL)
    check(run.returncode == 0, "the directory that four processes wrote does not run")


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # background jobs of a shell, and nohup, ignore some of them
        signal.signal(number, signal.SIG_DFL)
    for test in (test_loop, test_products, test_bench, test_profile, test_writes, test_together):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
