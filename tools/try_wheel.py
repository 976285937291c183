"""Runs a model with the installed package `cleave` and numpy alone, where no other package of Python is. Used by `tools/wheel --try`."""
import sys
import tempfile

import numpy as np

import cleave

# ---- An ONNX model, byte by byte: the package onnx is not there ----


def field(number, kind, payload):
    tag = bytes([number << 3 | kind])
    if kind == 0:
        return tag + varint(payload)
    return tag + varint(len(payload)) + payload


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def text(number, value):
    return field(number, 2, value.encode())


def value_info(name, dims):
    shape = b"".join(field(1, 2, field(1, 0, size)) for size in dims)
    return text(1, name) + field(2, 2, field(1, 2, field(1, 0, 1) + field(2, 2, shape)))


def node(op, inputs, outputs):
    return b"".join(text(1, name) for name in inputs) + b"".join(text(2, name) for name in outputs) + text(4, op)


def model(weight):
    tensor = b"".join(field(1, 0, size) for size in weight.shape) + field(2, 0, 1) + text(8, "w") + field(9, 2, weight.tobytes())
    graph = (field(1, 2, node("MatMul", ["x", "w"], ["p"])) + field(1, 2, node("Relu", ["p"], ["y"])) + text(2, "tiny") + field(5, 2, tensor)
             + field(11, 2, value_info("x", [4, 64])) + field(12, 2, value_info("y", [4, 32])))
    return field(1, 0, 8) + field(7, 2, graph) + field(8, 2, field(2, 0, 17))


def main():
    rng = np.random.default_rng(0)
    weight, x = rng.standard_normal((64, 32), dtype=np.float32), rng.standard_normal((4, 64), dtype=np.float32)
    with cleave.Session(model(weight), "npu,cpu", cache="", forces={"MatMul": "npu", "Relu": "cpu"}) as session:
        y = session.run({"x": x})["y"]
        print(session.plan)
        verification = session.verify({"x": x})
    with tempfile.TemporaryDirectory() as folder:
        session.plan.draw(f"{folder}/plan.html")
    right = np.allclose(y, np.maximum(x @ weight, 0), atol=1e-4) and verification.equal
    print(f"cleave {cleave.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
