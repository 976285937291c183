"""Tests tools/check_abi.py: changes of a copy of the public headers, which it must report or accept.

    python tests/python/test_abi.py [--types]       --types: also changes of types, which need `abidiff` (Debian package abigail-tools)
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
passed = failed = 0


def expect(what, edits, says, *options):
    """Applies edits, (file, old text, new text), to a copy, and checks that the tool prints `says`, or succeeds if `says` is None."""
    global passed, failed
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(os.path.join(ROOT, "include"), os.path.join(copy, "include"))
        os.mkdir(os.path.join(copy, "cmake"))
        for name in ("exports.map", "core.abi"):
            shutil.copy(os.path.join(ROOT, "cmake", name), os.path.join(copy, "cmake"))
        for path, old, new in edits:
            with open(os.path.join(copy, path), encoding="utf-8") as file:
                text = file.read()
            if text.count(old) < 1:
                sys.exit(f"{path} does not contain '{old}': update this test")
            with open(os.path.join(copy, path), "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/check_abi.py"), "--root", copy, *options], capture_output=True, text=True)
    good = done.returncode == 0 if says is None else done.returncode == 1 and says in done.stdout
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"FAIL {what}: status {done.returncode}, expected {'success' if says is None else repr(says)}:\n{done.stdout}{done.stderr}")


def test_symbols():
    plan, check, exports = "include/cleave/plan.h", "include/cleave/check.h", "cmake/exports.map"
    added = "CLV_API void clv_plan_destroy("
    expect("no change", [], None)
    expect("a function removed", [(plan, added, "void clv__plan_gone(")], "clv_plan_destroy is listed in CLEAVE_0, but no public header declares it")
    expect("a function not listed", [(plan, added, f"CLV_API void clv_plan_more(clv_plan *plan);\n{added}")], "clv_plan_more() is not in cmake/exports.map")
    expect("a function listed", [(plan, added, f"CLV_API void clv_plan_more(clv_plan *plan);\n{added}"),
                                 (exports, "clv_plan_destroy;", "clv_plan_destroy;\n    clv_plan_more;")], "does not record clv_plan_more()")
    expect("a function in a later node", [(plan, added, f"CLV_API void clv_plan_more(clv_plan *plan);\n{added}"),
                                          (exports, "CLEAVE_0_UNSTABLE {", "CLEAVE_0_2 { global: clv_plan_more; } CLEAVE_0;\nCLEAVE_0_UNSTABLE {")], "does not record clv_plan_more()")
    expect("an unstable function", [(check, "#ifdef __cplusplus", "CLV_API int clv_check_more(int x);\n#ifdef __cplusplus")], None)
    expect("a core header marked as unstable", [(plan, "A plan assigns", "Unstable: may change\n * until 1.0. A plan assigns")], "Declare it in a core header")
    expect("an unstable name in the map", [(exports, "clv_[a-z]*;", "clv_[a-z]*;\n    clv_check_backend;")], "which needs no names")


def test_library():
    """Checks a library that lacks functions, and has others and other versions."""
    with tempfile.TemporaryDirectory() as work:
        library, source, versions = (os.path.join(work, name) for name in ("libcleave.so", "x.c", "x.map"))
        with open(source, "w", encoding="utf-8") as file:
            file.write("void clv_plan_destroy(void) {}\nvoid clv_unknown(void) {}\nvoid clv__inner(void) {}\n")
        with open(versions, "w", encoding="utf-8") as file:
            file.write("CLEAVE_0_UNSTABLE { global: clv_*; local: *; };\n")
        subprocess.run(["gcc", "-shared", "-fPIC", source, f"-Wl,--version-script={versions}", "-o", library], check=True)
        for says in ("lacks clv_plan_make(), which include/cleave/plan.h declares", "exports 'clv_unknown', but no public header declares it",
                     "exports 'clv__inner', but public names begin", "'clv_plan_destroy' has version 'CLEAVE_0_UNSTABLE'"):
            expect(f"a wrong library: {says}", [], says, "--library", library)


def test_types():
    session, types, backend = "include/cleave/session.h", "include/cleave/types.h", "include/cleave/plugin/backend.h"
    broken, grown = "The core interface is not compatible", "compatible additions"
    last = "  double time_limit_s; /* a longer run"
    expect("types: no change", [], None, "--types")
    expect("a parameter's type", [("include/cleave/devices.h", "const char *clv_devices_name(const clv_devices *devices, uint32_t index)",
                                   "const char *clv_devices_name(const clv_devices *devices, uint64_t index)")], broken, "--types")
    expect("a result's type", [(session, "CLV_API bool clv_run_is_done(", "CLV_API int clv_run_is_done(")], broken, "--types")
    expect("a member in the middle", [(session, last, "  uint64_t more;\n" + last)], broken, "--types")
    expect("a member at the end of options", [(session, "} clv_run_options;", "  uint64_t more;\n} clv_run_options;")], grown, "--types")
    expect("a member at the end, and another type", [(session, "} clv_run_options;", "  uint64_t more;\n} clv_run_options;"),
                                                     (session, last, "  uint64_t time_limit_s; /* a longer run")], broken, "--types")
    expect("a member at the end of a tensor", [(types, "  void *data;\n} clv_tensor;", "  void *data;\n  uint64_t more;\n} clv_tensor;")], broken, "--types")
    expect("a renumbered status", [(types, "CLV_IO_ERROR = 6,", "CLV_IO_ERROR = 60,")], broken, "--types")
    expect("a new status", [(types, "CLV_TIMED_OUT = 11 ", "CLV_TIMED_OUT = 11, CLV_MORE = 12 ")], grown, "--types")
    expect("a removed slot of backends", [(backend, "  uint64_t (*size_bytes)(clv_device *device, const clv_captured *captured);\n", "")], broken, "--types")
    expect("a slot inside the table of backends", [(backend, "  const char *version; /* part", "  void (*more)(void);\n  const char *version; /* part")], broken, "--types")
    expect("a new function", [("cmake/exports.map", "clv_plan_destroy;", "clv_plan_destroy;\n    clv_plan_more;"),
                              ("include/cleave/plan.h", "CLV_API void clv_plan_destroy(", "CLV_API void clv_plan_more(clv_plan *p);\nCLV_API void clv_plan_destroy(")],
           "does not record clv_plan_more()", "--types")
    expect("a recorded function", [("cmake/exports.map", "clv_plan_destroy;", "clv_plan_destroy;\n    clv_plan_more;"),
                                   ("include/cleave/plan.h", "CLV_API void clv_plan_destroy(", "CLV_API void clv_plan_more(clv_plan *p);\nCLV_API void clv_plan_destroy(")],
           None, "--write")
    expect("a removed function, recorded", [("cmake/exports.map", "    clv_plan_destroy;\n", ""), ("include/cleave/plan.h", "CLV_API void clv_plan_destroy(", "void clv__gone(")],
           broken, "--write")


test_symbols()
test_library()
if "--types" in sys.argv[1:]:
    if shutil.which("abidiff"):
        test_types()
    else:
        print("abidiff is not installed (Debian package abigail-tools): the changes of types are not tested")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
