"""Makes random graphs from seeds, with features in which partitioners and memory planners often have errors.

    python tests/python/random_graphs.py TO [--count N] [--first SEED]

It writes the graphs as ONNX test directories TO/graph_SEED, with the outputs of an oracle as expected outputs, and prints how
many graphs have each of the features in WANTED. If the oracles disagree on a graph, or none can run it, its seed is skipped and
reported.
"""
import argparse
import collections
import concurrent.futures
import functools
import os
import random
import sys

import ml_dtypes
import numpy as np
from onnx import TensorProto, numpy_helper

import oracle
import random_nodes
from random_nodes import BOOL, F16, F32, F64, FLOATS, I32, I64, INTS

import test_directories  # from tools/, which oracle adds to the path
from graph_builder import GraphBuilder

BF16 = np.dtype(ml_dtypes.bfloat16)
ONNX_TYPES = {F16: TensorProto.FLOAT16, F32: TensorProto.FLOAT, F64: TensorProto.DOUBLE, I32: TensorProto.INT32, I64: TensorProto.INT64,
              BOOL: TensorProto.BOOL, BF16: TensorProto.BFLOAT16, random_nodes.I8: TensorProto.INT8, random_nodes.U8: TensorProto.UINT8}
ODD_NAMES = ["", "", "twice", "twice", "with space", "a/b/c", "größe-名前", "🙂", "tab\there", "'quoted' \"twice\"", "100%s", "../up",
             "-dash", "<html>&amp;", "x" * 300, "{json}", ".", "@", "#1", "Conv#0", "semi;colon", "$(echo)", "comma,comma", "colon:1", " "]


class Value:
    """A value. `shape`: None if it depends on data. `exact`: every correct implementation computes the same bits. `magnitude`: an
    upper bound of its elements. `part`: the connected component of the graph that it belongs to, or None for a constant."""

    def __init__(self, name, dtype, shape, exact, magnitude, part):
        self.name, self.dtype, self.shape, self.exact, self.magnitude, self.part = name, dtype, shape, exact, magnitude, part
        self.size = None if shape is None else int(np.prod(shape))


