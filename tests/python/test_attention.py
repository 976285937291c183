"""Compares attention that is written as single operators, as exporters write it, with ONNX Runtime.

    python tests/python/test_attention.py [--count N] [--first SEED]

The operators are products, scales, masks, Softmax and transposes, in seeded random variants. The CPU must run the whole pattern
as one step. In some graphs the pattern is broken at one place (BREAKS): for example, an intermediate value is an output, or
Softmax has another axis. Then the result must still be right, but no step may be an attention.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

import batch
import oracle
import test_directories  # from tools/, which oracle adds to the path

BREAKS = ("scores are an output", "masked scores are an output", "the Softmax is an output", "the Softmax is read twice", "Tanh of the scores", "Softmax over another axis", "scaled after the mask")


class Maker:
    """Makes a model of one attention block. `broken`: how the pattern is broken, one of BREAKS, or None."""

    def __init__(self, seed, broken=None):
        self.rng = np.random.default_rng(seed)
        self.broken, self.nodes, self.weights, self.inputs, self.outputs = broken, [], [], {}, []
        pick = self.rng.integers
        self.batch, self.heads, self.size = int(pick(1, 4)), int(self.rng.choice([1, 2, 3, 4, 8, 16])), int(pick(1, 41))
        self.width = self.size if pick(4) else int(pick(1, 41))
        self.queries = int(self.rng.choice([1, 2, 7, 16, 19, 33, 50, 70]))
        self.keys = self.queries if pick(3) else int(self.rng.choice([2, 13, 40, 300]))
        self.past = int(pick(1, 20)) if pick(4) == 0 else 0
        self.total = self.keys + self.past
        self.flat = pick(4) == 0  # whether batch and heads are one axis

    def op(self, op, inputs, outputs=None, **attributes):
        names = outputs or [f"{op.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs is None else names

    def constant(self, array):
        name = f"c_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def input(self, shape, kind=None):
        name = f"x_{len(self.inputs)}"
        self.inputs[name] = self.rng.standard_normal(shape).astype(np.float32) if kind is None else kind
        return name

    def leave(self, name):
        self.outputs.append(name)
        return name

    def dense(self, x, before, after):
        weights = self.rng.standard_normal((before, after)) / np.sqrt(before)
        product = self.op("MatMul", [x, self.constant(weights.astype(np.float32))])
        return self.op("Add", [product, self.constant(self.rng.standard_normal(after).astype(np.float32))])

    def reshape(self, x, shape):
        return self.op("Reshape", [x, self.constant(np.array(shape, np.int64))])

    def split_heads(self, x, length, size, perm=(0, 2, 1, 3)):
        return self.op("Transpose", [self.reshape(x, [self.batch, length, self.heads, size])], perm=list(perm))

    def joint(self):
        """Returns Q, K and V as parts of one product, which Split, Slice or Gather separates."""
        b, n, h, d = self.batch, self.queries, self.heads, self.size
        whole = self.dense(self.input((b, n, 24)), 24, 3 * h * d)
        kind = self.rng.integers(4)
        if kind == 0:
            return [self.split_heads(x, n, d) for x in self.op("Split", [whole, self.constant(np.array([h * d] * 3))], ["q", "k", "v"], axis=2)]
        if kind == 1:
            ends = [np.array([i * h * d]) for i in range(4)]
            parts = [self.op("Slice", [whole, self.constant(ends[i]), self.constant(ends[i + 1]), self.constant(np.array([-1]))]) for i in range(3)]
            return [self.split_heads(x, n, d) for x in parts]
        turned = self.op("Transpose", [self.reshape(whole, [b, n, 3, h, d])], perm=[2, 0, 3, 1, 4])
        if kind == 2:
            return [self.op("Gather", [turned, self.constant(np.array(i))], axis=0) for i in (0, 1, -1)]
        axes = self.constant(np.array([0]))
        return [self.op("Squeeze", [x, axes]) for x in self.op("Split", [turned], ["q", "k", "v"], axis=0)]

    def operands(self):
        """Returns Q, K and V as [batch, heads, length, size]."""
        if self.keys == self.queries and self.size == self.width and self.rng.integers(3):
            return self.joint()
        lengths = ((self.queries, self.size), (self.keys, self.size), (self.keys, self.width))
        if self.rng.integers(5) == 0:
            return [self.input((self.batch, self.heads, n, d)) for n, d in lengths]
        return [self.split_heads(self.dense(self.input((self.batch, n, 24)), 24, self.heads * d), n, d) for n, d in lengths]

    def mask(self, scores):
        """Applies none, one or two masks to the scores, as exporters do. A few rows may be fully masked."""
        shapes = [(self.batch, 1, 1, self.total), (1, 1, self.queries, self.total), (self.queries, self.total), (self.batch, self.heads, self.queries, self.total)]
        for _ in range(int(self.rng.choice([0, 1, 1, 2]))):
            shape = shapes[self.rng.integers(3 if self.flat else 4)]
            if self.flat:
                shape = shape[-2:] if len(shape) < 4 or shape[0] == 1 else (1, 1, self.total)
            seen = self.rng.random(shape) < 0.8
            if self.rng.integers(3):
                seen[..., 0] = True
            low = np.float32(self.rng.choice([-1e4, np.finfo(np.float32).min, -np.inf]))
            if self.rng.integers(2):
                mask = np.where(seen, np.float32(self.rng.choice([0.0, 0.5])), low).astype(np.float32)
                scores = self.op("Add", [scores, self.input(None, mask)] if self.rng.integers(2) else [self.input(None, mask), scores])
            elif self.rng.integers(2):
                scores = self.op("Where", [self.input(None, seen), scores, self.constant(low)])
            else:
                scores = self.op("Where", [self.input(None, ~seen), self.constant(low), scores])
        return scores

    def model(self):
        rng, scale = self.rng, np.float32(1 / np.sqrt(self.size))
        q, k, v = self.operands()
        if self.past:  # a cache of keys and values is an input; the new rows are appended to it, and the result is an output
            k = self.leave(self.op("Concat", [self.input((self.batch, self.heads, self.past, self.size)), k], axis=2))
            v = self.leave(self.op("Concat", [self.input((self.batch, self.heads, self.past, self.width)), v], axis=2))
        way = rng.integers(4)  # where the scale is applied
        if way == 0:
            q = self.op("Mul", [q, self.constant(scale)])
        if way == 1:
            q, k = self.op("Mul", [q, self.constant(np.sqrt(scale))]), self.op("Mul", [self.constant(np.sqrt(scale)), k])
        if self.flat:
            q, k, v = (self.reshape(x, [self.batch * self.heads, -1, d]) for x, d in ((q, self.size), (k, self.size), (v, self.width)))
        scores = self.op("MatMul", [q, self.op("Transpose", [k], perm=[0, 2, 1] if self.flat else [0, 1, 3, 2])])
        if self.broken == "scores are an output":
            self.leave(scores)
        if way == 2:
            scores = self.op("Mul", [scores, self.constant(scale)])
        if way == 3:
            scores = self.op("Div", [scores, self.constant(np.float32(1) / scale)])
        if self.broken == "Tanh of the scores":
            scores = self.op("Tanh", [scores])
        scores = self.mask(scores)
        if self.broken == "scaled after the mask":
            scores = self.op("Add", [scores, self.input((self.queries, self.total))])
            scores = self.op("Mul", [scores, self.constant(np.float32(0.5))])
        if self.broken == "masked scores are an output":
            self.leave(scores)
        shares = self.op("Softmax", [scores], axis=-2 if self.broken == "Softmax over another axis" else -1)
        if self.broken == "the Softmax is an output":
            self.leave(shares)
        if self.broken == "the Softmax is read twice":
            self.leave(self.op("ReduceMax", [shares], axes=[-1]))
        y = self.op("MatMul", [shares, v])
        if self.flat:
            y = self.reshape(y, [self.batch, self.heads, self.queries, self.width])
        if rng.integers(4):
            y = self.op("Transpose", [y], perm=[0, 2, 1, 3])
            if rng.integers(4):
                y = self.reshape(y, [self.batch, self.queries, self.heads * self.width])
        self.leave(y)
        values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in self.inputs.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", values, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def count_steps(path, arguments):
    """Returns how many of the CPU's steps are of the operator Attention."""
    command = [oracle.COMMAND, "run", path, *arguments, "--devices", "cpu", "--device-option", "cpu:profile=1", "-v"]
    done = subprocess.run(command, capture_output=True, text=True)
    steps = [line.split() for line in done.stderr.splitlines() if " us  " in line]
    return sum(words[2] == "Attention" for words in steps if len(words) > 3)


