"""Compares `cleave gnn run` with the definitions of the layers, computed in f64, and with PyTorch Geometric if it is installed.

    python tests/python/test_gnn.py [--all]          --all: also exports larger models to ONNX with both exporters of PyTorch

The models have random weights. The graphs are Cora, Pubmed's edges with random features, and random graphs. ONNX models must
have the same results as the same models in JSON. Also tests errors. CLEAVE_DATA is the folder that contains graphs/.
"""
import argparse
import json
import logging
import os
import sys
import warnings

import numpy as np

import oracle

try:
    import torch
    import torch_geometric.nn as geometric
except ImportError:
    geometric = None

TOLERANCE = 1e-5  # allowed difference, as a share of the largest result
TYPES = ("graphsage", "gcn", "gat")
# Models of PyTorch Geometric that both exporters of PyTorch have written, with a graph and the expected results.
EXPORTED = os.path.join(oracle.ROOT, "tests", "gnn", "models")
NEVER = os.path.join(oracle.BUILD, "generated", "gnn", "never.npz")  # the output of runs that must fail


# --- models

def random_model(folder, kind, widths, heads, rng, name):
    """Writes a model with random weights as JSON and .npz. Returns (path of the JSON, layers, weights)."""
    layers, weights, given = [], {}, widths[0]
    uniform = lambda *shape: (rng.uniform(-1, 1, shape) / np.sqrt(shape[-1])).astype(np.float32)
    for i, out in enumerate(widths[1:]):
        last = i + 2 == len(widths)
        layer = {"in": given, "out": out, "activation": "none" if last else "elu" if kind == "gat" else "relu"}
        if kind == "gat":
            layer |= {"heads": heads, "concat": not last}
            weights |= {f"convs.{i}.lin.weight": uniform(heads * out, given), f"convs.{i}.att_src": uniform(1, heads, out),
                        f"convs.{i}.att_dst": uniform(1, heads, out), f"convs.{i}.bias": uniform(out if last else heads * out)}
            given = heads * out
        else:
            part = "lin_l." if kind == "graphsage" else "lin."
            weights |= {f"convs.{i}.{part}weight": uniform(out, given)}
            weights |= {f"convs.{i}.{'lin_l.bias' if kind == 'graphsage' else 'bias'}": uniform(out)}
            if kind == "graphsage":
                weights |= {f"convs.{i}.lin_r.weight": uniform(out, given)}
            given = out
        layers.append(layer)
    path = os.path.join(folder, f"{name}.json")
    np.savez(os.path.join(folder, f"{name}.npz"), **weights)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"type": kind, "weights": f"{name}.npz", "layers": layers}, file)
    return path, layers, weights


# --- references

def scatter(values, index, n):
    total = np.zeros((n, *values.shape[1:]))
    np.add.at(total, index, values)
    return total


def with_loops(edges, n):
    """Replaces the self-loops in `edges` by exactly one for each vertex."""
    return np.concatenate([edges[:, edges[0] != edges[1]], [np.arange(n), np.arange(n)]], axis=1)


def attend(x, weights, name, layer, source, target, n):
    h = (x @ weights[name + "lin.weight"].T.astype(float)).reshape(n, layer["heads"], layer["out"])
    score = (h * weights[name + "att_src"]).sum(-1)[source] + (h * weights[name + "att_dst"]).sum(-1)[target]
    score = np.where(score > 0, score, 0.2 * score)
    largest = np.full((n, layer["heads"]), -np.inf)
    np.maximum.at(largest, target, score)
    power = np.exp(score - largest[target])
    share = power / scatter(power, target, n)[target]
    result = scatter(share[:, :, None] * h[source], target, n)
    return result.reshape(n, -1) if layer["concat"] else result.mean(1)


