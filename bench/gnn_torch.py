"""Compares GNN inference by a saved plan with PyTorch: GraphSAGE (mean) on an R-MAT graph, all tensors in memory.

    python bench/gnn_torch.py [--quick] [--scale N] [--columns F] [--rounds N] [--threads N] [--json] [--check]

Cleave generates the graph, measures the costs of the CPU, and makes a plan from them. Then three programs take turns, each in its
own process, which keeps its data loaded and waits while the others run:
    cleave   `bench_gnn_worker`, which runs the plan
    scatter  PyTorch, which gathers a message per edge and adds them up with index_add_
    csr      PyTorch, which multiplies by the adjacency matrix in CSR format
The results must agree with those of scatter within 1e-4 of the largest number in a column. Memory is the peak resident memory
minus the memory before anything was loaded. The PyTorch programs are ordinary code, with 64-bit indices (PyTorch's default) and
without early release of tensors. The bandwidth of Cleave's aggregation kernel alone is compared with that of a copy
(`bench_sparse_aggregate`). The time of METIS to partition the graph is shown too, but this plan does not use it. Install PyTorch
with `tools/setup torch`, or set CLEAVE_TORCH_PYTHON to a Python that has it. --check fails if a ratio misses its target.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CLEAVE_BUILD", os.path.join(ROOT, "build"))
COMMAND = os.environ.get("CLEAVE_COMMAND", os.path.join(BUILD, "cleave"))
TOLERANCE = 1e-4
TINY_SCALE = 8
SMALLER = [(3, 8), (3, 32), (2, 16), (1, 8)]  # further graphs on which a layer is measured: (by how much their R-MAT scale is smaller, edges per vertex)
WANTED = {"scatter": 6.0, "csr": 2.0, "memory": 0.5, "kernel": 0.6}
SIDES = ["cleave", "scatter", "csr"]


# ---- PyTorch's programs: this file runs itself with --peer in a new process ----


def status_bytes(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))


def load_peer(form, graph, weights):
    """Loads graph and weights. Returns a function that runs the model once, as `form` says: "scatter" or "csr"."""
    import torch
    import torch.nn.functional as F

    with np.load(graph) as arrays:
        x = torch.from_numpy(arrays["x"])
        source, target = (torch.from_numpy(row.astype(np.int64)) for row in arrays["edge_index"])
    with np.load(weights) as arrays:
        parameters = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    n, layers = x.shape[0], 1 + max(int(name.split(".")[1]) for name in parameters)
    degree = torch.bincount(target, minlength=n)
    if form == "csr":
        order = torch.argsort(target, stable=True)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
        share = (1.0 / degree.clamp(min=1).float())[target[order]]
        matrix = torch.sparse_csr_tensor(offsets, source[order], share, size=(n, n))
        del order, offsets, share
    else:
        inverse = 1.0 / degree.clamp(min=1).float()[:, None]

    def mean_of(rows):
        if form == "csr":
            return matrix @ rows
        total = torch.zeros(n, rows.shape[1]).index_add_(0, target, rows[source])
        return total.mul_(inverse)

    def run():
        rows = x
        with torch.inference_mode():
            for layer in range(layers):
                name = f"convs.{layer}."
                mean = mean_of(rows)
                neighbours = F.linear(mean, parameters[name + "lin_l.weight"], parameters[name + "lin_l.bias"])
                rows = neighbours + F.linear(rows, parameters[name + "lin_r.weight"])
                if layer + 1 < layers:
                    rows = rows.relu_()
        return rows

    return run


def be_peer(form, graph, weights, threads):
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    before = status_bytes("VmRSS:")
    run = load_peer(form, graph, weights)
    out = None
    for line in sys.stdin:
        command, _, path = line.strip().partition(" ")
        if command == "run":
            out = None
            begin, begin_cpu = time.monotonic(), time.process_time()
            out = run()
            print(f"{time.monotonic() - begin:.6f} {time.process_time() - begin_cpu:.6f}", flush=True)
        elif command == "write":
            out.numpy().tofile(path)
            print("done", flush=True)
        elif command == "memory":
            print(before, status_bytes("VmHWM:"), flush=True)


# ---- The comparison ----


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times, self.cpu_times = [], []

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.process.args[0]}: ended with exit status {self.process.wait()} on the command '{line}'")
        return answer.split()

    def run(self, keep=True):
        took, cpu = (float(word) for word in self.ask("run"))
        if keep:
            self.times.append(took)
            self.cpu_times.append(cpu)

    def close(self):
        before, peak = (int(float(word)) for word in self.ask("memory"))
        self.process.stdin.close()
        self.process.wait()
        return {"before_bytes": before, "peak_bytes": peak - before}


def cleave(*words):
    done = subprocess.run([COMMAND, "gnn", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cleave gnn {' '.join(map(str, words))}: {done.stderr.strip()}")
    return json.loads(done.stdout) if "--json" in words else None


def generate(folder, scale, edges, columns):
    path = os.path.join(folder, f"rmat-{scale}-{edges}.npz")
    cleave("generate", "--rmat", scale, "--edges-per-vertex", edges, "--features", columns, "--seed", 1, "-o", path)
    return path


def write_model(folder, columns):
    random = np.random.default_rng(7)
    weights, layers = {}, []
    for layer in range(2):
        for name in ("lin_l", "lin_r"):
            weights[f"convs.{layer}.{name}.weight"] = (random.standard_normal((columns, columns)) / columns**0.5).astype(np.float32)
        weights[f"convs.{layer}.lin_l.bias"] = random.standard_normal(columns).astype(np.float32)
        layers.append({"in": columns, "out": columns, "activation": "none" if layer else "relu"})
    np.savez(os.path.join(folder, "weights.npz"), **weights)
    path = os.path.join(folder, "model.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"type": "graphsage", "weights": "weights.npz", "layers": layers}, file)
    return path


def measure_layer(graph, common):
    """Measures a layer. Returns the fastest of a few runs, because other activity on the machine only makes runs slower."""
    tellings = [cleave("run", *common, "--graph", graph, "--runs", 3, "--json") for _ in range(3)]
    told = min(tellings, key=lambda telling: telling["measured_ms"])
    return {"n": told["vertices"], "m": told["edges"], "targets": told["vertices"],
            "time_ns": 1e6 * told["measured_ms"] / told["layers"], "peak_bytes": told["peak_rss_bytes"]}


def make_plan(folder, model, graph, arguments):
    """Makes a plan for the CPU alone, with costs of whole layers that are measured on this graph and on smaller ones. With one
    device there is no need to measure every block, as `cleave gnn profile` does. So that command runs only on a tiny graph, to
    make a profile with the costs of copies, in which the costs of blocks are replaced."""
    common = ("--model", model, "--devices", "cpu", "--threads", arguments.threads)
    profile, plan = (os.path.join(folder, name) for name in ("profile.json", "plan.json"))
    cleave("profile", *common, "--graph", generate(folder, TINY_SCALE, 16, arguments.columns), "--kset", 1, "--runs", 1, "-o", profile)
    with open(profile, encoding="utf-8") as file:
        tables = json.load(file)
    measured = []
    for smaller, edges in SMALLER:
        path = generate(folder, arguments.scale - smaller, edges, arguments.columns)
        measured.append(measure_layer(path, common))
        os.remove(path)
    measured.append(measure_layer(graph, common))
    whole = max((block for block in tables["blocks"] if block["first"] == 0), key=lambda block: block["last"])
    like = whole["points"][0]
    whole["points"] = sorted(({**like, **{name: point[name] for name in point if name in like}} for point in measured),
                             key=lambda point: (point["n"], point["m"]))
    tables["blocks"] = [whole]
    with open(profile, "w", encoding="utf-8") as file:
        json.dump(tables, file)
    cleave("plan", *common, "--graph", graph, "--kset", 1, "--profile", profile, "-o", plan)
    return plan


def worst_difference(path, expected_path, columns):
    """Returns the largest difference in any column, relative to the largest number in that column."""
    actual, expected = (np.memmap(name, dtype=np.float32, mode="r").reshape(-1, columns) for name in (path, expected_path))
    worst, largest = np.zeros(columns), np.zeros(columns)
    for at in range(0, len(expected), 1 << 16):
        part = expected[at : at + (1 << 16)]
        difference = np.abs(actual[at : at + (1 << 16)].astype(np.float64) - part)
        worst = np.maximum(worst, np.where(np.isfinite(difference), difference, np.inf).max(axis=0))
        largest = np.maximum(largest, np.abs(part).max(axis=0))
    return float((worst / largest).max())


def find_python():
    told = os.environ.get("CLEAVE_TORCH_PYTHON")
    for path in [told] if told else [sys.executable, *sorted(glob.glob(os.path.join(ROOT, ".venv*", "bin", "python")))]:
        if subprocess.run([path, "-c", "import torch, numpy"], capture_output=True, check=False).returncode == 0:
            return path
    sys.exit("PyTorch is not installed: run `tools/setup torch`, or set CLEAVE_TORCH_PYTHON to a Python that has it")


def start_workers(folder, model, graph, plan, arguments):
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    python, weights = find_python(), os.path.join(folder, "weights.npz")
    binary = os.path.join(BUILD, "bench", "bench_gnn_worker")
    commands = {"cleave": [binary, "--model", model, "--graph", graph, "--plan", plan, "--threads", str(arguments.threads)]}
    for form in SIDES[1:]:
        commands[form] = [python, os.path.abspath(__file__), "--peer", form, graph, weights, "--threads", str(arguments.threads)]
    return {side: Worker(commands[side]) for side in SIDES}


def take_turns(workers, folder, arguments):
    """Runs all programs in turns, after one run of each that is not counted. Returns how cleave and csr differ from scatter."""
    for side, worker in workers.items():
        worker.run(keep=False)
        worker.ask("write " + os.path.join(folder, side + ".f32"))
    expected = os.path.join(folder, "scatter.f32")
    differences = {side: worst_difference(os.path.join(folder, side + ".f32"), expected, arguments.columns) for side in ("cleave", "csr")}
    for turn in range(arguments.rounds):
        for side in SIDES if turn % 2 == 0 else reversed(SIDES):
            workers[side].run()
    return differences


def measure_kernel(arguments):
    command = [os.path.join(BUILD, "bench", "bench_sparse_aggregate"), "--scale", str(arguments.scale), "--columns", str(arguments.columns),
               "--rounds", "7", "--threads", str(arguments.threads), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compare(folder, arguments):
    graph, model = generate(folder, arguments.scale, 16, arguments.columns), write_model(folder, arguments.columns)
    found = {"scale": arguments.scale, "columns": arguments.columns, "threads": arguments.threads}
    cut = cleave("inspect", graph, "--kset", arguments.parts, "--json")["per_k"]
    found["metis"] = {"k": arguments.parts, "seconds": cut[-1]["metis_seconds"]}
    plan = make_plan(folder, model, graph, arguments)
    found["kernel"] = measure_kernel(arguments)
    workers = start_workers(folder, model, graph, plan, arguments)
    found["difference"] = take_turns(workers, folder, arguments)
    for side, worker in workers.items():
        found[side] = {"seconds": statistics.median(worker.times), "cpu_seconds": statistics.median(worker.cpu_times), **worker.close()}
    for form in SIDES[1:]:
        for kind in ("times", "cpu_times"):
            ratios = [theirs / ours for theirs, ours in zip(getattr(workers[form], kind), getattr(workers["cleave"], kind))]
            found[form]["ratio" if kind == "times" else "cpu_ratio"] = statistics.median(ratios)
    found["memory_ratio"] = found["cleave"]["peak_bytes"] / found["csr"]["peak_bytes"]
    return found


def missed(found):
    kernel = found["kernel"]["mean"]["of_copy"]
    return [text for is_missed, text in [
        (found["scatter"]["ratio"] < WANTED["scatter"], f"{found['scatter']['ratio']:.2f} times as fast as scatter, target {WANTED['scatter']}"),
        (found["csr"]["ratio"] < WANTED["csr"], f"{found['csr']['ratio']:.2f} times as fast as csr, target {WANTED['csr']}"),
        (found["memory_ratio"] > WANTED["memory"], f"uses {found['memory_ratio']:.2f} of csr's peak memory, target at most {WANTED['memory']}"),
        (kernel < WANTED["kernel"], f"the aggregation kernel reaches {kernel:.2f} of a copy's bandwidth, target {WANTED['kernel']}"),
    ] if is_missed]


def print_table(found):
    print(f"GraphSAGE (mean), 2 layers, {found['columns']} features, R-MAT graph of 2^{found['scale']} vertices, {found['threads']} threads\n")
    print("| program | median time, s | CPU time, s | time / Cleave's | CPU time / Cleave's | peak memory, MB |\n| --- | --- | --- | --- | --- | --- |")
    for side in SIDES:
        row = found[side]
        ratios = f"{row['ratio']:.2f} | {row['cpu_ratio']:.2f}" if side != "cleave" else " | "
        print(f"| {side} | {row['seconds']:.3f} | {row['cpu_seconds']:.3f} | {ratios} | {row['peak_bytes'] / 1e6:.0f} |")
    kernel = found["kernel"]
    print(f"\nCleave's peak memory is {found['memory_ratio']:.2f} of csr's; its results differ from scatter's by at most "
          f"{found['difference']['cleave']:.1e} of the largest number in a column")
    print(f"aggregation kernel (mean) alone: {kernel['mean']['gb_per_s']:.2f} GB/s, {kernel['mean']['of_copy']:.2f} of a copy's "
          f"{kernel['copy']['gb_per_s']:.2f} GB/s")
    print(f"METIS, k = {found['metis']['k']}: {found['metis']['seconds']:.1f} s (not needed by this plan)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    parser.add_argument("--scale", type=int)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", type=int, default=8, help="number of parts for METIS")
    parser.add_argument("--folder", help="folder for graphs and results, which take 1.5 GB (default: a temporary one)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        be_peer(*arguments.peer, arguments.threads)
        return 0
    arguments.scale = arguments.scale or (15 if arguments.quick else 20)
    os.environ["CLEAVE_CACHE_DIR"] = ""
    with tempfile.TemporaryDirectory(prefix="cleave-", dir=arguments.folder) as folder:
        found = compare(folder, arguments)
    if not found["difference"]["cleave"] <= TOLERANCE:
        sys.exit(f"Cleave's results differ from scatter's by {found['difference']['cleave']:.2e} of the largest number in a column; at most "
                 f"{TOLERANCE} is allowed")
    print(json.dumps(found)) if arguments.json else print_table(found)
    failures = missed(found) if arguments.check else []
    for failure in failures:
        print(f"gnn_torch.py: target missed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
