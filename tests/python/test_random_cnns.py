"""Compares random convolutional networks, in opsets 7 to 23, with ONNX Runtime without optimisations.

    python tests/python/test_random_cnns.py [--count N] [--first SEED]

Their nodes match, or nearly match, the patterns that the CPU's passes replace. The networks have: values with several readers
between convolutions, norms, functions and sums; constants of every shape that broadcasts, some of them read by nodes of
different types; channel-blocked layouts; transposes and their inverses; casts to f16; QuantizeLinear with DequantizeLinear;
dynamic sizes; empty batches; inputs and weights that are outputs.
"""
import argparse
import functools
import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import batch
import oracle

OPSETS = {7: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 17: 8, 18: 8, 20: 9, 21: 10, 22: 10, 23: 11}  # opset: IR version
LARGEST = 20000  # the most elements of a value that further nodes may read


class Network:
    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.opset = int(rng.choice(list(OPSETS)))
        self.quantised, self.narrow = self.opset >= 13 and rng.random() < 0.15, rng.random() < 0.25
        batch = 0 if rng.random() < 0.03 else int(rng.choice([1, 1, 2, 3]))
        self.shape = (batch, int(rng.choice([1, 3, 4, 8, 12, 16, 17, 20, 32])), *(int(v) for v in rng.integers(4, 12, 2)))
        self.nodes, self.weights, self.outputs, self.names = [], [], [], 0
        self.values, self.shared, self.bounds = [("x", self.shape)], [], None

    # --- parts

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def numbers(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def constant(self, array):
        """Adds a constant, as an initializer or as a Constant node."""
        self.names += 1
        name, tensor = f"w{self.names}", numpy_helper.from_array(np.asarray(array), f"w{self.names}")
        if self.chance(0.15):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.weights.append(tensor)
        return name

    def weight(self, *shape, scale=None):
        """Returns a new weight, or one of this shape that another node already uses."""
        same = [name for name, other in self.shared if other == shape]
        if same and self.chance(0.35):
            return self.pick(same)
        fan = max(math.prod(shape[1:]), 1)
        name = self.constant(self.numbers(*shape) * np.float32(scale or 1 / math.sqrt(fan)))
        self.shared.append((name, shape))
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        self.names += 1
        names = [f"{op.lower()}{self.names}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def keep(self, name, shape):
        self.values.append((name, tuple(int(v) for v in shape)))
        return self.values[-1]

    def like(self, shape):
        return self.pick([name for name, other in self.values if other == shape])

    # --- steps: each computes a new value from x, or returns None

    def convolution(self, x, shape):
        n, c, h, w = shape
        groups = int(self.pick([1, 1, 1, c] + [d for d in (2, 4) if c % d == 0]))
        outs = [groups, 2 * groups] + [v for v in (c, self.shape[1], 16, 20) if v % groups == 0]
        m, kernel = int(self.pick(outs)), [int(self.pick([1, 1, 3, 3, 2, 5])) for _ in "hw"]
        if self.chance(0.7):
            kernel = [kernel[0]] * 2
        dilations, strides = [int(self.pick([1, 1, 1, 2])) for _ in "hw"], [int(self.pick([1, 1, 1, 2, 3])) for _ in "hw"]
        mode, attributes = self.pick(["pads", "pads", "same", "same", "SAME_UPPER", "SAME_LOWER", "VALID"]), {}
        if mode.startswith("SAME"):
            dilations, attributes["auto_pad"] = [1, 1], mode
            out = [-(-h // strides[0]), -(-w // strides[1])]
        else:
            extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
            pads = [int(v) for v in self.rng.integers(0, 3, 4)] if mode == "pads" else [0] * 4
            if mode == "same":
                pads = [(e - 1) // 2 for e in extent] + [e - 1 - (e - 1) // 2 for e in extent]
            if mode == "VALID":
                attributes["auto_pad"] = mode
            elif any(pads) or self.chance(0.5):
                attributes["pads"] = pads
            out = [(v + pads[i] + pads[i + 2] - extent[i]) // strides[i] + 1 for i, v in enumerate((h, w))]
        if min(out) < 1 or max(out) > 30:
            return None
        defaults = {"kernel_shape": (kernel, None), "strides": (strides, [1, 1]), "dilations": (dilations, [1, 1]), "group": (groups, 1)}
        attributes.update({name: value for name, (value, usual) in defaults.items() if (value != usual and name != "kernel_shape") or self.chance(0.4)})
        weights = self.weight(m, c // groups, *kernel)
        if self.quantised and self.chance(0.6):
            integers = self.constant(self.rng.integers(-127, 128, (m, c // groups, *kernel)).astype(np.int8))
            if self.chance(0.5):
                scales = self.constant((self.rng.random(m) * 0.02 + 0.002).astype(np.float32))
                weights = self.node("DequantizeLinear", [integers, scales, self.constant(np.zeros(m, np.int8))], axis=0)
            else:
                weights = self.node("DequantizeLinear", [integers, self.constant(np.float32(0.01))])
        return self.keep(self.node("Conv", [x, weights] + ([self.weight(m, scale=0.5)] if self.chance(0.6) else []), **attributes), (n, m, *out))

    def deconvolution(self, x, shape):
        n, c, h, w = shape
        kernel, stride, m = int(self.pick([1, 2, 3])), int(self.pick([1, 2])), int(self.pick([2, 4, 8, 20]))
        pad, more = int(self.rng.integers(0, kernel)), int(self.rng.integers(0, stride))
        out = [(v - 1) * stride + kernel - 2 * pad + more for v in (h, w)]
        if min(out) < 1 or max(out) > 30:
            return None
        attributes = {"output_padding": [more] * 2} if more else {}
        bias = [self.weight(m, scale=0.5)] if self.chance(0.5) else []
        made = self.node("ConvTranspose", [x, self.weight(c, m, kernel, kernel), *bias], strides=[stride] * 2, pads=[pad] * 4, **attributes)
        return self.keep(made, (n, m, *out))

    def batch_norm(self, x, shape):
        c, variance = shape[1], self.constant((self.rng.random(shape[1]) + 0.2).astype(np.float32))
        rest = [self.weight(c, scale=1), self.weight(c, scale=0.5), self.weight(c, scale=0.5)]
        return self.keep(self.node("BatchNormalization", [x, *rest, variance], epsilon=float(self.pick([1e-5, 1e-3]))), shape)

    def instance_norm(self, x, shape):
        if 0 in shape or shape[2] * shape[3] < 4:
            return None
        return self.keep(self.node("InstanceNormalization", [x, self.weight(shape[1], scale=1), self.weight(shape[1], scale=0.5)]), shape)

    def with_constant(self, x, shape):
        _, c, h, w = shape
        op = self.pick(["Mul", "Add", "Sub", "Div", "Mul", "Add"] + (["Max", "Min", "Pow"] if self.opset >= 12 else []))
        dims = self.pick([(), (1,), (1, c, 1, 1), (c, 1, 1), (1, 1, 1, 1), (w,), (1, 1, h, w), (c, h, w)])
        data = np.full(dims, 2, np.float32) if op == "Pow" else self.rng.random(dims) + 0.5 if op == "Div" else self.rng.standard_normal(dims)
        inputs = [x, self.constant(np.asarray(data, np.float32))]
        return self.keep(self.node(op, inputs[::-1] if op not in ("Div", "Pow") and self.chance(0.4) else inputs), shape)

    def function(self, x, shape):
        ops = ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Clip", "Clip6", "Abs", "Neg", "Softplus", "HardSigmoid", "Identity", "Dropout", "Selu", "PRelu"]
        op = self.pick(ops + (["HardSwish"] if self.opset >= 14 else []) + (["Mish"] if self.opset >= 18 else []) + (["Gelu"] if self.opset >= 20 else []))
        if op.startswith("Clip"):
            low, high = (0.0, 6.0) if op == "Clip6" else sorted(float(v) for v in self.rng.normal(0, 1.5, 2))
            if self.opset < 11:
                return self.keep(self.node("Clip", [x], min=low, max=high), shape)
            if op == "Clip6" and self.bounds is None:  # shared by all Clip6
                self.bounds = [self.constant(np.float32(low)), self.constant(np.float32(high))]
            bounds = self.bounds if op == "Clip6" else [self.constant(np.float32(v)) if self.chance(0.7) else "" for v in (low, high)]
            return self.keep(self.node("Clip", [x, *bounds]), shape)
        if op == "PRelu":
            return self.keep(self.node(op, [x, self.weight(*self.pick([(1,), (shape[1], 1, 1)]), scale=0.5)]), shape)
        attributes = {"LeakyRelu": {"alpha": float(self.pick([0.1, 0.0, 2.0, -0.3]))}, "Elu": {"alpha": float(self.pick([1.0, 0.5]))},
                      "Gelu": {"approximate": self.pick(["none", "tanh"])}, "Dropout": {"ratio": 0.3} if self.opset < 12 else {}}
        return self.keep(self.node(op, [x], **attributes.get(op, {})), shape)

    def of_two(self, x, shape):
        op = self.pick(["Add", "Add", "Add", "Mul", "Sub"] + (["Max", "Min", "Sum", "Mean"] if self.opset >= 8 else []))
        inputs = [x, self.like(shape)]
        if self.chance(0.5):
            inputs.reverse()
        if op in ("Sum", "Max", "Mean") and self.chance(0.4):
            inputs.append(self.like(shape))
        return self.keep(self.node(op, inputs), shape)

    def squeeze_and_excite(self, x, shape):
        if 0 in shape:
            return None
        c = shape[1]
        if self.chance(0.5):
            gate = self.node("GlobalAveragePool", [x])
        elif self.opset < 18:
            gate = self.node("ReduceMean", [x], axes=[2, 3], keepdims=1)
        else:
            gate = self.node("ReduceMean", [x, self.constant(np.array([2, 3], np.int64))], keepdims=1)
        if self.chance(0.6):
            gate = self.node("Conv", [gate, self.weight(c, c, 1, 1)])
        inputs = [x, self.node(self.pick(["Sigmoid", "Relu", "HardSigmoid"]), [gate])]
        return self.keep(self.node(self.pick(["Mul", "Add"]), inputs if self.chance(0.6) else inputs[::-1]), shape)

    def concat(self, x, shape):
        axis = int(self.pick([1, 1, 1, 2, 3]))
        others = [(name, other) for name, other in self.values if all(a == b or i == axis for i, (a, b) in enumerate(zip(other, shape)))]
        parts = [(x, shape)] + [self.pick(others) for _ in range(int(self.rng.integers(1, 4)))]
        out = list(shape)
        out[axis] = sum(other[axis] for _, other in parts)
        if out[axis] > 100:
            return None
        return self.keep(self.node("Concat", [name for name, _ in parts], axis=axis if self.chance(0.7) else axis - 4), out)

    def split(self, x, shape):
        axis = int(self.pick([1, 1, 1, 2]))
        extent = shape[axis]
        if extent < 2:
            return None
        count = min(int(self.rng.integers(2, 4)), extent)
        cuts = np.sort(self.rng.choice(np.arange(1, extent), count - 1, replace=False))
        parts = np.full(count, extent // count) if self.chance(0.5) and extent % count == 0 else np.diff([0, *cuts, extent])
        if self.opset < 13:
            names = self.node("Split", [x], count, axis=axis, split=[int(v) for v in parts])
        else:
            names = self.node("Split", [x, self.constant(parts.astype(np.int64))], count, axis=axis)
        for name, part in zip(names, parts):
            made = self.keep(name, [int(part) if i == axis else v for i, v in enumerate(shape)])
        return made

    def slice(self, x, shape):
        axis = int(self.pick([0, 1, 1, 2, 3]))
        extent = shape[axis]
        if extent < 2:
            return None
        begin = int(self.rng.integers(0, extent - 1))
        end, step = int(self.rng.integers(begin + 1, extent + 1)), int(self.pick([1, 1, 2, -1])) if self.opset >= 10 else 1
        count = len(range(begin, end, abs(step)))
        first, last = (begin, end) if step > 0 else (end - 1, begin - 1 if begin > 0 else -extent - 1)
        if step > 0 and self.chance(0.3):
            first -= extent
        if step > 0 and end == extent and self.chance(0.5):
            last = 2 ** 31 - 1
        if self.opset < 10:
            made = self.node("Slice", [x], axes=[axis], starts=[first], ends=[last])
        else:
            made = self.node("Slice", [x, *(self.constant(np.array([v], np.int64)) for v in (first, last, axis, step))])
        return self.keep(made, [count if i == axis else v for i, v in enumerate(shape)])

    def pad(self, x, shape):
        mode, value = self.pick(["constant", "constant", "reflect", "edge"]), float(self.pick([0.0, 0.0, 1.5]))
        pads = [0, int(mode == "constant" and self.chance(0.2)), *(int(v) for v in self.rng.integers(0, 2, 2)), 0, 0, *(int(v) for v in self.rng.integers(0, 2, 2))]
        if mode == "reflect" and min(shape[2:]) < 3:
            return None
        if self.opset < 11:
            made = self.node("Pad", [x], pads=pads, mode=mode, **({"value": value} if mode == "constant" else {}))
        else:
            made = self.node("Pad", [x, self.constant(np.array(pads, np.int64))] + ([self.constant(np.float32(value))] if mode == "constant" else []), mode=mode)
        return self.keep(made, [v + pads[i] + pads[i + 4] for i, v in enumerate(shape)])

    def pool(self, x, shape):
        n, c, *extents = shape
        op, kernel, strides = self.pick(["MaxPool", "AveragePool"]), [int(self.pick([1, 2, 3])) for _ in "hw"], [int(self.pick([1, 2])) for _ in "hw"]
        pads = [int(self.rng.integers(0, kernel[i % 2])) for i in range(4)]
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        if op == "AveragePool" and self.chance(0.4):
            attributes["count_include_pad"] = 1
        if self.chance(0.2):
            attributes.pop("pads")
            return self.keep(self.node(op, [x], auto_pad="SAME_UPPER", **attributes), (n, c, *(-(-v // s) for v, s in zip(extents, strides))))
        up = self.opset >= (10 if op == "MaxPool" else 19) and self.chance(0.3)
        if up:
            attributes["ceil_mode"] = 1
        out = []
        for i, extent in enumerate(extents):
            left = extent + pads[i] + pads[i + 2] - kernel[i]
            if left < 0:
                return None
            count = (-(-left // strides[i]) if up else left // strides[i]) + 1
            out.append(count - (up and (count - 1) * strides[i] >= extent + pads[i]))
        return self.keep(self.node(op, [x], **attributes), (n, c, *out))

    def resize(self, x, shape):
        n, c, h, w = shape
        if max(h, w) > 12:
            return None
        mode, scales = self.pick(["nearest", "linear"]), np.array([1, 1, 2, 2], np.float32)
        if self.opset < 9:
            made = self.node("Upsample", [x], scales=[float(v) for v in scales], mode=mode)
        elif self.opset < 11:
            made = self.node("Upsample" if self.opset == 9 else "Resize", [x, self.constant(scales)], mode=mode)
        else:
            how = {"mode": mode, "coordinate_transformation_mode": self.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
            if mode == "nearest":
                how["nearest_mode"] = self.pick(["floor", "round_prefer_floor", "ceil"])
            none = self.constant(np.zeros(0, np.float32)) if self.opset < 13 else ""
            if self.chance(0.5):
                made = self.node("Resize", [x, none, self.constant(scales)], **how)
            else:
                made = self.node("Resize", [x, none, none, self.constant(np.array([n, c, 2 * h, 2 * w], np.int64))], **how)
        return self.keep(made, (n, c, 2 * h, 2 * w))

    def channels_last(self, x, shape):
        c, y = shape[1], self.node("Transpose", [x], perm=[0, 2, 3, 1])
        for _ in range(int(self.rng.integers(0, 3))):
            kind = self.pick(["product", "function", "bias", "norm"])
            if kind == "product":
                y = self.node("MatMul", [y, self.weight(c, c)])
            elif kind == "function":
                y = self.node(self.pick(["Relu", "Sigmoid", "Tanh"]), [y])
            elif kind == "bias":
                y = self.node("Add", [y, self.weight(c, scale=0.5)])
            elif self.opset >= 17:
                y = self.node("LayerNormalization", [y, self.weight(c, scale=1), self.weight(c, scale=0.5)])
            if self.chance(0.2):
                self.outputs.append(y)
        return self.keep(self.node("Transpose", [y], perm=[0, 3, 1, 2]), shape)

    def reshaped(self, x, shape):
        n, c, h, w = shape
        if 0 in shape:
            return None
        if c % 4 == 0 and self.chance(0.5):  # a channel shuffle
            groups = int(self.pick([2, 4]))
            apart = self.node("Reshape", [x, self.constant(np.array([n if self.chance(0.5) else 0, groups, c // groups, h, w], np.int64))])
            y = self.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
            if self.chance(0.15):
                self.outputs.append(y)
        else:
            y = self.node("Reshape", [x, self.constant(np.array([0, c, -1], np.int64))])
            kind = self.pick(["Softmax", "Relu", "MatMul", "none"])
            if kind == "MatMul":
                y = self.node("MatMul", [self.weight(c, c), y])
            elif kind != "none":
                y = self.node(kind, [y], **({"axis": int(self.pick([1, 2]))} if kind == "Softmax" else {}))
        return self.keep(self.node("Reshape", [y, self.constant(np.array([n, -1, h, w], np.int64))]), shape)

    def along_axis(self, x, shape):
        if self.chance(0.5):
            return self.keep(self.node("LRN", [x], size=3), shape)
        return self.keep(self.node(self.pick(["Softmax", "LogSoftmax"]), [x], axis=int(self.pick([1, 2, 3]))), shape)

    def in_f16(self, x, shape):
        if not self.narrow:
            return None
        y, c = self.node("Cast", [x], to=T.FLOAT16), shape[1]
        for _ in range(int(self.rng.integers(0, 3))):
            op = self.pick(["Relu", "Add", "Conv", "Sigmoid", "Mul"])
            if op in ("Add", "Mul"):
                y = self.node(op, [y, self.constant(np.float16(self.rng.normal()))])
            elif op == "Conv":
                y = self.node("Conv", [y, self.constant((self.numbers(c, c, 1, 1) / math.sqrt(c)).astype(np.float16))])
            else:
                y = self.node(op, [y])
        if self.chance(0.3):
            self.outputs.append(y)
        return self.keep(self.node("Cast", [y], to=T.FLOAT), shape)

    def rounded(self, x, shape):
        if not self.quantised:
            return None
        dtype = self.pick([np.int8, np.uint8])
        grid = [self.constant(np.float32(0.05)), self.constant(dtype(self.pick([0, 0, 3])))]
        return self.keep(self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, *grid]), *grid]), shape)

    def where(self, x, shape):
        if self.opset < 9:
            return None
        return self.keep(self.node("Where", [self.constant(self.rng.random(shape[1:]) < 0.5), x, self.like(shape)]), shape)

    def head(self, x, shape):
        count, classes, turned = math.prod(shape[1:]), int(self.pick([1, 5, 10])), int(self.chance(0.5))
        inputs = [self.node("Flatten", [x]), self.weight(*((classes, count) if turned else (count, classes)), scale=0.1)]
        if self.opset < 11 or self.chance(0.6):
            inputs.append(self.weight(*self.pick([(classes,), (1, classes)]), scale=0.5))
        y = self.node("Gemm", inputs, transB=turned, alpha=float(self.pick([1, 0.5])))
        self.outputs.append(self.node("Softmax", [y], axis=1) if self.chance(0.5) else y)

    # --- the whole network

    def fill(self):
        steps = ([self.convolution] * 6 + [self.batch_norm] * 3 + [self.with_constant] * 3 + [self.function] * 5 + [self.of_two] * 4 +
                 [self.concat, self.pool, self.in_f16, self.rounded] * 2 + [self.squeeze_and_excite, self.split, self.slice, self.pad, self.resize, self.where] +
                 [self.channels_last, self.reshaped, self.reshaped, self.along_axis, self.instance_norm, self.deconvolution])
        last, left = self.values[0], int(self.rng.integers(3, 16))
        for _ in range(80):
            if left == 0:
                break
            x, shape = last if self.chance(0.7) else self.pick(self.values)
            if math.prod(shape) > LARGEST:
                last = self.values[0]
                continue
            made = self.pick(steps)(x, shape)
            if made is not None:
                last, left = made, left - 1
        if self.chance(0.25) and 0 not in last[1]:
            self.head(*last)
        self.outputs += [last[0]] + [name for name, _ in self.values if self.chance(0.12)]
        if self.chance(0.05) and self.weights:
            self.outputs.append(self.pick(self.weights).name)
        self.outputs = list(dict.fromkeys(self.outputs))
        if self.outputs == ["x"]:
            self.outputs.append(self.node("Identity", ["x"]))

    def model(self):
        self.fill()
        shape = list(self.shape)
        if self.chance(0.35):
            shape = ["N", shape[1], "H", "W"] if self.chance(0.4) else ["N", *shape[1:]]
        inputs = [helper.make_tensor_value_info("x", T.FLOAT, shape)]
        all_inputs = OPSETS[self.opset] == 3  # in IR version 3 every initializer is also an input
        inputs += [helper.make_tensor_value_info(w.name, w.data_type, list(w.dims)) for w in self.weights if all_inputs or self.chance(0.03)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=OPSETS[self.opset])
        return model, {"x": self.rng.standard_normal(self.shape).astype(np.float32)}


def compare(expected, actual, tolerance, quantised):
    reason = oracle.compare(expected, actual, tolerance)
    if reason is None or not quantised or np.shape(expected) != np.shape(actual):
        return reason
    # A value halfway between two quantisation steps may be rounded up or down. So a few elements may differ by a step, and a norm
    # may amplify this.
    difference, largest = np.abs(np.asarray(expected, np.float64) - np.asarray(actual, np.float64)), max(np.abs(expected).max(initial=0), 1)
    few = np.isfinite(difference).all() and (difference > 1e-3 * largest).mean() <= 0.1 and difference.max(initial=0) <= 0.3 * largest
    return None if few else reason


def make(seed, directory, cases):
    """Adds the case of a seed. Raises NoOracle if ONNX Runtime cannot run the network, or its results are not finite."""
    network = Network(seed)
    model, inputs = network.model()
    try:
        expected = oracle.run_onnxruntime(model, inputs, optimize=False)
    except Exception as error:
        raise oracle.NoOracle(str(error).splitlines()[0]) from None
    if not all(np.isfinite(value.astype(np.float32)).all() for value in expected):
        raise oracle.NoOracle("the outputs are not finite")
    cases.write(directory, model, inputs, expected)
    options = network.pick([(), (), ("--device-option", "cpu:winograd=0")])
    # Errors add up in sums of sums, and norms amplify values that nearly cancel.
    tolerance = max(2 * oracle.tolerance_of(model), 1e-3)
    judge = functools.partial(compare, tolerance=tolerance, quantised=network.quantised)
    cases.add(" ".join((str(seed), *options)), directory, expected, (*batch.CPU, *options), tolerance=tolerance, judge=judge)


BEHIND = ["", "BatchNormalization", "ConvTranspose", "Conv"]


def make_blocks(images, channels, directory, cases):
    """Adds a case with values in channel-blocked layouts, whose last block may be partial: their sums and products with constants
    and values of every shape that broadcasts, and functions of these."""
    rng, h, w = np.random.default_rng([images, channels]), 6, 5
    nodes, weights, outputs = [], [], []
    inputs = {"x": rng.standard_normal((images, 17, h, w)).astype(np.float32)}

    def weight(*shape):
        weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), f"w{len(weights)}"))
        return weights[-1].name

    c = channels
    broadcast = [(1, 1, h, w), (images, 1, h, w), (1, 1, 1, w), (1, 1, h, 1), (1, c, 1, 1), (images, c, 1, 1), (1, 1, 1, 1), (images, 1, 1, 1),
                 (1, c, h, w), (1, c, 1, w), (), (1, h, w), (c, 1, 1)]
    for k, shape in enumerate(broadcast):
        for op in ("Add", "Mul", "Div"):
            made = f"{op}_{k}"
            nodes.append(helper.make_node("ConvTranspose", ["x", weight(17, c, 1, 1)], [f"{made}_x"]))
            other, left = np.asarray(rng.random(shape) + 0.5, np.float32), op != "Div" and rng.random() < 0.4
            if rng.random() < 0.5:
                inputs[f"{made}_y"] = other
            else:
                weights.append(numpy_helper.from_array(other, f"{made}_y"))
            nodes.append(helper.make_node(op, [f"{made}_y", f"{made}_x"] if left else [f"{made}_x", f"{made}_y"], [made]))
            after = BEHIND[rng.integers(len(BEHIND))]
            if after == "BatchNormalization":
                variance = numpy_helper.from_array((rng.random(c) + 0.2).astype(np.float32), f"{made}_variance")
                weights.append(variance)
                nodes.append(helper.make_node(after, [made, weight(c), weight(c), weight(c), variance.name], [f"{made}_normal"]))
                nodes.append(helper.make_node("ConvTranspose", [f"{made}_normal", weight(c, 8, 2, 2)], [f"{made}_out"]))
            elif after:
                nodes.append(helper.make_node(after, [made, weight(*((c, 8) if after == "ConvTranspose" else (8, c)), 2, 2)], [f"{made}_out"]))
            outputs.append(f"{made}_out" if after else made)
    for op in ("Add", "Mul", "Sub"):
        for function in ("HardSwish", "Tanh", "Elu", "LeakyRelu", "Abs", "Sigmoid", "Relu"):
            made = f"{op}_{function}"
            for side in "ab":
                nodes.append(helper.make_node("ConvTranspose", ["x", weight(17, c, 1, 1)], [f"{made}_{side}"]))
            nodes.append(helper.make_node(op, [f"{made}_a", f"{made}_b"], [f"{made}_c"]))
            nodes.append(helper.make_node(function, [f"{made}_c"], [made]))
            if rng.random() < 0.5:
                nodes.append(helper.make_node("Conv", [made, weight(8, c, 1, 1)], [f"{made}_out"]))
            outputs.append(nodes[-1].output[0])
    infos = [helper.make_tensor_value_info(name, T.FLOAT, value.shape) for name, value in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info(name) for name in outputs], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected = oracle.run_onnxruntime(model, inputs, optimize=False)
    cases.write(directory, model, inputs, expected)
    cases.add(f"blocked layouts, {images} images, {channels} channels", directory, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    folder, tally, cases, passed_over = oracle.build_folder("cnns"), oracle.Tally(), batch.Batch(), 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        try:
            make(seed, os.path.join(folder, str(seed)), cases)
        except oracle.NoOracle:
            passed_over += 1
    for images, channels in ((n, c) for n in (1, 3) for c in (3, 8, 16, 20)):
        make_blocks(images, channels, os.path.join(folder, f"blocks_{images}_{channels}"), cases)
    cases.tally(tally)
    print(f"{passed_over} seeds skipped, because ONNX Runtime cannot run them, or their outputs are not finite")
    tally.add("few seeds are skipped", f"{passed_over} of {arguments.count} seeds were skipped, which is too many" if passed_over > arguments.count / 10 + 3 else None)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
