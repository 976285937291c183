"""Checks the examples, options and links in the help texts, README.md and docs/*.md.

    python tests/python/test_documents.py [PATTERN]     only documents whose name contains PATTERN: 'help of plan', README.md

Runs every command line in these documents, and compares its output with the output that the document shows. Also checks that
every option that a document names exists, and that no link is broken.
"""
import collections
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

import oracle

sys.path.insert(0, os.path.join(oracle.ROOT, "tools"))
import models  # noqa: E402
from graph_builder import GraphBuilder, save  # noqa: E402
from test_gnn import random_model  # noqa: E402

DOCUMENTS = ["README.md", "CHANGELOG.md", *sorted(os.path.join("docs", name) for name in os.listdir(os.path.join(oracle.ROOT, "docs")) if name.endswith(".md"))]
LINKED = [*DOCUMENTS, *(os.path.join(folder, "README.md") for folder in ("examples", "tests", "tests/python", "bench", "tools", "backends/template"))]
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(oracle.COMMAND)), "tests", "plugins", "template", "cleave_template.so")
# Replacements in command lines that would otherwise need minutes or gigabytes: (regular expression, text).
SMALLER = [(r"--rmat (?:14|20)\b", "--rmat 8"), (r"\bcheck-backend (?!.*--section)(.*?)(?=  |$)", r"check-backend \1 --section life "),
           (r"--section operators", "--section operators --every 100"), (r"--duration \d+s", "--duration 50ms"), (r"^((?:build/)?cleave +(?:gnn +)?profile) ", r"\1 --runs 1 ")]
Example = collections.namedtuple("Example", "source line shown")  # shown: the output in the document, as lines, or [] if there is none


# --- reading the documents

def verbs_of(text):
    return re.findall(r"^  ([a-z-]+) ", text[text.index("\nCommands\n"):text.index("\nEnvironment")], re.M)


def helps():
    """Returns {name: text} of all help texts, including those of the verbs of `cleave gnn`."""
    texts = {"help": oracle.cleave("--help")}
    for verb in verbs_of(texts["help"]):
        texts[f"help of {verb}"] = oracle.cleave("help", verb)
    every = texts["help of gnn"]
    for verb in re.findall(r"^  ([a-z]+) ", every[every.index("\nVerbs\n"):].split("\n\n")[0], re.M):
        texts[f"help of gnn {verb}"] = oracle.cleave("help", "gnn", verb)
    return texts


def examples_of_help(name, text):
    lines = [line.strip() for line in text.splitlines() if line.startswith("  cleave ") and "[OPTIONS]" not in line]
    if name == "help":  # an explanation follows on the same line
        lines = [re.split(r" {4,}", line)[0] for line in lines]
    return [Example(name, line, []) for line in lines]


def blocks(text):
    """Yields the code blocks of a document, as lists of lines."""
    block, fenced, indented = [], False, False
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            fenced, indented = not fenced, False
        elif fenced or (line.startswith("    ") and (indented or not block)):
            indented = not fenced
            block.append(line if fenced else line[4:])
            continue
        elif indented and line == "":
            block.append("")  # a blank line does not end the block
            continue
        if block:
            yield block
        block, indented = [], False


def examples_of_document(path):
    with open(os.path.join(oracle.ROOT, path), encoding="utf-8") as file:
        text = file.read()
    for block in blocks(text):
        example = None
        for line in block:
            asked = line.startswith("$ ")
            line = line.removeprefix("$ ")
            if re.match(r"(build/)?cleave +[a-z]", line) or (asked and line.startswith("echo ")):
                if example:
                    yield example
                example = Example(path, line, []) if "[--" not in line else None
            elif asked:
                if example:
                    yield example
                example = None
            elif example and "build/" in example.line:
                example.shown.append(line)
        if example:
            yield example


# --- files that the examples read

def make_test_directory(folder):
    g = GraphBuilder("relu")
    x = g.input("x", [2, 3])
    g.output(g.op("Relu", x), shape=[2, 3])
    os.makedirs(os.path.join(folder, "test_data_set_0"), exist_ok=True)
    save(g.model(), os.path.join(folder, "model.onnx"))
    value = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    for name, array in (("input_0", value), ("output_0", np.maximum(value, 0))):
        with open(os.path.join(folder, "test_data_set_0", name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array).SerializeToString())


