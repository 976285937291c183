"""Runs third-party packages on ONNX Runtime and, unchanged, on cleave.onnxruntime, and compares their results.

    python tests/python/test_packages.py [CASE...]

Each case of package_cases.py runs in a process of its own, with the Python of .venv-packages, which `tools/setup packages` makes.
Without it, all cases are skipped. One case also runs on virtual NPUs and the CPU.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import oracle

PYTHON = os.path.join(oracle.ROOT, ".venv-packages", "bin", "python")
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "package_cases.py")
LIST = "requirements-packages.txt"
CASES = ("rapidocr", "magika", "swift_f0", "speechmos", "nudenet", "basic_pitch", "silero_vad", "fastembed")
# Allowed differences, as a share of the largest magnitude. swift_f0: ONNX Runtime's results with its optimisations differ this
# much from those without, with which Cleave's agree.
TOLERANCE = {"swift_f0": 5e-4}
USUAL = 1e-4
ON_NPU = {"basic_pitch": {"devices": "npu,cpu", "strategy": "contiguous"}}
NPU_TOLERANCE = 1e-2


def run_case(name, engine, folder, options):
    """Returns the results by name, or the reason why there are none."""
    path = os.path.join(folder, f"{name}_{engine}.npz")
    environment = dict(os.environ, PYTHONPATH=os.path.join(oracle.BUILD, "python"), CLEAVE_PACKAGE_OPTIONS=json.dumps(options),
                       OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    try:
        done = subprocess.run([PYTHON, SCRIPT, name, engine, path], env=environment, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        return f"{engine}: timeout"
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode != 0:
        return f"{engine}: {done.stderr.strip()[-600:]}"
    if last != ("cleave.onnxruntime" if engine == "cleave" else "onnxruntime"):
        return f"{engine}: `import onnxruntime` gave {last!r}"
    with np.load(path) as file:
        return dict(file)


def difference(expected, actual, tolerance):
    if isinstance(expected, str) or isinstance(actual, str):
        return expected if isinstance(expected, str) else actual
    if set(expected) != set(actual) or not expected:
        return f"results {sorted(actual)}, expected {sorted(expected)}"
    return next((f"{key}: {found}" for key in expected if (found := oracle.compare(expected[key], actual[key], tolerance)) is not None), None)


def main():
    chosen = sys.argv[1:] or CASES
    tally = oracle.Tally()
    if not os.path.exists(os.path.join(oracle.ROOT, ".venv-packages", LIST)):
        for name in chosen:
            tally.skip(name, "the packages are not installed: run tools/setup packages")
        return tally.finish()
    with tempfile.TemporaryDirectory(prefix="cleave-", dir=oracle.MEMORY) as folder:
        for name in chosen:
            expected = run_case(name, "onnxruntime", folder, {})
            tally.add(name, difference(expected, run_case(name, "cleave", folder, {}), TOLERANCE.get(name, USUAL)))
            if name in ON_NPU:
                tally.add(f"{name} on {ON_NPU[name]['devices']}",
                          difference(expected, run_case(name, "cleave", folder, ON_NPU[name]), NPU_TOLERANCE))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
