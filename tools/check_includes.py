"""Checks what the compiler does not: who includes whom, what the library exports, and that public headers stand alone.

    python3 tools/check_includes.py [--library build/libcleave.so] [--headers]

Without options the include map alone. Needs nothing but Python and, for --headers, a C and a C++ compiler.
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The order of the folders of src/: each uses itself and those before it; the exceptions stand below.
ORDER = ["base", "kernels", "graph", "ops", "formats", "cache", "device", "cost", "split", "place", "compile", "execute", "gnn", "report", "check", "cli"]
NARROWER = {"kernels": {"base"}, "formats": {"base", "graph", "ops"}, "cache": {"base"}}
BACKEND_SEES = {"base", "kernels"}
FRAMEWORK = "framework"  # what the backends of frameworks share
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def sources(top):
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cpp", ".hpp")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def allowed_folders(path):
    """The folders of src/ that a file may include from."""
    parts = path.split(os.sep)
    if parts[0] == "backends":
        return BACKEND_SEES
    if parts[0] == "include":
        return set()
    folder = parts[1]
    return NARROWER.get(folder, set(ORDER[: ORDER.index(folder)])) | {folder}


def check_file(path):
    """What is wrong with a file's includes, a line each."""
    parts = path.split(os.sep)
    if parts[0] == "src" and (len(parts) < 3 or parts[1] not in ORDER):
        return [f"{path}: src/{parts[1]} is not on the map (tools/check_includes.py)"]
    allowed, wrong = allowed_folders(path), []
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
            if included.startswith("cleave/"):
                continue  # public headers are for all
            if os.path.isfile(os.path.join(ROOT, beside)):
                target = beside
            elif os.path.isfile(os.path.join(ROOT, "src", included)):
                target = os.path.normpath(os.path.join("src", included))
            elif os.path.isfile(os.path.join(ROOT, included)):
                target = included
            else:
                continue  # a library's header
            where = target.split(os.sep)
            same_backend = where[0] == "backends" and (where[:2] == parts[:2] or where[1] == FRAMEWORK)
            registers = parts[:2] == ["src", "device"] and where[-1] == where[-2] + ".h"  # the built-in ones' query functions
            public_inside = where[0] == "include" and parts[0] == "include"
            if where[0] == "include" and not public_inside:
                wrong.append(f"{path}:{number}: public headers are included as \"cleave/...\", not \"{included}\"")
            elif where[0] == "backends" and not same_backend and not registers:
                wrong.append(f"{path}:{number}: '{included}' belongs to another backend")
            elif where[0] == "src" and where[1] not in allowed:
                wrong.append(f"{path}:{number}: {'/'.join(parts[:2])} may not use src/{where[1]} ('{included}')")
    return wrong


def check_exports(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    if done.returncode != 0:
        return [done.stderr.strip()]
    names = [line.split()[-1] for line in done.stdout.splitlines() if line.split()[1] not in "wWvV"]
    return [f"{library}: exports '{name}'" for name in names if not name.startswith("clv_") or name.startswith("clv__")]


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
    parser.add_argument("--library", metavar="FILE", help="check what this library exports")
    parser.add_argument("--headers", action="store_true", help="compile each public header alone, as C11 and as C++")
    arguments = parser.parse_args()
    wrong, checked = [], 0
    for top in ("include", "src", "backends"):
        for path in sources(top):
            wrong += check_file(path)
            checked += 1
    if arguments.headers:
        wrong += check_headers()
    if arguments.library:
        wrong += check_exports(arguments.library)
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{checked} files checked, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