def make_resnet(path):
    """Writes a small model with the operators of a ResNet, and with node names as PyTorch's exporter writes them."""
    g = GraphBuilder("resnet50")
    x = g.input("data", [1, 3, 64, 64])
    x = g.op("Relu", g.op("Conv", x, g.normal([8, 3, 3, 3]), strides=[2, 2], name="/conv1/Conv"), name="/relu/Relu")
    x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], name="/maxpool/MaxPool")
    for layer in range(1, 5):
        inner = g.op("Conv", x, g.normal([8, 8, 1, 1], 0.3), name=f"/layer{layer}/layer{layer}.0/conv1/Conv")
        x = g.op("Relu", g.op("Add", inner, x, name=f"/layer{layer}/layer{layer}.0/Add"), name=f"/layer{layer}/layer{layer}.0/relu/Relu")
    x = g.op("Flatten", g.op("GlobalAveragePool", x, name="/avgpool/GlobalAveragePool"), name="/Flatten")
    g.output(g.op("Softmax", g.op("Gemm", x, g.normal([8, 10]), name="/fc/Gemm"), name="/Softmax"), shape=[1, 10])
    save(g.model(), path)


def make_bert(path):
    g = GraphBuilder("bert")
    ids = g.input("input_ids", ["batch", "sequence"], onnx.TensorProto.INT64)
    x = g.op("Gather", g.normal([10, 16]), ids)
    g.output(g.op("Softmax", g.op("MatMul", x, g.normal([16, 16]))), shape=["batch", "sequence", 16])
    save(g.model(), path)


