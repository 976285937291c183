"""Tests Transposes that the CPU elides, because their result is the same memory with the axes in another order.

    python tests/python/test_transposes.py [--count N] [--first SEED]

Seeded random graphs of convolutions, norms, products and sums, in channels-first and channels-last layouts, are compared with
ONNX Runtime. Values are read again after later steps that might have reused their memory, and some are outputs.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import batch

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # permutations to channels first and to channels last


class Maker:
    def __init__(self, seed):
        self.rng, self.nodes, self.weights, self.outputs = np.random.default_rng(seed), [], [], []
        self.batch, self.channels = int(self.rng.integers(1, 3)), int(self.rng.choice([3, 8, 16, 20, 32]))
        self.height, self.width = (int(self.rng.integers(4, 11)) for _ in range(2))
        self.kept = {True: [], False: []}  # earlier values; the key says whether their channels are last

    def constant(self, shape):
        name = f"w_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array((self.rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32), name))
        return name

    def op(self, op, inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def change(self, x, last):
        """Computes another value of the same layout from x."""
        rng, c = self.rng, self.channels
        kind = rng.integers(5)
        if kind == 0 and self.kept[last]:
            return self.op("Add", [x, self.kept[last][rng.integers(len(self.kept[last]))]])
        if kind == 1:
            return self.op("Relu", [x])
        if not last:
            groups = c if rng.integers(2) else 1
            side = int(rng.choice([1, 3]))
            weights = self.constant((c, c // groups, side, side))
            return self.op("Conv", [x, weights, self.constant((c,))], group=groups, kernel_shape=[side] * 2, pads=[side // 2] * 4)
        if kind == 3:  # a sum that could overwrite the memory of x, which is still needed transposed
            turned = self.op("Transpose", [x], perm=FIRST)
            total = self.op("Add", [self.op("MatMul", [self.op("Relu", [x]), self.constant((c, c))]), x])
            turned = self.op("Conv", [turned, self.constant((c, c, 1, 1))], kernel_shape=[1, 1])
            return self.op("Add", [total, self.op("Transpose", [turned], perm=LAST)])
        if kind == 2:
            return self.op("LayerNormalization", [x, self.constant((c,)), self.constant((c,))])
        return self.op("Add", [self.op("MatMul", [x, self.constant((c, c))]), self.constant((c,))])

    def model(self):
        rng, last = self.rng, bool(self.rng.integers(2))
        shape = (self.batch, self.height, self.width, self.channels) if last else (self.batch, self.channels, self.height, self.width)
        x = "x"
        for _ in range(int(rng.integers(6, 16))):
            if rng.integers(3) == 0:
                x, last = self.op("Transpose", [x], perm=FIRST if last else LAST), not last
            else:
                x = self.change(x, last)
            if rng.integers(3):
                self.kept[last].append(x)
            if rng.integers(8) == 0:
                self.outputs.append(x)
        if x == "x" or x not in self.outputs:
            x = self.op("Neg", [x]) if x == "x" else x
            self.outputs.append(x)
        outputs = [helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(self.outputs)]
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, shape)], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model), {"x": rng.standard_normal(shape).astype(np.float32)}


WAYS = ((1, ()), (1, ("--device-option", "cpu:fuse=0")))


def make(seed, directory, cases):
    batch.add_ways(cases, seed, directory, *Maker(seed).model(), WAYS)


def main():
    return batch.run_seeds(__doc__, "transposes", 100, make)


if __name__ == "__main__":
    sys.exit(main())
