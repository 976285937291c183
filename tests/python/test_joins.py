"""Tests Concats over channels, which the CPU runs in a special kernel or elides.

    python tests/python/test_joins.py [--count N] [--first SEED]

If a Concat is elided, its readers read its inputs directly. Seeded random networks, whose layers concatenate earlier results,
are compared with ONNX Runtime. The inputs of the Concats come from 1x1 and 3x3 convolutions, pools, functions and graph inputs,
and so have different layouts. Their readers are norms, other Concats, pools and sums. Some Concats are outputs of the graph.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import batch


class Maker:
    def __init__(self, seed):
        self.rng, self.nodes, self.weights, self.outputs = np.random.default_rng(seed), [], [], []
        self.batch, self.spatial = int(self.rng.integers(1, 4)), [int(v) for v in self.rng.integers(3, 12, int(self.rng.choice([2, 2, 2, 1, 3])))]
        self.channels, self.joins = {}, []  # number of channels of each value; the values that are outputs of Concats

    def constant(self, array):
        name = f"w_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def op(self, op, inputs, channels, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.channels[name] = channels
        return name

    def convolution(self, x, channels, side):
        read, axes = self.channels[x], len(self.spatial)
        weights = self.constant(self.rng.standard_normal((channels, read) + (side,) * axes) / np.sqrt(read * side**axes))
        return self.op("Conv", [x, weights], channels, kernel_shape=[side] * axes, pads=[side // 2] * axes * 2)

    def norm(self, x):
        rng, c = self.rng, self.channels[x]
        vectors = [rng.uniform(0.5, 1.5, c) * rng.choice([-1, 1], c), rng.standard_normal(c), rng.standard_normal(c), rng.uniform(0.5, 2, c)]
        y = self.op("BatchNormalization", [x, *map(self.constant, vectors)], c)
        if rng.integers(4) == 0:
            y = self.op("Mul", [y, self.constant(rng.uniform(0.5, 1.5, (c,) + (1,) * len(self.spatial)))], c)
        kind = rng.integers(4)
        return self.op("Relu", [y], c) if kind < 2 else self.op("LeakyRelu", [y], c) if kind == 2 else y

    def piece(self, x):
        """Returns the new value that a layer concatenates with earlier values."""
        rng, axes = self.rng, len(self.spatial)
        channels, kind = int(rng.choice([8, 16, 32, 32, 48, 5, 20, 1])), rng.integers(6)
        if kind == 0:
            return self.op("MaxPool", [x], self.channels[x], kernel_shape=[3] * axes, pads=[1] * axes * 2)
        if kind == 1:
            return self.convolution(x, channels, 1)
        if kind == 2:
            return self.op("Sigmoid", [self.convolution(x, channels, 3)], channels)
        return self.convolution(self.convolution(x, 32, 1), channels, 3)

    def join(self, values):
        axis = int(self.rng.choice([1, 1 - 2 - len(self.spatial)]))
        name = self.op("Concat", values, sum(self.channels[v] for v in values), axis=axis)
        self.joins.append(name)
        return name

    def model(self):
        rng = self.rng
        self.channels["x"] = int(rng.choice([1, 3, 16, 20]))
        shape = (self.batch, self.channels["x"], *self.spatial)
        x = "x" if rng.integers(4) == 0 else self.convolution("x", int(rng.choice([16, 24, 64])), 3)
        for _ in range(int(rng.integers(2, 7))):
            read = self.norm(x) if rng.integers(4) else x
            values = [x, self.piece(read)]
            if rng.integers(4) == 0:  # an older Concat, or the same piece twice
                values.append(self.joins[rng.integers(len(self.joins))] if self.joins and rng.integers(2) else values[1])
            rng.shuffle(values)
            x = self.join([str(v) for v in values])
            if self.channels[x] > 600:
                break
            if rng.integers(6) == 0:
                self.outputs.append(x)
            if rng.integers(6) == 0:
                self.outputs.append(self.op("GlobalMaxPool", [x], self.channels[x]))
        self.outputs.append(self.convolution(self.norm(x), 16, 1) if rng.integers(3) else x)
        outputs = [helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(self.outputs)]
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, shape)], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model), {"x": rng.standard_normal(shape).astype(np.float32)}


WAYS = ((1, ()), (2, ()), (1, ("--device-option", "cpu:fuse=0")))


def make(seed, directory, cases):
    batch.add_ways(cases, seed, directory, *Maker(seed).model(), WAYS)


def main():
    return batch.run_seeds(__doc__, "joins", 60, make)


if __name__ == "__main__":
    sys.exit(main())