def by_definition(kind, layers, weights, x, edges):
    x, n = x.astype(float), len(x)
    source, target = edges if kind == "graphsage" else with_loops(edges, n)
    degree = np.maximum(np.bincount(target, minlength=n), 1).astype(float)
    for i, layer in enumerate(layers):
        name = f"convs.{i}."
        if kind == "graphsage":
            mean = scatter(x[source], target, n) / degree[:, None]
            x = mean @ weights[name + "lin_l.weight"].T + weights[name + "lin_l.bias"] + x @ weights[name + "lin_r.weight"].T
        elif kind == "gcn":
            h, scale = x @ weights[name + "lin.weight"].T.astype(float), 1 / np.sqrt(degree[source] * degree[target])
            x = scatter(h[source] * scale[:, None], target, n) + weights[name + "bias"]
        else:
            x = attend(x, weights, name, layer, source, target, n) + weights[name + "bias"]
        if layer["activation"] == "relu":
            x = np.maximum(x, 0)
        elif layer["activation"] == "elu":
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return x


ACTIVATIONS = {"none": lambda v: v, "relu": lambda v: torch.relu(v), "elu": lambda v: torch.nn.functional.elu(v)}


def geometric_net(kind, layers, weights):
    """Returns the model as a network of PyTorch Geometric."""
    makers = {"graphsage": lambda l: geometric.SAGEConv(l["in"], l["out"]), "gcn": lambda l: geometric.GCNConv(l["in"], l["out"]),
              "gat": lambda l: geometric.GATConv(l["in"], l["out"], heads=l["heads"], concat=l["concat"])}

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = torch.nn.ModuleList(makers[kind](layer) for layer in layers)

        def forward(self, x, edge_index):
            for layer, conv in zip(layers, self.convs):
                x = ACTIVATIONS[layer["activation"]](conv(x, edge_index))
            return x

    net = Net()
    net.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    return net.eval()


def by_geometric(kind, layers, weights, x, edges):
    with torch.no_grad():
        return geometric_net(kind, layers, weights).double()(torch.from_numpy(x).double(),
                                                             torch.from_numpy(edges.astype(np.int64))).numpy()


# --- runs

def difference(expected, actual):
    if expected.shape != actual.shape:
        return f"the shape is {actual.shape}, expected {expected.shape}"
    largest, off = max(1, np.abs(expected).max(initial=0)), np.abs(expected - actual)
    if not np.isfinite(actual).all() or off.max(initial=0) > TOLERANCE * largest:
        at = np.unravel_index(np.argmax(off), off.shape)
        return f"element {tuple(map(int, at))} is {actual[at]:.9g}, expected {expected[at]:.9g} (the largest magnitude is {largest:.3g})"
    return None


def run(tally, folder, name, model, graph, references, *options, same_as=None):
    """Runs a model and compares it with references, [(name, expected)]. If same_as is given, the results must be equal to it bit
    for bit. Returns the results, or None if the run failed."""
    out = os.path.join(folder, "out.npz")
    try:
        told = json.loads(oracle.cleave("gnn", "run", "--model", model, "--graph", graph, "--output", out, "--json", *options))
    except (oracle.CleaveError, ValueError) as error:
        tally.add(name, str(error))
        return None
    reason = None if told["measured_ms"] > 0 and told["peak_rss_bytes"] > 0 else f"measured_ms or peak_rss_bytes is not above 0: {told}"
    actual = np.load(out)["out"]
    for who, expected in references:
        wrong = difference(expected, actual)
        reason = reason or (wrong and f"compared with {who}: {wrong}")
    if same_as is not None and not np.array_equal(same_as, actual):
        reason = reason or f"{np.count_nonzero(same_as != actual)} of {actual.size} numbers differ from those of the JSON model"
    tally.add(name, reason)
    return actual


def run_all(tally, folder, title, x, edges, widths, rng, devices=("cpu",)):
    graph = os.path.join(folder, "graph.npz")
    np.savez(graph, x=x, edge_index=edges)
    for kind in TYPES:
        model, layers, weights = random_model(folder, kind, widths, 2, rng, "model")
        references = [("the definition", by_definition(kind, layers, weights, x, edges))]
        if geometric is not None:
            references.append(("PyTorch Geometric", by_geometric(kind, layers, weights, x, edges)))
        for listed in devices:
            run(tally, folder, f"{title}, {kind}, {len(layers)} layers, {listed}", model, graph, references, "--devices", listed)


