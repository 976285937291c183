"""Compares random graphs with the oracles, on the CPU and under random placements.

    python tests/python/test_random_graphs.py [--count N] [--first SEED] [--placements N]
"""
import argparse
import os
import sys

import onnx

import batch
import oracle
import placements
import random_graphs
import test_directories  # from tools/, which oracle adds to the path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--placements", type=int, default=3)
    arguments = parser.parse_args()
    folder = oracle.build_folder("random")
    directories, features, passed_over = random_graphs.generate(folder, arguments.count, arguments.first)
    print(f"{len(directories)} graphs made, {len(passed_over)} seeds skipped because no oracle can be used")
    tally, cases = oracle.Tally(), batch.Batch()
    for directory in directories:
        model = onnx.load(os.path.join(directory, "model.onnx"))
        expected = test_directories.read_tensors(os.path.join(directory, "test_data_set_0"), "output")
        placements.add(cases, directory, model, expected, arguments.placements)
    cases.tally(tally)
    if arguments.count >= 500:
        for feature in random_graphs.WANTED:
            tally.add(f"some graph has the feature '{feature}'", None if features[feature] else "no graph has this feature")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
