"""Runs the nine light models with `cleave test`: on the CPU, and on NPU and CPU.

    python tests/python/test_light.py [MODEL...]        CLEAVE_DATA is the folder that contains onnx-light/

On NPU and CPU they run with every strategy, and once for each type of operator with all nodes of that type forced to the CPU.
"""
import collections
import os
import sys

import onnx

import oracle
import placements
import light_to_tests  # from tools/, which oracle adds to the path

TOLERANCE_OPTIONS = ["--rtol", "1e-3", "--atol", "1e-7"]


def main():
    tally = oracle.Tally()
    source = os.path.join(oracle.DATA, "onnx-light")
    if not os.path.isdir(source):
        tally.skip("light models", f"no folder {source} (set CLEAVE_DATA to the folder that holds onnx-light)")
        return tally.finish()
    directories = light_to_tests.convert(source, oracle.build_folder("light"))
    if len(sys.argv) > 1:
        directories = [d for d in directories if any(name in os.path.basename(d) for name in sys.argv[1:])]

    by_operator = collections.defaultdict(list)
    for directory in directories:
        graph = onnx.load(os.path.join(directory, "model.onnx"), load_external_data=False).graph
        for operator in sorted({node.op_type for node in graph.node}):
            by_operator[operator].append(directory)
    runs = [(["--devices", "cpu"], directories)]
    runs += [(["--devices", "npu,cpu", "--strategy", strategy], directories) for strategy in placements.STRATEGIES]
    for operator, having in sorted(by_operator.items()):
        # ConstantOfShape is computed before placement, so forcing it to the CPU must have no effect
        runs.append((["--devices", "npu,cpu", "--strategy", "contiguous", "--force", f"{operator}=cpu"], having))

    for options, having in runs:
        passed = 0
        try:
            cases = oracle.cleave_test(having, *options, *TOLERANCE_OPTIONS)
        except oracle.CleaveError as error:
            tally.add(" ".join(options), str(error))
            continue
        for directory, case in zip(having, cases):
            right = case["status"] == "PASS"
            passed += right
            tally.add(f"{os.path.basename(directory)} {' '.join(options)}",
                      None if right else f"{case['status']}: {case.get('reason')}")
        print(f"{' '.join(options)}: {passed} of {len(cases)} pass", flush=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
