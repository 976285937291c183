"""`make bench`: compares the speed of Cleave with that of ONNX Runtime and OpenVINO.

    python bench/bench.py [MODEL...] [--threads 1,2] [--rounds 3] [--devices cpu] [--peers onnxruntime,openvino] [--check] [-o FILE.md]

MODEL is a light model (light_resnet50, for example; needs CLEAVE_DATA or ../shared/data), or a generated model at its published
size (resnet50, bert); default: all models of both kinds. A 'side' is Cleave or one of its peers, ONNX Runtime and OpenVINO. All
sides use the same number of threads and compute f32 models in f32, for which OpenVINO needs an option. Quantised models compute
with integers. Cleave's result is compared with ONNX Runtime's before it is timed.

Latency: each side is a process (`sides.py`) that keeps the model loaded. The sides take turns, in alternating order. A turn is
one run that is not counted, because the other sides have evicted the data from the caches, and then as many runs as fit in 50 ms,
at least one. The median of these runs is the time of the turn. A turn begins only when the threads of the previous side sleep.
Cleave's turn is between those of its peers, so that the two times of a ratio are measured at nearly the same time: the machine's
speed may change every few seconds. The table gives the median of the ratios of all turns, with the 10th and 90th percentiles.
Below the table are the geometric means and their targets. A peer that is not installed is skipped with a message.

Roofline: the shortest time in which Cleave's operators could run at this machine's arithmetic rate and memory bandwidth (`cleave
bench --operators`), as a share of the measured time. If a model exceeds its latency limit, the operators with the most time above
their rooflines are listed. The latency limit does not apply to a model that reaches 90 % of its roofline.

Load time, time of the first run, and memory are measured in --rounds rounds, with a new process per side in each. The load time
is the time until the model can run; for Cleave it includes planning and compiling. The model's file is dropped from the page
cache before each load. Memory is measured after three runs: for Cleave the peak of the process, for a peer the peak of its Python
process minus the peak after its imports. A model that exceeds the latency limit, or loads slower than a peer, is measured again
once, with twice as many turns or rounds, and all of them count.
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
TURNS_SECONDS, LEAST_TURNS = 3.0, 9  # a model is measured for at least 9 turns per side, and for at least 3 s per side
# Limits of --check for the ratio of Cleave's time to a peer's: LIGHT_MEANS for the geometric mean over the light models, per
# peer, OTHERS_MEAN for that over the other models, compared with the faster peer, and MODEL_LIMIT for each model, compared with
# the faster peer. MODEL_LIMIT does not apply if the roofline is at least NEAR_ROOFLINE of the time. Load time and memory must not
# exceed those of any peer. Some models also have a limit of load time, in ms.
LIGHT_MEANS = {"onnxruntime": 0.70, "openvino": 0.85}
OTHERS_MEAN, MODEL_LIMIT = 0.95, 1.05
NEAR_ROOFLINE = 0.90
LOAD_LIMITS_MS = {"resnet50": 1000}
LOSSES_LISTED = 3
WHERE_OVER = 3  # a model over a limit is measured with this many times the usual turns or rounds in total
QUANTISED_ERROR = 0.05  # largest root mean square error, relative to the outputs' standard deviation; values may be rounded to a neighbouring step


def drop_from_cache(path):
    """Asks the kernel to forget a file's pages, so that the next load reads the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def light_path(name):
    import oracle
    return os.path.join(oracle.DATA, "onnx-light", name + ".onnx")


class Subject:
    """A model that is measured: its file, its inputs in the formats that the sides read, and the expected outputs."""

    def __init__(self, name, folder):
        import onnx
        import oracle
        import models  # from tools/, which oracle adds to the path
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
        """Returns None, or how a worker's result differs from ONNX Runtime's."""
        import oracle
        expected, paths = self.expected, [f"{self.inputs_path}.{index}.npy" for index in range(self.output_count)]
        worker.ask("write", *paths)
        outputs = list(map(np.load, paths))
        if self.name.startswith("light_"):  # all weights of a tensor are equal, so logits reach 1e9: use the tolerance of tests/python/test_light.py
            close = all(np.allclose(a, e, rtol=1e-3, atol=1e-7) for a, e in zip(outputs, expected))
            return None if close else "the outputs are not within rtol 1e-3, atol 1e-7 of the expected ones"
        if self.is_quantised:
            worst = max(np.sqrt(np.square(a - e).mean()) / e.std() for a, e in zip(outputs, expected))
            return None if worst <= QUANTISED_ERROR else f"the root mean square error is {worst:.3f} of the outputs' standard deviation, limit {QUANTISED_ERROR}"
        return oracle.first_difference(expected, outputs)


def measure(subject, devices, peers, threads, rounds):
    """Measures a model and returns its Result."""
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
    """Measures latencies in `times` times the usual number of turns."""
    order = [*result.peers[:1], "cleave", *result.peers[1:]]
    turns, end = result.turns + times * LEAST_TURNS, time.monotonic() + times * TURNS_SECONDS * len(order)
    while result.turns < turns or time.monotonic() < end:
        order.reverse()
        for side in order:
            result.latencies[side].append(float(workers[side].ask("burst", BURST_SECONDS)))


def load(result, subject, devices, rounds):
    """Measures load time, first run and memory in `rounds` rounds. In each, a new process per side loads and runs the model."""
    import oracle
    commands = {peer: sides.load_command(peer, subject.path, subject.inputs_path, result.threads) for peer in result.peers}
    commands["cleave"] = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices,
                          "--threads", result.threads, "--json", "--warmup", 1, "--runs", 1]
    for _ in range(rounds):
        for side in sorted(commands, reverse=result.rounds % 2 == 1):
            drop_from_cache(subject.path)
            result.loads[side].append(sides.run_json(commands[side], result.threads))


