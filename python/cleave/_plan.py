"""Plans: which device runs which node."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from . import _cleave
from ._model import Model, Opened

T = TypeVar("T")
_TEXT, _JSON = 0, 1
_PICTURES = {".svg": 0, ".dot": 1, ".html": 2}
_KINDS = ("inner", "input", "output", "weight")


class Document:
    """A report of the library. It prints as text; `data` is its content, as the command prints it with --json."""

    def __init__(self, text: str, data: str) -> None:
        self.text = text
        self.data: Any = json.loads(data)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Table(Sequence[T], Generic[T]):
    """A sequence of rows that prints as a table with aligned columns."""

    def __init__(self, rows: Iterable[T], columns: Mapping[str, Any]) -> None:
        self._rows = tuple(rows)
        self._columns = columns  # title -> function of a row

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[T]:
        return iter(self._rows)

    def _cells(self) -> list[list[str]]:
        return [list(self._columns)] + [[str(column(row)) for column in self._columns.values()] for row in self._rows]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[i]) for row in cells) for i in range(len(self._columns))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape
        head, *body = self._cells()
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        return "<table><thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + f"</tr></thead><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Partition:
    """A group of nodes that a device compiles and runs as one. Times are in seconds, sizes in bytes."""

    index: int
    device: str
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: int
    predicted: float


@dataclass(frozen=True)
class Transfer:
    """A copy of a value between memories. `kind`: "inner", "input", "output" or "weight" (streamed in every run)."""

    index: int
    kind: str
    value: str
    source: str
    target: str
    size_bytes: int
    predicted: float


@dataclass(frozen=True)
class Step:
    """What runs: a partition or a transfer, after the steps `after`."""

    index: int
    partition: int | None
    transfer: int | None
    after: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """A node and its placement. `device` is None if the node is folded: its value is known before the run."""

    index: int
    name: str
    op: str
    device: str | None
    partition: int | None
    cause: str
    note: str | None


def time_text(seconds: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if abs(seconds) >= size or unit == "ns":
            return f"{seconds / size:.3g} {unit}"
    raise AssertionError


def size_text(size_bytes: int) -> str:
    """A size with its unit, in powers of 1024."""
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


class Plan:
    """A plan of a model for devices. Made by `cleave.plan()`, read by `cleave.read_plan()`, part of every session.

    Times are predictions in seconds from the plan's profile, or from nominal prices without one. Any thread may use it."""

    def __init__(self, opened: Opened, plan: _cleave.Plan, keeps: tuple[str, ...], options: dict[str, Any] | None = None) -> None:
        self._opened, self._plan, self._keeps, self._options = opened, plan, keeps, options
        self._info: dict[str, Any] = plan.info()

    @property
    def model(self) -> Model:
        """The model's inputs and outputs."""
        return self._opened.model

    @property
    def strategy(self) -> str:
        return str(self._info["strategy"])

    @property
    def objective(self) -> str:
        """Which time the plan minimises: "latency", "overlap" or "throughput"."""
        return str(self._info["objective"])

    @property
    def predicted(self) -> float:
        """The predicted time of the objective, in seconds."""
        return float(self._info[self.objective][0]) * 1e-9

    @property
    def bound(self) -> float:
        """A lower bound on the time of every plan that computes each node once, in seconds."""
        return float(self._info[self.objective][1]) * 1e-9

    @property
    def gap(self) -> float | None:
        """(predicted - bound) / bound; None if it is unknown."""
        gap = float(self._info["gap"])
        return None if gap < 0 else gap

    @property
    def partitions(self) -> Table[Partition]:
        rows = []
        for i in range(self._info["partition_count"]):
            device, nodes, inputs, outputs, weight_bytes, ns = self._plan.partition(i)
            rows.append(Partition(i, device, nodes, inputs, outputs, weight_bytes, ns * 1e-9))
        return Table(rows, {"partition": lambda p: p.index, "device": lambda p: p.device, "nodes": lambda p: len(p.nodes),
                            "weights": lambda p: size_text(p.weight_bytes), "predicted": lambda p: time_text(p.predicted)})

    @property
    def transfers(self) -> Table[Transfer]:
        rows = []
        for i in range(self._info["transfer_count"]):
            kind, value, source, target, size_bytes, ns = self._plan.transfer(i)
            rows.append(Transfer(i, _KINDS[kind], value, source, target, size_bytes, ns * 1e-9))
        return Table(rows, {"transfer": lambda t: t.index, "kind": lambda t: t.kind, "value": lambda t: t.value,
                            "from": lambda t: t.source, "to": lambda t: t.target, "size": lambda t: size_text(t.size_bytes),
                            "predicted": lambda t: time_text(t.predicted)})

    @property
    def steps(self) -> Table[Step]:
        """Partitions and transfers in an order in which they can run."""
        rows = []
        for i in range(self._info["step_count"]):
            is_transfer, index, after = self._plan.step(i)
            rows.append(Step(i, None if is_transfer else index, index if is_transfer else None, after))
        return Table(rows, {"step": lambda s: s.index,
                            "what": lambda s: f"transfer {s.transfer}" if s.partition is None else f"partition {s.partition}",
                            "after": lambda s: " ".join(map(str, s.after))})

    @property
    def nodes(self) -> Table[Node]:
        rows = []
        for i in range(self._info["node_count"]):
            device, partition, name, op, cause, note = self._plan.node(i)
            rows.append(Node(i, name, op, device, partition, cause, note))
        return Table(rows, {"node": lambda n: n.name, "op": lambda n: n.op, "device": lambda n: n.device or "folded",
                            "partition": lambda n: "" if n.partition is None else n.partition, "cause": lambda n: n.cause})

    def report(self, all_steps: bool = False) -> Document:
        """The plan as `cleave plan` prints it: its steps in execution order, the totals, the predicted times and their bounds, and the
        source of the prices. all_steps: also the transfers of the model's inputs and outputs."""
        return Document(self._plan.report(1 if all_steps else 0, _TEXT), self._plan.report(1, _JSON))

    def explain(self, pattern: str | None = None) -> Document:
        """Explains the placement of the nodes whose name or operator matches the pattern (None: of all): why a node is on its device,
        and for every other device why it cannot run the node, or what moving it there would cost. Raises NotFound."""
        return Document(self._plan.explain(pattern, _TEXT), self._plan.explain(pattern, _JSON))

    def compare(self) -> Document:
        """Compares the plans of all strategies, and of each device alone. Takes as long as making as many plans."""
        return Document(*self._plan.compare())

    def what_if(self, *supposes: str) -> Document:
        """Predicts how the plan would change if devices ran more operators: "Softmax@npu". Without arguments: a row for each operator
        that some device cannot run."""
        options = {"supposes": [tuple(suppose.rpartition("@")[::2]) for suppose in supposes]}
        return Document(self._plan.what_if(self._options, options, _TEXT), self._plan.what_if(self._options, options, _JSON))

    def draw(self, path: str | os.PathLike[str], compare: bool = False) -> None:
        """Draws the plan. The path's ending says how: .svg, .dot (for Graphviz), or .html, a page with the picture, the timeline and an
        explanation of every node. compare: the page also compares strategies."""
        ending = os.path.splitext(os.fspath(path))[1]
        if ending not in _PICTURES:
            raise ValueError(f"{os.fspath(path)}: the name of a picture ends with {', '.join(_PICTURES)}")
        self._plan.draw(_PICTURES[ending], path, compare and ending == ".html")

    def _repr_html_(self) -> str:
        return b"".join(self._plan.draw(_PICTURES[".svg"], None, False)).decode()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan file, atomically."""
        self._plan.write(path)

    def to_json(self) -> dict[str, Any]:
        """The contents of the plan file, which docs/plan-file.md describes."""
        document: dict[str, Any] = json.loads(self._plan.json())
        return document

    def __str__(self) -> str:
        return str(self.report()).rstrip()

    __repr__ = __str__