class RandomGraph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.g = GraphBuilder(f"random_{seed}", seed, self.random.choice([13, 15, 17, 18, 19, 20, 21]))
        self.features = set()
        self.values = []  # values that nodes of the current graph may read; those of the graphs around it come first
        self.made = []  # outputs of the main graph's nodes, including those of unknown shape
        self.fed = {}
        self.depth = 0
        self.part = 0
        self.parts = self.random.choice([1, 1, 1, 2, 3])
        self.symbolic = self.random.random() < 0.3
        self.bfloat16 = self.random.random() < 0.05
        self.type_weights = self.random.choice([[F32], [F32], [F32, I64], [F32, F64, I64], [F32, F16], [F32, F16, F64, I32, I64]])

    # --- methods for random_nodes.py

    def onnx_type(self, dtype):
        return ONNX_TYPES[dtype]

    def visible(self):
        return [v for v in self.values if v.part in (self.part, None)]

    def pick(self, dtypes, exact=None, rank=None, min_rank=0, max_rank=5, nonempty=False):
        fits = [v for v in self.visible() if v.dtype in dtypes and (exact is None or v.exact == exact)
                and min_rank <= len(v.shape) <= max_rank and (rank is None or len(v.shape) == rank) and (v.size or not nonempty)]
        if not fits:
            return None
        return self.random.choice(fits[-6:] if self.random.random() < 0.6 else fits)

    def nodes(self, op, operands, outputs, **attributes):
        """Adds a node. `outputs`: (dtype, shape, exact, magnitude) of each."""
        names = self.g.op(op, *("" if v is None else v.name for v in operands), outputs=len(outputs), **attributes)
        names = (names,) if isinstance(names, str) else names
        made = [Value(name, *output, self.part) for name, output in zip(names, outputs)]
        for value in made:
            if value.shape is not None:
                self.values.append(value)
                if 0 in value.shape:
                    self.features.add("zero-size tensor")
                if value.shape == ():
                    self.features.add("rank-0 tensor")
            if self.depth == 0:
                self.made.append(value)
        return made

    def node(self, op, operands, dtype, shape, exact, magnitude, **attributes):
        return self.nodes(op, operands, [(np.dtype(dtype), None if shape is None else tuple(map(int, shape)), exact, magnitude)],
                          **attributes)[0]

    def array(self, array):
        """Adds a constant, which later nodes do not pick as an operand."""
        if self.random.random() < 0.15:
            name = self.g.op("Constant", value=self.tensor(array))
        else:
            name = self.g.constant(array)
        return Value(name, array.dtype, array.shape, True, float(np.abs(array.astype(np.float64)).max(initial=0)), None)

    def tensor(self, array):
        return numpy_helper.from_array(np.asarray(array))

    def ints(self, values):
        return self.array(np.array(list(values), np.int64))

    def number(self, dtype, value):
        return self.array(np.array(value, dtype))

    def data(self, dtype, shape):
        """Returns random data: multiples of 1/8 in [-2, 2], small integers, or booleans."""
        if dtype == BOOL:
            return self.numpy.integers(0, 2, shape).astype(bool)
        if dtype in INTS:
            return self.numpy.integers(-5, 6, shape).astype(dtype)
        return (self.numpy.integers(-16, 17, shape) / 8).astype(dtype)

    def constant(self, dtype, shape):
        return self.array(np.asarray(self.data(dtype, tuple(shape))))

    # --- inputs

    def input(self, dtype, shape, fed=True):
        name = self.g.unique("in")
        declared = [f"d{d}" if self.symbolic and self.random.random() < 0.7 else d for d in shape]
        if any(isinstance(d, str) for d in declared):
            self.features.add("symbolic dimension")
        self.g.input(name, declared, self.onnx_type(dtype))
        value = Value(name, dtype, tuple(shape), True, 5 if dtype in INTS else 1 if dtype == BOOL else 2, self.part)
        self.values.append(value)
        if fed:
            self.fed[name] = np.asarray(self.data(dtype, shape))
        if 0 in shape:
            self.features.add("zero-size tensor")
        if not shape:
            self.features.add("rank-0 tensor")
        return value

    def inputs(self):
        dims = [self.random.randint(1, 5) for _ in range(4)]
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.4:
                shape = [self.random.randint(1, 2), self.random.choice([1, 2, 4]), self.random.randint(2, 6), self.random.randint(2, 6)]
            elif kind < 0.5:
                shape = []
            elif kind < 0.57:
                shape = [0, dims[0]] if self.random.random() < 0.5 else [dims[0], 0, 3]
            else:
                shape = [self.random.choice(dims) for _ in range(self.random.randint(1, 3))]
            self.input(self.random.choice(self.type_weights), shape)
        if self.random.random() < 0.4:
            self.input(BOOL, [self.random.choice(dims)] if self.random.random() < 0.5 else [])

    # --- bodies

    def inside(self, builder, make):
        """Runs make() with `builder` as the current graph. Values added by make() are forgotten afterwards."""
        outer, count = self.g, len(self.values)
        self.g, self.depth = builder, self.depth + 1
        try:
            return make()
        finally:
            self.g, self.depth = outer, self.depth - 1
            del self.values[count:]

    def alike(self, value, steps):
        """Adds a few random nodes, then a value that depends on them, with the dtype and shape of `value`."""
        first = len(self.values)
        for _ in range(steps):
            self.add(nested=True)
        result = self.node("Identity", [value], value.dtype, value.shape, value.exact, value.magnitude)
        local = [v for v in self.values[first:-1] if v.dtype == value.dtype == F32 and v.size and v.part == self.part]
        if local:
            chosen = self.random.choice(local)
            one = self.node("ReduceMax", [chosen], F32, (), chosen.exact, chosen.magnitude, keepdims=0)
            one = self.node("Tanh", [one], F32, (), False, 1)
            result = self.node("Add", [result, one], F32, value.shape, False, value.magnitude + 1)
        return result

    def condition(self):
        v = self.pick((F32, I64, I32), exact=True, nonempty=True)
        scalars = [b for b in self.visible() if b.dtype == BOOL and b.shape == ()]
        if scalars and (v is None or self.random.random() < 0.5):
            return self.random.choice(scalars)
        if v is None:
            return None
        most = self.node("ReduceMax", [v], v.dtype, (), True, v.magnitude, keepdims=0) if v.shape else v
        return self.node("Greater", [most, self.number(v.dtype, self.random.choice([0, 1, 3]))], BOOL, (), True, 1)

    def if_(self):
        condition = self.condition()
        kinds = [self.pick(FLOATS + INTS) for _ in range(self.random.randint(1, 2))]
        if condition is None or None in kinds:
            return False
        branches, exact = [], [True] * len(kinds)
        for label in ("then", "else"):
            builder = self.g.body(self.g.unique(label))

            def make():
                for index, kind in enumerate(kinds):
                    value = self.alike(kind, self.random.randint(0, 3))
                    exact[index] &= value.exact
                    builder.output(value.name, self.onnx_type(value.dtype), list(value.shape))
            self.inside(builder, make)
            branches.append(builder.graph())
        self.features.add("captured value in If" if self.depth == 0 else "captured value in a nested body")
        self.nodes("If", [condition], [(k.dtype, k.shape, e, min(k.magnitude + 1, 1e6)) for k, e in zip(kinds, exact)],
                   then_branch=branches[0], else_branch=branches[1])

    def loop(self):
        carried = self.pick((F32,))
        captured = self.pick((F32,))
        if carried is None:
            return False
        trips = self.random.randint(1, 4)
        stop = self.random.randint(0, 4) if self.random.random() < 0.5 else None
        builder = self.g.body(self.g.unique("loop"))
        names = [self.g.unique(n) for n in ("iteration", "going_on", "carried", "counted")]

        def make():
            iteration = Value(builder.input(names[0], [], TensorProto.INT64), I64, (), True, 4, self.part)
            builder.input(names[1], [], TensorProto.BOOL)
            state = Value(builder.input(names[2], list(carried.shape)), F32, carried.shape, False, carried.magnitude + 1, self.part)
            counted = Value(builder.input(names[3], [], TensorProto.INT64), I64, (), True, 100, self.part)
            self.values += [iteration, state, counted]
            if stop is None:
                going_on = self.node("Identity", [self.number(BOOL, True)], BOOL, (), True, 1)
            else:
                going_on = self.node("Less", [iteration, self.number(I64, stop)], BOOL, (), True, 1)
            mixed = self.alike(state, self.random.randint(0, 3))
            if captured is not None and random_nodes.broadcast(captured.shape, state.shape) == state.shape:
                mixed = self.node("Add", [mixed, captured], F32, state.shape, False, mixed.magnitude + captured.magnitude)
            new_state = self.node("Tanh", [mixed], F32, state.shape, False, 1)
            new_count = self.node("Add", [counted, iteration], I64, (), True, 100)
            scanned = self.node("Mul", [new_state, self.number(F32, 0.5)], F32, state.shape, False, 1)
            for value in (going_on, new_state, new_count, scanned):
                builder.output(value.name, self.onnx_type(value.dtype), list(value.shape))
        self.inside(builder, make)
        times = trips if stop is None else min(trips, stop + 1)
        count = self.number(I64, trips)
        going_on = None if stop is None and self.random.random() < 0.5 else self.number(BOOL, True)
        self.features.add("captured value in Loop" if self.depth == 0 else "captured value in a nested body")
        self.nodes("Loop", [count, going_on, carried, self.number(I64, 0)],
                   [(F32, carried.shape, False, max(1, carried.magnitude)), (I64, (), True, 100),
                    (F32, (times,) + carried.shape, False, 1)], body=builder.graph())

    # --- the whole graph

    def add(self, nested=False):
        """Adds a random node or pattern for which there are suitable values."""
        for _ in range(20):
            kind = self.random.random()
            if kind < (0.15 if nested else 0.06) and self.depth < 2:
                emit = self.random.choice([self.if_, self.loop])
                done = emit() if not (self.bfloat16 and emit == self.loop) else False
            else:
                emit = self.random.choice(random_nodes.COMMON if kind < 0.55 else random_nodes.OTHERS)
                # For graphs with bf16 the reference evaluator is the only oracle. It is wrong for these operators, and for the
                # outputs that a Loop collects.
                done = emit(self) if not (self.bfloat16 and emit in random_nodes.ONNX_REFERENCE_ERRS) else False
            if done is not False:
                return True
        return False

    def bfloat16_island(self):
        """Adds a cast to bf16, a few nodes in bf16 that copy or add, and a cast back."""
        v = self.pick((F32,))
        if v is None:
            return
        self.features.add("bf16")
        b = self.node("Cast", [v], BF16, v.shape, False, v.magnitude, to=TensorProto.BFLOAT16)
        if len(v.shape) >= 1:
            b = self.node("Concat", [b, b], BF16, (2 * v.shape[0],) + v.shape[1:], False, v.magnitude, axis=0)
        b = self.node("Add", [b, b], BF16, b.shape, False, 2 * v.magnitude)
        if 2 * v.magnitude <= random_nodes.MOST[F32]:
            self.node("Cast", [b], F32, b.shape, False, 2 * v.magnitude, to=TensorProto.FLOAT)

    def late_reader(self):
        """Adds nodes at the end of the graph that read an early value."""
        early = [v for v in self.visible()[:4] if v.dtype == F32 and v.size]
        late = [v for v in self.visible()[-4:] if v.dtype == F32 and v.size]
        if not early or not late:
            return
        self.features.add("early value that is read by the last nodes")
        a = self.node("ReduceMean", [self.random.choice(early)], F32, (), False, 64, keepdims=0)
        late = self.random.choice(late)
        self.node("Add", [late, a], F32, late.shape, False, 64)

    def make(self):
        """Makes the graph. Returns (model, {name: array} of its inputs)."""
        for self.part in range(self.parts):
            self.inputs()
        if self.parts > 1:
            self.features.add("several unconnected components")
        if self.random.random() < 0.08:
            # An initializer that is also an input. If the test has no data for it, it must be the last input (see write_one).
            value = self.input(F32, [3], fed=self.random.random() < 0.5)
            self.g.initializers.append(numpy_helper.from_array(self.data(F32, (3,)), value.name))
            self.features.add("initializer that may be overridden")
        for _ in range(self.random.choice([3, 8, 15, 25, 40, 70])):
            self.part = self.random.randrange(self.parts)
            self.add()
        if self.bfloat16:
            self.bfloat16_island()
        if self.random.random() < 0.6:
            self.late_reader()
        if not self.made:
            self.node("Identity", [self.values[0]], self.values[0].dtype, self.values[0].shape, True, 5)
        self.outputs()
        if self.random.random() < 0.3:
            self.odd_names()
        return self.g.model(), self.fed

    def outputs(self):
        read = {name for node in self.g.nodes for name in node.input}
        inside = [v for v in self.made if v.name in read]
        chosen = {self.made[-1].name: self.made[-1]}
        for value in self.random.sample(self.made, min(len(self.made), self.random.randint(0, 4))):
            chosen[value.name] = value
        if inside and self.random.random() < 0.6:
            value = self.random.choice(inside)
            chosen[value.name] = value
        if self.random.random() < 0.03:
            chosen[self.values[0].name] = self.values[0]
            self.features.add("graph input that is an output")
        if any(name in read for name in chosen):
            self.features.add("output that nodes also read")
        if any(v.name not in read and v.name not in chosen for v in self.made):
            self.features.add("unused node output")
        for name, value in chosen.items():
            known = value.shape is not None and not self.symbolic
            shape = list(value.shape) if known else None
            if value.shape is not None and self.symbolic:
                shape = [f"{name}_{axis}" for axis in range(len(value.shape))]
            self.g.output(name, self.onnx_type(value.dtype), shape)

    def odd_names(self):
        def rename(nodes):
            for node in nodes:
                if self.random.random() < 0.6:
                    node.name = self.random.choice(ODD_NAMES)
                for attribute in node.attribute:
                    if attribute.HasField("g"):
                        rename(attribute.g.node)
        rename(self.g.nodes)
        self.features.add("unusual node names")


