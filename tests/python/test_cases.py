"""Compares the expected outputs of the conformance kit's cases with ONNX Runtime and with the reference evaluator of onnx.

    python tests/python/test_cases.py [--seed N] [PATTERN...]     PATTERN: only cases whose name matches, such as "Conv *"

The expected outputs come from Cleave's reference evaluator. All cases are written by tests/check/write_cases.c, whose program
is tests/write_cases in the folder of the command. A case passes if one of the oracles agrees, fails if oracles can run it but
none agrees, and is skipped if no oracle can run it.
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

# Cases that no oracle computes correctly: pattern of names -> why the reference evaluator is wrong. ONNX Runtime has no kernel
# for them.
WRONG_ORACLES = {
    "ReduceSumSquare 22, u32*": "the reference evaluator computes in u64 instead of u32",
    "ConvTranspose *f64*group=*": "the reference evaluator ignores groups",
    "LRN 22, bf16*": "the reference evaluator adds the squares of wrong channels",
    "LRN 22, f64*": "the reference evaluator adds the squares of wrong channels",
    "AffineGrid 22, bf16*": "the reference evaluator returns f32",
    "GridSample 22, bf16*": "the reference evaluator rounds coordinates in the image to bf16",
    "Det 22, bf16*": "the reference evaluator returns f64",
    "LRN 22, f32*size=4*": "ONNX Runtime supports only odd sizes; the reference evaluator adds the squares of wrong channels",
}


SMALLEST_TOLERANCE = 1e-7  # the least tolerance, because the oracles use f32 constants in some f64 operators


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
    """Returns "passed" if an oracle agrees, None if no oracle can run the case, otherwise how an oracle's outputs differ."""
    ours, reason = list(outputs.values()), None
    runs = [lambda: oracle.run_onnxruntime(model, inputs, optimize=False), lambda: oracle.run_reference(model, inputs)]
    for run in runs:
        try:
            theirs = run()
        except Exception:  # after any exception, this oracle cannot be used for the case
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
