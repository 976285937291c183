"""Shared by the tests of the `cleave gnn` commands: a graph that can be cut well, and made-up costs of devices, so that plans do
not depend on the machine. In these costs the CPU is slow at the last stages, and the NPU is fast there."""
import json
import os

import numpy as np

import oracle
from test_gnn import random_model

VERTICES, NEIGHBOURS, WIDTHS = 4000, 10, [12, 16, 20]  # each layer is wider than its input, so it gathers before it transforms
DEVICES = ("--devices", "cpu,npu", "--pad", "100", "--threads", "1")
KSET = ("--kset", "1,2,4")


def ring(rng, width=WIDTHS[0]):
    """Makes a ring: the sources of each vertex are the NEIGHBOURS vertices after it, so that few edges cross a cut."""
    targets = np.repeat(np.arange(VERTICES), NEIGHBOURS)
    sources = (targets + np.tile(np.arange(1, NEIGHBOURS + 1), VERTICES)) % VERTICES
    return {"edge_index": np.stack([sources, targets]), "x": rng.standard_normal((VERTICES, width)).astype(np.float32)}


def made_time(device, first, last, stages, n, m):
    """Returns a made-up time in ns for n vertices and m edges: the same on every machine."""
    late = max(0, last - max(first, stages - 2))
    row = 20 + 400 * late if device == "cpu" else 20 + 150 * late
    return 3000.0 + row * n + 40 * m


def make(folder):
    """Writes a graph, a model and costs to the folder; returns their paths as {graph, model, costs}. The costs are measured, and
    then their times are replaced by made-up ones."""
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