def make_irjson(folder):
    def tensor(name, shape, producer=None):
        return {"name": name, "shape": shape, "dtype": "float32"} | ({"producer_node": producer, "producer_output_idx": 0} if producer else {})
    x, w, total, joined = tensor("x", [1, 4], "x"), tensor("w", [1, 4]), tensor("add", [1, 4], "add"), tensor("cat", [1, 8], "cat")
    model = {"model_name": "Net", "graph_inputs": [x], "graph_outputs": [joined], "weights": [w], "weight_name_mapping": {"w": "w"}, "nodes": [
        {"name": "add", "op_type": "aten.add.Tensor", "inputs": [x, w], "outputs": [total], "attrs": {}},
        {"name": "cat", "op_type": "aten.cat.default", "inputs": [total, total], "outputs": [joined], "attrs": {"dim": 1}}]}
    for name in ("net.json", "decoder.json"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(model, file)
    head = json.dumps({"w": {"dtype": "F32", "shape": [1, 4], "data_offsets": [0, 16]}}).encode()
    with open(os.path.join(folder, "net.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + np.arange(4, dtype=np.float32).tobytes())


def cleave(*arguments):
    """Runs the command with the default number of threads, as the examples do."""
    subprocess.run([oracle.COMMAND, *arguments], capture_output=True, check=True)


def make_common(folder):
    """Makes the files that several documents read, with the names that they use."""
    path = lambda name: os.path.join(folder, name)
    for name in ("resnet50.onnx", "model.onnx"):
        make_resnet(path(name))
    make_bert(path("bert.onnx"))
    np.save(path("cat.npy"), np.random.default_rng(1).standard_normal((1, 3, 64, 64), np.float32))
    cleave("plan", path("resnet50.onnx"), "--devices", "npu,cpu", "--force", "MaxPool=cpu", "-o", path("plan.json"))
    cleave("compile", path("resnet50.onnx"), "--devices", "npu,cpu", "-o", path("resnet50.compiled"))
    for name in ("my-npu.json", "my.json"):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write('{"operators": {"Conv": {}, "Relu": {}, "Add": {}}}')
    cleave("profile", path("resnet50.onnx"), "--devices", "npu,cpu", "--runs", "1", "-o", path("costs.json"))
    for name in ("tests/data/node/relu", "models/relu"):
        make_test_directory(path(name))
    make_irjson(folder)
    if os.path.exists(TEMPLATE):
        for name in ("cleave_template.so", "libmynpu.so"):
            shutil.copy(TEMPLATE, path(name))


def smooth(path):
    """Replaces the measured times of blocks by a linear function of their sizes, so that a curve can always be fitted. The times
    were measured only once, on a machine that may be busy."""
    with open(path, encoding="utf-8") as file:
        costs = json.load(file)
    for block in costs["blocks"]:
        for point in block["points"]:
            point |= {"time_ns": 5000.0 + 20 * point["n"] + 5 * point["m"], "spread_ns": 0.0}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(costs, file)


def make_gnn(folder, features):
    path = lambda name: os.path.join(folder, name)
    rng = np.random.default_rng(5)
    random_model(folder, "graphsage", [features, 8, 4], 1, rng, "sage")
    cleave("gnn", "generate", "--rmat", "8", "--features", str(features), "-o", path("graph.npz"))
    for name in ("cora.npz", "g.npz"):
        shutil.copy(path("graph.npz"), path(name))
    with gzip.open(path("web.txt.gz"), "wt", encoding="utf-8") as file:
        file.writelines(f"{v} {(v * 7 + 1) % 64}\n" for v in range(64))
    with open(path("measured.csv"), "w", encoding="utf-8") as file:
        file.write("n_nodes,n_edges,cpu_ms,gpu_ms,npu_ms,status\n64,1000,1.5,0.5,1.0,OK\n256,4000,5.5,2.0,4.0,OK\n")
    os.remove(path("costs.json"))
    asked = ["--model", path("sage.json"), "--graph", path("graph.npz"), "--devices", "npu,cpu"]
    cleave("gnn", "profile", *asked, "--kset", "1,2,4,8", "--runs", "1", "-o", path("costs.json"))
    smooth(path("costs.json"))
    cleave("gnn", "plan", *asked, "--kset", "1,2,4", "--profile", path("costs.json"), "-o", path("plan.json"))


def make_of_readme(folder):
    """Makes the files that the examples of README.md read: those of a clone of the repository, and the full-size model of the
    demo, whose plans README.md shows."""
    for name in ("build", "demo"):
        os.makedirs(os.path.join(folder, name))
    os.symlink(os.path.join(oracle.ROOT, "tests", "gnn"), os.path.join(folder, "tests", "gnn"))
    os.symlink(os.path.abspath(oracle.COMMAND), os.path.join(folder, "build", "cleave"))
    save(models.make("resnet50", seed=0, full=True)[0], os.path.join(folder, "demo", "full.onnx"))
    shutil.copy(os.path.join(folder, "resnet50.onnx"), os.path.join(folder, "demo", "resnet50.onnx"))


# --- checks

def cannot_run(line):
    if "_template.so" in line or "libmynpu.so" in line:
        return None if os.path.exists(TEMPLATE) else "the template backend was not built"
    for word, device in ((r"\bopenvino", "openvino:CPU"), (r"\bonnxruntime", "onnxruntime:CPU"), (r"\bopencl\b", "opencl"), (r"--devices \S*gpu\b", "gpu")):
        if re.search(word, line) and oracle.missing_device(device):
            return f"the device {device} is not available"
    return None


def differs(shown, printed):
    """Compares the lines that a document shows with those that were printed. Returns the first difference, or None. A line '…' in
    the document matches any number of lines."""
    at = 0
    for line in [line.rstrip() for line in shown if line.strip()]:
        if line == "…":
            at = None
            continue
        found = [i for i in range(at or 0, len(printed)) if printed[i] == line]
        if not found or (at is not None and found[0] != at):
            nearest = printed[at or 0] if (at or 0) < len(printed) else "nothing"
            return f"the document shows {line!r}, but {nearest!r} was printed"
        at = found[0] + 1
    return None


def without_results(lines):
    """Replaces by '#' the numbers that a model computed, because their last digits may differ between machines."""
    return [re.sub(r" +", " ", re.sub(r"\d+\.\d{4,}|-?\d+e-\d+", "#", line)) for line in lines]


def run_example(example, folder):
    line = example.line
    for pattern, text in SMALLER:
        line = re.sub(pattern, text, line)
    plans = example.shown and not line.startswith("echo") and " bench " not in line
    if plans:
        line = line.replace("demo/resnet50.onnx", "demo/full.onnx")
    environment = dict(os.environ, PATH=os.path.dirname(os.path.abspath(oracle.COMMAND)) + ":" + os.environ["PATH"],
                       CLEAVE_CACHE_DIR=os.path.join(folder, "kept"))
    for name in ("CLEAVE_OPENVINO", "CLEAVE_ONNXRUNTIME"):  # the paths are made absolute, because the examples run in another folder
        if name in environment:
            environment[name] = os.path.abspath(environment[name])
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"
    if costs := re.search(r"gnn +profile (?!.*--import).* -o (\S+)", line):
        smooth(os.path.join(folder, costs.group(1)))
    if "--json" in line:
        json.loads(done.stdout)
    if not plans:
        return None
    printed = [text.rstrip() for text in done.stdout.splitlines() if text.strip()]
    if " run " in line:
        return differs(without_results(example.shown), without_results(printed))
    return differs(example.shown, printed)


def check_examples(tally, sources, folder):
    common = os.path.join(folder, "common")
    os.makedirs(common)
    make_common(common)
    for source, examples in sources.items():
        place = os.path.join(folder, re.sub(r"\W+", "_", source))
        shutil.copytree(common, place)
        if source == "README.md":
            make_of_readme(place)
        if "gnn" in source:
            make_gnn(place, 6 if source.endswith(".md") else 128)
        for example in examples:
            name = f"{source}: {example.line}"
            if reason := cannot_run(example.line):
                tally.skip(name, reason)
                continue
            if example.line.startswith("cleave plan decoder") or "MODEL" in example.line:
                example = example._replace(line=example.line.replace("MODEL", "model.onnx"))
            tally.add(name, run_example(example, place))


def check_options(tally, texts):
    """Checks that every option that a document names exists, and that options after `cleave VERB` are options of that verb."""
    taken = {name: set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M)) for name, text in texts.items()}
    every = set().union(*taken.values()) | {"--version"}
    for path in DOCUMENTS:
        with open(os.path.join(oracle.ROOT, path), encoding="utf-8") as file:
            spans = re.findall(r"`([^`\n]+)`", file.read())
        wrong = []
        for span in spans:
            match = re.match(r"(?:build/)?cleave (gnn [a-z]+|[a-z-]+)", span)
            if not match and not span.startswith("--"):
                continue
            of = taken.get(f"help of {match.group(1)}", every) if match else every
            wrong += [f"{option} in `{span}` does not exist" for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span) if option not in of | {"--help"}]
        tally.add(f"{path}: every option that it names exists", "; ".join(wrong) or None)


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def check_links(tally):
    for path in LINKED:
        folder = os.path.dirname(os.path.join(oracle.ROOT, path))
        with open(os.path.join(oracle.ROOT, path), encoding="utf-8") as file:
            text = file.read()
        wrong = []
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = os.path.join(folder, name) if name else os.path.join(oracle.ROOT, path)
            if not os.path.exists(target):
                wrong.append(f"{link}: no such file")
            elif anchor:
                with open(target, encoding="utf-8") as file:
                    if anchor not in anchors(file.read()):
                        wrong.append(f"{link}: no such heading")
        tally.add(f"{path}: its links are not broken", "; ".join(wrong) or None)


def check_code(tally):
    """Checks that a document shows a program exactly as it is in a file of the tests."""
    for document, path in (("docs/backend-guide.md", "tests/plugins/smallest.c"),):
        with open(os.path.join(oracle.ROOT, document), encoding="utf-8") as file:
            shown = re.findall(r"^```c\n(.*?)^```$", file.read(), re.M | re.S)
        with open(os.path.join(oracle.ROOT, path), encoding="utf-8") as file:
            code = file.read()
        tally.add(f"{document} shows {path} as it is", None if code in shown else "the document shows other code")


def main():
    tally, folder = oracle.Tally(), oracle.build_folder("documents")
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    texts = helps()
    sources = {name: examples_of_help(name, text) for name, text in texts.items()}
    sources |= {path: list(examples_of_document(path)) for path in DOCUMENTS}
    for name in texts:
        tally.add(f"{name}: the text has an example", None if sources[name] else "the help text has no example")
    check_options(tally, texts)
    check_links(tally)
    check_code(tally)
    shutil.rmtree(folder)
    check_examples(tally, {name: examples for name, examples in sources.items() if pattern in name and examples}, folder)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
