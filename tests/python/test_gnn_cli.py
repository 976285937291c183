"""Tests the user interface of `cleave gnn`.

    python tests/python/test_gnn_cli.py          CLEAVE_DATA is the folder that contains gnx/

Checks the help texts, that the printed text and JSON agree with the plan's file, that METIS is called once for each k, imported
costs, and error messages, which must name the place, the problem and a remedy.
"""
import json
import os
import subprocess
import sys

import numpy as np

import gnn_made
import oracle
from test_gnn import random_model

VERBS = {"generate": ["rmat", "edges-per-vertex", "features"], "inspect": ["kset"], "profile": ["import", "stages", "runs", "seconds"],
         "plan": ["list-peps", "export-dir", "inline", "html", "effort"], "run": ["plan", "verify", "resume", "trace", "html"]}
OF_ALL = ["json", "verbose", "quiet", "color", "help"]
CSV = "n_nodes,n_edges,cpu_ms,status\n"


def told(*arguments):
    return json.loads(oracle.cleave("gnn", *arguments, "--json"))


def refuse(tally, name, expected, *arguments, status=1):
    """Checks that the command fails with an error of one line that contains all expected texts."""
    done = subprocess.run([oracle.COMMAND, "gnn", *arguments], capture_output=True, text=True, check=False)
    text = done.stderr.strip()
    missing = [part for part in expected if part not in text]
    reason = None
    if done.returncode != status or missing or "\n" in text or done.stdout:
        reason = f"exit status {done.returncode}, expected {status}; missing in the error: {missing}; stderr: {text}; stdout: {done.stdout[:200]}"
    tally.add(f"refused: {name}", reason)


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def near(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1e-3)


# --- help

def check_help(tally):
    texts = {verb: oracle.cleave("gnn", verb, "--help") for verb in VERBS}
    options = {}
    for verb, text in texts.items():
        lines = text[text.index("\nOptions\n"):text.index("\nExamples\n")].splitlines()
        options[verb] = [line.split("--")[1].split()[0] for line in lines if line.startswith("  -")]
        examples = text[text.index("\nExamples\n"):].splitlines()[2:]
        wrong = [name for name in VERBS[verb] + OF_ALL if name not in options[verb]]
        if len(options[verb]) != len(set(options[verb])) or f"\n  cleave gnn {verb}" not in text:
            wrong.append("an option occurs twice, or the usage line is missing")
        if not 2 <= len(examples) <= 3 or not all(line.startswith(f"  cleave gnn {verb} ") for line in examples):
            wrong.append(f"there must be 2 or 3 examples of this verb, but there are {examples}")
        if text != oracle.cleave("help", "gnn", verb):
            wrong.append(f"'cleave help gnn {verb}' prints another text")
        tally.add(f"help of {verb}", f"{wrong}" if wrong else None)
    for verb, other, name in (("plan", "generate", "rmat"), ("run", "plan", "list-peps"), ("generate", "run", "graph"), ("inspect", "plan", "model")):
        tally.add(f"help of {verb}: no --{name}", f"--{name} is listed, or it is missing in the help of {other}" if name in options[verb] or name not in options[other] else None)
    text = oracle.cleave("help", "gnn")
    missing = [verb for verb in VERBS if f"\n  {verb} " not in text]
    tally.add("help of all verbs", f"the verbs {missing} are missing, or the options of a verb are listed" if missing or "--rmat SCALE  " in text else None)
    refuse(tally, "help of an unknown verb", ["did you mean 'plan'?"], "pln", "--help", status=2)
    # an option without the one that it needs, and an option of another verb, are rejected
    refuse(tally, "inlining without an export", ["--export-dir"], "plan", "--model", "m.json", "--graph", "g.npz", "--inline", status=2)
    refuse(tally, "an option of another verb", ["'--rmat' belongs to 'cleave gnn generate'"], "plan", "--rmat", "3", status=2)


# --- printed text and JSON

def parts_of(plan):
    for number, layer in enumerate(plan["layers"]):
        for subgraph in layer["subgraphs"]:
            for block in subgraph:
                for part in block["parts"]:
                    yield number, block, part