WAYS = ((), ("--threads", "2"), ("--device-option", "cpu:fuse=0"), ("--device-option", "cpu:onednn=0"))


def make(seed, directory, cases):
    """Adds a case for a seeded model for each set of options in WAYS. Returns (label, path, --input arguments, expected number of
    attention steps)."""
    broken = BREAKS[seed // 3 % len(BREAKS)] if seed % 3 == 0 else None
    maker = Maker(seed, broken)
    model, label = maker.model(), f"seed {seed}, {broken or 'unbroken pattern'}"
    expected = oracle.run_onnxruntime(model, maker.inputs, optimize=False)
    cases.write(directory, model, maker.inputs, expected)
    for options in WAYS:
        cases.add(f"{label} {' '.join(options)}", directory, expected, (*batch.CPU, *options))
    files = test_directories.numbered_files(os.path.join(directory, "test_data_set_0"), "input")
    arguments = [text for name, file in zip(maker.inputs, files) for text in ("--input", f"{name}={file}")]
    return f"{label}: Attention steps on the CPU", os.path.join(directory, "model.onnx"), arguments, 0 if broken else 1


def main():
    folder, tally, cases = oracle.build_folder("attention"), oracle.Tally(), batch.Batch()
    made = [make(seed, os.path.join(folder, str(seed)), cases) for seed in oracle.asked_seeds(__doc__, 90)]
    cases.tally(tally)
    for (label, _, _, wanted), steps in oracle.each(lambda item: count_steps(*item[1:3]), made):
        tally.add(label, None if steps == wanted else f"the CPU runs {steps} Attention steps, expected {wanted}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
