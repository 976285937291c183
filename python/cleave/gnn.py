"""Graph neural networks over large graphs, on all devices of a machine.

    import cleave.gnn
    graph = cleave.gnn.Graph(edge_index, x)            # or Graph.of(data): PyTorch Geometric, scipy.sparse, networkx
    plan = cleave.gnn.plan("sage.onnx", graph, devices="npu,cpu", costs="gnn.json")
    out = plan.run()                                   # one row for each vertex
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _cleave
from ._model import Log, devices_options, open_context
from ._plan import Document, time_text

Path = str | os.PathLike[str]
_TEXT, _JSON = 0, 1


def _ids(values: Any) -> np.ndarray[Any, Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids of vertices are integers, not {array.dtype}")
    return np.ascontiguousarray(array, np.int64)


class Graph:
    """A directed graph in memory.

    edge_index: [2, edges], the sources and the destinations, from 0; or the path of a file (npz, METIS's .graph, or text).
    x: features [vertices, F], finite numbers, stored as float32. y: labels [vertices]. num_vertices: needed without `x` if the last
    vertices have no edges. Edges are copied in their order; repeated edges and self loops count.

    Raises InvalidArgument with the edge or vertex and the value."""

    def __init__(self, edge_index: Any, x: Any = None, y: Any = None, *, num_vertices: int = 0, name: str = "graph",
                 log: Log | None = None) -> None:
        self._context = open_context(log)
        if isinstance(edge_index, (str, os.PathLike)):
            if x is not None or y is not None or num_vertices:
                raise TypeError("a graph from a file takes no x, y or num_vertices")
            self._graph = _cleave.GnnGraph(self._context, edge_index)
            return
        edges = _ids(edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ValueError(f"edge_index is {list(edges.shape)}: expected [2, edges]")
        labels = None if y is None else _ids(y).reshape(-1)
        self._graph = _cleave.GnnGraph(self._context, np.ascontiguousarray(edges[0]), np.ascontiguousarray(edges[1]), num_vertices, x,
                                       labels, name)

    @classmethod
    def of(cls, data: Any, x: Any = None) -> Graph:
        """Makes a graph of a torch_geometric.data.Data, a scipy.sparse matrix (entry [s, d] is an edge from s to d), or a networkx graph
        (vertices in their order; an undirected edge counts in both directions). x: features, if `data` has none."""
        if hasattr(data, "edge_index"):
            return cls(data.edge_index, data.x if x is None else x, num_vertices=int(data.num_nodes))
        if hasattr(data, "tocoo"):
            matrix = data.tocoo()
            return cls(np.stack([_ids(matrix.row), _ids(matrix.col)]), x, num_vertices=int(matrix.shape[0]))
        if hasattr(data, "adjacency") and hasattr(data, "nodes"):
            number = {vertex: i for i, vertex in enumerate(data.nodes)}
            pairs = [(number[s], number[d]) for s, neighbours in data.adjacency() for d in neighbours]
            return cls(np.array(pairs, np.int64).reshape(-1, 2).T, x, num_vertices=len(number))
        raise TypeError(f"cannot make a graph of {type(data).__name__}")

    @property
    def num_vertices(self) -> int:
        return self._graph.info()[0]

    @property
    def num_edges(self) -> int:
        return self._graph.info()[1]

    @property
    def num_features(self) -> int:
        return self._graph.info()[2]

    def report(self) -> Document:
        """Counts, degrees, isolated vertices, self loops, repeated edges, sizes."""
        return Document(self._graph.report(_TEXT), self._graph.report(_JSON))

    def __repr__(self) -> str:
        return str(self.report()).rstrip()


class Plan:
    """A plan: the subgraphs, and the devices of their blocks. Times are predictions in seconds."""

    def __init__(self, graph: Graph, model: _cleave.GnnModel, made: _cleave.GnnPlan) -> None:
        self._graph, self._plan = graph, made
        self._classes = model.info()[3]
        self._info: dict[str, Any] = made.info()
        self._run: _cleave.GnnRun | None = None

    @property
    def k(self) -> int:
        """The number of subgraphs."""
        return int(self._info["k"])

    @property
    def predicted(self) -> float:
        return float(self._info["predicted_ns"]) * 1e-9

    @property
    def bound(self) -> float:
        """No plan with these prices and this k takes less time."""
        return float(self._info["bound_ns"]) * 1e-9

    @property
    def gap(self) -> float:
        return float(self._info["gap"])

    def report(self) -> Document:
        """Explains the plan, as `cleave gnn plan` prints it."""
        return Document(self._plan.report(_TEXT), self._plan.report(_JSON))

    def write(self, path: Path) -> None:
        """Writes the plan file, and the parts beside it."""
        self._plan.write(path, False)

    def draw(self, path: Path) -> None:
        """Writes a web page with the plan's figures and a timeline."""
        self._plan.write(path, True)

    def run(self, x: Any = None) -> np.ndarray[Any, Any]:
        """Runs all layers over all vertices, and returns float32 [vertices, classes] in the order of the vertices. The first run compiles
        the blocks. x: features in place of the graph's."""
        if self._run is None:
            self._run = _cleave.GnnRun(self._plan)
        output = np.empty((self._graph.num_vertices, self._classes), np.float32)
        self._run.execute(x, output)
        return output

    def verify(self, x: Any = None) -> float:
        """Runs, and compares the result with a run of the whole graph in one piece. Returns the largest difference, relative to the largest
        value; raises an Error with the vertex if it exceeds what rounding explains."""
        output = self.run(x)
        assert self._run is not None
        return self._run.verify(x, output)

    def run_report(self) -> Document:
        """The predicted and the measured times of the last run."""
        if self._run is None:
            raise ValueError("the plan has not run")
        return Document(self._run.report(_TEXT), self._run.report(_JSON))

    def __str__(self) -> str:
        return str(self.report()).rstrip()

    def __repr__(self) -> str:
        return f"<cleave.gnn.Plan: {self.k} subgraphs, {time_text(self.predicted)} predicted, gap {self.gap:.1%}>"


def _model(context: _cleave.Context, model: Any) -> _cleave.GnnModel:
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _cleave.GnnModel(context, bytes(model), False)
    return _cleave.GnnModel(context, model, True)


def plan(model: Any, graph: Graph, devices: str | Sequence[str] = "cpu", *, k: int | Sequence[int] | None = None,
         costs: Path | None = None, quick: bool = False, seed: int = 0, threads: int = 0, npu_specs: Sequence[Path] = (),
         device_options: Sequence[str] | Mapping[str, Any] = ()) -> Plan:
    """Chooses the number of subgraphs and the devices of their blocks, so that the predicted time of all layers is least.

    model: the path of an ONNX file or of a JSON description with its weights, bytes of an ONNX model, or an onnx.ModelProto.
    k: the number of subgraphs, or several to try; None: 1, 2, 4 and 8. costs: measured prices that `cleave gnn profile` wrote;
    without them, prices are nominal. seed: of the partitioning by METIS.

    Raises NotSupported with the node that no known layer explains, and TooLarge if no k fits the devices' memory."""
    context = graph._context
    opened = _cleave.Devices(context, devices_options(devices, threads, npu_specs, device_options))
    read = _model(context, model)
    ks = [] if k is None else [k] if isinstance(k, int) else list(k)
    prices = None if costs is None else _cleave.GnnCosts(context, costs)
    return Plan(graph, read, _cleave.GnnPlan(read, graph._graph, opened, {"quick": quick, "seed": seed}, ks, prices, None))


def read_plan(path: Path, model: Any, graph: Graph, devices: str | Sequence[str], *, threads: int = 0, npu_specs: Sequence[Path] = (),
              device_options: Sequence[str] | Mapping[str, Any] = ()) -> Plan:
    """Reads a plan file for a model, a graph and devices."""
    opened = _cleave.Devices(graph._context, devices_options(devices, threads, npu_specs, device_options))
    read = _model(graph._context, model)
    return Plan(graph, read, _cleave.GnnPlan(read, graph._graph, opened, None, [], None, path))
