"""`make bench`: Cleave against ONNX Runtime and OpenVINO, alternating in one run, results checked, the same number of threads.

    python bench/bench.py [MODEL...] [--threads 1,2] [--rounds 5] [--devices cpu] [--peers onnxruntime,openvino] [--check] [-o FILE.md]

MODEL is a light model (light_resnet50: needs CLEAVE_DATA or ../shared/data), or a generated one at its published size (resnet50, bert);
all of both when not said. A round is a burst of runs by a fresh process of each side, the order changing from round to round; a burst's
figure is the median of its runs, a ratio is taken within a round, and the table gives the median over rounds with the least and
greatest ratio. A row that is over a limit of time is measured again for twice as many rounds more, once, and all of its rounds count:
on a virtual machine that loses a core for seconds a few rounds say little. Below the table are the geometric means that are aimed at.
A peer that is not installed is left out, and that is said.

roofline: what Cleave's operators take at least, by the arithmetic and the bandwidth that this machine shows (`cleave bench --operators`),
as a share of what a run takes. Where a model is over a limit of time, the operators that lose most against their rooflines are listed;
within 10 % of its roofline it is over none.

Memory: peak of Cleave's process beside the peak of the peer's Python process less what it held after its imports. Load: Cleave's load,
plan and compile, and the peer's model until it can run, each with the model's file dropped from the page cache before. All compute in
f32 as the model has it (OpenVINO is told so); of int8 models the integers are the model's.
"""
import argparse
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

BURST_SECONDS = 1.0
# --check: Cleave's time over a peer's. The light models' geometric mean, that of the others over the better peer, and each model's
# own over the better peer, unless it is that near its roofline; load time and memory are below both peers', and some load in so many ms.
LIGHT_MEANS = {"onnxruntime": 0.70, "openvino": 0.85}
OTHERS_MEAN, MODEL_LIMIT = 0.95, 1.05
NEAR_ROOFLINE = 0.90
LOAD_LIMITS_MS = {"resnet50": 1000}
LOSSES_LISTED = 3
ROUNDS_WHERE_OVER = 3  # times the rounds asked for, in all
QUANTISED_ERROR = 0.05  # mean, of the outputs' deviation: single values may be rounded to the next step, and move what is made of them


def peak_bytes():
    """Of this program alone: getrusage's figure begins with the peak of the process that started it."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def open_onnxruntime(path, inputs, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def open_openvino(path, inputs, threads):
    import openvino
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True)


PEERS = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


def peer_burst(peer, model_path, inputs_path, threads, runs):
    """In a process of its own: the peer's figures as JSON."""
    importlib.import_module(peer)
    imports = peak_bytes()
    inputs = dict(np.load(inputs_path))
    start = time.perf_counter()
    run = PEERS[peer](model_path, inputs, threads)
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    for _ in range(2):
        run()
    times = []
    for _ in range(runs):
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1e3)
    print(json.dumps({"latency_ms": {"median": statistics.median(times)}, "load_ms": (loaded - start) * 1e3,
                      "first_run_ms": (first - loaded) * 1e3, "peak_rss_bytes": peak_bytes() - imports}))


