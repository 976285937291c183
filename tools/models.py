"""Generates models with seeded random weights, for the tests, the demo and the benchmarks.

    python tools/models.py NAME -o F.onnx [--seed N] [--full]      python tools/models.py --list

Each model has a small size, for tests, and a full one, for benchmarks, with the sizes that were published for it. Weights are
scaled so that activations stay near one, and that every output depends on every weight. So a wrong kernel or swapped tensors
change the result.
"""
import argparse
import math
import sys

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder, save

INT64 = TensorProto.INT64


# --- building blocks of the convolutional models

def conv(g, x, c_in, c_out, kernel=1, stride=1, groups=1, bias=False, gain=2.0):
    fan_in = c_in // groups * kernel * kernel
    w = g.normal((c_out, c_in // groups, kernel, kernel), math.sqrt(gain / fan_in))
    b = [g.normal((c_out,), 0.1, hint="b")] if bias else []
    pad = kernel // 2
    return g.op("Conv", x, w, *b, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, group=groups,
                dilations=[1, 1])


def batch_norm(g, x, channels, scale=(0.8, 1.2)):
    return g.op("BatchNormalization", x, g.uniform((channels,), *scale, hint="scale"), g.normal((channels,), 0.1, hint="bias"),
                g.normal((channels,), 0.1, hint="mean"), g.uniform((channels,), 0.8, 1.2, hint="variance"), epsilon=1e-5)


def conv_bn(g, x, c_in, c_out, kernel=1, stride=1, groups=1, activation="Relu", scale=(0.8, 1.2)):
    x = batch_norm(g, conv(g, x, c_in, c_out, kernel, stride, groups), c_out, scale)
    if activation == "Clip":
        return g.op("Clip", x, g.constant(np.float32(0), "low"), g.constant(np.float32(6), "high"))
    return g.op(activation, x) if activation else x


def classifier(g, x, channels, classes, gain=1.0):
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    w = g.normal((classes, channels), math.sqrt(gain / channels))
    return g.op("Gemm", x, w, g.normal((classes,), 0.1, hint="b"), transB=1)


# --- the models: each function adds its nodes to the GraphBuilder `g`, at full size if `full`. If the model has symbolic
# dimensions, the function returns the sizes for its inputs.

def resnet50(g, full):
    width, size, classes = (64, 224, 1000) if full else (16, 64, 100)
    x = g.input("data", [1, 3, size, size])
    x = conv_bn(g, x, 3, width, 7, 2)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner, outer = width << stage, width << stage + 2
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = conv_bn(g, x, channels, inner)
            y = conv_bn(g, y, inner, inner, 3, stride)
            y = conv_bn(g, y, inner, outer, activation=None, scale=(0.3, 0.6))
            if not block:
                x = conv_bn(g, x, channels, outer, 1, stride, activation=None)
            x, channels = g.op("Relu", g.op("Add", y, x)), outer
    g.output(g.op("Softmax", classifier(g, x, channels, classes, 0.002), outputs=["prob"], axis=1), shape=[1, classes])


def mobilenet(g, full):
    scale, size, classes = (8, 224, 1000) if full else (4, 64, 100)
    x = g.input("data", [1, 3, size, size])
    x, channels = conv_bn(g, x, 3, 4 * scale, 3, 2, activation="Clip"), 4 * scale
    plan = ((1, 2, 1, 1), (6, 3, 2, 2), (6, 4, 3, 2), (6, 8, 4, 2), (6, 12, 3, 1), (6, 20, 3, 2), (6, 40, 1, 1))
    for index, (expand, width, repeat, stride) in enumerate(plan):
        activation = "Clip" if index % 2 == 0 else "HardSwish"
        for block in range(repeat):
            c_out, inner = width * scale, channels * expand
            y = conv_bn(g, x, channels, inner, activation=activation) if expand > 1 else x
            y = conv_bn(g, y, inner, inner, 3, stride if not block else 1, inner, activation)
            y = conv_bn(g, y, inner, c_out, activation=None, scale=(0.5, 0.9))
            x = g.op("Add", x, y) if block and channels == c_out else y
            channels = c_out
    x = conv_bn(g, x, channels, 160 * scale, activation="HardSwish")
    g.output(g.op("Identity", classifier(g, x, 160 * scale, classes), outputs=["logits"]), shape=[1, classes])


def channels_last_norm(g, x, channels):
    y = layer_norm(g, g.op("Transpose", x, perm=[0, 2, 3, 1]), channels)
    return g.op("Transpose", y, perm=[0, 3, 1, 2])


def convnext(g, full):
    widths, depths, size = ((96, 192, 384, 768), (3, 3, 9, 3), 224) if full else ((16, 32), (2, 1), 32)
    x = g.input("image", [1, 3, size, size])
    x = g.op("Conv", x, g.normal((widths[0], 3, 4, 4), math.sqrt(1 / 48)), g.normal((widths[0],), 0.1), kernel_shape=[4, 4],
             strides=[4, 4])
    x = channels_last_norm(g, x, widths[0])
    for stage, (width, depth) in enumerate(zip(widths, depths)):
        if stage:
            before = widths[stage - 1]
            x = g.op("Conv", channels_last_norm(g, x, before), g.normal((width, before, 2, 2), math.sqrt(1 / (4 * before))),
                     g.normal((width,), 0.1), kernel_shape=[2, 2], strides=[2, 2])
        for _ in range(depth):
            y = g.op("Transpose", conv(g, x, width, width, 7, groups=width, bias=True, gain=1.0), perm=[0, 2, 3, 1])
            y = gelu_by_erf(g, linear(g, layer_norm(g, y, width), width, 4 * width))
            y = g.op("Mul", linear(g, y, 4 * width, width), g.uniform((width,), 0.2, 0.4, hint="scale"))
            x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
    g.output(g.op("Identity", classifier(g, x, widths[-1], 1000 if full else 10), outputs=["logits"]), shape=[1, 1000 if full else 10])


def densenet(g, full):
    growth, blocks, size, classes = (32, (6, 12, 24, 16), 224, 1000) if full else (8, (3, 4, 6, 4), 64, 100)
    x = g.input("data", [1, 3, size, size])
    channels = 2 * growth
    x = conv_bn(g, x, 3, channels, 7, 2)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for index, layers in enumerate(blocks):
        for _ in range(layers):
            y = g.op("Relu", batch_norm(g, x, channels))
            y = conv_bn(g, y, channels, 4 * growth)
            x = g.op("Concat", x, conv(g, y, 4 * growth, growth, 3), axis=1)
            channels += growth
        x = g.op("Relu", batch_norm(g, x, channels))
        if index + 1 < len(blocks):
            x = conv(g, x, channels, channels // 2)
            x, channels = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), channels // 2
    g.output(g.op("Identity", classifier(g, x, channels, classes), outputs=["logits"]), shape=[1, classes])


def unet(g, full):
    width, size, levels = (32, 256, 4) if full else (8, 64, 3)
    x = g.input("image", [1, 3, size, size])

    def block(x, c_in, c_out):
        x = conv_bn(g, x, c_in, c_out, 3, activation="LeakyRelu")
        x = conv(g, x, c_out, c_out, 3, bias=True)
        x = g.op("InstanceNormalization", x, g.uniform((c_out,), 0.8, 1.2), g.normal((c_out,), 0.1), epsilon=1e-5)
        return g.op("Relu", x)

    skips, channels = [], 3
    for level in range(levels):
        x = block(x, channels, width << level)
        channels = width << level
        skips.append((x, channels))
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = block(x, channels, 2 * channels)
    channels *= 2
    for level, (skip, skip_channels) in enumerate(reversed(skips)):
        if level % 2 == 0:
            w = g.normal((channels, skip_channels, 2, 2), math.sqrt(2.0 / channels))
            x = g.op("ConvTranspose", x, w, g.normal((skip_channels,), 0.1), kernel_shape=[2, 2], strides=[2, 2])
        else:
            scales = g.constant(np.array([1, 1, 2, 2], np.float32), "scales")
            x = g.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
            x = conv(g, x, channels, skip_channels, 3, bias=True)
        x = block(g.op("Concat", skip, x, axis=1), 2 * skip_channels, skip_channels)
        channels = skip_channels
    g.output(g.op("Sigmoid", conv(g, x, channels, 2, bias=True), outputs=["mask"]), shape=[1, 2, size, size])


# --- transformers

def linear(g, x, d_in, d_out, gain=1.0):
    x = g.op("MatMul", x, g.normal((d_in, d_out), math.sqrt(gain / d_in)))
    return g.op("Add", x, g.normal((d_out,), 0.02, hint="b"))


def layer_norm(g, x, width):
    return g.op("LayerNormalization", x, g.uniform((width,), 0.8, 1.2), g.normal((width,), 0.05), axis=-1, epsilon=1e-5)


def gelu_by_erf(g, x):
    """Adds Gelu as exporters write it before opset 20, which introduced the operator."""
    half = g.op("Mul", x, g.constant(np.float32(0.5), "half"))
    erf = g.op("Erf", g.op("Div", x, g.constant(np.float32(math.sqrt(2)), "root")))
    return g.op("Mul", half, g.op("Add", erf, g.constant(np.float32(1), "one")))


def dimension(g, shape, axis):
    """Returns one dimension as a tensor of shape [1]. `shape`: the output of a Shape node."""
    return g.op("Unsqueeze", g.op("Gather", shape, g.constant(np.int64(axis), "i"), axis=0), g.ints(0))


def split_heads(g, x, lengths, heads, width):
    shape = g.op("Concat", *lengths, g.ints(heads), g.ints(width // heads), axis=0)
    return g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 2, 1, 3])


def attend(g, q, k, v, mask, lengths, width, heads):
    """Returns softmax(q k^T / sqrt(d) + mask) v, with the heads concatenated."""
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Div", scores, g.constant(np.float32(math.sqrt(width / heads)), "root")), mask)
    mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g.op("Reshape", mixed, g.op("Concat", *lengths, g.ints(width), axis=0))


def bert(g, full, linear=linear):
    width, heads, layers, length, words = (768, 12, 4, 128, 8000) if full else (64, 4, 2, 16, 100)
    ids = g.input("input_ids", ["batch", "sequence"], INT64)
    attention_mask = g.input("attention_mask", ["batch", "sequence"], INT64)
    shape = g.op("Shape", ids)
    lengths = [dimension(g, shape, 0), dimension(g, shape, 1)]
    x = g.op("Gather", g.normal((words, width), hint="words"), ids, axis=0)
    positions = g.op("Slice", g.normal((1, 4 * length, width), hint="positions"), g.ints(0), lengths[1], g.ints(1))
    x = layer_norm(g, g.op("Add", x, positions), width)
    mask = g.op("Cast", g.op("Unsqueeze", attention_mask, g.ints(1, 2)), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.constant(np.float32(1), "one"), mask), g.constant(np.float32(-10000), "lowest"))
    for _ in range(layers):
        q, k, v = (split_heads(g, linear(g, x, width, width), lengths, heads, width) for _ in range(3))
        y = linear(g, attend(g, q, k, v, mask, lengths, width, heads), width, width)
        x = layer_norm(g, g.op("Add", x, y), width)
        y = linear(g, gelu_by_erf(g, linear(g, x, width, 4 * width)), 4 * width, width)
        x = layer_norm(g, g.op("Add", x, y), width)
    g.output(g.op("Identity", x, outputs=["hidden"]), shape=["batch", "sequence", width])
    first = g.op("Gather", x, g.constant(np.int64(0), "i"), axis=1)
    g.output(g.op("Tanh", linear(g, first, width, width), outputs=["pooled"]), shape=["batch", width])
    return {"batch": 1, "sequence": length}


def gpt(g, full):
    width, heads, layers, words, past = (768, 12, 4, 8000, 64) if full else (64, 4, 2, 100, 5)
    ids = g.input("input_ids", ["batch", "sequence"], INT64)
    cache_shape = ["batch", heads, "past", width // heads]
    caches = [(g.input(f"past_k.{i}", cache_shape), g.input(f"past_v.{i}", cache_shape)) for i in range(layers)]
    shape = g.op("Shape", ids)
    lengths = [dimension(g, shape, 0), dimension(g, shape, 1)]
    past_length = g.op("Gather", g.op("Shape", caches[0][0]), g.constant(np.int64(2), "i"), axis=0)
    new_length = g.op("Gather", shape, g.constant(np.int64(1), "i"), axis=0)
    total = g.op("Add", past_length, new_length)
    zero, one = g.constant(np.int64(0), "i"), g.constant(np.int64(1), "i")
    positions = g.op("Range", past_length, total, one)
    x = g.op("Gather", g.normal((words, width), hint="words"), ids, axis=0)
    x = g.op("Add", x, g.op("Gather", g.normal((1024, width), 0.1, hint="positions"), positions, axis=0))
    # causal mask: a query attends to the keys up to its own position
    later = g.op("Greater", g.op("Unsqueeze", g.op("Range", zero, total, one), g.ints(0)),
                 g.op("Unsqueeze", positions, g.ints(1)))
    mask = g.op("Where", later, g.constant(np.float32(-10000), "lowest"), g.constant(np.float32(0), "zero"))
    for i, (past_k, past_v) in enumerate(caches):
        y = linear(g, layer_norm(g, x, width), width, 3 * width)
        q, k, v = g.op("Split", y, g.ints(width, width, width), outputs=3, axis=-1)
        q, k, v = (split_heads(g, part, lengths, heads, width) for part in (q, k, v))
        k = g.op("Concat", past_k, k, outputs=[f"present_k.{i}"], axis=2)
        v = g.op("Concat", past_v, v, outputs=[f"present_v.{i}"], axis=2)
        x = g.op("Add", x, linear(g, attend(g, q, k, v, mask, lengths, width, heads), width, width))
        y = gelu_by_erf(g, linear(g, layer_norm(g, x, width), width, 4 * width))
        x = g.op("Add", x, linear(g, y, 4 * width, width))
        for name in (k, v):
            g.output(name, shape=["batch", heads, "total", width // heads])
    logits = g.op("MatMul", layer_norm(g, x, width), g.normal((width, words), math.sqrt(1 / width)), outputs=["logits"])
    g.output(logits, shape=["batch", "sequence", words])
    return {"batch": 1, "sequence": 1 if full else 3, "past": past}


def attention_block(g, x, rows, width, heads):
    """Adds the attention block of an encoder that normalises before it, for a batch of one sequence of `rows` tokens."""
    y = layer_norm(g, x, width)
    lengths = [g.ints(1), g.ints(rows)]
    q, k, v = (split_heads(g, linear(g, y, width, width), lengths, heads, width) for _ in range(3))
    mixed = attend(g, q, k, v, g.constant(np.float32(0), "none"), lengths, width, heads)
    return g.op("Add", x, linear(g, mixed, width, width))


def vit(g, full):
    width, heads, layers, size, patch = (384, 6, 6, 224, 16) if full else (48, 3, 2, 32, 8)
    x = g.input("image", [1, 3, size, size])
    w = g.normal((width, 3, patch, patch), math.sqrt(1 / (3 * patch * patch)))
    x = g.op("Conv", x, w, g.normal((width,), 0.1, hint="b"), kernel_shape=[patch] * 2, strides=[patch] * 2)
    rows = (size // patch) ** 2
    x = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, rows)), perm=[0, 2, 1])
    x = g.op("Concat", g.normal((1, 1, width), hint="class"), x, axis=1)
    x = g.op("Add", x, g.normal((1, rows + 1, width), 0.5, hint="positions"))
    for _ in range(layers):
        x = attention_block(g, x, rows + 1, width, heads)
        x = g.op("Add", x, linear(g, gelu_by_erf(g, linear(g, layer_norm(g, x, width), width, 4 * width)), 4 * width, width))
    first = g.op("Gather", layer_norm(g, x, width), g.constant(np.int64(0), "i"), axis=1)
    g.output(g.op("Identity", linear(g, first, width, 1000 if full else 10), outputs=["logits"]), shape=[1, 1000 if full else 10])


# --- models of other kinds

def lstm(g, full):
    """Two LSTM layers, unrolled. Each step computes the four gates with one product per operand, and splits the sum."""
    steps, width, batch = (32, 256, 1) if full else (6, 24, 2)
    x = g.input("x", [steps, batch, width])
    h0, c0 = g.input("h0", [2, batch, width]), g.input("c0", [2, batch, width])
    inputs = [g.op("Squeeze", part, g.ints(0)) for part in g.op("Split", x, outputs=steps, axis=0)]
    last_h, last_c = [], []
    for layer in range(2):
        w, r = (g.normal((width, 4 * width), math.sqrt(1 / width)) for _ in range(2))
        b = g.normal((4 * width,), 0.1, hint="b")
        index = g.constant(np.int64(layer), "i")
        h, c = g.op("Gather", h0, index, axis=0), g.op("Gather", c0, index, axis=0)
        for t in range(steps):
            gates = g.op("Add", g.op("Add", g.op("MatMul", inputs[t], w), g.op("MatMul", h, r)), b)
            i, o, f, n = g.op("Split", gates, outputs=4, axis=-1)
            c = g.op("Add", g.op("Mul", g.op("Sigmoid", f), c), g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", n)))
            h = g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c))
            inputs[t] = h
        last_h.append(g.op("Unsqueeze", h, g.ints(0)))
        last_c.append(g.op("Unsqueeze", c, g.ints(0)))
    y = g.op("Concat", *(g.op("Unsqueeze", h, g.ints(0)) for h in inputs), outputs=["y"], axis=0)
    g.output(y, shape=[steps, batch, width])
    g.output(g.op("Concat", *last_h, outputs=["h_n"], axis=0), shape=[2, batch, width])
    g.output(g.op("Concat", *last_c, outputs=["c_n"], axis=0), shape=[2, batch, width])


def multi_output(g, full):
    """A model like an object detector: several heads, integer outputs, and features that are outputs and are also read by
    nodes."""
    width, size, classes = (64, 256, 80) if full else (8, 64, 10)
    x = g.input("image", [1, 3, size, size])
    x = conv_bn(g, x, 3, width, 3, 2)
    features = []
    for level in range(3):
        x = conv_bn(g, x, width, width, 3, 2)
        features.append(x)
    scores, boxes = [], []
    for x in features:
        for head, parts in ((scores, classes), (boxes, 4)):
            y = g.op("Transpose", conv(g, x, width, parts, 3, bias=True, gain=1.0), perm=[0, 2, 3, 1])
            head.append(g.op("Reshape", y, g.ints(1, -1, parts)))
    score = g.op("Softmax", g.op("Concat", *scores, axis=1), outputs=["scores"], axis=-1)
    box = g.op("Exp", g.op("Tanh", g.op("Concat", *boxes, axis=1)), outputs=["boxes"])
    best = g.op("ReduceMax", score, axes=[2], keepdims=0)
    g.op("TopK", best, g.ints(10), outputs=["top_scores", "top_boxes"], axis=-1)
    chosen = g.op("Gather", box, g.op("Squeeze", "top_boxes", g.ints(0)), outputs=["chosen"], axis=1)
    g.op("ArgMax", score, outputs=["labels"], axis=2, keepdims=0)
    boxes_all = sum((size >> level) ** 2 for level in (2, 3, 4))
    g.output(features[0], shape=[1, width, size // 4, size // 4])
    g.output(score, shape=[1, boxes_all, classes])
    g.output(box, shape=[1, boxes_all, 4])
    g.output("top_scores", shape=[1, 10])
    g.output("top_boxes", INT64, [1, 10])
    g.output(chosen, shape=[1, 10, 4])
    g.output("labels", INT64, [1, boxes_all])


def branchy(g, full):
    """Blocks of parallel branches of different depths, with a skip connection from the first value to the end."""
    width, size, blocks = (48, 112, 6) if full else (8, 32, 3)
    first = x = conv_bn(g, g.input("data", [1, 3, size, size]), 3, 4 * width, 3)
    for block in range(blocks):
        a = conv_bn(g, x, 4 * width, width)
        b = conv_bn(g, conv_bn(g, x, 4 * width, width), width, width, 3, activation="Tanh")
        c = conv_bn(g, x, 4 * width, width, activation="Elu")
        c = conv_bn(g, conv_bn(g, c, width, width, 3, groups=2), width, width, 3, activation="Sigmoid")
        d = g.op("MaxPool" if block % 2 else "AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
        d = conv_bn(g, d, 4 * width, width)
        gate = g.op("HardSigmoid", conv(g, g.op("GlobalAveragePool", x), 4 * width, 4 * width, bias=True, gain=1.0))
        x = g.op("Mul", g.op("Concat", a, b, c, d, axis=1), gate)
        x = g.op("Concat", *reversed(g.op("Split", x, outputs=2, axis=1)), axis=1)
    x = g.op("Add", x, first)
    g.output(g.op("ReduceMean", x, outputs=["pooled"], axes=[2, 3], keepdims=0), shape=[1, 4 * width])
    g.output(g.op("LogSoftmax", classifier(g, x, 4 * width, 20), outputs=["log_prob"], axis=-1), shape=[1, 20])


# --- quantised models, only for benchmarks: a value halfway between two quantisation steps may be rounded up or down, so the
# results of correct implementations differ too much for a test

def quantised(g, x, scale, dtype=np.int8):
    """Adds QuantizeLinear and DequantizeLinear to x, so that an integer kernel can compute what reads it."""
    step, zero = g.constant(np.float32(scale), "step"), g.constant(dtype(0), "zero")
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, step, zero), step, zero)


def quantised_conv(g, x, c_in, c_out, kernel=1, stride=1, relu=True, gain=2.0):
    """Adds a convolution as quantisers write it after folding the batch normalisation: int8 weights with a scale per channel."""
    fan_in = c_in * kernel * kernel
    weights = g.rng.standard_normal((c_out, c_in, kernel, kernel), dtype=np.float32) * np.float32(math.sqrt(gain / fan_in))
    steps = np.abs(weights).max(axis=(1, 2, 3)) / 127
    integers = np.rint(weights / steps[:, None, None, None]).astype(np.int8)
    w = g.op("DequantizeLinear", g.constant(integers), g.constant(steps), g.constant(np.zeros(c_out, np.int8), "zero"), axis=0)
    pad = kernel // 2
    x = g.op("Conv", x, w, g.normal((c_out,), 0.1, hint="b"), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
    return quantised(g, g.op("Relu", x) if relu else x, 6 / 127)


def resnet50_int8(g, full):
    width, size, classes = (64, 224, 1000) if full else (16, 64, 100)
    x = quantised(g, g.input("data", [1, 3, size, size]), 4 / 127)
    x = quantised_conv(g, x, 3, width, 7, 2)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner, outer = width << stage, width << stage + 2
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = quantised_conv(g, x, channels, inner)
            y = quantised_conv(g, y, inner, inner, 3, stride)
            y = quantised_conv(g, y, inner, outer, relu=False, gain=0.2)
            if not block:
                x = quantised_conv(g, x, channels, outer, 1, stride, relu=False, gain=1.0)
            x, channels = quantised(g, g.op("Relu", g.op("Add", y, x)), 6 / 127), outer
    g.output(g.op("Identity", classifier(g, x, channels, classes), outputs=["logits"]), shape=[1, classes])


def dynamic_linear():
    """Returns a function like linear(), as dynamic quantisers write it: int8 weights, and activations quantised before the
    product."""
    quantised_once = {}

    def linear_of_bytes(g, x, d_in, d_out, gain=1.0):
        if x not in quantised_once:
            quantised_once[x] = g.op("DynamicQuantizeLinear", x, outputs=3)
        q, step, zero = quantised_once[x]
        weights = g.rng.standard_normal((d_in, d_out), dtype=np.float32) * np.float32(math.sqrt(gain / d_in))
        steps = np.abs(weights).max(axis=0) / 127
        w = g.constant(np.rint(weights / steps).astype(np.int8))
        sums = g.op("MatMulInteger", q, w, zero, g.constant(np.zeros(d_out, np.int8), "zero"))
        x = g.op("Mul", g.op("Cast", sums, to=TensorProto.FLOAT), g.op("Mul", step, g.constant(steps, "steps")))
        return g.op("Add", x, g.normal((d_out,), 0.02, hint="b"))

    return linear_of_bytes


def bert_int8(g, full):
    return bert(g, full, dynamic_linear())


QUANTISED = {f.__name__: f for f in (resnet50_int8, bert_int8)}
MODELS = {f.__name__: f for f in (resnet50, mobilenet, convnext, densenet, unet, bert, gpt, vit, lstm, multi_output, branchy)}


def make(name, seed=0, full=False):
    """Returns the model and random inputs for it, {name: array}."""
    g = GraphBuilder(name, seed)
    sizes = (MODELS | QUANTISED)[name](g, full) or {}
    rng = np.random.default_rng([seed, 1])
    inputs = {}
    for info in g.inputs:
        tensor = info.type.tensor_type
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in tensor.shape.dim]
        if info.name == "attention_mask":
            values = np.ones(shape, np.int64)
            values[..., -max(1, shape[-1] // 4):] = 0
        elif tensor.elem_type == INT64:
            values = rng.integers(0, 100, shape)
        else:
            values = rng.standard_normal(shape, dtype=np.float32)
        inputs[info.name] = values
    return g.model(), inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=sorted(MODELS | QUANTISED), metavar="NAME")
    parser.add_argument("-o", "--output", metavar="F.onnx")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="use the published sizes (default: small ones)")
    parser.add_argument("--inputs", metavar="F.npz", help="also write random inputs for the model")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(MODELS | QUANTISED))
        return 0
    if not arguments.name or not arguments.output:
        parser.error("NAME and -o F.onnx are required (--list prints the names)")
    model, inputs = make(arguments.name, arguments.seed, arguments.full)
    save(model, arguments.output)
    if arguments.inputs:
        np.savez(arguments.inputs, **inputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