TOGETHER = 16  # number of graphs per process
WANTED = ["output that nodes also read", "value that is read twice by one node", "view of a view", "unused node output",
          "early value that is read by the last nodes", "zero-size tensor", "rank-0 tensor", "several unconnected components", "shape computed by nodes",
          "unusual node names", "captured value in If", "captured value in Loop", "captured value in a nested body",
          "symbolic dimension", "absent optional input", "size that depends on the data", "bf16", "initializer that may be overridden",
          "graph input that is an output"]


def generate_some(target, seeds):
    """Writes test directories for the seeds. Returns, for each seed, the features of its graph, or the reason why it is
    skipped."""
    made = [(graph := RandomGraph(seed), *graph.make()) for seed in seeds]
    optimised = oracle.isolated([functools.partial(oracle.run_onnxruntime, model, fed) for _, model, fed in made])
    return [write_one(os.path.join(target, f"graph_{seed}"), *one, outputs) for seed, one, outputs in zip(seeds, made, optimised)]


def write_one(folder, graph, model, fed, optimised):
    try:
        outputs, _ = oracle.expected_outputs(model, fed, optimised)
    except oracle.NoOracle as error:
        return str(error)
    if any(o.dtype.kind == "f" and not np.isfinite(o).all() for o in outputs):
        return "the outputs are not finite"
    # the files have the numbers of the graph's inputs, so only the last input can be without data
    ordered = [fed[info.name] for info in model.graph.input if info.name in fed]
    test_directories.write(folder, model, [(ordered, outputs)])
    return graph.features


