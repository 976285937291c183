"""`cleave gnn profile`, `plan` and `run` by a plan: costs measured here, the plan that they give and its file, also edited; its run
against the graph in one piece; a run that is killed and gone on with; and what is refused.

    python tests/python/test_gnn_plan.py
"""
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

import oracle
from test_gnn import random_model

DEVICES = ("--devices", "cpu,npu", "--pad", "100", "--cache-dir", "")
ATTEMPTS = 8  # to kill a run between its layers


def told(*arguments):
    return json.loads(oracle.cleave("gnn", *arguments, "--json"))


def same(one, other):
    a, b = np.load(one)["out"], np.load(other)["out"]
    worst = np.abs(a - b).max() / max(1e-30, np.abs(a).max())
    return None if worst <= 1e-5 else f"off by {worst:.3g}"


# --- edits: a plan file may be edited, and what it says then is run

def force_pipeline(plan):
    """The last stages of every layer to the NPU; the rest stays on the CPU."""
    for layer in plan["layers"]:
        cut = layer["stages"] - 1
        for subgraph in layer["subgraphs"]:
            parts = [part for block in subgraph for part in block["parts"]]
            rows, targets, edges = (max(part["sizes"][i] for part in parts) for i in range(3))
            padded = -(-targets // 100) * 100
            times = {"bytes": 0, "pack_ms": 0.0, "in_ms": 0.0, "compute_ms": 1.0, "out_ms": 0.0}
            first = {"device": "cpu", "from": 0, "to": 20, "sizes": [rows, targets, edges], **times}
            second = {"device": "npu", "from": 0, "to": 20, "sizes": [targets, targets, 0], "padded": [padded, padded, 0], **times}
            subgraph[:] = [{"first": 0, "last": cut, "parts": [first], "merge_ms": 0.0, "ideal_ms": 1.0},
                           {"first": cut, "last": layer["stages"], "parts": [second], "merge_ms": 0.0, "ideal_ms": 1.0}]


def check_kind(tally, folder, graph, kind, rng):
    model, *_ = random_model(folder, kind, [12, 10, 16], 2, rng, f"plan_{kind}")
    asked = ("--model", model, "--graph", graph, *DEVICES)
    path = lambda name: os.path.join(folder, f"{kind}_{name}")
    for name in ("costs.json", "plan.json"):
        if os.path.exists(path(name)):
            os.remove(path(name))
    oracle.cleave("gnn", "run", *asked, "--output", path("single.npz"))
    told("profile", *asked, "--kset", "1,3", "--runs", "2", "--output", path("costs.json"))
    planned = told("plan", *asked, "--kset", "1,3", "--profile", path("costs.json"), "--output", path("plan.json"), "--list-peps",
                   "--export-dir", path("blocks"))
    wanted = {"per_k", "k", "makespan_ms", "lower_bound_ms", "gap", "best_single_device_ms", "peps"} - set(planned)
    reason = f"missing {wanted}" if wanted else None
    if [item["k"] for item in planned["per_k"]] != [1, 3] or not planned["lower_bound_ms"] <= planned["makespan_ms"]:
        reason = f"{planned['per_k']}"
    tally.add(f"{kind}: plan", reason)
    ran = told("run", *asked, "--plan", path("plan.json"), "--verify", "--output", path("out.npz"), "--trace", path("trace.json"))
    events = json.load(open(path("trace.json"), encoding="utf-8"))["traceEvents"]
    reason = same(path("single.npz"), path("out.npz"))
    if not ran["measured_ms"] > 0 or not ran["peak_rss_bytes"] > 0 or len(events) < 3:
        reason = f"measured {ran['measured_ms']}, {len(events)} events"
    tally.add(f"{kind}: run by the plan", reason)
    told("run", *asked, "--kset", "3", "--effort", "quick", "--profile", path("costs.json"), "--output", path("now.npz"))
    tally.add(f"{kind}: planned by run", same(path("single.npz"), path("now.npz")))
    plan = json.load(open(path("plan.json"), encoding="utf-8"))
    force_pipeline(plan)
    json.dump(plan, open(path("edited.json"), "w", encoding="utf-8"))
    ran = told("run", *asked, "--plan", path("edited.json"), "--verify", "--output", path("edited.npz"))
    used = {block["device"] for block in ran["blocks"]}
    reason = same(path("single.npz"), path("edited.npz"))
    if used != {"cpu", "npu"}:
        reason = f"it ran on {used}"
    tally.add(f"{kind}: an edited plan", reason)
    return asked, path


def check_resume(tally, asked, path):
    """Killed when the first layer's rows are there."""
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
        tally.skip("resume", "every run was over before it could be killed")
        return
    left = [f"{output} is there"] if os.path.exists(output) else []
    ran = told("run", *asked, "--plan", path("plan.json"), "--output", output, "--resume")
    reason = same(path("single.npz"), output)
    if left or ran["resumed_at_layer"] != 1 or os.path.exists(state):
        reason = f"{left}, went on at layer {ran['resumed_at_layer']}, state is there: {os.path.exists(state)}"
    tally.add("resume", reason)
    open(state, "wb").write(b"no state")
    refuse(tally, "a damaged state", ["the state of a run"], *asked, "--plan", path("plan.json"), "--output", output, "--resume")
    os.remove(state)


def refuse(tally, name, expected, *arguments, verb="run"):
    try:
        oracle.cleave("gnn", verb, *arguments)
        tally.add(name, "was not refused")
    except oracle.CleaveError as error:
        missing = [part for part in expected if part not in str(error)]
        tally.add(name, f"no {missing} in: {error}" if missing else None)


def main():
    tally, folder, rng = oracle.Tally(), oracle.build_folder("gnn_plan"), np.random.default_rng(7)
    graph = os.path.join(folder, "graph.npz")
    n, m = 3000, 24000
    edges = np.stack([rng.integers(0, n, m), np.where(rng.random(m) < 0.2, 5, rng.integers(0, n - 300, m))])
    np.savez(graph, edge_index=edges, x=rng.standard_normal((n, 12)).astype(np.float32))
    for kind in ("graphsage", "gcn", "gat"):
        asked, path = check_kind(tally, folder, graph, kind, rng)
    check_resume(tally, asked, path)
    other = os.path.join(folder, "other.npz")
    np.savez(other, edge_index=edges[:, :-1], x=rng.standard_normal((n, 12)).astype(np.float32))
    plan = path("plan.json")
    refuse(tally, "another graph", ["another graph"], "--model", asked[1], "--graph", other, *DEVICES, "--plan", plan)
    refuse(tally, "a device that is not there", ["npu"], *asked[:4], "--devices", "cpu", "--plan", path("edited.json"))
    devices = ("--devices", "cpu,npu,npu1", "--npu-spec", "default", "--npu-spec", "all", "--cache-dir", "")
    refuse(tally, "a device without a profile", ["npu1", "profile"], *asked[:4], *devices, "--kset", "2", "--profile",
           path("costs.json"), verb="plan")
    refuse(tally, "no profile", ["--profile"], *asked, "--kset", "2", verb="plan")
    refuse(tally, "k above n", ["3001"], *asked, "--kset", "3001", "--profile", path("costs.json"), verb="plan")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
