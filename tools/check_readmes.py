"""Checks that the README of each folder names the files that are there, and none that is not.

    python3 tools/check_readmes.py

A file is named by its name or its stem (`plan.c`, `plan`; `plan.h` names both), by a pattern (`cmd_*.c`), or by a list of families
that the README names (`families.h`). Headers need not be: who includes them says what they are.
"""
import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = (".c", ".cpp", ".py", ".js", ".cl", ".sh")
LISTS = {"families.h", "sections.h", "irjson/lower.h"}  # a new family is a line in one of these
QUOTED = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"^[\w./*-]+\.(c|h|cpp|py|js|css|cl|sh|md|txt|map)$")
# Where a name may lead to beside the folder itself.
PLACES = ["", "include", "src", "tests", "tests/support"]
OUTSIDE = {"onnxruntime_c_api.h"}  # of libraries that are not ours


def files_below(folder):
    """All files below a folder, relative to it; what builds and tools leave there is left out."""
    for place, folders, names in os.walk(os.path.join(ROOT, folder)):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith((".", "build"))]
        for name in names:
            yield os.path.relpath(os.path.join(place, name), os.path.join(ROOT, folder))


def leads_somewhere(folder, word):
    names = [name for place in [folder, *PLACES[1:]] for name in files_below(place)] if "*" in word else []
    return (word in OUTSIDE or any(os.path.exists(os.path.join(ROOT, place, word)) for place in [folder, *PLACES])
            or any(fnmatch.fnmatch(name, word) for name in names))


def names_of(folder, words):
    """What a README names: stems, and patterns."""
    stems = {os.path.splitext(os.path.basename(word))[0] for word in words}
    stems |= {stem.removeprefix("bench_") for stem in stems}  # programs: bench_placement is placement.c
    for name in LISTS & set(words):
        with open(os.path.join(ROOT, folder, name), encoding="utf-8") as file:
            stems |= set(re.findall(r"\w+", file.read()))
    return stems, [word for word in words if "*" in word]


def check_folder(folder):
    with open(os.path.join(ROOT, folder, "README.md"), encoding="utf-8") as file:
        words = QUOTED.findall(file.read())
    wrong = [f"names {word}, which is not there" for word in dict.fromkeys(words)
             if FILE.match(word) and not leads_somewhere(folder, word)]
    stems, patterns = names_of(folder, words)
    for name in sorted(os.listdir(os.path.join(ROOT, folder))):
        stem, ending = os.path.splitext(name)
        is_named = stem in stems or any(stem.endswith("_" + family) and stem[: -len(family)] in ("cases_", "irjson_") for family in stems)
        if ending in CODE and not is_named and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            wrong.append(f"does not name {name}")
    return [f"{os.path.join(folder, 'README.md')}: {what}" for what in wrong]


def main():
    folders = [folder for folder in ["", "src", "backends", "tests"] for folder in
               sorted(os.path.join(folder, name) for name in os.listdir(os.path.join(ROOT, folder)))
               if os.path.exists(os.path.join(ROOT, folder, "README.md"))]
    wrong = [line for folder in folders for line in check_folder(folder)]
    for line in wrong:
        print(line)
    print(f"{len(folders)} folders checked, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
