"""The cases of the conformance kit, as the reference evaluator has them, against ONNX Runtime and the reference evaluator of onnx.

    python tests/python/test_cases.py [--seed N] [PATTERN...]     PATTERN: of names, "Conv *"

`tests/check/write_cases.c` writes them all (build/write_cases, or beside $CLEAVE_COMMAND). A case passes where one of the oracles
agrees, fails where those that run it do not, and is skipped where none runs it.
"""
import argparse
import collections
import fnmatch
import os
import struct
import subprocess
import sys
import tempfile

import onnx
from onnx import numpy_helper

import oracle

WRITER = os.path.join(os.path.dirname(oracle.COMMAND), "tests", "write_cases")

# What no oracle runs rightly, with the reason: ONNX Runtime has no kernel for it, and the other oracle is wrong.
WRONG_ORACLES = {
    "ReduceSumSquare 22, u32*": "the reference evaluator widens to u64",
    "ConvTranspose *f64*group=*": "the reference evaluator knows no groups",
    "LRN 22, bf16*": "the reference evaluator takes the square sums of other channels",
    "LRN 22, f64*": "the reference evaluator takes the square sums of other channels",
    "AffineGrid 22, bf16*": "the reference evaluator gives f32",
    "GridSample 22, bf16*": "the reference evaluator rounds places in the picture to bf16",
    "Det 22, bf16*": "the reference evaluator gives f64",
    "LRN 22, f32*size=4*": "ONNX Runtime takes odd sizes; the reference evaluator as above",
}


SMALLEST_TOLERANCE = 1e-7  # the oracles have constants of f32 in some operators of f64


class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data, self.at = file.read(), 0

    def number(self):
        self.at += 8
        return struct.unpack_from("<Q", self.data, self.at - 8)[0]

    def block(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size:self.at]

    def tensors(self):
        protos = [onnx.TensorProto.FromString(self.block()) for _ in range(self.number())]
        return {proto.name: numpy_helper.to_array(proto) for proto in protos}

    def cases(self):
        while self.at < len(self.data):
            name = self.block().decode()
            yield name, onnx.load_model_from_string(self.block()), self.tensors(), self.tensors()


def check(model, inputs, outputs):
    """"passed", or what an oracle says otherwise, or None where none runs it."""
    ours, reason = list(outputs.values()), None
    runs = [lambda: oracle.run_onnxruntime(model, inputs, optimize=False), lambda: oracle.run_reference(model, inputs)]
    for run in runs:
        try:
            theirs = run()
        except Exception:  # whatever an oracle throws means that it is none for this case
            continue
        difference = oracle.first_difference(theirs, ours, max(oracle.tolerance_of(model), SMALLEST_TOLERANCE))
        if difference is None:
            return "passed"
        reason = reason or difference
    return reason


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        path = os.path.join(folder, "cases")
        subprocess.run([WRITER, path, str(options.seed)], check=True)
        for name, model, inputs, outputs in Reader(path).cases():
            if options.patterns and not any(fnmatch.fnmatchcase(name, pattern) for pattern in options.patterns):
                continue
            result = check(model, inputs, outputs)
            known = any(fnmatch.fnmatchcase(name, pattern) for pattern in WRONG_ORACLES)
            status = "passed" if result == "passed" else "skipped" if result is None or known else "failed"
            counts[status] += 1
            if status == "failed":
                print(f"FAIL {name}: {result}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return counts["failed"] > 0 or counts["passed"] == 0


if __name__ == "__main__":
    sys.exit(main())