def check_numbers(tally, planned, plan):
    """Compares the command's JSON output with the plan's file."""
    halo = sum(part["sizes"][0] - part["sizes"][1] for _, _, part in parts_of(plan))
    padding = [sum(part.get("padded", part["sizes"])[i] - part["sizes"][i] for _, _, part in parts_of(plan)) for i in (0, 2)]
    wrong = []
    if [planned["halo_rows"], planned["padding_rows"], planned["padding_edges"]] != [halo, *padding]:
        wrong.append(f"halo_rows is {planned['halo_rows']}, expected {halo}; padding_rows and padding_edges are {planned['padding_rows']} and "
                     f"{planned['padding_edges']}, expected {padding[0]} and {padding[1]}")
    spent = sum(part[key] for _, _, part in parts_of(plan) for key in ("pack_ms", "in_ms", "compute_ms", "out_ms"))
    if not near(sum(block["predicted_ms"] for block in planned["blocks"]), spent):
        wrong.append("the predicted times of the blocks are not the sum over their tasks")
    if sum(block["tasks"] for block in planned["blocks"]) != len(list(parts_of(plan))):
        wrong.append("the numbers of tasks of the blocks do not add up to the tasks in the file")
    if not near(sum(layer["predicted_ms"] for layer in planned["by_layer"]), planned["makespan_ms"]):
        wrong.append("the predicted times of the layers do not add up to the makespan")
    if any(sum(cluster["subgraphs"] for cluster in layer["clusters"]) != planned["k"] for layer in planned["by_layer"]):
        wrong.append("the subgraphs of the clusters of a layer do not add up to k")
    chosen = next(item for item in planned["per_k"] if item["k"] == planned["k"])
    if any(chosen[key] != planned[key] for key in ("makespan_ms", "lower_bound_ms", "switches", "halo_rows", "padding_rows", "padding_edges", "gain")):
        wrong.append("the figures of the chosen k differ from those in per_k")
    for item in planned["per_k"]:
        if not near(item["gap"], (item["makespan_ms"] - item["lower_bound_ms"]) / item["lower_bound_ms"]):
            wrong.append(f"the gap of k = {item['k']} is wrong")
        if not near(item["gain"], planned["best_single_device_ms"] / item["makespan_ms"]):
            wrong.append(f"the gain of k = {item['k']} is wrong")
        for device in item["devices"]:
            if not near(device["busy_ms"] + device["idle_ms"], item["makespan_ms"]):
                wrong.append(f"busy and idle time of a device of k = {item['k']} do not add up to the makespan")
    tally.add("plan: the JSON output agrees with the file", f"{wrong}" if wrong else None)


