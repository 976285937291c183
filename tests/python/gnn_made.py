"""Makes a graph, a model and costs of devices, for the tests of the `cleave gnn` commands.

The graph can be cut into parts with few edges between them. The costs are made up, so that plans do not depend on the machine:
the CPU is slow in the last stages of a layer, and the NPU is faster there."""
import json
import os

import numpy as np

import oracle
from test_gnn import random_model

VERTICES, NEIGHBOURS, WIDTHS = 4000, 10, [12, 16, 20]  # each layer has more output than input features, so it aggregates before it transforms
DEVICES = ("--devices", "cpu,npu", "--pad", "100", "--threads", "1")
KSET = ("--kset", "1,2,4")


def ring(rng, width=WIDTHS[0]):
    """Makes a ring: each vertex has edges from the NEIGHBOURS vertices after it. So few edges cross a cut."""
    targets = np.repeat(np.arange(VERTICES), NEIGHBOURS)
    sources = (targets + np.tile(np.arange(1, NEIGHBOURS + 1), VERTICES)) % VERTICES
    return {"edge_index": np.stack([sources, targets]), "x": rng.standard_normal((VERTICES, width)).astype(np.float32)}


def made_time(device, first, last, stages, n, m):
    """Returns a made-up time, in ns, of stages `first` to `last` on n vertices and m edges. It is the same on every machine."""
    late = max(0, last - max(first, stages - 2))
    row = 20 + 400 * late if device == "cpu" else 20 + 150 * late
    return 3000.0 + row * n + 40 * m


def make(folder):
    """Writes a graph, a model and costs to the folder. Returns their paths, {"graph": ..., "model": ..., "costs": ...}. The costs
    are measured, and then the times are replaced by made-up ones."""
    rng = np.random.default_rng(3)
    made = {name: os.path.join(folder, name + end) for name, end in (("graph", ".npz"), ("model", ".json"), ("costs", ".json"))}
    np.savez(made["graph"], **ring(rng))
    random_model(folder, "graphsage", WIDTHS, 2, rng, "model")
    if os.path.exists(made["costs"]):
        os.remove(made["costs"])
    oracle.cleave("gnn", "profile", "--model", made["model"], "--graph", made["graph"], *DEVICES, *KSET, "--runs", "1", "--seconds", "0", "-o",
                  made["costs"], "--cache-dir", "")
    with open(made["costs"], encoding="utf-8") as file:
        costs = json.load(file)
    costs.pop("overheads", None)
    for block in costs["blocks"]:
        for point in block["points"]:
            point.pop("compile_ns", None)
            if "time_ns" in point:
                point["time_ns"] = made_time(block["device"], block["first"], block["last"], 7, point["n"], point["m"])
                point["spread_ns"] = 0.0
    for copy in costs["copies"]:
        for point in copy["points"]:
            point["time_ns"], point["spread_ns"] = 500.0 + 0.05 * point["bytes"], 0.0
    with open(made["costs"], "w", encoding="utf-8") as file:
        json.dump(costs, file)
    return made
