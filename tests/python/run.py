"""Runs the test scripts that compare with an oracle, several at a time; the last line is 'N passed, N failed, N skipped'.

    python tests/python/run.py [--workers N] [SCRIPT...]

SCRIPT is a script in the list SCRIPTS, such as "joins" or "test_joins.py", optionally with arguments, as in "joins --count 9";
default: all of them. --workers: how many scripts run at the same time. Each script runs in a process that is forked from this
one. So NumPy, onnx and ONNX Runtime, which are slow to load, are loaded only once. A script runs one command at a time, and its
output is printed when it ends. Scripts can also be run directly.
"""
import argparse
import importlib
import os
import re
import shlex
import sys
import tempfile
import time
import traceback

import onnx  # noqa: F401  these three are loaded before the workers are forked
import onnx.reference  # noqa: F401
import onnxruntime  # noqa: F401

import oracle

# The scripts that `make test` runs, the longest first, so that all workers finish at about the same time.
SCRIPTS = ["random_graphs --count 500 --placements 2", "models", "special_values", "node_cases", "quantised", "precision", "cases",
           "dynamic", "attention --count 60", "random_cnns --count 300", "joins", "recurrent", "operators", "transposes", "small_dtypes",
           "decoders", "numpy_nodes"]
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)


def named(text):
    """Returns the words of a script's command line. If only a name is given, the arguments are those in SCRIPTS."""
    name, *arguments = shlex.split(text)
    name = os.path.basename(name).removeprefix("test_").removesuffix(".py")
    usual = next((words for words in map(shlex.split, SCRIPTS) if words[0] == name), None)
    if usual is None:
        raise SystemExit(f"'{name}' is not one of the scripts {', '.join(script.split()[0] for script in SCRIPTS)}")
    return [name, *arguments] if arguments else usual


def start(words, output):
    """Starts a process that runs a script, and returns its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        sys.argv = [f"test_{words[0]}.py", *words[1:]]
        status = int(importlib.import_module(f"test_{words[0]}").main())
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # the worker must end here, whatever happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def finish(words, output, status, seconds, used):
    """Prints the output of a script. Returns its line of the table: (name, passed, failed, skipped, seconds, CPU seconds)."""
    output.seek(0)
    text = output.read()
    counts = COUNTS.findall(text)
    passed, failed, skipped = map(int, counts[-1]) if counts else (0, 0, 0)
    if status != 0 and failed == 0:
        failed = 1  # the script failed, but reported no failure
    print(f"-- {' '.join(words)}\n{text}", end="", flush=True)
    return words[0], passed, failed, skipped, seconds, used.ru_utime + used.ru_stime


def run(scripts, workers):
    """Runs the scripts and returns the lines of the table."""
    waiting, running, lines = list(scripts), {}, []
    while waiting or running:
        while waiting and len(running) < workers:
            words, output = waiting.pop(0), tempfile.TemporaryFile("w+", errors="replace")
            running[start(words, output)] = (words, output, time.monotonic())
        child, status, used = os.wait4(-1, 0)  # `used` includes the CPU time of the child's own children
        words, output, began = running.pop(child)
        with output:
            lines.append(finish(words, output, os.waitstatus_to_exitcode(status), time.monotonic() - began, used))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    oracle.processes = 1  # because each worker already runs a script
    lines = run([named(text) for text in arguments.scripts or SCRIPTS], arguments.workers)
    print(f"\n{'script':20} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>8} {'CPU s':>7}")
    for name, *counts, seconds, used in lines:
        print(f"{name:20} {counts[0]:7} {counts[1]:7} {counts[2]:7} {seconds:8.0f} {used:7.1f}")
    passed, failed, skipped = (sum(line[k] for line in lines) for k in (1, 2, 3))
    print(f"{sum(line[5] for line in lines):.0f} s of CPU time in total\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed + skipped else 0


if __name__ == "__main__":
    sys.exit(main())
