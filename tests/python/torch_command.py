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

def broken():
    raise KeyError("no such layer")
"""


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def error_in(done, said):
    """Returns what is wrong with a run that should fail with a message that contains `said`; None if nothing is."""
    good = done.returncode != 0 and "Traceback" not in done.stderr and "torch_to_ir" in done.stderr and said in done.stderr
    return None if good else f"exit status {done.returncode}: {done.stderr[-600:]}"


def check_without_pytorch(tally):
    hide = f"import runpy, sys; sys.modules['torch'] = None; sys.argv[0] = {TOOL!r}; runpy.run_path({TOOL!r}, run_name='__main__')"
    tally.add("torch_to_ir without PyTorch", error_in(run("-c", hide), "PyTorch is missing"))


def check_command(tally, folder):
    path, output = os.path.join(folder, "modules.py"), os.path.join(folder, "command.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(MODULES)
    for given, dtype in (("2x4", "bfloat16"), ("2x4:float32", "float32")):
        done = run(TOOL, path, "Net", "--dtype", dtype, "--input", given, "--input", "ids=3:int64", "-o", output)
        problem = None if done.returncode == 0 else done.stderr[-600:]
        if problem is None:
            with open(output, encoding="utf-8") as file:
                found = [value["dtype"] for value in json.load(file)["graph_inputs"]]
            problem = None if found == [dtype, "int64"] else f"the inputs are {found}"
        tally.add(f"torch_to_ir --dtype {dtype} --input {given}", problem)
    for name, given, said, more in (("Missing", "2x4", "does not define 'Missing'", []), ("broken", "2x4", "no such layer", []),
                                    ("Branches", "2x4", "'Branches' cannot be exported", []), ("Net", "2x5", "'Net' cannot be exported", []),
                                    ("Net", "2x4:float16", "'Net' cannot be exported", []), ("Net", "2x4", "--dtype", ["--dtype", "int8"]),
                                    ("Net", "2x4", "--dtype", ["--dtype", "bfloat"])):
        done = run(TOOL, path, name, "--input", given, "-o", output, *more)
        tally.add(f"torch_to_ir {name} --input {given} {' '.join(more)}", error_in(done, said))
    text = os.path.join(folder, "modules.txt")
    tally.add("torch_to_ir of a file that is not Python", error_in(run(TOOL, text, "Net", "-o", output), "expected a Python file"))
    tally.add("torch_to_ir of a missing file", error_in(run(TOOL, os.path.join(folder, "none.py"), "Net", "-o", output), "none.py"))
