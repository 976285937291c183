"""Counts the instructions of a run outside its kernels with callgrind, and compares them with limits.

    python tests/python/test_overhead.py        prints a table; fails if a number is above its limit

So it finds regressions that are too small to be measured as times. bench_overhead runs a long and a short chain of tiny nodes.
From the difference follow the instructions of the calling thread per node (if there is one partition), or per partition (if
nodes alternate between devices). The functions of kernels are not counted. The limits are a fifth above the counts with gcc 12
at -O3. After a change that adds instructions on purpose, enter the new counts here.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import oracle

NODES, RUNS = (60, 660), 4
PROGRAM = os.path.join(oracle.BUILD, "bench", "bench_overhead")
# (name, arguments of bench_overhead, number of instructions per node or partition with which results are compared, "node" or
# "partition")
SCENES = [
    ("cpu, one partition, eager", ("cpu", "default", "off", ""), 11, "node"),
    ("npu, one partition, eager", ("npu", "all", "off", ""), 538, "node"),
    ("npu, one partition, replayed", ("npu", "all", "on", ""), 0, "node"),
    ("npu and cpu alternating, eager", ("npu,cpu", "all", "off", "Relu"), 5800, "partition"),
    ("npu and cpu alternating, replayed", ("npu,cpu", "all", "on", "Relu"), 4120, "partition"),
]
SLACK, GRACE = 1.2, 2
# A line of callgrind_annotate: captures the number of instructions and the function's name, without suffixes of the compiler or
# linker (.part, @version).
LINE = re.compile(r"^\s*([\d,]+) \([ \d.]+%\)\s+\S*?:(\w+)(?:\.[.\w]+)?(?:@\S+)?(?: \[.*\])?$")


def kernel_names():
    """Returns the names of all functions in the object files of kernels."""
    names = set()
    for folder, _, files in os.walk(oracle.BUILD):
        paths = [os.path.join(folder, file) for file in files if file.endswith(".o")]
        if paths and any(part in folder for part in ("src/operators", "backends/common/kernels", "backends/cpu/kernels")):
            listed = subprocess.run(["nm", "--defined-only", "--format=posix", *paths], capture_output=True, text=True, check=True).stdout
            names |= {words[0].split(".")[0] for words in map(str.split, listed.splitlines()) if len(words) > 1 and words[1] in "tTi"}
    return names


def count(arguments, nodes, kernels):
    """Runs bench_overhead on a chain. Returns (instructions outside kernels in all measured runs, number of partitions)."""
    with tempfile.TemporaryDirectory(prefix="cleave-overhead-") as folder:
        path = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", "--toggle-collect=measured_run", PROGRAM,
                   *arguments, str(nodes), str(RUNS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        report = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", path], capture_output=True, text=True, check=True)
    total = 0
    for line in report.stdout.splitlines():
        found = LINE.match(line)
        if found and found.group(2) not in kernels:
            total += int(found.group(1).replace(",", ""))
    return total, int(done.stdout.split()[0])


def main():
    tally = oracle.Tally()
    if shutil.which("valgrind") is None:
        tally.skip("overhead", "valgrind is not installed")
        return tally.finish()
    kernels = kernel_names()

    def measure(scene):
        _, arguments, _, per = scene
        (short, few), (long, many) = (count(arguments, nodes, kernels) for nodes in NODES)
        return (long - short) / RUNS / (NODES[1] - NODES[0] if per == "node" else many - few)

    for (name, _, counted, per), found in oracle.each(measure, SCENES):
        if isinstance(found, Exception):
            tally.add(name, f"{type(found).__name__}: {found}")
            continue
        limit = counted * SLACK + GRACE
        print(f"{name:32}{found:8.1f} instructions per {per}, limit {limit:.0f}", flush=True)
        tally.add(name, None if found <= limit else f"{found:.1f} instructions per {per}, limit {limit:.0f}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
