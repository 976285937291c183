"""Compares the generated models (tools/models.py) with ONNX Runtime, on the CPU and under random placements.

    python tests/python/test_models.py [NAME...] [--placements N] [--full]       --full: also with the published sizes
"""
import argparse
import os
import sys

import onnx

import oracle
import placements
import models  # from tools/, which oracle adds to the path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--placements", type=int, default=20)
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    names = arguments.names or list(models.MODELS)
    # at full size a few placements suffice to find errors that occur only with large tensors
    work = [(name, False, arguments.placements) for name in names]
    work += [(name, True, 3) for name in names if arguments.full]
    tally = oracle.Tally()

    def check(item):
        name, full, count = item
        folder = os.path.join(oracle.build_folder("models"), name + ("_full" if full else ""))
        os.makedirs(folder, exist_ok=True)
        model, inputs = models.make(name, seed=1, full=full)
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        expected = oracle.run_onnxruntime(model, inputs)
        return placements.results(path, model, oracle.save_inputs(folder, inputs), expected, count, name, timeout=300 if full else 60)

    for (name, full, _), found in oracle.each(check, work):
        label = name + (" (full)" if full else "")
        if isinstance(found, Exception):
            tally.add(label, f"{type(found).__name__}: {found}")
            continue
        for configuration, reason in found:
            tally.add(f"{label} {configuration}", reason)
        print(f"{label}: {sum(reason is None for _, reason in found)} of {len(found)} configurations are right", flush=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
