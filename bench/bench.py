"""`make bench`: Cleave against ONNX Runtime and OpenVINO, alternating in one run, results checked, the same number of threads.

    python bench/bench.py [MODEL...] [--threads 1,2] [--rounds 3] [--devices cpu] [--peers onnxruntime,openvino] [--check] [-o FILE.md]

MODEL is a light model (light_resnet50: needs CLEAVE_DATA or ../shared/data), or a generated one at its published size (resnet50, bert);
all of both when not said. For a model and a number of threads each side is a process (`sides.py`) that has the model loaded and waits.
By turns each runs a short burst, the order changing from turn to turn: a first run that is not counted, since the others have used
the caches, then runs for 50 ms, one at least, of which the median is taken. No burst begins before the threads of the side before it
have gone to sleep. Cleave's turn is between those of its peers: what a ratio compares is a tenth of a second apart, or two runs where
they take longer, on a machine whose speed may change every few seconds. The table gives the median of the turns' ratios with their
10th and 90th percentile. What Cleave's worker computes is compared with ONNX Runtime's result before it is timed. Below the table
are the geometric means that are aimed at. A peer that is not installed is left out, and that is said.

roofline: what Cleave's operators take at least, by the arithmetic and the bandwidth that this machine shows (`cleave bench --operators`),
as a share of what a run takes. Where a model is over a limit of time, the operators that lose most against their rooflines are listed;
within 10 % of its roofline it is over none.

Load time, first run and memory are those of further processes, anew for each of --rounds rounds, the order changing. Load: Cleave's load,
plan and compile, and the peer's model until it can run, each with the model's file dropped from the page cache before; the lesser is
who takes less in most rounds. Memory: peak of Cleave's process beside the peak of the peer's Python process less what it held after its
imports, after three runs. A row that is over a limit of latency gets twice as many turns more, one that is over the limit of load
time twice as many rounds, once, and all of them count. All compute in f32 as the model has it (OpenVINO is told so); of int8 models
the integers are the model's.
"""
import argparse
import contextlib
import importlib.util
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import sides

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

BURST_SECONDS = 0.05
TURNS_SECONDS, LEAST_TURNS = 3.0, 9  # of a side; the whole of it takes so long a side
# --check: Cleave's time over a peer's. The light models' geometric mean, that of the others over the better peer, and each model's
# own over the better peer, unless it is that near its roofline; load time and memory are below both peers', and some load in so many ms.
LIGHT_MEANS = {"onnxruntime": 0.70, "openvino": 0.85}
OTHERS_MEAN, MODEL_LIMIT = 0.95, 1.05
NEAR_ROOFLINE = 0.90
LOAD_LIMITS_MS = {"resnet50": 1000}
LOSSES_LISTED = 3
WHERE_OVER = 3  # times the turns or rounds, in all
QUANTISED_ERROR = 0.05  # mean, of the outputs' deviation: single values may be rounded to the next step, and move what is made of them