def generate(target, count, first=0):
    """Writes `count` test directories. Returns (directories, Counter of features, [(seed, reason)] of skipped seeds)."""
    directories, features, passed_over = [], collections.Counter(), []
    with concurrent.futures.ProcessPoolExecutor(oracle.processes) as pool:
        while len(directories) < count:
            seeds = range(first, first + count - len(directories))
            first = seeds.stop
            parts = [seeds[start:start + TOGETHER] for start in range(0, len(seeds), TOGETHER)]
            results = (result for part in pool.map(generate_some, [target] * len(parts), parts) for result in part)
            for seed, result in zip(seeds, results):
                if isinstance(result, str):
                    passed_over.append((seed, result))
                else:
                    directories.append(os.path.join(target, f"graph_{seed}"))
                    features.update(result)
            if len(passed_over) > count:
                raise SystemExit(f"more than {count} seeds were skipped; reason of the last one: {passed_over[-1][1]}")
    return directories, features, passed_over


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    directories, features, passed_over = generate(arguments.target, arguments.count, arguments.first)
    for seed, reason in passed_over:
        print(f"seed {seed} skipped: {reason}")
    for feature in WANTED:
        print(f"{features[feature]:5} {feature}")
    print(f"{len(directories)} graphs, {len(passed_over)} seeds skipped")
    return 0 if all(features[f] for f in WANTED) else 1


if __name__ == "__main__":
    sys.exit(main())
