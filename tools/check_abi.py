"""Checks the binary interface of the library: its symbols and their versions, and the types that its core functions use.

    python3 tools/check_abi.py [--library build/libcleave.so] [--types | --write] [--root FOLDER]

Without options, it compares cmake/exports.map with the public headers. --library: also compares both with the symbols of a library
that was built. --types: also compares the core functions and their types with cmake/core.abi, by `abidiff` of the Debian package
abigail-tools. --write: records additions there. Neither needs a build.

A header whose first comment says 'Unstable: may change until 1.0' may change. All other public headers are the core.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAP, CORE = "cmake/exports.map", "cmake/core.abi"
UNSTABLE = "Unstable: may change until 1.0"
UNSTABLE_NODE = "CLEAVE_0_UNSTABLE"
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"\bCLV_API\b[^;{]*?\b(clv_\w+)\(")
NODE = re.compile(r"(\w+)\s*\{(.*?)\}", re.S)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def headers():
    return [f"include/cleave/{folder}{name}" for folder in ("", "plugin/") for name in sorted(os.listdir(os.path.join(ROOT, "include/cleave", folder)))
            if name.endswith(".h")]


def declared():
    """Returns {function: header} for the core headers, and the same for the unstable ones."""
    core, unstable = {}, {}
    for path in headers():
        text = read(path)
        first = COMMENT.search(text)
        is_unstable = first and UNSTABLE in " ".join(first.group().replace("\n *", " ").split())
        (unstable if is_unstable else core).update((function, path) for function in FUNCTION.findall(COMMENT.sub("", text)))
    return core, unstable


def listed():
    """Returns {function: version} for the functions that the map lists by name."""
    return {function: version for version, body in NODE.findall(COMMENT.sub("", read(MAP))) for function in re.findall(r"\b(clv_\w+)\s*;", body)}


def check_declared(is_writing=False):
    """Compares the map with the headers, and with the functions of the committed file unless that is to be written. Needs no library."""
    (core, unstable), versions, wrong = declared(), listed(), []
    recorded = set(listed()) if is_writing else set(re.findall(r"<elf-symbol name='(\w+)'", read(CORE)))
    for function, header in core.items():
        if function not in versions:
            wrong.append(f"{header}: {function}() is not in {MAP}. Either it is a new core function, to be kept from now on: add it to the newest "
                         f"node CLEAVE_0...; or it may still change: move it to a header whose first comment says '{UNSTABLE}.'")
    for function, version in versions.items():
        if version == UNSTABLE_NODE:
            wrong.append(f"{MAP}: {function} is listed in {version}, which needs no names: remove the line")
        elif function in unstable:
            wrong.append(f"{unstable[function]}: {function}() is a core function ({version} in {MAP}), which programs rely on, but this header is marked "
                         f"as unstable. Declare it in a core header")
        elif function in core and function not in recorded:
            wrong.append(f"{CORE}: does not record {function}(), which {MAP} lists. Run (it needs the Debian package abigail-tools)\n"
                         f"    python3 tools/check_abi.py --write")
        elif function not in core:
            wrong.append(f"{MAP}: {function} is listed in {version}, but no public header declares it. Core functions are kept: restore it. Only if it was "
                         f"never released, remove it from the map")
    return wrong


def check_library(library):
    """Compares the symbols of a library with the map and the headers."""
    done = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True)
    if done.returncode != 0:
        return [done.stderr.strip()]
    exported, wrong, versions = {}, [], listed()
    for line in done.stdout.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        if kind not in "wWvVA":  # A: the names of the versions
            exported[name] = version.lstrip("@")
    functions = {function: header for part in declared() for function, header in part.items()}
    for name, version in exported.items():
        if not name.startswith("clv_") or name.startswith("clv__"):
            wrong.append(f"{library}: exports '{name}', but public names begin with clv_, and not with clv__")
        elif name not in functions:
            wrong.append(f"{library}: exports '{name}', but no public header declares it: make it static, or name it clv__...")
        elif version != versions.get(name, UNSTABLE_NODE):
            wrong.append(f"{library}: '{name}' has version '{version}', but {MAP} says {versions.get(name, UNSTABLE_NODE)}: build it again")
    for function, header in functions.items():
        if function not in exported:
            wrong.append(f"{library}: lacks {function}(), which {header} declares: define it, with that header included")
    for function in versions.keys() - functions.keys() - exported.keys():
        wrong.append(f"{library}: lacks the core function {function}, which {MAP} lists as {versions[function]}")
    return wrong


def write_types(path):
    """Writes the interface of the core functions to `path`. They are defined here with their declarations in the public headers, in a library of
    their own, because `abidw` reads types from debug information. Opaque types stay opaque, and the library need not be built."""
    with tempfile.TemporaryDirectory() as work:
        source, prototypes, library, names = (os.path.join(work, name) for name in ("core.c", "prototypes", "libcleave.so.0", "core.list"))
        headers = '#include "cleave/cleave.h"\n#include "cleave/plugin/backend.h"\n'
        with open(source, "w", encoding="utf-8") as file:
            file.write(headers)
        gcc = ["gcc", "-std=gnu2x", "-w", "-I", os.path.join(ROOT, "include"), source]
        subprocess.run([*gcc, "-aux-info", prototypes, "-S", "-o", "/dev/null"], check=True)
        core = sorted(listed())
        with open(source, "w", encoding="utf-8") as file, open(prototypes, encoding="utf-8") as lines:
            file.write(headers)
            for line in lines:
                if match := re.search(r"\*/ extern (.*\b(clv_\w+) \(.*\));", line):
                    if match.group(2) in core:
                        file.write(match.group(1) + " { __builtin_trap(); }\n")
        subprocess.run([*gcc, "-g", "-O0", "-fPIC", "-shared", "-Wl,-soname,libcleave.so.0", f"-Wl,--version-script={ROOT}/{MAP}", "-o", library], check=True)
        with open(names, "w", encoding="utf-8") as file:
            file.write("[abi_whitelist]\n" + "".join(f"  {name}\n" for name in core))
        subprocess.run(["abidw", "--kmi-whitelist", names, "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--type-id-style", "hash",
                        "--out-file", path, library], check=True)


def members(path):
    """Returns {struct: [(offset in bits, name, type)]} of a file that `abidw` wrote."""
    return {struct.get("name"): [(int(member.get("layout-offset-in-bits")), member[0].get("name"), member[0].get("type-id")) for member in struct]
            for struct in xml.etree.ElementTree.parse(path).iter("class-decl") if not struct.get("is-declaration-only")}


def grown(before, now):
    """Returns the names of the structs that have new members at their end, and may, because they begin with their size."""
    old, new = members(before), members(now)
    return [name for name in old.keys() & new.keys() if "struct_size" in (member[1] for member in old[name][:2]) and
            len(new[name]) > len(old[name]) and new[name][: len(old[name])] == old[name]]


def differences(before, now, allow_additions):
    """Returns the report of `abidiff`, empty if there is no difference. allow_additions: those of functions, of constants, and of members at the end
    of structs that begin with their size are not differences."""
    options = ["--no-added-syms"] if allow_additions else ["--harmless"]
    names = grown(before, now) if allow_additions else []
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as allowed:
        if names:
            allowed.write(f"[suppress_type]\n  type_kind = struct\n  name_regexp = ^({'|'.join(names)})$\n  has_data_member_inserted_at = end\n")
            allowed.flush()
            options += ["--suppressions", allowed.name]
        done = subprocess.run(["abidiff", *options, before, now], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}abidiff ended with status {done.returncode}"


def check_types(may_write):
    """Compares the core functions and their types with those of the committed file. may_write: records additions in the file."""
    before = os.path.join(ROOT, CORE)
    with tempfile.TemporaryDirectory() as work:
        now = os.path.join(work, "core.abi")
        write_types(now)
        if may_write and not os.path.exists(before):
            shutil.copy(now, before)
            return []
        if report := differences(before, now, True):
            return [f"{report}\nThe core interface is not compatible with {CORE}. Programs and plugins rely on its functions and types: undo the change. "
                    f"Structs may grow, but only at their end, and only if they begin with struct_size. Only if what changed was never released, "
                    f"delete {CORE} and run\n    python3 tools/check_abi.py --write"]
        if may_write:
            shutil.copy(now, before)
        elif report := differences(before, now, False):
            return [f"{report}\nThe core interface has compatible additions, which {CORE} does not record. Run\n    python3 tools/check_abi.py --write"]
    return []


def main():
    global ROOT
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, help="the folder with include/ and cmake/ (default: this project)")
    parser.add_argument("--library", metavar="FILE", help="compare the symbols of this library, too")
    parser.add_argument("--types", action="store_true", help=f"compare the core functions and their types with {CORE}, too")
    parser.add_argument("--write", action="store_true", help=f"record additions to the core in {CORE}")
    arguments = parser.parse_args()
    ROOT = arguments.root
    wrong = check_declared(arguments.write)
    if arguments.library:
        wrong += check_library(arguments.library)
    if (arguments.write or arguments.types) and not wrong:
        wrong += check_types(arguments.write)
    print("\n".join(wrong), end="\n" if wrong else "")
    core, unstable = declared()
    print(f"{len(core)} core functions, {len(unstable)} unstable ones; {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