def drop_from_cache(path):
    """Asks the kernel to forget a file's pages, so that the next load reads the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def light_path(name):
    import oracle
    return os.path.join(oracle.DATA, "onnx-light", name + ".onnx")


class Subject:
    """A model on disk with its inputs, in the forms that both sides read, and what it should give."""

    def __init__(self, name, folder):
        import onnx
        import oracle
        import models  # of tools/, which oracle makes visible
        self.name, self.path, self.is_quantised = name, os.path.join(folder, name + ".onnx"), name in models.QUANTISED
        if name.startswith("light_"):
            self.path = light_path(name)
            graph = onnx.load(self.path).graph
            weights = {tensor.name for tensor in graph.initializer}
            info = next(value for value in graph.input if value.name not in weights)
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            inputs = {info.name: (np.arange(count, dtype=np.float32) / np.float32(count)).reshape(shape)}
        else:
            model, inputs = models.make(name, seed=0, full=True)
            onnx.save(model, self.path)
            graph = model.graph
        self.output_count = len(graph.output)
        self.inputs_path = os.path.join(folder, name + ".npz")
        with open(self.inputs_path, "wb") as file:
            np.savez(file, **inputs)
        input_folder = os.path.join(folder, name)
        os.makedirs(input_folder)
        self.input_arguments = oracle.save_inputs(input_folder, inputs)
        self.expected, = oracle.isolated([lambda: oracle.run_onnxruntime(onnx.load(self.path), inputs)])

    def difference(self, worker):
        """None, or how a worker's result differs from ONNX Runtime's."""
        import oracle
        expected, paths = self.expected, [f"{self.inputs_path}.{index}.npy" for index in range(self.output_count)]
        worker.ask("write", *paths)
        outputs = list(map(np.load, paths))
        if self.name.startswith("light_"):  # constant weights: their logits reach 1e9; the tolerance is that of their test
            close = all(np.allclose(a, e, rtol=1e-3, atol=1e-7) for a, e in zip(outputs, expected))
            return None if close else "not within rtol 1e-3, atol 1e-7"
        if self.is_quantised:
            worst = max(np.sqrt(np.square(a - e).mean()) / e.std() for a, e in zip(outputs, expected))
            return None if worst <= QUANTISED_ERROR else f"off by {worst:.3f} of the outputs' deviation, limit {QUANTISED_ERROR}"
        return oracle.first_difference(expected, outputs)


def measure(subject, devices, peers, threads, rounds):
    """The Result of a model."""
    result = Result(subject, threads, peers, measure_operators(subject, devices, threads))
    with contextlib.ExitStack() as stack:
        workers = {side: stack.enter_context(open_worker(side, subject, devices, threads)) for side in result.sides}
        difference = subject.difference(workers["cleave"])
        if difference is not None:
            raise RuntimeError(f"wrong result: {difference}")
        take_turns(result, workers, 1)
        if result.is_slow():
            take_turns(result, workers, WHERE_OVER - 1)
    load(result, subject, devices, rounds)
    if result.less_than_cleave("load_ms"):
        load(result, subject, devices, (WHERE_OVER - 1) * rounds)
    return result


def open_worker(side, subject, devices, threads):
    import oracle
    library = os.path.join(os.path.dirname(os.path.abspath(oracle.COMMAND)), "libcleave.so")
    more = [library, devices] if side == "cleave" else []
    return sides.Worker(side, subject.path, subject.inputs_path, threads, *more)


def take_turns(result, workers, times):
    """So many times the turns that a model gets."""
    order = [*result.peers[:1], "cleave", *result.peers[1:]]
    turns, end = result.turns + times * LEAST_TURNS, time.monotonic() + times * TURNS_SECONDS * len(order)
    while result.turns < turns or time.monotonic() < end:
        order.reverse()
        for side in order:
            result.latencies[side].append(float(workers[side].ask("burst", BURST_SECONDS)))


def load(result, subject, devices, rounds):
    """Adds rounds of processes that load the model and run it a few times."""
    import oracle
    commands = {peer: sides.load_command(peer, subject.path, subject.inputs_path, result.threads) for peer in result.peers}
    commands["cleave"] = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices,
                          "--threads", result.threads, "--json", "--warmup", 1, "--runs", 1]
    for _ in range(rounds):
        for side in sorted(commands, reverse=result.rounds % 2 == 1):
            drop_from_cache(subject.path)
            result.loads[side].append(sides.run_json(commands[side], result.threads))


def measure_operators(subject, devices, threads):
    """What `cleave bench --operators` says of the model: its "operators" as JSON."""
    import oracle
    command = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices, "--threads", threads, "--json",
               "--operators", "--runs", 10]
    return sides.run_json(command, threads)["operators"]


def machine(peers):
    import oracle
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())
    version = subprocess.run([oracle.COMMAND, "--version"], capture_output=True, text=True).stdout.strip() or "cleave"
    versions = ", ".join(f"{peer} {importlib.import_module(peer).__version__}" for peer in ("onnx", *peers))
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}; {version}, {versions}"


class Result:
    """What a model comes to with so many threads, for 'cleave' and each peer: bursts' latencies, one a turn, and figures of loads."""

    def __init__(self, subject, threads, peers, operators):
        self.name, self.threads, self.peers, self.operators = subject.name, threads, peers, operators
        self.sides = ["cleave", *peers]
        self.latencies, self.loads = {side: [] for side in self.sides}, {side: [] for side in self.sides}

    @property
    def turns(self):
        return min(map(len, self.latencies.values()))

    @property
    def rounds(self):
        return min(map(len, self.loads.values()))

    def latency(self, side):
        return statistics.median(self.latencies[side])

    def median(self, side, key):
        return statistics.median(figure[key] for figure in self.loads[side])

    def ratios(self, peer):
        return [ours / theirs for ours, theirs in zip(self.latencies["cleave"], self.latencies[peer])]

    def roofline(self):
        """The share of it that runs of the comparison reach, at the median."""
        return self.operators["roofline_ms"] / self.latency("cleave")

    def losses(self):
        """The operators that lose most against their rooflines."""
        rows = [row for row in self.operators["rows"] if row["lost_ms"] is not None]
        for row in sorted(rows, key=lambda row: -row["lost_ms"])[:LOSSES_LISTED]:
            share = "a step beside those of nodes" if row["roofline"] is None else f"{row['roofline']:.0%} of its roofline ({row['bound']})"
            yield f"{row['operator']} ×{row['count']}: {row['ms']:.3f} ms, {share}, {row['lost_ms']:.3f} ms lost"

    def is_slow(self):
        return self.worst_ratio() > MODEL_LIMIT and self.roofline() < NEAR_ROOFLINE

    def less_than_cleave(self, key):
        """The peers that take less of it, at the median of rounds."""
        def ratio(peer):
            return statistics.median(ours[key] / theirs[key] for ours, theirs in zip(self.loads["cleave"], self.loads[peer]))
        return [peer for peer in self.peers if ratio(peer) > 1]

    def ratio(self, peer):
        return statistics.median(self.ratios(peer))

    def worst_ratio(self):
        """Over the better of the peers."""
        return max(map(self.ratio, self.peers))

    def row(self):
        def cell(values, form):
            return " / ".join(map(form.format, values))
        latency = map(self.latency, self.sides)
        load, first, memory = ([self.median(side, key) for side in self.sides] for key in ("load_ms", "first_run_ms", "peak_rss_bytes"))
        deciles = {peer: statistics.quantiles(self.ratios(peer), n=10, method="inclusive") for peer in self.peers}
        ratios = (f"{self.ratio(peer):.2f} ({found[0]:.2f}–{found[-1]:.2f})" for peer, found in deciles.items())
        return (f"| {self.name} | {self.threads} | {self.turns}, {self.rounds} | {cell(latency, '{:.2f}')} | {' | '.join(ratios)} "
                f"| {cell(load, '{:.0f}')} | {cell(first, '{:.1f}')} | {cell((value / 1e6 for value in memory), '{:.0f}')} "
                f"| {self.roofline():.0%} |")

    def over_limits(self):
        if self.is_slow():
            yield (f"{self.name}, {self.threads} threads: {self.worst_ratio():.2f} times the better peer's time, limit {MODEL_LIMIT}; "
                   f"{self.roofline():.0%} of its roofline\n" + "\n".join(f"    {text}" for text in self.losses()))
        load_ms = self.median("cleave", "load_ms")
        if load_ms > LOAD_LIMITS_MS.get(self.name, math.inf):
            yield f"{self.name}: loads in {load_ms:.0f} ms, limit {LOAD_LIMITS_MS[self.name]}"
        for key, unit in (("load_ms", "load time"), ("peak_rss_bytes", "memory")):
            over = self.less_than_cleave(key)
            if over:
                yield f"{self.name}, {self.threads} threads: more {unit} than {' and '.join(over)}"