def drop_from_cache(path):
    """Asks the kernel to forget a file's pages, so that the next load reads the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run_json(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "no message").splitlines()[-1])
    return json.loads(done.stdout)


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
        self.outputs = [value.name for value in graph.output]
        self.inputs_path = os.path.join(folder, name + ".npz")
        with open(self.inputs_path, "wb") as file:
            np.savez(file, **inputs)
        input_folder = os.path.join(folder, name)
        os.makedirs(input_folder)
        self.input_arguments = oracle.save_inputs(input_folder, inputs)
        self.inputs = inputs

    def check(self, devices):
        """None, or how Cleave's result differs from ONNX Runtime's."""
        import onnx
        import oracle
        expected = oracle.isolated(lambda: oracle.run_onnxruntime(onnx.load(self.path), self.inputs))
        outputs = oracle.cleave_run(self.path, self.input_arguments, self.outputs, "--devices", devices, threads=2)
        if self.name.startswith("light_"):  # constant weights: their logits reach 1e9; the tolerance is that of their test
            close = all(np.allclose(a, e, rtol=1e-3, atol=1e-7) for a, e in zip(outputs, expected))
            return None if close else "not within rtol 1e-3, atol 1e-7"
        if self.is_quantised:
            worst = max(np.sqrt(np.square(a - e).mean()) / e.std() for a, e in zip(outputs, expected))
            return None if worst <= QUANTISED_ERROR else f"off by {worst:.3f} of the outputs' deviation, limit {QUANTISED_ERROR}"
        return oracle.first_difference(expected, outputs)


def measure(subject, devices, peers, threads, rounds):
    """The Result of so many rounds, and of more where those are over a limit."""
    import oracle
    commands = {peer: [sys.executable, os.path.abspath(__file__), "--peer-burst", peer, subject.path, subject.inputs_path, threads]
                for peer in peers}
    probe = min(run_json(command + [3], threads)["latency_ms"]["median"] for command in commands.values())
    runs = int(min(300, max(5, BURST_SECONDS * 1e3 / max(probe, 1e-3))))
    commands = {peer: command + [runs] for peer, command in commands.items()}
    commands["cleave"] = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices, "--threads", threads,
                          "--json", "--runs", runs]
    result = Result(subject, threads, {side: [] for side in commands}, measure_operators(subject, devices, threads))
    while result.rounds < rounds or result.rounds < ROUNDS_WHERE_OVER * rounds and (result.rounds > rounds or result.is_over_time()):
        for side in sorted(commands, reverse=result.rounds % 2 == 1):
            drop_from_cache(subject.path)
            result.figures[side].append(run_json(commands[side], threads))
    return result


def measure_operators(subject, devices, threads):
    """What `cleave bench --operators` says of the model: its "operators" as JSON."""
    import oracle
    command = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices, "--threads", threads, "--json",
               "--operators", "--runs", 10]
    return run_json(command, threads)["operators"]


def machine(peers):
    import oracle
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())
    version = subprocess.run([oracle.COMMAND, "--version"], capture_output=True, text=True).stdout.strip() or "cleave"
    versions = ", ".join(f"{peer} {importlib.import_module(peer).__version__}" for peer in ("onnx", *peers))
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}; {version}, {versions}"


class Result:
    """What a model comes to with so many threads: lists of figures, one a round, for 'cleave' and each peer, and their medians."""

    def __init__(self, subject, threads, figures, operators):
        self.name, self.threads, self.figures, self.operators = subject.name, threads, figures, operators
        self.sides = ["cleave", *(side for side in figures if side != "cleave")]
        self.peers = self.sides[1:]

    @property
    def rounds(self):
        return min(map(len, self.figures.values()))

    def latency(self, side):
        return [figure["latency_ms"]["median"] for figure in self.figures[side]]

    def median(self, side, key):
        return statistics.median(figure[key] for figure in self.figures[side])

    def ratios(self, peer):
        return [ours / theirs for ours, theirs in zip(self.latency("cleave"), self.latency(peer))]

    def roofline(self):
        """The share of it that runs of the comparison reach, at the median."""
        return self.operators["roofline_ms"] / statistics.median(self.latency("cleave"))

    def losses(self):
        """The operators that lose most against their rooflines."""
        rows = [row for row in self.operators["rows"] if row["lost_ms"] is not None]
        for row in sorted(rows, key=lambda row: -row["lost_ms"])[:LOSSES_LISTED]:
            share = "a step beside those of nodes" if row["roofline"] is None else f"{row['roofline']:.0%} of its roofline ({row['bound']})"
            yield f"{row['operator']} ×{row['count']}: {row['ms']:.3f} ms, {share}, {row['lost_ms']:.3f} ms lost"

    def is_slow(self):
        return self.worst_ratio() > MODEL_LIMIT and self.roofline() < NEAR_ROOFLINE

    def less_than_cleave(self, key):
        """The peers that take less of it."""
        return [peer for peer in self.peers if self.median("cleave", key) > self.median(peer, key)]

    def is_over_time(self):
        return self.is_slow() or bool(self.less_than_cleave("load_ms"))

    def ratio(self, peer):
        return statistics.median(self.ratios(peer))

    def worst_ratio(self):
        """Over the better of the peers."""
        return max(map(self.ratio, self.peers))

    def row(self):
        def cell(values, form):
            return " / ".join(map(form.format, values))
        latency = [statistics.median(self.latency(side)) for side in self.sides]
        load, first, memory = ([self.median(side, key) for side in self.sides] for key in ("load_ms", "first_run_ms", "peak_rss_bytes"))
        ratios = (f"{self.ratio(peer):.2f} ({min(found):.2f}–{max(found):.2f})" for peer, found in zip(self.peers, map(self.ratios, self.peers)))
        return (f"| {self.name} | {self.threads} | {self.rounds} | {cell(latency, '{:.2f}')} | {' | '.join(ratios)} | {cell(load, '{:.0f}')} "
                f"| {cell(first, '{:.1f}')} | {cell((value / 1e6 for value in memory), '{:.0f}')} | {self.roofline():.0%} |")

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
    if sys.argv[1:2] == ["--peer-burst"]:
        peer_burst(*sys.argv[2:5], *map(int, sys.argv[5:7]))
        return 0
    import oracle
    import models
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--peers", default=",".join(PEERS))
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
    for peer in [peer for peer in peers if peer not in PEERS]:
        parser.error(f"--peers {peer}: no such peer; there are: {', '.join(PEERS)}")
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
             "time over the peer's, median of the rounds (least–greatest)", "",
             f"| model | threads | rounds | ms | {' | '.join(f'of {peer}' for peer in peers)} | load, ms | first run, ms | peak, MB | roofline |",
             "| --- " * (8 + len(peers)) + "|"]
    print("\n".join(lines), flush=True)
    wrong, results = [], []
    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as folder:
        for name in names:
            try:
                subject = Subject(name, folder)
                difference = subject.check(arguments.devices)
                if difference is not None:
                    raise RuntimeError(f"wrong result: {difference}")
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
