"""Tests `cleave gnn profile`, `plan` and `run --plan`, with costs that are measured here.

    python tests/python/test_gnn_plan.py

The results must be those of a run of the whole graph without a plan, also with plan files that were edited. Also kills runs and
resumes them, and tests errors.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime

import oracle
from test_gnn import random_model

DEVICES = ("--devices", "cpu,npu", "--pad", "100", "--cache-dir", "")
THREE = ("--devices", "cpu,npu,npu1", "--npu-spec", "default", "--npu-spec", "all", "--cache-dir", "")
ATTEMPTS = 8  # how often to try to kill a run between its layers
KILLS = 20


def told(*arguments):
    return json.loads(oracle.cleave("gnn", *arguments, "--json"))


def same(one, other):
    a, b = np.load(one)["out"], np.load(other)["out"]
    worst = np.abs(a - b).max() / max(1e-30, np.abs(a).max())
    return None if worst <= 1e-5 else f"the largest difference is {worst:.3g} of the largest magnitude, 1e-5 is allowed"


# --- edited plan files, which are run as edited

def forms(stages):
    """Returns {name: blocks of a layer}. A block is (the stage before which it ends, parts). A part is (device, from, to): the
    device computes from/20 to to/20 of the in-edges."""
    last = stages - 1
    return {
        "a pipeline": [(last, [("cpu", 0, 20)]), (stages, [("npu", 0, 20)])],
        "shares": [(stages, [("cpu", 0, 13), ("npu1", 13, 20)])],
        "both": [(last, [("cpu", 0, 9), ("npu1", 9, 20)]), (stages, [("npu", 0, 20)])],
        "three blocks": [(last - 1, [("npu1", 0, 20)]), (last, [("cpu", 0, 20)]), (stages, [("npu", 0, 20)])],
    }


def force(plan, form, k):
    """Changes the plan so that every layer and subgraph has the blocks of this form."""
    plan["machine"]["devices"].append({"name": "npu1", "space": 2, "static": True})
    for told_times in plan["per_k"] + plan["layers"]:
        for key in {"busy_ms", "idle_ms", "single_device_ms"} & set(told_times):
            told_times[key]["npu1"] = 0.0
    plan["k"], plan["membership_key"] = k, ""
    for device in plan["machine"]["devices"]:  # tests an older format of the file, with one switch_ms for all devices
        device.pop("switch_ms", None)
    plan["machine"]["switch_ms"] = 0.25
    zero = {"bytes": 0, "pack_ms": 0.0, "in_ms": 0.0, "compute_ms": 1.0, "out_ms": 0.0}
    sizes = {"sizes": [100, 100, 100]}
    for layer in plan["layers"]:
        first, blocks = 0, []
        for last, parts in forms(layer["stages"])[form]:
            made = [{"device": device, "from": begin, "to": end, **sizes, **({} if device == "cpu" else {"padded": [200, 200, 100]}), **zero}
                    for device, begin, end in parts]
            blocks.append({"first": first, "last": last, "parts": made, "merge_ms": 0.0, "ideal_ms": 1.0})
            first = last
        layer["subgraphs"], layer["sequence"] = [blocks] * k, list(range(k))[::-1]
        layer["clusters"] = [{"first": 0, "count": k}]
        layer.pop("merged", None)
    return plan


def check_kind(tally, folder, graph, kind, rng):
    model, *_ = random_model(folder, kind, [12, 10, 16], 2, rng, f"plan_{kind}")
    asked = ("--model", model, "--graph", graph, *DEVICES)
    path = lambda name: os.path.join(folder, f"{kind}_{name}")
    for name in ("costs.json", "plan.json"):
        if os.path.exists(path(name)):
            os.remove(path(name))
    for name in ("blocks", "inlined"):
        shutil.rmtree(path(name), ignore_errors=True)
    oracle.cleave("gnn", "run", *asked, "--output", path("single.npz"))
    told("profile", *asked, "--kset", "1,3", "--runs", "2", "--output", path("costs.json"))
    planned = told("plan", *asked, "--kset", "1,3", "--profile", path("costs.json"), "--output", path("plan.json"), "--list-peps",
                   "--export-dir", path("blocks"))
    wanted = {"per_k", "k", "makespan_ms", "lower_bound_ms", "gap", "best_single_device_ms", "peps"} - set(planned)
    reason = f"missing {wanted}" if wanted else None
    if [item["k"] for item in planned["per_k"]] != [1, 3] or not planned["lower_bound_ms"] <= planned["makespan_ms"]:
        reason = f"{planned['per_k']}"
    tally.add(f"{kind}: JSON output of plan", reason)
    told("plan", *asked, "--kset", "1,3", "--profile", path("costs.json"), "--export-dir", path("inlined"), "--inline")
    tally.add(f"{kind}: exported blocks", check_exported(path("blocks"), path("inlined")))
    ran = told("run", *asked, "--plan", path("plan.json"), "--verify", "--output", path("out.npz"), "--trace", path("trace.json"))
    events = json.load(open(path("trace.json"), encoding="utf-8"))["traceEvents"]
    reason = same(path("single.npz"), path("out.npz"))
    if not ran["measured_ms"] > 0 or not ran["peak_rss_bytes"] > 0 or len(events) < 3:
        reason = f"measured_ms is {ran['measured_ms']}, peak_rss_bytes {ran['peak_rss_bytes']}, and the trace has {len(events)} events, expected at least 3"
    tally.add(f"{kind}: run by the plan", reason)
    told("run", *asked, "--kset", "3", "--effort", "quick", "--profile", path("costs.json"), "--output", path("now.npz"))
    tally.add(f"{kind}: a run that plans by itself has the same result", same(path("single.npz"), path("now.npz")))
    for form in forms(7):
        with open(path("plan.json"), encoding="utf-8") as file:
            plan = force(json.load(file), form, 3)
        with open(path("edited.json"), "w", encoding="utf-8") as file:
            json.dump(plan, file)
        ran = told("run", *asked[:4], *THREE, "--plan", path("edited.json"), "--verify", "--output", path("edited.npz"))
        used, wanted = {block["device"] for block in ran["blocks"]}, {part[0] for block in forms(7)[form] for part in block[1]}
        reason = same(path("single.npz"), path("edited.npz"))
        if used != wanted:
            reason = f"the run used {used}, expected {wanted}"
        tally.add(f"{kind}: an edited plan, {form}", reason)
    return asked, path


def check_exported(called, inlined):
    """Returns None if ONNX Runtime loads every block, and the inlined ones have standard operators only; or what is wrong."""
    for folder in (called, inlined):
        files = glob.glob(os.path.join(glob.escape(folder), "*.onnx"))
        if not files:
            return f"{folder} has no files"
        for file in files:
            onnxruntime.InferenceSession(file)
            if folder == inlined and any(node.domain for node in onnx.load(file).graph.node):
                return f"{file} has operators that are not standard"
    return None


def check_resume(tally, asked, path):
    """Kills a run when the rows of its first layer are written, and resumes it. Also tests outputs that cannot be written,
    temporary files and a damaged state."""
    output, state = path("killed.npz"), path("killed.npz.state")
    command = [oracle.COMMAND, "gnn", "run", *asked, "--plan", path("plan.json"), "--output", output, "--quiet"]
    for _ in range(ATTEMPTS):
        for name in (output, state):
            if os.path.exists(name):
                os.remove(name)
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while run.poll() is None and not os.path.exists(state):
            time.sleep(0.0002)
        run.send_signal(signal.SIGKILL)
        run.wait()
        if os.path.exists(state):
            break
    else:
        tally.skip("a killed run is resumed at layer 1 with the right result", "every run ended before it could be killed")
        return
    left = [f"{output} exists"] if os.path.exists(output) else []
    state_bytes = os.path.getsize(state)
    ran = told("run", *asked, "--plan", path("plan.json"), "--output", output, "--resume")
    reason = same(path("single.npz"), output)
    if left or ran["resumed_at_layer"] != 1 or os.path.exists(state):
        reason = f"{left}, resumed at layer {ran['resumed_at_layer']}, state exists: {os.path.exists(state)}"
    tally.add("a killed run is resumed at layer 1 with the right result", reason)
    # If the output cannot be written, the run can be resumed. Temporary files of a killed run are removed by the next run.
    os.remove(output)
    os.mkdir(output)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    tally.add("an output that is a folder is rejected", None if done.returncode == 1 and os.path.isdir(output) else f"exit status {done.returncode}: {done.stderr}")
    os.rmdir(output)
    # The limit of the file size allows the file with the state between layers, but not the result, which is larger.
    if os.path.getsize(path("single.npz")) > state_bytes + 4096:
        limited = subprocess.run(["bash", "-c", f'ulimit -f {state_bytes // 1024 + 2}; trap "" XFSZ; exec "$@"', "-", *command],
                                 capture_output=True, text=True, check=False)
        reason = None if limited.returncode == 1 and not os.path.exists(output) else f"exit status {limited.returncode}: {limited.stderr}"
        if not reason and not os.path.exists(state):
            reason = f"the file with the state, from which the run could be resumed, is missing: {limited.stderr}"
        if not reason:
            ran = told("run", *asked, "--plan", path("plan.json"), "--output", output, "--resume")
            reason = same(path("single.npz"), output) or (None if ran["resumed_at_layer"] == 1 else f"{ran['resumed_at_layer']}")
        tally.add("without disk space for the output the run fails and can be resumed", reason)
    else:
        tally.skip("without disk space for the output the run fails and can be resumed", f"the state is not smaller than the result: {state_bytes} bytes")
    left = [output + ".tmp-AAAAAA", state + ".tmp-zzZZ09"]
    for name in left:
        open(name, "wb").close()
    told("run", *asked, "--plan", path("plan.json"), "--output", output)
    there = [name for name in left + [state] if os.path.exists(name)]
    tally.add("no temporary files are left", f"these exist: {there}" if there else None)
    open(state, "wb").write(b"no state")
    refuse(tally, "a damaged state", ["the state of a run"], *asked, "--plan", path("plan.json"), "--output", output, "--resume")
    os.remove(state)


def check_kills(tally, folder, rng):
    """Kills runs at random moments, some of them repeatedly, and resumes them: the results must equal those of a run that was
    not killed, and the file with the state must be removed."""
    n, m, k = 8000, 60000, 4
    graph, path = os.path.join(folder, "killed_graph.npz"), lambda name: os.path.join(folder, f"killed_{name}")
    np.savez(graph, edge_index=rng.integers(0, n, (2, m)), x=rng.standard_normal((n, 24)).astype(np.float32))
    model, *_ = random_model(folder, "gat", [24, 16, 16, 16, 8], 2, rng, "killed")
    small = os.path.join(folder, "killed_small.npz")  # a small graph, because the plan only needs the right layers
    np.savez(small, edge_index=rng.integers(0, 300, (2, 1200)), x=rng.standard_normal((300, 24)).astype(np.float32))
    told("profile", "--model", model, "--graph", small, *DEVICES, "--kset", "1", "--runs", "1", "--output", path("costs.json"))
    told("plan", "--model", model, "--graph", small, *DEVICES, "--kset", "1", "--profile", path("costs.json"), "--output", path("plan.json"))
    with open(path("plan.json"), encoding="utf-8") as file:
        plan = force(json.load(file), "both", k)
    plan["graph_hash"] = ""
    with open(path("plan.json"), "w", encoding="utf-8") as file:
        json.dump(plan, file)
    output, state = path("out.npz"), path("out.npz.state")
    asked = ("--model", model, "--graph", graph, *THREE[:-1], path("cache"), "--plan", path("plan.json"))
    told("run", *asked, "--verify", "--output", path("whole.npz"))
    start = time.monotonic()
    told("run", *asked, "--output", output)
    length, went_on = time.monotonic() - start, []
    expected = np.load(path("whole.npz"))["out"]
    reason = None
    for trial in range(KILLS):
        for name in glob.glob(glob.escape(output) + "*"):  # including temporary files of a killed run
            os.remove(name)
        for attempt in range(1 + trial % 3):
            command = [oracle.COMMAND, "gnn", "run", *asked, "--output", output, "--quiet"] + (["--resume"] if attempt > 0 else [])
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=oracle.environment())
            # In every other trial, wait until a layer is complete.
            while trial % 2 == 1 and run.poll() is None and not os.path.exists(state):
                time.sleep(0.001)
            time.sleep(rng.uniform(0, length if trial % 2 == 0 else length / 3))
            run.send_signal(signal.SIGKILL)
            run.wait()
        if os.path.exists(output) and not np.array_equal(np.load(output)["out"], expected):
            reason = reason or f"kill {trial}: the output has wrong numbers"
        ran = told("run", *asked, "--output", output, "--resume")
        went_on.append(ran["resumed_at_layer"])
        if not np.array_equal(np.load(output)["out"], expected):
            reason = reason or f"kill {trial}: resumed at layer {went_on[-1]}, the output has wrong numbers"
        if os.path.exists(state):
            reason = reason or f"kill {trial}: the file with the state was not removed"
    print(f"{KILLS} runs were killed, some of them repeatedly, and resumed at layers {sorted(went_on)}")
    tally.add("runs killed at random moments are resumed with equal results", reason)


def check_nominal(tally, asked, path):
    """Checks that `plan` and `run` without a profile use nominal prices, and say so."""
    command = [oracle.COMMAND, "gnn", "plan", *asked, "--kset", "2", "--output", path("nominal.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=oracle.environment())
    plan = json.load(open(path("nominal.json"), encoding="utf-8")) if done.returncode == 0 else {}
    said = "nominal" in done.stderr and "gnn profile" in done.stderr and "nominal" in done.stdout and plan.get("prices") == "nominal"
    tally.add("plan without a profile uses nominal prices and says so", None if said else f"exit {done.returncode}: {done.stdout} {done.stderr}")
    ran = told("run", *asked, "--kset", "2", "--output", path("nominal.npz"))
    tally.add("a run without a profile has the right result at nominal prices", same(path("single.npz"), path("nominal.npz")) or (None if ran["tables"] == "nominal" else ran["tables"]))


def check_membership(tally, asked, plan, output, expected):
    """Checks the file of parts that is beside a plan with k > 1. A run reads it: other parts are refused, and if the file is
    missing, METIS runs again."""
    beside = plan.removesuffix(".json") + ".membership.npy"
    if os.path.exists(beside):
        os.remove(beside)
    told("plan", *asked, "--kset", "2,4", "--output", plan)
    with open(plan, encoding="utf-8") as file:
        made = json.load(file)
    reason = None if made["k"] > 1 and made["membership"] == os.path.basename(beside) else f"k {made['k']}, {made.get('membership')}"
    parts = np.load(beside)
    if parts.dtype != np.uint32 or set(parts) != set(range(made["k"])):
        reason = f"{parts.dtype}, parts {sorted(set(parts))}"
    for layer in made["layers"]:
        keys = [cluster["pep"] for cluster in layer["clusters"]]
        if len(set(keys)) != len(keys):
            reason = f"a key has two clusters: {keys}"
    told("run", *asked, "--plan", plan, "--output", output)
    tally.add("the file of parts beside a plan", reason or same(expected, output))
    np.save(beside, (parts + 1) % made["k"])
    refuse(tally, "another membership", ["not the parts that the plan was made for"], *asked, "--plan", plan, "--output", output)
    with open(beside, "wb") as file:
        file.write(b"no array")
    refuse(tally, "a damaged membership", ["membership.npy"], *asked, "--plan", plan, "--output", output)
    os.remove(beside)
    told("run", *asked, "--plan", plan, "--output", output)
    tally.add("without the file of parts METIS runs again, with the same result", same(expected, output))


def check_memory(tally, folder, graph, kinds):
    """Plans for a device whose memory is too small for the whole graph. A plan must run, and take no more memory than it states.
    If no k fits, the error gives the memory that each k would need."""
    def asked(kind, memory, devices):
        path = os.path.join(folder, f"npu_{memory}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": "small", "operators": "all", "memory": memory}, file)
        model = os.path.join(folder, f"plan_{kind}.json")
        return ("--model", model, "--graph", graph, "--devices", devices, "--npu-spec", path, "--pad", "100", "--cache-dir", "")
    plan, output = os.path.join(folder, "memory_plan.json"), os.path.join(folder, "memory.npz")
    for kind in kinds:
        for memory in (1_000_000, 2_000_000):
            for devices in ("npu,cpu", "npu"):
                name, reason = f"{kind}: {devices} with {memory} bytes", None
                try:
                    told("plan", *asked(kind, memory, devices), "--kset", "1,2", "--output", plan)
                    ran = told("run", *asked(kind, memory, devices), "--plan", plan, "--output", output)
                    used = ran["memory"][0]
                    if not used["taken_bytes"] <= used["planned_bytes"] <= used["limit_bytes"] == memory:
                        reason = f"{used}"
                    reason = reason or same(os.path.join(folder, f"{kind}_single.npz"), output)
                except oracle.CleaveError as error:
                    reason = str(error)
                tally.add(name, reason)
    check_membership(tally, asked("gcn", 1_000_000, "npu"), plan, output, os.path.join(folder, "gcn_single.npz"))
    refuse(tally, "no k fits", ["k = 1 needs", "k = 2 needs", "k = 4 needs", "npu has 200000"], *asked(kinds[0], 200_000, "npu"), "--kset", "1,2", verb="plan")


def refuse(tally, name, expected, *arguments, verb="run"):
    try:
        oracle.cleave("gnn", verb, *arguments)
        tally.add(f"rejected: {name}", "the command accepted it")
    except oracle.CleaveError as error:
        missing = [part for part in expected if part not in str(error)]
        tally.add(f"rejected: {name}", f"the error message does not contain {missing}: {error}" if missing else None)


def main():
    tally, folder, rng = oracle.Tally(), oracle.build_folder("gnn_plan"), np.random.default_rng(7)
    graph = os.path.join(folder, "graph.npz")
    n, m = 3000, 24000
    edges = np.stack([rng.integers(0, n, m), np.where(rng.random(m) < 0.2, 5, rng.integers(0, n - 300, m))])
    np.savez(graph, edge_index=edges, x=rng.standard_normal((n, 12)).astype(np.float32))
    for kind in ("graphsage", "gat", "gcn"):
        asked, path = check_kind(tally, folder, graph, kind, rng)
    check_memory(tally, folder, graph, ("graphsage", "gat", "gcn"))
    check_resume(tally, asked, path)
    check_kills(tally, folder, rng)
    other = os.path.join(folder, "other.npz")
    np.savez(other, edge_index=edges[:, :-1], x=rng.standard_normal((n, 12)).astype(np.float32))
    plan = path("plan.json")
    refuse(tally, "another graph", ["another graph"], "--model", asked[1], "--graph", other, *DEVICES, "--plan", plan)
    refuse(tally, "a device that is not open", ["npu"], *asked[:4], "--devices", "cpu", "--plan", path("edited.json"))
    refuse(tally, "a device without a profile", ["npu1", "profile"], *asked[:4], *THREE, "--kset", "2", "--profile", path("costs.json"),
           verb="plan")
    check_nominal(tally, asked, path)
    refuse(tally, "k above n", ["3001"], *asked, "--kset", "3001", "--profile", path("costs.json"), verb="plan")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