def check_text(tally, name, text, told_of):
    """Checks the printed table of blocks: it has a line for every block, with each column below its heading."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("layer  cluster  device")), None)
    if at is None:
        tally.add(name, f"no table of blocks in: {text}")
        return
    wrong, head = [], lines[at]
    rows = lines[at + 1:at + 1 + len(told_of["blocks"])]
    for block, row in zip(told_of["blocks"], rows):
        wanted = [block["device"], f"{block['predicted_ms']:.3f}"]
        end = head.index("predicted, ms") + len("predicted, ms")
        if not all(part in row.split() for part in wanted) or row[:end].split()[-1] != wanted[1] or len(row) > len(head):
            wrong.append(row)
    overhead = f"halo {told_of['halo_rows']} rows"
    if overhead not in text or f"padding {told_of['padding_rows']} rows" not in text or f"{told_of['switches']} device switches" not in text:
        wrong.append(overhead)
    tally.add(name, f"{wrong}" if wrong else None)


def check_outputs(tally, made, asked, folder):
    plan_path = os.path.join(folder, "plan.json")
    arguments = ("plan", *asked, *gnn_made.KSET, "--profile", made["costs"])
    planned = told(*arguments, "-o", plan_path)
    with open(plan_path, encoding="utf-8") as file:
        plan = json.load(file)
    tally.add("plan: several subgraphs, two devices", None if planned["k"] > 1 and {block["device"] for block in planned["blocks"]} == {"cpu", "npu"}
              else f"k {planned['k']}")
    check_numbers(tally, planned, plan)
    text = oracle.cleave("gnn", *arguments)
    check_text(tally, "plan: the printed table of blocks", text, planned)
    stars = [line.split()[1] for line in text.splitlines() if line.startswith("*")]
    tally.add("plan: the chosen k is marked", None if stars == [str(planned["k"])] else f"{stars}")
    run = ("run", *asked, "--plan", plan_path, "--output", os.path.join(folder, "out.npz"))
    ran = told(*run)
    wrong = [key for key in ("per_k", "k", "makespan_ms", "lower_bound_ms", "gap", "best_single_device_ms") if key not in ran]
    wrong += [key for key in ("k", "makespan_ms", "gap", "switches", "halo_rows", "padding_rows", "padding_edges", "best_single_device_ms")
              if not wrong and ran[key] != planned[key]]
    if [block["predicted_ms"] for block in ran["blocks"]] != [block["predicted_ms"] for block in planned["blocks"]]:
        wrong.append("the predicted times of the blocks")
    for device in ran["measured_devices"]:
        spent = sum(block["measured_ms"] for block in ran["blocks"] if block["device"] == device["device"])
        if not near(spent, device["measured_busy_ms"]) or spent > ran["measured_ms"]:
            wrong.append(f"the blocks of {device['device']} take {spent} ms, but it was busy for {device['measured_busy_ms']} of {ran['measured_ms']} ms")
    if not near(sum(layer["measured_ms"] for layer in ran["by_layer"]), ran["measured_ms"]):
        wrong.append("the measured times of the layers do not add up to measured_ms")
    tally.add("run by a plan: the JSON output has the plan's numbers and consistent measured ones", f"{wrong}" if wrong else None)
    text = oracle.cleave("gnn", *run)
    check_text(tally, "run: the printed table of blocks", text, ran)
    tally.add("run: the text has predicted and measured times", None if text.count("ms predicted, ") == 2 and "; predicted " in text else text)
    check_times(tally, run)
    return plan_path


def check_times(tally, run):
    """Checks that a run says that its prediction does not apply to the first run, and shows the time of the first run and the
    median of the others."""
    for runs, warm in ((None, 4), (1, 0), (3, 2)):
        count = () if runs is None else ("--runs", str(runs))
        text, ran = oracle.cleave("gnn", *run, *count), told(*run, *count)
        expected = [f"median of {warm})", "first run in "] if warm else ["this was the first"]
        wrong = [part for part in expected + [" for a warm run"] if part not in text]
        if ran["warm_runs"] != warm or ran["predicted_run"] != "warm" or not ran["first_ms"] > 0 or (ran["warm_ms"] is None) != (warm == 0):
            wrong.append(f"{ran['first_ms']}, {ran['warm_ms']}, {ran['warm_runs']} warm runs")
        if warm == 0 and ran["first_ms"] != ran["measured_ms"]:
            wrong.append("the only run is not the reported one")
        tally.add(f"run by a plan: times of {runs or 'several'} runs", f"{wrong}: {text}" if wrong else None)


# --- executables

def check_buckets(tally, made, asked, folder):
    """Checks that, if compiling is expensive, the planner pads subgraphs to the same size, so that they share an executable. The
    plan lists these merges with their reasons, and a run by the plan uses them."""
    costs, plan_path = os.path.join(folder, "compiled.json"), os.path.join(folder, "compiled_plan.json")
    with open(made["costs"], encoding="utf-8") as file:
        known = json.load(file)
    executables, told_of = [], []
    for compile_ns in (1.0, 40e6):
        for block in known["blocks"]:
            for point in block["points"]:
                if block["device"] == "npu" and "time_ns" in point:
                    point["compile_ns"] = compile_ns
        with open(costs, "w", encoding="utf-8") as file:
            json.dump(known, file)
        planned = told("plan", *asked, *gnn_made.KSET, "--profile", costs, "-o", plan_path, "-v")
        ran = told("run", *asked, "--plan", plan_path, "--verify")
        executables.append(ran["executables"])
        told_of.append(planned)
        if [layer["merged"] for layer in ran["by_layer"]] != [layer["merged"] for layer in planned["by_layer"]]:
            tally.add("merged executables: the run reports the merges of the plan", f"it reports {ran['by_layer']}")
    plain, merged = told_of
    merges = [merge for layer in merged["by_layer"] for merge in layer["merged"]]
    wrong = []
    if any(layer["merged"] for layer in plain["by_layer"]) or not merges or plain["k"] != merged["k"]:
        wrong.append(f"{merges}, k {plain['k']} and {merged['k']}")
    if executables[1] != executables[0] - len(merges):
        wrong.append(f"{executables} executables, {len(merges)} merges")
    if not all(merge["device"] == "npu" and merge["padding_ms"] < merge["compiling_ms"] == 40 for merge in merges):
        wrong.append(f"{merges}")
    if not plain["makespan_ms"] <= merged["makespan_ms"] + 1e-6 <= plain["makespan_ms"] + 40 * len(merges):
        wrong.append(f"makespan {plain['makespan_ms']} and {merged['makespan_ms']}")
    if not merged["padding_rows"] > plain["padding_rows"]:
        wrong.append(f"padding of {plain['padding_rows']} and {merged['padding_rows']} rows")
    tally.add("executables are merged if compiling is expensive", f"{wrong}" if wrong else None)
    text, quiet = (oracle.cleave("gnn", "run", *asked, "--plan", plan_path, *more) for more in (("-v",), ()))
    lines = [line for line in text.splitlines() if "one executable fewer saves 40.000 ms" in line and " share the executable for " in line]
    tally.add("-v lists the merges", None if len(lines) == len(merges) and "one executable fewer" not in quiet else f"{lines} of {merges}")


# --- METIS

def check_metis(tally, made, asked, folder):
    """Checks that METIS is called once for each k above 1, by whichever command comes first, and again for another seed."""
    cache = os.path.join(folder, "cache")
    subprocess.run(["rm", "-rf", cache], check=True)
    asked = [part for part in asked if part not in ("--cache-dir", "")] + ["--cache-dir", cache]
    plan_path = os.path.join(folder, "cached.json")
    arguments = ("plan", *asked, *gnn_made.KSET, "--profile", made["costs"])
    first, second = told(*arguments, "-o", plan_path), told(*arguments)
    said = [[(item["k"], item["from_cache"], item["metis_seconds"] > 0) for item in plan["per_k"]] for plan in (first, second)]
    expected = [[(1, False, False), (2, False, True), (4, False, True)], [(1, False, False), (2, True, False), (4, True, False)]]
    tally.add("METIS once for each k", None if said == expected else f"{said}")
    done = subprocess.run([oracle.COMMAND, "gnn", *arguments, "-v"], capture_output=True, text=True, check=True).stderr
    missing = [k for k in (2, 4) if f"k = {k}: subgraphs from the cache" not in done]
    tally.add("-v says which cuts come from the cache", f"{missing} in {done}" if missing else None)
    ran = told("run", *asked, "--plan", plan_path)
    tally.add("a run by the plan reads the parts beside the plan, not the cache", None if not ran["cut_from_cache"] and ran["cut_metis_seconds"] == 0 else
              f"{ran['cut_from_cache']}, {ran['cut_metis_seconds']}")
    os.remove(os.path.join(folder, "cached.membership.npy"))
    ran = told("run", *asked, "--plan", plan_path)
    tally.add("a run by the plan without its parts takes them from the cache", None if ran["cut_from_cache"] and ran["cut_metis_seconds"] == 0 else
              f"{ran['cut_from_cache']}, {ran['cut_metis_seconds']}")
    seen = json.loads(oracle.cleave("gnn", "inspect", made["graph"], *gnn_made.KSET, "--cache-dir", cache, "--json"))["per_k"]
    tally.add("inspect reads the parts from the cache", None if [cut["cached"] for cut in seen] == [False, True, True] else f"{seen}")
    other = told(*arguments, "--seed", "7")["per_k"]
    tally.add("another seed does not use the cached cuts", None if not any(item["from_cache"] for item in other) else f"{other}")
    same = [plan["makespan_ms"] for plan in (first, second)]
    tally.add("plans with cuts from METIS and from the cache have the same makespan", None if same[0] == same[1] else f"{same}")


# --- parts from a file

def check_parts(tally, made, asked, folder):
    """Plans and runs with files of parts, as gpmetis writes them. METIS must not be called, and files that do not match the graph
    must be rejected."""
    n, path = gnn_made.VERTICES, lambda name: os.path.join(folder, name)
    costs = ("--profile", made["costs"])

    def write(name, parts):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write("".join(f"{part}\n" for part in parts))
        return path(name)

    halves, quarters = [2 * v // n for v in range(n)], [4 * v // n for v in range(n)]
    two, four = write("graph.part.2", halves), write("quarters.txt", quarters)
    plan_path = path("parts_plan.json")
    planned = told("plan", *asked, *costs, "--parts", four, "--parts", two, "-o", plan_path)
    wrong = [item["k"] for item in planned["per_k"]] != [1, 2, 4] or any(item["metis_seconds"] or item["from_cache"] for item in planned["per_k"])
    crossing = [sum(1 for v in range(n) for u in range(1, gnn_made.NEIGHBOURS + 1) if parts[v] != parts[(v + u) % n]) for parts in (halves, quarters)]
    if [item["cut_edges"] for item in planned["per_k"]] != [0, *crossing]:
        wrong = f"{[item['cut_edges'] for item in planned['per_k']]}, and edges of {crossing} are cut"
    tally.add("--parts: one k for each file, with the cut edges of the file, without METIS", f"{planned['per_k']}" if wrong else None)
    given = two if planned["k"] == 2 else four
    run = ("run", *asked, "--plan", plan_path)
    ran = told(*run, "--parts", given, "--verify")
    tally.add("--parts: a run by the plan takes the parts from the file", None if planned["k"] > 1 and ran["cut_metis_seconds"] == 0 and ran["k"] == planned["k"] else f"k {planned['k']}, {ran['k']}")
    told("run", *asked, *costs, "--kset", "1,2", "--parts", two, "--verify")
    told(*run, "--verify")  # the parts are beside the plan
    os.remove(path("parts_plan.membership.npy"))
    refuse(tally, "a plan for parts without them", ["parts_plan.json", "--parts"], *run)
    refuse(tally, "parts of another k than the plan's", ["parts_plan.json", f"{planned['k']} subgraphs"], *run, "--parts", two if given == four else four)
    refuse(tally, "other parts than the plan's", ["parts_plan.json", "not the parts"], *run, "--parts",
           write("others.txt", [(part + 1) % planned["k"] for part in (halves if given == two else quarters)]))
    plan = ("plan", *asked, *costs)
    for name, expected, file, status in (
            ("too few", ["short.txt", "3999 vertices", "4000"], write("short.txt", halves[1:]), 1),
            ("too many", ["long.txt", "line 4001", "4000"], write("long.txt", halves + [0]), 1),
            ("a part out of range", ["odd.part.2", "line 3", "part 2 ", "there are 2 parts"], write("odd.part.2", [0, 1, 2] + halves[3:]), 1),
            ("an empty part", ["gap.txt", "part 1 of 3"], write("gap.txt", [2 * part for part in halves]), 1),
            ("words", ["words.txt", "line 1", "'zero'"], write("words.txt", ["zero"] + halves[1:]), 1),
            ("no file", ["none.txt", "cannot open"], path("none.txt"), 1)):
        refuse(tally, f"parts: {name}", expected, *plan, "--parts", file, status=status)
    refuse(tally, "parts of a k twice", ["graph.part.2", "k = 2"], *plan, "--parts", two, "--parts", two, status=2)
    refuse(tally, "parts without their k", ["--kset", "k = 4"], *plan, "--parts", two, "--parts", four, "--kset", "2", status=2)
    refuse(tally, "a k without parts", ["--kset", "k = 3"], *plan, "--parts", two, "--kset", "2,3", status=2)


# --- imported costs

def check_import(tally, folder, rng):
    table = os.path.join(oracle.DATA, "gnx", "profile_185h_fused.csv")
    if not os.path.exists(table):
        tally.skip("import", f"no {table} (set CLEAVE_DATA to the folder that holds gnx)")
        return
    costs, graph = os.path.join(folder, "imported.json"), os.path.join(folder, "large.npz")
    model, *_ = random_model(folder, "graphsage", [4, 8], 2, rng, "one")
    n, m = 6000, 240000
    np.savez(graph, edge_index=rng.integers(0, n, (2, m)), x=rng.standard_normal((n, 4)).astype(np.float32))
    asked = ("--model", model, "--graph", graph, "--cache-dir", "")
    take = ("profile", *asked, "--import", table, "--kset", "1", "-o", costs)

    def fresh(*more):
        remove(costs)
        return told(*take, *more)["tables"]

    tables = {block["device"]: (block["first"], block["last"], block["points"]) for block in fresh("--stages", "cpu=0-4", "--stages", "gpu=0-4",
                                                                                                  "--stages", "npu=4-7")}
    # The stages on the NPU read no edges, so the NPU has one point for each number of rows.
    expected = {"cpu": (0, 4, 41), "gpu": (0, 4, 42), "npu": (4, 7, 6)}
    tally.add("import: the stages given by --stages", None if tables == expected else f"{tables}")
    refuse(tally, "costs of half a layer only", ["imported.json", "no plan has a known price"], "plan", *asked, "--profile", costs, "--kset", "1")
    tables = {block["device"]: (block["first"], block["last"]) for block in fresh()}
    tally.add("import: whole layers", None if tables == {name: (0, 7) for name in ("cpu", "gpu", "npu")} else f"{tables}")
    planned = told("plan", *asked, "--profile", costs, "--kset", "1,2")
    whole, halves = planned["per_k"]
    low, high = 71.07, 375.42  # milliseconds for 5,000 rows with 10 edges each, and for 10,000 rows with 40 each
    wrong = [] if planned["tables"] == "imported" and low < whole["makespan_ms"] < high else [f"{planned['tables']}, {whole['makespan_ms']} ms"]
    if halves["makespan_ms"] is not None and halves["makespan_ms"] <= low:
        wrong.append(f"k = 2 must take longer than {low} ms: {halves}")
    tally.add("import: a plan with imported costs", f"{wrong}" if wrong else None)
    text = oracle.cleave("gnn", "plan", *asked, "--profile", costs, "--kset", "1,20")
    tally.add("import: sizes out of range are reported", None if "prices are from imported costs" in text and "k = 20 has no plan: " in text
              and "is outside the measured range" in text else text)
    refuse(tally, "stages of no column", ["no column for device 'tpu'"], *take, "--stages", "tpu=0-4", status=2)
    refuse(tally, "stages beyond the layer", ["layer 0 has 7 stages, so 4-9 is out of range"], *take, "--stages", "npu=4-9", status=2)
    refuse(tally, "stages without import", ["--import"], "profile", *asked, "--stages", "npu=4-7", status=2)


def check_seconds(tally, asked, folder):
    """Checks that `profile` with almost no time measures only the longest block of each device and layer, and reports the others
    as left out. Without a limit it measures every block. Programs that were compiled for one size must not be in the cache."""
    cache = os.path.join(folder, "measured-cache")
    take = ("profile", *asked[:4], *gnn_made.DEVICES, *gnn_made.KSET, "--runs", "1", "--cache-dir", cache)
    done = subprocess.run([oracle.COMMAND, "gnn", *take, "--seconds", "0.000001", "--json"], capture_output=True, text=True, check=True)
    few, every = json.loads(done.stdout), told(*take, "--seconds", "0")
    blocks = lambda costs: {(table["device"], table["layer"]) for table in costs["tables"]}
    wrong = []
    if len(few["tables"]) != len(blocks(few)) or blocks(few) != blocks(every):
        wrong.append(f"{few['tables']}")
    if few["cut_off_blocks"] != few["blocks"] - len(few["tables"]) or "--seconds" not in done.stderr:
        wrong.append(f"{few['cut_off_blocks']} of {few['blocks']} left out; reported: {done.stderr}")
    if every["cut_off_blocks"] or every["needless_blocks"] or len(every["tables"]) != every["blocks"] or every["blocks"] <= few["blocks"]:
        wrong.append(f"{len(every['tables'])} of {every['blocks']} blocks were measured")
    tally.add("--seconds: few blocks with almost no time, all blocks without a limit", f"{wrong}" if wrong else None)
    kept = [item["backend"] for item in json.loads(oracle.cleave("cache", "ls", "--cache-dir", cache, "--json"))["entries"]]
    tally.add("--seconds: the cache has only cuts", None if kept and set(kept) == {"METIS"} else f"{kept}")


def check_rows(tally, asked, folder):
    """Checks that CSV files with invalid rows are rejected, and that nothing is written."""
    csv, costs = os.path.join(folder, "bad.csv"), os.path.join(folder, "never.json")
    take = ("profile", *asked, "--kset", "1", "--import", csv, "-o", costs)
    remove(costs)
    for name, row, expected in (("a word", "100,200,fast,OK", ["line 3", "cpu_ms is 'fast'", "None", "-1"]),
                                ("a negative time", "100,200,-2,OK", ["line 3", "cpu_ms is -2 ms"]),
                                ("NaN", "100,200,nan,OK", ["line 3", "cpu_ms is 'nan'"]),
                                ("no edges", "100,,1,OK", ["line 3", "n_edges is ''", "whole number"]),
                                ("half a vertex", "100.5,200,1,OK", ["line 3", "n_nodes is '100.5'"]),
                                ("a field too few", "100,200,1", ["line 3", "3 fields", "has 4"]),
                                ("out of memory, with a time", "100,200,1,CPU_OOM", ["line 3", "'CPU_OOM'"]),
                                ("OK, without a time", "100,200,-1,OK", ["line 3", "'OK'", "-1"]),
                                ("an unknown status", "100,200,1,maybe", ["line 3", "'maybe'", "OK"])):
        with open(csv, "w", encoding="utf-8") as file:
            file.write(f"{CSV}50,100,1,OK\n{row}\n")
        refuse(tally, f"import: {name}", ["bad.csv", *expected], *take)
    for name, text, expected in (("empty", "", ["bad.csv", "empty"]), ("only a header", CSV, ["no rows"]),
                                 ("no device", "n_nodes,n_edges,status\n1,2,OK\n", ["no device column", "DEVICE_ms"]),
                                 ("no edges", "n_nodes,cpu_ms\n1,2\n", ["the columns n_nodes and n_edges"]),
                                 ("a column too many", f"{CSV[:-1]},note\n1,2,3,OK,x\n", ["'note'"])):
        with open(csv, "w", encoding="utf-8") as file:
            file.write(text)
        refuse(tally, f"import: {name}", expected, *take)
    tally.add("a failed import writes nothing", None if not os.path.exists(costs) else "never.json exists")


# --- other errors

def cut_file(source, target):
    with open(source, "rb") as file:
        whole = file.read()
    with open(target, "wb") as file:
        file.write(whole[:len(whole) // 2])


def put(arrays, key, index, value):
    changed = arrays[key].copy()
    changed[index] = value
    return dict(arrays, **{key: changed})


def check_refused(tally, made, asked, folder, plan_path, rng):
    path = lambda name: os.path.join(folder, name)
    good = gnn_made.ring(rng)
    remove(path("page.html"))
    changed = lambda key, index, value: put(good, key, index, value)
    plan = lambda model, graph, *more: ("plan", "--model", model, "--graph", graph, *gnn_made.DEVICES, "--cache-dir", "", "--profile",
                                        made["costs"], *(more or gnn_made.KSET))
    for name, arrays, expected in (("an id out of range", changed("edge_index", (1, 7), 4000), ["edge 7", "destination 4000", "4000 vertices"]),
                                   ("a negative id", changed("edge_index", (0, 7), -3), ["edge 7", "source -3"]),
                                   ("NaN features", changed("x", (7, 2), np.nan), ["vertex 7", "feature 2", "nan"]),
                                   ("wrong F", gnn_made.ring(rng, 11), ["11 features", "reads 12"])):
        np.savez(path("odd.npz"), **arrays)
        refuse(tally, name, ["odd.npz", *expected], *plan(made["model"], path("odd.npz")))
    cut_file(made["graph"], path("cut.npz"))
    refuse(tally, "half a graph", ["cut.npz", "truncated"], *plan(made["model"], path("cut.npz")))
    weights = dict(np.load(os.path.join(folder, "model.npz")))
    np.savez(path("lacking.npz"), **{key: value for key, value in weights.items() if key != "convs.1.lin_r.weight"})
    with open(made["model"], encoding="utf-8") as file:
        model = json.load(file)
    with open(path("lacking.json"), "w", encoding="utf-8") as file:
        json.dump(dict(model, weights="lacking.npz"), file)
    refuse(tally, "a weight missing", ["lacking.json", "layer 1", "convs.1.lin_r.weight", "lacking.npz"], *plan(path("lacking.json"), made["graph"]))
    refuse(tally, "k larger than n", ["k = 4001", "1 to 4000"], *plan(made["model"], made["graph"], "--kset", "1,4001"))
    specs = ("--npu-spec", "default", "--npu-spec", "all")
    refuse(tally, "a device that has no profile", ["costs.json", "npu1", "cleave gnn profile", "--devices"], "plan", *asked[:4], "--cache-dir", "",
           "--devices", "cpu,npu,npu1", *specs, "--threads", "1", "--profile", made["costs"])
    refuse(tally, "a profile of another machine", ["costs.json", "cpu is 'cpu:", "was 'cpu:", "cleave gnn profile"], "plan", *asked[:4],
           "--devices", "cpu", "--threads", "3", "--profile", made["costs"])
    with open(made["costs"], "rb") as file:
        before = file.read()
    refuse(tally, "adding to a profile of another machine", ["costs.json", "another file"], "profile", *asked[:4], "--devices", "cpu", "--threads",
           "3", "-o", made["costs"])
    with open(made["costs"], "rb") as file:
        tally.add("the profile of another machine is unchanged", None if file.read() == before else "it was changed")
    np.savez(path("other.npz"), **dict(good, edge_index=good["edge_index"][:, 1:]))
    refuse(tally, "a plan of another graph", ["plan.json", "another graph", "plan again"], "run", "--model", made["model"], "--graph",
           path("other.npz"), *gnn_made.DEVICES, "--plan", plan_path)
    other, *_ = random_model(folder, "graphsage", gnn_made.WIDTHS, 2, rng, "other")
    refuse(tally, "a plan of another model", ["plan.json", "another model", "plan again"], "run", "--model", other, "--graph", made["graph"],
           *gnn_made.DEVICES, "--plan", plan_path)
    cut_file(plan_path, path("cut.json"))
    refuse(tally, "half a plan", ["cut.json", "line "], "run", *asked, "--plan", path("cut.json"))
    refuse(tally, "costs for a plan", ["costs.json", "not a plan"], "run", *asked, "--plan", made["costs"])
    refuse(tally, "a plan for costs", ["plan.json", "not a file of GNN costs"], "plan", *asked, "--profile", plan_path)
    cut_file(made["costs"], path("cut_costs.json"))
    refuse(tally, "half a profile", ["cut_costs.json", "line "], "plan", *asked, "--profile", path("cut_costs.json"))
    refuse(tally, "a page of a run in one piece", ["--html", "--plan"], "run", *asked, "--html", path("page.html"), status=2)
    tally.add("a rejected --html writes no page", None if not os.path.exists(path("page.html")) else "page.html exists")


def main():
    tally, folder, rng = oracle.Tally(), oracle.build_folder("gnn_cli"), np.random.default_rng(11)
    check_help(tally)
    made = gnn_made.make(folder)
    asked = ("--model", made["model"], "--graph", made["graph"], *gnn_made.DEVICES, "--cache-dir", "")
    plan_path = check_outputs(tally, made, asked, folder)
    check_buckets(tally, made, asked, folder)
    check_metis(tally, made, asked, folder)
    check_parts(tally, made, asked, folder)
    check_import(tally, folder, rng)
    check_seconds(tally, asked, folder)
    check_rows(tally, asked, folder)
    check_refused(tally, made, asked, folder, plan_path, rng)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
