"""Tests the command tools/torch_to_ir.py: its inputs with --dtype, and that every error is a message and not a traceback."""
import json
import os
import subprocess
import sys

import oracle

TOOL = os.path.join(oracle.ROOT, "tools", "torch_to_ir.py")
MODULES = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, ids=None):
        return self.linear(x) if ids is None else self.linear(x) * ids.sum()

class Branches(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x

class NeedsSize(torch.nn.Module):
    def __init__(self, size):
        super().__init__()

class Exits(torch.nn.Module):
    def forward(self, x):
        raise SystemExit(7)

class Interrupted(torch.nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt

class ReturnsObject(torch.nn.Module):
    def forward(self, x):
        return object()

class Chooses(torch.nn.Module):
    def forward(self, x):
        return x[x > 0]

def broken():
    raise KeyError("no such layer")

def five():
    return 5
"""


def run(folder, *arguments, stdout=subprocess.PIPE):
    return subprocess.run([sys.executable, *arguments], cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def error_in(done, said):
    """Returns what is wrong with a run that should fail with a message that contains `said`; None if nothing is."""
    good = done.returncode != 0 and "Traceback" not in done.stderr and "torch_to_ir" in done.stderr and said in done.stderr
    return None if good else f"exit status {done.returncode}: {done.stderr[-600:]}"


def check_without_pytorch(tally):
    hide = f"import runpy, sys; sys.modules['torch'] = None; sys.argv[0] = {TOOL!r}; runpy.run_path({TOOL!r}, run_name='__main__')"
    tally.add("torch_to_ir without PyTorch", error_in(run(None, "-c", hide), "PyTorch is missing"))


# Command lines that must fail, with a part of the message. "modules.py" and the other files are in the test's folder.
FAILURES = [
    *[(f"modules.py {line} -o command.json", said) for line, said in (
        ("Missing --input 2x4", "does not define 'Missing'"),
        ("broken --input 2x4", "no such layer"),
        ("five --input 2", "of type int"),
        ("NeedsSize --input 2", "argument: 'size'"),
        ("Branches --input 2x4", "'Branches' cannot be exported"),
        ("Chooses --input 2", "all sizes must be numbers"),
        ("Exits --input 2", "exits with 7"),
        ("Interrupted --input 2", "interrupted"),
        ("ReturnsObject --input 2", "outputs must be tensors"),
        ("Net --input 2x5", "'Net' cannot be exported"),
        ("Net --input 2xx4", "--input"),
        (f"Net --input {'9' * 30}", "'Net' cannot be exported"),
        ("Net --input 2x4 --input y=2", "argument 'y'"),
        ("Net --input 2x4:float16", "multiplies float16 and float32"),
        ("Net --input 2x4:complex64", "torch.complex64"),
        ("Net --input 2x4 --dtype int8", "--dtype"),
        ("Net --input 2x4 --dtype bfloat", "--dtype"),
        ("Net --input 2x4 --seed x", "invalid int value"),
        (f"Net --input 2x4 --seed {'9' * 30}", "Overflow"))],
    ("syntax.py Net -o command.json", "SyntaxError"),
    ("import.py Net -o command.json", "ModuleNotFoundError"),
    ("exit.py Net -o command.json", "exits with 3"),
    ("modules.txt Net -o command.json", "expected a Python file"),
    ("none.py Net -o command.json", "none.py"),
    ("modules.py Net --input 2x4 -o away/net.json", "there is no folder"),
    ("modules.py Net --input 2x4 -o net.json --params away/net.safetensors", "there is no folder"),
    ("modules.py Net --input 2x4 -o .", "it is a folder"),
    ("modules.py Net --input 2x4 -o net.safetensors", "cannot be both"),
]
SOURCES = {"modules.py": MODULES, "modules.txt": "", "syntax.py": "def (", "import.py": "import no_such_package", "exit.py": "import sys; sys.exit(3)"}


def check_dtypes(tally, folder):
    for given, dtype in (("2x4", "bfloat16"), ("2x4:float32", "float32")):
        done = run(folder, TOOL, "modules.py", "Net", "--dtype", dtype, "--input", given, "--input", "ids=3:int64", "-o", "command.json")
        problem = None if done.returncode == 0 else done.stderr[-600:]
        if problem is None:
            with open(os.path.join(folder, "command.json"), encoding="utf-8") as file:
                found = [value["dtype"] for value in json.load(file)["graph_inputs"]]
            problem = None if found == [dtype, "int64"] else f"the inputs are {found}"
        tally.add(f"torch_to_ir --dtype {dtype} --input {given}", problem)


def check_full(tally, folder):
    """Checks the message if standard output cannot be written."""
    if not os.path.exists("/dev/full"):
        tally.skip("torch_to_ir with a full standard output", "no /dev/full")
        return
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run(folder, TOOL, "modules.py", "Net", "--input", "2x4", "-o", "full.json", stdout=full)
    tally.add("torch_to_ir with a full standard output", error_in(done, "No space left"))


def check_command(tally, folder):
    for name, source in SOURCES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(source)
    check_dtypes(tally, folder)
    check_full(tally, folder)
    for (line, said), done in oracle.each(lambda failure: run(folder, TOOL, *failure[0].split()), FAILURES):
        tally.add(f"torch_to_ir {line}: fails with '{said}'", f"{done}" if isinstance(done, Exception) else error_in(done, said))
    left = [name for name in os.listdir(folder) if name.endswith(".part")]
    tally.add("torch_to_ir leaves no .part files after errors", f"{left}" if left else None)
