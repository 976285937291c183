"""Compares the decoders of tests/support/decoder.h with ONNX Runtime, on the CPU alone and on NPU and CPU.

    python tests/python/test_decoders.py [--steps 0,1,48]

ONNX Runtime generates 64 tokens. At the steps in --steps, the command runs with the same inputs, including the caches.
"""
import argparse
import os
import subprocess
import sys

import numpy as np
import onnx

import oracle

PROMPT, GENERATED = 16, 64
MAKE_MODEL = os.path.join(oracle.BUILD, "tests", "make_model")
CONFIGURATIONS = [["--devices", "cpu"]] + [["--devices", "npu,cpu", "--strategy", strategy]
                                           for strategy in ("contiguous", "propagate", "optimal")]


def generate(model):
    """Generates tokens with ONNX Runtime, always the most likely one. Returns (inputs, outputs) of every step, each {name:
    array}."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = [info.name for info in session.get_outputs()]
    caches = [info for info in session.get_inputs() if info.name not in ("ids", "positions")]
    state = {info.name: np.zeros([size if isinstance(size, int) else 0 for size in info.shape], np.float32) for info in caches}
    ids, first, steps = np.array([[(i * 37 + 11) % 97 for i in range(PROMPT)]], np.int64), 0, []
    for _ in range(GENERATED):
        inputs = {"ids": ids, "positions": np.arange(first, first + ids.shape[1], dtype=np.int64), **state}
        results = dict(zip(outputs, session.run(outputs, inputs)))
        steps.append((inputs, results))
        first += ids.shape[1]
        ids = results["logits"][:, -1:].argmax(axis=2).astype(np.int64)
        state = {name: results[f"new_{name}"] for name in state}
    return steps


def check(path, step, inputs, expected, options, folder):
    folder = os.path.join(folder, f"step{step}")
    os.makedirs(folder, exist_ok=True)
    saved = oracle.save_inputs(folder, inputs)
    actual = oracle.cleave_run(path, saved, list(expected), *options)
    return oracle.first_difference(list(expected.values()), actual)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default="0,1,2,31,48,63")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    if not os.path.exists(MAKE_MODEL):
        tally.skip("decoders", f"the program {MAKE_MODEL}, which makes the models, was not built")
        return tally.finish()
    for kind in ("fixed", "growing"):
        folder = oracle.build_folder(f"decoder_{kind}")
        path = os.path.join(folder, "model.onnx")
        subprocess.run([MAKE_MODEL, path, f"decoder-{kind}"], check=True)
        model = onnx.load(path)
        steps = generate(model)
        tokens = [int(results["logits"][0, -1].argmax()) for _, results in steps]
        tally.add(f"{kind}: more than 8 different tokens are generated", None if len(set(tokens)) > 8 else f"only the tokens {sorted(set(tokens))}")
        for step in map(int, arguments.steps.split(",")):
            inputs, expected = steps[step]
            for options in CONFIGURATIONS:
                try:
                    reason = check(path, step, inputs, expected, options, folder)
                except oracle.CleaveError as error:
                    reason = str(error)
                tally.add(f"{kind}, step {step}, {' '.join(options)}", reason)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