def means(results):
    """(what it is, geometric mean, limit), as far as there are results."""
    light = [result for result in results if result.name.startswith("light_")]
    others = [result for result in results if not result.name.startswith("light_")]
    for peer, limit in LIGHT_MEANS.items():
        ratios = [result.ratio(peer) for result in light if peer in result.peers]
        if ratios:
            yield f"light models over {peer}", statistics.geometric_mean(ratios), limit
    if others:
        yield "other models over the better peer", statistics.geometric_mean(result.worst_ratio() for result in others), OTHERS_MEAN


def main():
    import oracle
    import models
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3, help="of loading")
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--peers", default=",".join(sides.PEERS))
    parser.add_argument("--check", action="store_true", help="fail where a limit is passed")
    parser.add_argument("-o", "--output", metavar="FILE.md", help="write the table there too")
    arguments = parser.parse_args()
    names = arguments.models
    if not names:
        light = os.path.join(oracle.DATA, "onnx-light")
        if os.path.isdir(light):
            names += sorted(file[:-len(".onnx")] for file in os.listdir(light) if file.endswith(".onnx"))
        else:
            print(f"light models left out: no folder {light} (set CLEAVE_DATA)", file=sys.stderr)
        names += [*models.MODELS, *models.QUANTISED]
    peers = [peer for peer in arguments.peers.split(",") if peer]
    for peer in [peer for peer in peers if peer not in sides.PEERS]:
        parser.error(f"--peers {peer}: no such peer; there are: {', '.join(sides.PEERS)}")
    for peer in [peer for peer in peers if importlib.util.find_spec(peer) is None]:
        print(f"{peer} left out: not installed here ('tools/setup test' does it)", file=sys.stderr)
        peers.remove(peer)
    if not peers:
        parser.error("no peer to compare with")
    for name in names:
        if name.startswith("light_"):
            if not os.path.isfile(light_path(name)):
                parser.error(f"{name}: no file {light_path(name)} (set CLEAVE_DATA)")
        elif name not in models.MODELS | models.QUANTISED:
            parser.error(f"{name}: no such model; there are: {', '.join(models.MODELS | models.QUANTISED)}")

    lines = [machine(peers), "", f"devices {arguments.devices}; cells: cleave / {' / '.join(peers)}; ratio: Cleave's "
             "time over the peer's, median of the turns (10th–90th percentile); rounds: of loading", "",
             f"| model | threads | turns, rounds | ms | {' | '.join(f'of {peer}' for peer in peers)} "
             "| load, ms | first run, ms | peak, MB | roofline |",
             "| --- " * (8 + len(peers)) + "|"]
    print("\n".join(lines), flush=True)
    wrong, results = [], []
    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as folder:
        for name in names:
            try:
                subject = Subject(name, folder)
                for threads in map(int, arguments.threads.split(",")):
                    results.append(measure(subject, arguments.devices, peers, threads, arguments.rounds))
                    lines.append(results[-1].row())
                    print(lines[-1], flush=True)
            except (RuntimeError, oracle.CleaveError) as error:
                wrong.append(f"{name}: {error}")
                print(f"| {name} | {error} |", flush=True)
    passed = [text for result in results for text in result.over_limits()]
    summary = [""]
    for what, mean, limit in means(results):
        summary.append(f"{what}: geometric mean {mean:.3f}, aimed at {limit:.2f}")
        passed += [f"{what}: {mean:.3f}, limit {limit:.2f}"] if mean > limit else []
    summary += [f"over the limit: {text}" for text in passed]
    lines += summary
    print("\n".join(summary))
    for text in wrong:
        print(f"FAIL {text}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if wrong or arguments.check and passed else 0


if __name__ == "__main__":
    sys.exit(main())
