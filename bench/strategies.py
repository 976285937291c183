"""Compares the predicted with the measured times of the plans of every strategy, and writes docs/strategies.md.

    python bench/strategies.py [MODEL...] [--profile FILE] [-o docs/strategies.md]

MODEL is a light model (light_resnet50, for example; needs CLEAVE_DATA or ../shared/data) or a generated model at its published
size (resnet50, bert); default: all of them. It first measures the costs of the CPU and of the default virtual NPU, unless
--profile gives a file of costs. Then it predicts and measures the time of each strategy's plan. The virtual NPU computes on the
same processor. So its times are those of an emulation: they show how well times are predicted, not the benefit of an NPU. Each
device computes on one thread. If both used all cores, waiting at OpenMP barriers would dominate the measurements.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
sys.path.insert(0, os.path.join(ROOT, "tools"))

COMMAND = os.environ.get("CLEAVE_COMMAND", os.path.join(ROOT, "build", "cleave"))
DATA = os.environ.get("CLEAVE_DATA", os.path.join(ROOT, "..", "shared", "data"))
LIGHT = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"]
GENERATED = ["resnet50", "mobilenet", "unet", "bert", "gpt", "lstm"]
STRATEGIES = ["optimal", "contiguous", "propagate", "propagate-graph", "delegate", "ready"]
SECONDS_A_PLAN = 1.0


def cleave(*arguments, threads=1):
    """Runs a command. Returns the JSON document that it prints, or None if it fails."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))  # for the emulation of the virtual NPU; --threads is for the CPU device
    done = subprocess.run([COMMAND, *arguments, "--threads", str(threads), "--json"], capture_output=True, text=True, check=False,
                          env=environment)
    if done.returncode != 0:
        print(f"  {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def measure(path, devices, strategy, options, profile):
    """Returns the numbers of partitions and transfers of a strategy's plan, and its predicted and measured times, or None if it
    fails."""
    common = ["--devices", devices, "--strategy", strategy, "--profile", profile, *options]
    plan = cleave("plan", path, *common)
    if plan is None:
        return None
    runs = max(3, min(50, int(SECONDS_A_PLAN * 1e3 / max(plan["serial_ms"], 0.1))))
    bench = cleave("bench", path, *common, "--runs", str(runs), "--warmup", "2")
    if bench is None:
        return None
    return {"partitions": len(plan["partitions"]), "transfers": plan["totals"]["transfers"], "predicted": plan["predicted_ms"],
            "bound": plan["lower_bound_ms"], "gap": plan["gap"], "measured": bench["latency_ms"]["median"]}


def rows_of(path, options, profile):
    rows = [(strategy, measure(path, "npu,cpu", strategy, options, profile)) for strategy in STRATEGIES]
    rows += [(f"all on {device}", measure(path, device, "contiguous", options, profile)) for device in ("npu", "cpu")]
    return rows


def table(name, rows):
    lines = [f"### {name}", "", "| | partitions | transfers | predicted ms | gap | measured ms | predicted / measured |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for what, row in rows:
        if row is None:
            lines.append(f"| {what} | – | – | – | – | – | – |")
            continue
        gap = "–" if row["gap"] is None or what.startswith("all on") else f"{100 * row['gap']:.1f} %"
        lines.append(f"| {what} | {row['partitions']} | {row['transfers']} | {row['predicted']:.3f} | {gap} | {row['measured']:.3f} | "
                     f"{row['predicted'] / row['measured']:.2f} |")
    return lines + [""]


def summary(all_rows):
    """Returns the text on the errors of predictions. The error of a model is the median over its plans with different
    predictions."""
    by_model = []
    for _, rows in all_rows:
        errors = {round(row["predicted"], 6): abs(row["predicted"] / row["measured"] - 1) for _, row in rows if row is not None}
        if errors:
            by_model.append(statistics.median(errors.values()))
    every = [abs(row["predicted"] / row["measured"] - 1) for _, rows in all_rows for _, row in rows if row is not None]
    optimal = [(name, dict(rows)) for name, rows in all_rows]
    best = sum(1 for _, rows in optimal if rows["optimal"] is not None and rows["optimal"]["measured"] <=
               1.05 * min(row["measured"] for row in rows.values() if row is not None))
    return [f"The median error of the predicted times is {100 * statistics.median(by_model):.1f} % over {len(by_model)} models, and "
            f"{100 * statistics.median(every):.1f} % over all {len(every)} plans; the largest error is {100 * max(every):.0f} %. For {best} of "
            f"{len(optimal)} models, the plan of `optimal` was measured as the fastest, or within 5 % of it.", "",
            "For the other models, `optimal` chose many partitions for a predicted gain of a few percent. The savings of nodes that run together "
            "are fitted, and the search favours the plans whose predictions err most in their favour. For these models, one device alone is the "
            "safer choice.", ""]


# An NPU that does not support Add, which is in the middle of every block of a residual network. The costs of launches and copies
# decide whether the NPU is used between two Adds.
WORST_CASE = {"operators": {op: {} for op in ("Conv", "BatchNormalization", "Relu", "MaxPool", "GlobalAveragePool", "Flatten", "Gemm", "Softmax")},
              "static_shapes": True, "memory": "1G"}
WORST_SPEEDS = [("cheap boundaries", 5, 5, 20e9), ("typical boundaries", 50, 50, 5e9), ("expensive boundaries", 500, 500, 1e9)]


def worst_case(work, path):
    """Returns the section on WORST_CASE. Its times are only predicted, from the speeds that are given to the NPU."""
    lines = ["## One unsupported operator in every block", "",
             "Predicted times for ResNet-50 and an NPU of 1 TFLOP/s without `Add`, which is in the middle of all 16 blocks. The CPU has nominal prices.", "",
             "| cost of a launch + a copy | strategy | partitions | transfers | predicted ms | lower bound ms |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for what, launch, latency, rate in WORST_SPEEDS:
        spec = os.path.join(work, "worst.json")
        with open(spec, "w", encoding="utf-8") as file:
            json.dump(dict(WORST_CASE, speed={"flops_per_second": 1e12, "bytes_per_second": 5e10, "launch_overhead_us": launch,
                                              "copy_latency_us": latency, "copy_bytes_per_second": rate}), file)
        plan = cleave("plan", path, "--devices", "npu,cpu", "--npu-spec", spec, "--compare")
        for row in plan["comparison"]:
            if "refused" in row or row.get("strategy") not in (None, "optimal", "contiguous"):
                continue
            name = row.get("strategy") or f"all on {row['device']}"
            lines.append(f"| {what}: {launch} µs + {latency} µs, {rate / 1e9:.0f} GB/s | {name} | {row['partitions']} | {row['transfers']} | "
                         f"{row['predicted_ms']:.2f} | {plan['lower_bound_ms']:.2f} |")
    return lines + [""]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    version = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; {version}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--profile")
    parser.add_argument("-o", "--output", default=os.path.join(ROOT, "docs", "strategies.md"))
    args = parser.parse_args()
    from graph_builder import save
    from models import make
    all_rows = []
    with tempfile.TemporaryDirectory() as work:
        profile = args.profile or os.path.join(work, "costs.json")
        jobs = []  # (name, path, --shape options that fix all symbolic dimensions)
        for name in args.models or [f"light_{name}" for name in LIGHT] + GENERATED:
            if name.startswith("light_"):
                jobs.append((name, os.path.join(DATA, "onnx-light", f"{name}.onnx"), []))
                continue
            path = os.path.join(work, f"{name}.onnx")
            model, inputs = make(name, seed=0, full=True)
            save(model, path)
            shapes = [f"{key}={'x'.join(map(str, value.shape))}" for key, value in inputs.items()]
            jobs.append((name, path, [text for shape in shapes for text in ("--shape", shape)]))
        for name, path, options in jobs:
            if args.profile is None:
                print(f"measuring costs: {name}", file=sys.stderr)
                if cleave("profile", path, "--devices", "npu,cpu", "-o", profile, *options) is None:
                    return 1
        for name, path, options in jobs:
            print(f"measuring plans: {name}", file=sys.stderr)
            all_rows.append((name, rows_of(path, options, profile)))
        worst_path = os.path.join(work, "worst.onnx")
        save(make("resnet50", seed=0, full=True)[0], worst_path)
        worst = worst_case(work, worst_path)
    lines = ["# Strategies", "", "Generated by `python bench/strategies.py`: the plans of every strategy for the default virtual NPU and the CPU",
             "(`--devices npu,cpu`), with times predicted from measured costs and then measured. The virtual NPU computes on the",
             "same processor, so its times are those of an emulation. Each device computes on one thread.", "", f"Machine: {machine()}.", ""]
    lines += summary(all_rows)
    lines += ["## Predicted and measured", ""]
    for name, rows in all_rows:
        lines += table(name, rows)
    lines += worst
    with open(args.output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print("\n".join(summary(all_rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
