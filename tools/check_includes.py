"""Checks which folders include which, which functions the public headers declare, and whether each public header compiles alone.

    python3 tools/check_includes.py [--library build/libcleave.so] [--headers] [--list]

Without options, it checks that each folder includes only those that it may, that no folder has too many source files, that
modules (see module()) do not include each other in a circle, and that cmake/exports.map lists the functions of the core headers
(check_abi.py). It needs only Python and, for --headers, gcc and g++.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

import check_abi

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

TOPS = ("include", "src", "backends", "integrations")
# The folders of src/. Each may include itself and the folders before it in this list, except that the folders in NARROWER may
# include only themselves and those given there.
ORDER = ["base", "graph", "operators", "analysis", "formats", "cache", "device", "cost", "split", "place", "plan", "compile", "execute",
         "gnn", "check", "report", "bench", "cli"]
NARROWER = {"operators": {"base", "graph"}, "formats": {"base", "graph", "operators", "analysis"}, "cache": {"base"}}
# The parts of src/ that backends may include.
BACKEND_SEES = ("src/base/", "src/operators/run.h", "src/operators/common/")
SHARED_BACKENDS = {"common", "framework"}  # folders of backends/ that other backends build on
MOST_FILES = 35
CIRCLE_OK = "circle-ok:"  # followed by a reason, in the first comment of a file: allows its module to be in a circle of includes
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def sources(top):
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cpp", ".hpp")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def includes(path):
    """Yields (line number, text in the quotes, path of the file or None if it is not in the project) for each #include "..."."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if match := INCLUDE.match(line):
                places = [os.path.dirname(path), "include", "src", ""]
                candidates = (os.path.normpath(os.path.join(place, match.group(1))) for place in places)
                target = next((c for c in candidates if os.path.isfile(os.path.join(ROOT, c))), None)
                yield number, match.group(1), target


def may_include(path, target):
    """Whether the rules let file `path` include file `target`; both are paths from the root."""
    here, there = path.split("/"), target.split("/")
    if there[0] == "include":  # application headers must not include the plugin ABI
        return here[0] != "include" or "plugin" in here or "plugin" not in there
    if here[0] == "include":
        return False
    if here[0] == "backends":
        if there[0] == "backends":
            return here[1] == there[1] or there[1] in SHARED_BACKENDS
        return target.startswith(BACKEND_SEES)
    if here[0] == "integrations" or here[:2] == ["src", "cli"]:  # like any program: public headers, and its own files
        return there[:2] == here[:2]
    if there[0] == "backends":  # only backends include each other; CMakeLists.txt lists the built-in ones
        return False
    allowed = NARROWER.get(here[1], set(ORDER[: ORDER.index(here[1])])) | {here[1]}
    return there[1] in allowed


def check_map(files):
    wrong = []
    for path in files:
        parts = path.split("/")
        if parts[0] == "src" and (len(parts) < 3 or parts[1] not in ORDER):
            wrong.append(f"{path}: src/{parts[1]} is not one of the folders listed as ORDER in tools/check_includes.py")
            continue
        for number, text, target in includes(path):
            if target is None or target.split("/")[0] not in TOPS:
                continue  # a header of another library, or one that the build generates
            if target.startswith("include/") and not text.startswith("cleave/") and parts[0] != "include":
                wrong.append(f'{path}:{number}: public headers are included as "cleave/...", not "{text}"')
            elif not may_include(path, target):
                wrong.append(f"{path}:{number}: {'/'.join(parts[:2])} must not include {target}")
    return wrong


def folder_counts(files):
    return collections.Counter(os.path.dirname(path) for path in files)


def check_counts(files):
    return [f"{folder}: has {count} source files, at most {MOST_FILES} are allowed" for folder, count in folder_counts(files).items() if count > MOST_FILES]


def module(path):
    """Returns the module of a file. x.c, x.h and the private header x_own.h are the module x; FOLDER/own.h is in
    FOLDER/FOLDER."""
    folder, stem = os.path.split(os.path.splitext(path)[0])
    stem = os.path.basename(folder) if stem == "own" else stem.removesuffix("_own")
    return os.path.join(folder, stem)


def find_circles(edges):
    """Returns the strongly connected components of more than one module (Tarjan's algorithm, without recursion)."""
    index, low, stack, on_stack, circles = {}, {}, [], set(), []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    members = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(members)
                    if len(members) > 1:
                        circles.append(sorted(members))
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sorted(edges[following]))))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return circles


def is_explained(circle, files):
    for path in files:
        if module(path) in circle:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                if CIRCLE_OK in file.read(1000).split("*/")[0]:
                    return True
    return False


def circles_of(files):
    edges = {module(path): set() for path in files}
    for path in files:
        for _, _, target in includes(path):
            if target is not None and module(target) in edges and module(target) != module(path):
                edges[module(path)].add(module(target))
    return find_circles(edges)


def check_headers():
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only", "-I", os.path.join(ROOT, "include")]
    wrong = []
    for path in sources("include"):
        for compiler, language, options in (("gcc", "c", ["-std=c11", "-Wstrict-prototypes"]), ("g++", "c++", ["-std=c++11"])):
            text = f'#include "{os.path.relpath(path, "include")}"\n'
            done = subprocess.run([compiler, "-x", language, *options, *warnings, "-"], input=text, capture_output=True, text=True)
            if done.returncode != 0:
                wrong.append(f"{path}: does not compile alone as {language}:\n{done.stderr.strip()}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", metavar="FILE", help="compare the symbols of this library with the public headers and with cmake/exports.map")
    parser.add_argument("--headers", action="store_true", help="compile each public header alone, as C11 and as C++")
    parser.add_argument("--list", action="store_true", help="print the number of source files per folder")
    arguments = parser.parse_args()
    files = [path for top in TOPS for path in sources(top)]
    circles = circles_of(files)
    unexplained = [circle for circle in circles if not is_explained(circle, files)]
    wrong = check_map(files) + check_counts(files) + check_abi.check_declared() + ["modules that include each other: " + " ".join(circle) for circle in unexplained]
    if arguments.headers:
        wrong += check_headers()
    if arguments.library:
        wrong += check_abi.check_library(arguments.library)
    counts = folder_counts(files)
    if arguments.list:
        for folder, count in sorted(counts.items()):
            print(f"{count:4} {folder}")
    print("\n".join(wrong), end="\n" if wrong else "")
    largest = max(counts, key=counts.get)
    print(f"{len(files)} files in {len(counts)} folders, at most {counts[largest]} in one ({largest}); "
          f"{len(circles)} circles of includes, {len(unexplained)} of them without a reason; {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
