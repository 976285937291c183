"""Makes the files of this folder: GNNs of PyTorch Geometric, exported as ONNX by both exporters of PyTorch, with their state_dict,
a graph and the expected results. The `refused_*` files are other models, which Cleave must reject.

    python tests/gnn/models/make.py          needs torch, torch_geometric, onnx and onnxscript; the tests do not need this script
"""
import json
import os
import warnings

import numpy as np
import onnx
import torch
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, SAGEConv

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
IN, HIDDEN, MIDDLE, CLASSES, HEADS = 6, 5, 8, 3, 2


class Net(torch.nn.Module):
    """Applies the layers, with `activation` between them and `end` after the last one."""

    def __init__(self, convs, activation=torch.relu, end=lambda x: x):
        super().__init__()
        self.convs, self.activation, self.end = torch.nn.ModuleList(convs), activation, end

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = self.activation(x)
        return self.end(x)


class Weighted(torch.nn.Module):
    """A GCN layer with edge weights as an input."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(IN, CLASSES)

    def forward(self, x, edge_index, edge_weight):
        return self.conv(x, edge_index, edge_weight)


def export(net, name, dynamo, extra=()):
    x, edges = torch.randn(11, IN), torch.randint(0, 10, (2, 30))
    names, path = ["x", "edge_index", "edge_weight"][: 2 + len(extra)], os.path.join(HERE, name + ".onnx")
    if dynamo:
        n, m = torch.export.Dim("n", min=3), torch.export.Dim("m", min=3)
        torch.onnx.export(net, (x, edges, *extra), path, dynamo=True, dynamic_shapes=({0: n}, {1: m}), input_names=names,
                          output_names=["out"], external_data=False, verbose=False)
    else:
        axes = {"x": {0: "n"}, "edge_index": {1: "m"}, "edge_weight": {0: "m"}}
        torch.onnx.export(net, (x, edges, *extra), path, dynamo=False, opset_version=17, input_names=names, output_names=["out"],
                          dynamic_axes={k: axes[k] for k in names})
    model = onnx.load(path)  # its metadata, which says where each node came from, is most of the file
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    onnx.save(model, path)


def graph(seed):
    """Makes a graph with self loops, repeated edges, and five vertices without edges. A vertex has at most one self loop, because
    PyTorch Geometric keeps only one."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 45, (2, 220), generator=generator)
    seen, kept = set(), []
    for i, (a, b) in enumerate(edges.T.tolist()):
        if a != b or a not in seen:
            kept.append(i)
        if a == b:
            seen.add(a)
    edges = torch.cat([edges[:, kept], edges[:, kept[:9]][:, edges[0, kept[:9]] != edges[1, kept[:9]]]], 1)
    return torch.randn(50, IN, generator=generator), edges


def main():
    torch.manual_seed(0)
    widths = [(IN, HIDDEN), (HIDDEN, MIDDLE), (MIDDLE, CLASSES)]
    gat_widths = [(IN, HIDDEN, True), (HIDDEN * HEADS, MIDDLE, True), (MIDDLE * HEADS, CLASSES, False)]
    nets = {
        "graphsage": Net([SAGEConv(a, b) for a, b in widths]),
        "gcn": Net([GCNConv(a, b) for a, b in widths]),
        "gat": Net([GATConv(a, b, heads=HEADS, concat=c) for a, b, c in gat_widths], torch.nn.functional.elu),
    }
    for seed, (name, net) in enumerate(nets.items()):
        for parameter in net.eval().parameters():
            parameter.data = torch.randn_like(parameter) * 0.5
        layers = [{"in": a, "out": b, "activation": "relu"} for a, b in widths]
        if name == "gat":
            layers = [{"in": a, "out": b, "heads": HEADS, "concat": c, "activation": "elu"} for a, b, c in gat_widths]
        layers[-1]["activation"] = "none"
        with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as file:
            json.dump({"type": name, "weights": name + "_weights.npz", "layers": layers}, file, indent=1)
            file.write("\n")
        x, edges = graph(seed)
        with torch.no_grad():
            expected = net(x, edges).numpy()
        save = lambda kind, **arrays: np.savez_compressed(os.path.join(HERE, f"{name}_{kind}.npz"), **arrays)
        save("weights", **{key: value.numpy() for key, value in net.state_dict().items()})
        save("graph", x=x.numpy(), edge_index=edges.numpy().astype(np.int32))
        save("expected", out=expected)
        export(net, name + "_dynamo", True)
        export(net, name + "_script", False)
    refused = {
        "sum": Net([SAGEConv(IN, CLASSES, aggr="sum")]),
        "max": Net([SAGEConv(IN, CLASSES, aggr="max")]),
        "without_loops": Net([GCNConv(IN, CLASSES, add_self_loops=False)]),
        "gatv2": Net([GATv2Conv(IN, CLASSES, heads=HEADS)]),
        "gin": Net([GINConv(torch.nn.Linear(IN, CLASSES))]),
        "log_softmax": Net([GCNConv(IN, CLASSES)], end=lambda x: torch.log_softmax(x, 1)),
        "linear": Net([GCNConv(IN, HIDDEN)], end=torch.nn.Linear(HIDDEN, CLASSES)),
        "slope": Net([GATConv(IN, CLASSES, negative_slope=0.1)]),
    }
    for name, net in refused.items():
        export(net.eval(), "refused_" + name, False)
    export(Weighted().eval(), "refused_weighted", False, (torch.rand(30),))


if __name__ == "__main__":
    main()
