"""`make bench`: Cleave against ONNX Runtime, alternating in one run, with results checked and the same number of threads.

    python bench/bench.py [MODEL...] [--threads 1,2] [--rounds 5] [--devices cpu] [--check] [-o FILE.md]

MODEL is a light model (light_resnet50: needs CLEAVE_DATA or ../shared/data), or a generated one at its published size (resnet50, bert);
all of both when not said. A round is a burst of runs by a fresh `cleave bench` process and one by a fresh process of ONNX Runtime, the
order changing from round to round; a burst's figure is the median of its runs, a ratio is taken within a round, and the table gives
the median over rounds with the least and greatest ratio.

Memory: peak of Cleave's process beside the peak of the Python process less what it held after its imports. Load: Cleave's load, plan
and compile, and ONNX Runtime's session, each with the model's file dropped from the page cache before.
"""
import argparse
import json
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
LIMITS = {"light_resnet50": 1.2}  # --check: Cleave's time over ONNX Runtime's
LIGHT_LIMIT = 1.5
LOAD_LIMITS_MS = {"resnet50": 1000}


def peak_bytes():
    """Of this program alone: getrusage's figure begins with the peak of the process that started it."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def peer_burst(model_path, inputs_path, threads, runs):
    """In a process of its own: ONNX Runtime's figures as JSON."""
    import onnxruntime
    imports = peak_bytes()
    inputs = dict(np.load(inputs_path))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter()
    session.run(None, inputs)
    first = time.perf_counter()
    for _ in range(2):
        session.run(None, inputs)
    times = []
    for _ in range(runs):
        before = time.perf_counter()
        session.run(None, inputs)
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
        self.name, self.path = name, os.path.join(folder, name + ".onnx")
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
        return oracle.first_difference(expected, outputs)


def measure(subject, devices, threads, rounds):
    """Lists of figures, one a round, for ('cleave', 'peer')."""
    import oracle
    ours = [oracle.COMMAND, "bench", subject.path, *subject.input_arguments, "--devices", devices, "--threads", threads, "--json"]
    peer = [sys.executable, os.path.abspath(__file__), "--peer-burst", subject.path, subject.inputs_path, threads]
    probe = run_json(peer + [3], threads)["latency_ms"]["median"]
    runs = int(min(300, max(5, BURST_SECONDS * 1e3 / max(probe, 1e-3))))
    commands = {"cleave": ours + ["--runs", runs], "peer": peer + [runs]}
    figures = {"cleave": [], "peer": []}
    for number in range(rounds):
        for side in ("cleave", "peer") if number % 2 == 0 else ("peer", "cleave"):
            drop_from_cache(subject.path)
            figures[side].append(run_json(commands[side], threads))
    return figures


def machine():
    import onnx
    import onnxruntime
    import oracle
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())
    version = subprocess.run([oracle.COMMAND, "--version"], capture_output=True, text=True).stdout.strip() or "cleave"
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}; {version}, " \
           f"ONNX Runtime {onnxruntime.__version__}, onnx {onnx.__version__}"


def row(subject, threads, figures):
    """The table's row, and the figures that limits are set on."""
    def latency(side):
        return [figure["latency_ms"]["median"] for figure in figures[side]]

    def middle(side, key):
        return statistics.median(figure[key] for figure in figures[side])
    ratios = [a / b for a, b in zip(latency("cleave"), latency("peer"))]
    ratio = statistics.median(ratios)
    line = (f"| {subject.name} | {threads} | {statistics.median(latency('cleave')):.2f} | {statistics.median(latency('peer')):.2f} "
            f"| {ratio:.2f} ({min(ratios):.2f}–{max(ratios):.2f}) | {middle('cleave', 'load_ms'):.0f} | {middle('peer', 'load_ms'):.0f} "
            f"| {middle('cleave', 'first_run_ms'):.1f} | {middle('peer', 'first_run_ms'):.1f} "
            f"| {middle('cleave', 'peak_rss_bytes') / 1e6:.0f} | {middle('peer', 'peak_rss_bytes') / 1e6:.0f} |")
    return line, ratio, middle("cleave", "load_ms"), middle("cleave", "peak_rss_bytes") / max(1, middle("peer", "peak_rss_bytes"))


def over_limit(name, ratio, load_ms, memory_ratio):
    limit = LIMITS.get(name, LIGHT_LIMIT if name.startswith("light_") else None)
    if limit is not None and ratio > limit:
        yield f"{name}: {ratio:.2f} times ONNX Runtime's time, limit {limit}"
    if load_ms > LOAD_LIMITS_MS.get(name, float("inf")):
        yield f"{name}: loads in {load_ms:.0f} ms, limit {LOAD_LIMITS_MS[name]}"
    if name in LOAD_LIMITS_MS and memory_ratio > 1:
        yield f"{name}: {memory_ratio:.2f} times ONNX Runtime's memory, limit 1"


def main():
    if sys.argv[1:2] == ["--peer-burst"]:
        peer_burst(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return 0
    import oracle
    import models
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", default="cpu")
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
        names += list(models.MODELS)

    for name in names:
        if name.startswith("light_"):
            if not os.path.isfile(light_path(name)):
                parser.error(f"{name}: no file {light_path(name)} (set CLEAVE_DATA)")
        elif name not in models.MODELS:
            parser.error(f"{name}: no such model; there are: {', '.join(models.MODELS)}")

    lines = [machine(), "", f"devices {arguments.devices}; {arguments.rounds} rounds; times in ms, memory in MB; ratio: Cleave's time "
             "over ONNX Runtime's, median of the rounds (least–greatest)", "",
             "| model | threads | cleave | ORT | ratio | load | ORT load | first run | ORT first run | peak | ORT peak |",
             "| --- " * 11 + "|"]
    print("\n".join(lines), flush=True)
    wrong, passed = [], []
    with tempfile.TemporaryDirectory(prefix="cleave-bench-") as folder:
        for name in names:
            try:
                subject = Subject(name, folder)
                difference = subject.check(arguments.devices)
                if difference is not None:
                    raise RuntimeError(f"wrong result: {difference}")
                for threads in map(int, arguments.threads.split(",")):
                    line, *figures = row(subject, threads, measure(subject, arguments.devices, threads, arguments.rounds))
                    passed += over_limit(f"{name}", *figures)
                    lines.append(line)
                    print(line, flush=True)
            except (RuntimeError, oracle.CleaveError) as error:
                wrong.append(f"{name}: {error}")
                print(f"| {name} | {error} |", flush=True)
    for text in passed:
        print(f"over the limit: {text}")
    for text in wrong:
        print(f"FAIL {text}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if wrong or arguments.check and passed else 0


if __name__ == "__main__":
    sys.exit(main())