# --- models as ONNX

def exported_models(tally, folder):
    """Checks that the JSON models agree with PyTorch Geometric, and that the ONNX models of both exporters have the same bits."""
    for kind in TYPES:
        path = lambda name: os.path.join(EXPORTED, f"{kind}{name}")
        references = [("PyTorch Geometric", np.load(path("_expected.npz"))["out"])]
        by_json = run(tally, folder, f"{kind} as JSON", path(".json"), path("_graph.npz"), references)
        for exporter in ("script", "dynamo"):
            for listed in ("cpu", "npu,cpu"):
                run(tally, folder, f"{kind} as ONNX, {exporter}, {listed}", path(f"_{exporter}.onnx"), path("_graph.npz"), references,
                    "--devices", listed, same_as=by_json if listed == "cpu" else None)


def export(net, path, features, dynamo):
    x, edges, names = torch.randn(11, features), torch.randint(0, 10, (2, 30)), {"input_names": ["x", "edge_index"], "output_names": ["out"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        if dynamo:
            shapes = ({0: torch.export.Dim("n", min=3)}, {1: torch.export.Dim("m", min=3)})
            torch.onnx.export(net, (x, edges), path, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **names)
        else:
            torch.onnx.export(net, (x, edges), path, dynamo=False, opset_version=17, dynamic_axes={"x": {0: "n"}, "edge_index": {1: "m"}},
                              **names)


def export_all(tally, folder, title, x, edges, rng, most_layers):
    """Exports models of 1 to `most_layers` layers for the features of a graph, and compares them with the same models as
    JSON."""
    graph = os.path.join(folder, "export_graph.npz")
    np.savez(graph, x=x, edge_index=edges)
    for kind in TYPES:
        for count in range(1, most_layers + 1):
            model, layers, weights = random_model(folder, kind, [x.shape[1], 16, 8, 24, 7][:count] + [7], 2, rng, "exported")
            by_json = run(tally, folder, f"{title}, {kind} of {count} layers as JSON", model, graph,
                          [("PyTorch Geometric", by_geometric(kind, layers, weights, x, edges))])
            for dynamo in (False, True):
                path = os.path.join(folder, f"exported_{kind}.onnx")
                export(geometric_net(kind, layers, weights), path, x.shape[1], dynamo)
                run(tally, folder, f"{title}, {kind} of {count} layers, {'dynamo' if dynamo else 'script'}", path, graph, [],
                    same_as=by_json)


def random_edges(rng, n, m):
    """Makes random edges: some vertices have none, one is the target of a third of them, some edges occur twice, and each vertex
    has at most one self-loop."""
    edges = rng.integers(0, max(1, n - n // 5), (2, m))
    edges[1, : m // 3] = n // 3
    edges = np.concatenate([edges, edges[:, : m // 8]], axis=1)
    loops = np.unique(edges[0][edges[0] == edges[1]])
    return np.concatenate([edges[:, edges[0] != edges[1]], [loops, loops]], axis=1)


# --- errors

def refused(tally, name, expected, *arguments):
    try:
        oracle.cleave("gnn", "run", *arguments, "--output", NEVER)
        tally.add(f"rejected: {name}", "the command accepted it")
    except oracle.CleaveError as error:
        text = str(error)
        missing = [part for part in ("exit status 1", *expected) if part not in text]
        tally.add(f"rejected: {name}", f"the error message does not contain {missing}: {text}" if missing else None)


def bad_inputs(tally, folder, rng):
    path = lambda name: os.path.join(folder, name)
    edges, x = random_edges(rng, 20, 60), rng.uniform(-1, 1, (20, 6)).astype(np.float32)
    model, _, weights = random_model(folder, "graphsage", [6, 4, 3], 1, rng, "bad")
    if os.path.exists(NEVER):
        os.remove(NEVER)
    np.savez(path("good.npz"), x=x, edge_index=edges)
    np.savez(path("narrow.npz"), x=x[:, :5], edge_index=edges)
    np.savez(path("bare.npz"), edge_index=edges)
    nan = x.copy()
    nan[7, 2] = np.nan
    np.savez(path("nan.npz"), x=nan, edge_index=edges)
    np.savez(path("outside.npz"), x=x, edge_index=np.concatenate([edges, [[3], [20]]], axis=1))
    refused(tally, "a wrong number of features", ["5 features", "reads 6"], "--model", model, "--graph", path("narrow.npz"))
    refused(tally, "no features", ["no features"], "--model", model, "--graph", path("bare.npz"))
    refused(tally, "NaN features", ["nan"], "--model", model, "--graph", path("nan.npz"))
    refused(tally, "ids out of range", ["20"], "--model", model, "--graph", path("outside.npz"))
    np.savez(path("bad.npz"), **{k: v for k, v in weights.items() if k != "convs.1.lin_r.weight"})
    refused(tally, "weights missing", ["layer 1", "convs.1.lin_r.weight"], "--model", model, "--graph", path("good.npz"))
    np.savez(path("bad.npz"), **(weights | {"convs.0.lin_l.weight": np.zeros((4, 7), np.float32)}))
    refused(tally, "weights of another shape", ["layer 0", "[4,7]", "[4,6]"], "--model", model, "--graph", path("good.npz"))
    np.savez(path("bad.npz"), **weights)
    whole = open(path("bad.npz"), "rb").read()
    with open(path("bad.npz"), "wb") as file:
        file.write(whole[: len(whole) // 2])
    refused(tally, "truncated weights", ["bad.npz"], "--model", model, "--graph", path("good.npz"))
    refused(tally, "no such model", ["none.json"], "--model", path("none.json"), "--graph", path("good.npz"))
    tally.add("a failed run leaves no output file", None if not os.path.exists(NEVER) else "never.npz exists")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    runs_all = parser.parse_args().all
    tally, folder, rng = oracle.Tally(), oracle.build_folder("gnn"), np.random.default_rng(5)
    if geometric is None:
        print("PyTorch Geometric is not installed: results are compared only with the definitions in f64")
    exported_models(tally, folder)
    devices = ("cpu", "npu,cpu")
    if (absent := oracle.missing_device("opencl")) is None:
        os.environ.setdefault("POCL_CACHE_DIR", oracle.build_folder("opencl_pocl"))  # where PoCL keeps the kernels that it has compiled
        devices += ("opencl:0",)
    else:
        tally.skip("opencl", absent)
    for n, m, widths in ((1, 0, [3, 2]), (2, 1, [3, 5]), (50, 200, [6, 4, 9]), (300, 3000, [20, 8, 8, 30, 5])):
        x = rng.uniform(-1, 1, (n, widths[0])).astype(np.float32)
        run_all(tally, folder, f"random, {n} vertices", x, random_edges(rng, n, m), widths, rng, devices)
    bad_inputs(tally, folder, rng)
    graphs = os.path.join(oracle.DATA, "graphs")
    if not os.path.isdir(graphs):
        tally.skip("Cora and Pubmed", f"no folder {graphs} (set CLEAVE_DATA to the folder that holds graphs)")
        return tally.finish()
    cora, pubmed = np.load(os.path.join(graphs, "cora.npz")), np.load(os.path.join(graphs, "pubmed_edges.npz"))
    features = cora["x"].shape[1]
    run_all(tally, folder, "Cora", cora["x"], cora["edge_index"], [features, 16, 7], rng, devices)
    for hidden in ([], [16, 16], [16, 8, 32]):
        run_all(tally, folder, "Cora", cora["x"], cora["edge_index"], [features, *hidden, 7], rng)
    n = int(pubmed["edge_index"].max()) + 1
    run_all(tally, folder, "Pubmed", rng.uniform(-1, 1, (n, 24)).astype(np.float32), pubmed["edge_index"], [24, 32, 16, 3], rng)
    if geometric is not None:
        export_all(tally, folder, "Cora", cora["x"], cora["edge_index"], rng, 4 if runs_all else 1)
    elif runs_all:
        tally.skip("models exported here", "PyTorch Geometric is not installed")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
