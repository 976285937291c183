"""Checks that each folder of src/, backends/ and integrations/ has a README which names its subfolders, and that files named in READMEs exist.

    python3 tools/check_readmes.py

A file is named by its path from the README's folder, from the root, or from src/, include/ or tests/, or by its name alone if it
is in a subfolder of the README's folder. A pattern (`cmd_*.c`) must match a file. Fuzz corpora and generated folders need not be
named.
"""
import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MUST_HAVE = ("src", "backends", "integrations")  # each folder in one of these must have a README
QUOTED = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"^[\w./*-]+\.(c|h|cpp|py|js|css|cl|sh|md|txt|map)$")
# Folders that a path in a README may start from, besides the README's own folder.
PLACES = ["", "include", "src", "tests", "tests/support"]
OUTSIDE = {"onnxruntime_c_api.h"}  # files of other libraries


def entries(folder):
    names = sorted(os.listdir(os.path.join(ROOT, folder)))
    return [name for name in names if name != "__pycache__" and not name.startswith((".", "build"))]


def files_below(folder):
    """All files below a folder, relative to it."""
    for name in entries(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(os.path.join(ROOT, path)):
            yield from (os.path.join(name, below) for below in files_below(path))
        else:
            yield name


def leads_somewhere(folder, word):
    if word in OUTSIDE or any(os.path.exists(os.path.join(ROOT, place, word)) for place in [folder, *PLACES]):
        return True
    return any(fnmatch.fnmatch("/" + name, "*/" + word) for name in files_below(folder))


def check_folder(folder):
    readme = os.path.join(folder, "README.md")
    if not os.path.exists(os.path.join(ROOT, readme)):
        return [f"{folder}: has no README.md"] if os.path.dirname(folder) in MUST_HAVE else []
    with open(os.path.join(ROOT, readme), encoding="utf-8") as file:
        text = file.read()
    words = dict.fromkeys(QUOTED.findall(text))
    wrong = [f"{readme}: names {word}, which does not exist" for word in words if FILE.match(word) and not leads_somewhere(folder, word)]
    if os.path.dirname(folder) in MUST_HAVE:
        rooms = [name for name in entries(folder) if os.path.isdir(os.path.join(ROOT, folder, name))]
        wrong += [f"{readme}: does not name {name}/" for name in rooms if not re.search(rf"\b{re.escape(name)}/", text)]
    return wrong


def main():
    folders = [os.path.join(folder, name) for folder in ["", "src", "backends", "tests"] for name in entries(folder)]
    folders = [folder for folder in folders if os.path.isdir(os.path.join(ROOT, folder))]
    wrong = [line for folder in [*folders, "tests/python"] for line in check_folder(folder)]
    wrong = list(dict.fromkeys(wrong + check_folder("")))
    for line in wrong:
        print(line)
    print(f"{len(folders) + 1} folders checked, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