def measure_operators(subject, devices, threads):
    """Returns "operators" of the JSON that `cleave bench --operators` prints."""
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
    """What was measured for a model and a number of threads, per side ('cleave' or a peer): a latency per turn, and the figures
    of each process that loaded the model."""

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
        """Returns the time of the roofline as a share of the median latency."""
        return self.operators["roofline_ms"] / self.latency("cleave")

    def losses(self):
        """Yields a line for each of the operators with the most time above their rooflines."""
        rows = [row for row in self.operators["rows"] if row["lost_ms"] is not None]
        for row in sorted(rows, key=lambda row: -row["lost_ms"])[:LOSSES_LISTED]:
            share = "the step belongs to no node" if row["roofline"] is None else f"{row['roofline']:.0%} of its roofline, bound by {row['bound']}"
            yield f"{row['operator']} ×{row['count']}: {row['ms']:.3f} ms, {row['lost_ms']:.3f} ms above its roofline ({share})"

    def is_slow(self):
        return self.worst_ratio() > MODEL_LIMIT and self.roofline() < NEAR_ROOFLINE

    def less_than_cleave(self, key):
        """Returns the peers whose figure `key` is less than Cleave's, by the median over the rounds of the ratio of the two."""
        def ratio(peer):
            return statistics.median(ours[key] / theirs[key] for ours, theirs in zip(self.loads["cleave"], self.loads[peer]))
        return [peer for peer in self.peers if ratio(peer) > 1]

    def ratio(self, peer):
        return statistics.median(self.ratios(peer))

    def worst_ratio(self):
        """Returns the ratio of Cleave's time to that of the faster peer."""
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
            yield (f"{self.name}, {self.threads} threads: {self.worst_ratio():.2f} times the faster peer's time, limit {MODEL_LIMIT}; "
                   f"the roofline is {self.roofline():.0%} of Cleave's time\n" + "\n".join(f"    {text}" for text in self.losses()))
        load_ms = self.median("cleave", "load_ms")
        if load_ms > LOAD_LIMITS_MS.get(self.name, math.inf):
            yield f"{self.name}: the load time is {load_ms:.0f} ms, limit {LOAD_LIMITS_MS[self.name]} ms"
        for key, unit in (("load_ms", "load time"), ("peak_rss_bytes", "memory")):
            over = self.less_than_cleave(key)
            if over:
                yield f"{self.name}, {self.threads} threads: more {unit} than {' and '.join(over)}"


def means(results):
    """Yields (description, geometric mean, limit) for each group of models that has results."""
    light = [result for result in results if result.name.startswith("light_")]
    others = [result for result in results if not result.name.startswith("light_")]
    for peer, limit in LIGHT_MEANS.items():
        ratios = [result.ratio(peer) for result in light if peer in result.peers]
        if ratios:
            yield f"light models, Cleave's time / that of {peer}", statistics.geometric_mean(ratios), limit
    if others:
        yield "other models, Cleave's time / that of the faster peer", statistics.geometric_mean(result.worst_ratio() for result in others), OTHERS_MEAN


def main():
    import oracle
    import models
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure load time, first run and memory")
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--peers", default=",".join(sides.PEERS))
    parser.add_argument("--check", action="store_true", help="fail if a limit is exceeded")
    parser.add_argument("-o", "--output", metavar="FILE.md", help="also write the table to this file")
    arguments = parser.parse_args()
    names = arguments.models
    if not names:
        light = os.path.join(oracle.DATA, "onnx-light")
        if os.path.isdir(light):
            names += sorted(file[:-len(".onnx")] for file in os.listdir(light) if file.endswith(".onnx"))
        else:
            print(f"light models are skipped: no folder {light} (set CLEAVE_DATA to the folder that holds onnx-light)", file=sys.stderr)
        names += [*models.MODELS, *models.QUANTISED]
    peers = [peer for peer in arguments.peers.split(",") if peer]
    for peer in [peer for peer in peers if peer not in sides.PEERS]:
        parser.error(f"--peers {peer}: unknown peer; known are {', '.join(sides.PEERS)}")
    for peer in [peer for peer in peers if importlib.util.find_spec(peer) is None]:
        print(f"{peer} is skipped: not installed ('tools/setup test' installs it)", file=sys.stderr)
        peers.remove(peer)
    if not peers:
        parser.error("no peer to compare with: none of those in --peers is installed")
    for name in names:
        if name.startswith("light_"):
            if not os.path.isfile(light_path(name)):
                parser.error(f"{name}: no file {light_path(name)} (set CLEAVE_DATA to the folder that holds onnx-light)")
        elif name not in models.MODELS | models.QUANTISED:
            parser.error(f"{name}: unknown model; known are light_NAME and {', '.join(models.MODELS | models.QUANTISED)}")

    lines = [machine(peers), "", f"Devices of Cleave: {arguments.devices}. Cells with several numbers: cleave / {' / '.join(peers)}. The columns 'time / "
             "PEER' have Cleave's time divided by the peer's: median over the turns (10th–90th percentile). Rounds: how often loading was "
             "measured. Roofline: its time as a share of Cleave's.", "",
             f"| model | threads | turns, rounds | time, ms | {' | '.join(f'time / {peer}' for peer in peers)} "
             "| load time, ms | first run, ms | peak memory, MB | roofline |",
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
        summary.append(f"{what}: geometric mean {mean:.3f}, target {limit:.2f}")
        passed += [f"{what}: {mean:.3f}, limit {limit:.2f}"] if mean > limit else []
    summary += [f"limit exceeded: {text}" for text in passed]
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
