"""`make test`: runs the stages of the tests in order, each with a time budget; the last line is 'N passed, N failed'.

    python3 tools/run_tests.py [--sweeps | --all] [STAGE...]

Without options, it runs the essential tests. --sweeps: instead the additional stages of continuous integration (`make sweeps`);
--all: both of these, and the long tests (`make test-all`). STAGE: only stages whose name contains this text.

Needs only Python. A stage that takes longer than its budget is reported. A stage that takes three times its budget is killed, and
counts as failed.
"""
import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = ".venv/bin/python"
NO_CACHE = {"CLEAVE_CACHE_DIR": ""}  # tests that need a cache set their own
# The folders of ONNX Runtime's and OpenVINO's libraries in the tests' Python environment. The shell expands the pattern when a
# stage starts.
ONNXRUNTIME = "CLEAVE_ONNXRUNTIME=$(echo .venv/lib/python3*/site-packages/onnxruntime/capi)"
OPENVINO = "CLEAVE_OPENVINO=$(echo .venv/lib/python3*/site-packages/openvino/libs)"
# gcc 12's leak checker misreads the bounds of thread-local memory of some libraries that PoCL loads, and crashes.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:intercept_tls_get_addr=0",
              "UBSAN_OPTIONS": "print_stacktrace=1",
              # Without AMX: oneDNN 2.6 reads one element past an array when it generates an AMX convolution, which the
              # sanitizer reports.
              "DNNL_MAX_CPU_ISA": "AVX512_CORE_BF16",
              "LSAN_OPTIONS": f"print_suppressions=0:suppressions={ROOT}/tests/leaks.txt"}
# One OpenMP thread: libgomp is not instrumented, and its barriers look like races.
ONE_THREAD = {"TSAN_OPTIONS": "halt_on_error=1", "OMP_NUM_THREADS": "1"}


def cmake_build(preset, *options):
    folder = "build" if preset == "release" else f"build-{preset}"
    return f"cmake --preset {preset} -DCLEAVE_TESTS=ON {shlex.join(options)} >/dev/null && cmake --build {folder}"


def ctest(folder, *options):
    return f"ctest --test-dir {folder} --output-on-failure -j {os.cpu_count()} {shlex.join(options)}"


# A stage is (name, budget in seconds, command, environment). If a stage whose name begins with 'build' fails, the remaining
# stages are skipped. Under the sanitizers, tests with many random cases try fewer (test_some in tests/support/support.h). The
# builds with sanitizers contain the library's assertions, the release build does not. Each CMake preset selects the unit tests of
# its build (tests/CMakeLists.txt).

# `make test`: the essential tests, without drivers and frameworks that a user may not have.
NO_OPENCL = {"OCL_ICD_VENDORS": "/nonexistent"}  # hides installed OpenCL drivers, which SWEEPS tests
# Unit tests that `make test` does not run under the sanitizers: those of drivers and frameworks, and those of kernels, which it
# runs in the release build.
ELSEWHERE = "^(operators/|backends/(cpu|opencl|openvino|onnxruntime)/)"
STAGES = [
    ("build", 240, cmake_build("release"), {}),
    ("unit tests of kernels, as released", 120, ctest("build"), NO_OPENCL),
    ("build, address and undefined sanitizers", 300, cmake_build("asan"), {}),
    ("unit tests, address and undefined sanitizers", 300, ctest("build-asan", "-E", ELSEWHERE), {**SANITIZERS, **NO_OPENCL}),
    ("conformance", 60, "python3 tools/conformance.py cpu npu 'npu, every operator'", {}),
    ("against oracles", 150, f"{PYTHON} tests/python/run.py", NO_OPENCL),  # 17 scripts; "run.py quantised" runs one of them
    ("graphs compiled ahead of time", 40, f"{PYTHON} tests/python/test_compile.py --count 60", NO_OPENCL),
    ("GNNs", 60, f"{PYTHON} tests/python/test_gnn.py", NO_OPENCL),
    ("GNNs by plans", 60, f"{PYTHON} tests/python/test_gnn_plan.py", {}),
    ("commands of GNNs", 60, f"{PYTHON} tests/python/test_gnn_cli.py", {}),
    ("memory", 30, f"{PYTHON} tests/python/test_memory.py", {}),
    ("documents", 90, f"{PYTHON} tests/python/test_documents.py", NO_OPENCL),
    ("demo", 30, "make --no-print-directory demo", {}),
]

# `make sweeps`, which continuous integration runs after `make test`: lint, threads, drivers and frameworks, browsers, instruction counts.
SWEEPS = [
    ("build", 240, cmake_build("release", "-DCLEAVE_BENCH=ON", "-DCLEAVE_PYTHON=ON", f"-DPython_EXECUTABLE={ROOT}/{PYTHON}"), {}),
    ("lint", 120, "tools/lint", {}),
    ("binary interface", 30, "python3 tools/check_abi.py --types --library build/libcleave.so && python3 tests/python/test_abi.py --types", {}),
    ("man pages and completions", 120, f"{PYTHON} tests/python/test_manual.py", {}),
    ("execution, thread sanitizer", 300, f"{cmake_build('tsan')} && {ctest('build-tsan')}", ONE_THREAD),
    ("build, address and undefined sanitizers", 300, cmake_build("asan"), {}),
    ("unit tests of kernels, drivers and frameworks, sanitizers", 300, ctest("build-asan", "-R", ELSEWHERE), SANITIZERS),
    ("5,000 problems with budgets against brute force", 120, "build-asan/tests/cleave_tests place/test_properties",
     dict(SANITIZERS, CLEAVE_TEST_PERCENT="100", CMOCKA_TEST_FILTER="optimal_keeps_budgets")),
    ("conformance, OpenCL and frameworks", 100, "python3 tools/conformance.py opencl openvino onnxruntime torch", {}),
    ("benches run", 120, ctest("build", "-R", "^bench/"), {}),
    ("random graphs, OpenCL", 150, f"{PYTHON} tests/python/test_random_graphs.py --first 1000 --count 200 --placements 2", {}),
    ("operator tests of onnx, OpenCL", 150, f"{PYTHON} tests/python/test_node_cases.py --devices opencl", {}),
    ("operator tests of onnx, OpenCL and CPU", 40, f"{PYTHON} tests/python/test_node_cases.py --devices opencl,cpu", {}),
    ("operator tests of onnx, ONNX Runtime", 40, f"{ONNXRUNTIME} {PYTHON} tests/python/test_node_cases.py --devices onnxruntime:CPU", {}),
    ("operator tests of onnx, OpenVINO and CPU", 100, f"{OPENVINO} {PYTHON} tests/python/test_node_cases.py --devices openvino:CPU,cpu", {}),
    ("models in f16 and bf16, OpenVINO", 60, f"{OPENVINO} {PYTHON} tests/python/test_precision.py", {}),
    ("instructions of the runtime", 60, f"{PYTHON} tests/python/test_overhead.py", {}),
    ("instructions of larger graphs", 90, f"{PYTHON} tests/python/test_scaling.py", {}),
    ("pages in a browser", 60, f"{PYTHON} tests/python/test_page.py", {}),
    ("pages of models in a browser", 60, f"{PYTHON} tests/python/test_inspect_page.py", {}),
    ("pages of GNNs in a browser", 60, f"{PYTHON} tests/python/test_gnn_page.py", {}),
    ("documents, frameworks", 120, f"{OPENVINO} {ONNXRUNTIME} {PYTHON} tests/python/test_documents.py", {}),
    ("PyTorch models", 180, f"{OPENVINO} {PYTHON} tests/python/test_torch.py --quick", {}),
    ("torch.compile", 120, f"{PYTHON} tests/python/test_torch_compile.py", {}),
    ("light models", 100, f"{PYTHON} tests/python/test_light.py", {}),
    ("models, OpenCL", 200, f"{PYTHON} tests/python/test_opencl.py", {}),
    ("three starts with one cache", 90, f"{OPENVINO} {ONNXRUNTIME} {PYTHON} tests/python/test_starts.py", {}),
    ("interrupted commands", 90, f"{PYTHON} tests/python/test_interrupts.py", {}),
    ("Python package", 60, f"{PYTHON} tests/python/test_package.py", {}),
    ("files of the command", 120, f"{PYTHON} tests/python/test_files.py", {}),
    ("limits of memory and threads", 120, f"{PYTHON} tests/python/test_limits.py", {}),
    ("blocks of GNNs in other runtimes", 120, f"{PYTHON} tests/python/test_gnn_blocks.py", {}),
    ("execution provider for ONNX Runtime", 120, f"{PYTHON} tests/python/test_onnxruntime_ep.py", {}),
    ("failures of frameworks, OpenVINO", 60, f"{PYTHON} tests/python/test_openvino.py", {}),
    ("models, frameworks", 180, f"{PYTHON} tests/python/test_frameworks.py", {}),
    ("ONNX Runtime's API", 60, f"{PYTHON} tests/python/test_onnxruntime_api.py", {}),
    ("the suite of the package onnx for backends", 120, f"{PYTHON} tests/python/test_onnx_backend.py", {}),
]

# `make test-all` runs the stages of both lists above, and these.
LONGER = [
    ("unit tests, every case, address and undefined sanitizers", 900, ctest("build-asan"), dict(SANITIZERS, CLEAVE_TEST_PERCENT="100")),
    ("random graphs, more", 900, f"{PYTHON} tests/python/test_random_graphs.py --first 100000 --count 3000 --placements 6", {}),
    ("random graphs, address and undefined sanitizers", 900,
     f"{PYTHON} tests/python/test_random_graphs.py --count 300 --placements 2",
     dict(SANITIZERS, CLEAVE_COMMAND="build-asan/cleave")),
    ("operator tests, address and undefined sanitizers", 600, f"{PYTHON} tests/python/test_node_cases.py",
     dict(SANITIZERS, CLEAVE_COMMAND="build-asan/cleave")),
    ("conformance, all of it", 900, "python3 tools/conformance.py --every 1", {}),
    ("GNN plans, every one", 400, "build-asan/tests/cleave_tests gnn/test_exact", dict(SANITIZERS, CLEAVE_TEST_ALL="1")),
    ("GNNs, more", 300, f"{PYTHON} tests/python/test_gnn.py --all", {}),
    ("blocks of GNNs in other runtimes, every one", 400, f"{PYTHON} tests/python/test_gnn_blocks.py --all", {}),
    ("Python package, as a wheel", 600, "tools/wheel --try", {}),
    ("other people's packages on the drop-in for ONNX Runtime", 300, f"{PYTHON} tests/python/test_packages.py", {}),
    ("Python package, 10,000 sessions", 300, f"{PYTHON} tests/python/test_package.py --all", {}),
    ("limits of memory and threads, every one", 900, f"{PYTHON} tests/python/test_limits.py --full", {}),
    ("generated models, full size", 900, f"{PYTHON} tests/python/test_models.py --full", {}),
    ("PyTorch models, more", 600, f"{PYTHON} tests/python/test_torch.py --all", {}),
    ("torch.compile, every model", 900, f"{PYTHON} tests/python/test_torch_compile.py --all", {}),
    ("models, OpenCL, in every way", 1200, f"{PYTHON} tests/python/test_opencl.py --all", {}),
    ("fuzzing", 600, "cmake --preset fuzz >/dev/null && cmake --build --preset fuzz && build-fuzz/fuzz/make_corpus build-fuzz/seeds && "
     "for target in onnx irjson safetensors tensor npy npz plan profile npu_spec npubin opencl cache gnn_graph gnn_model gnn_tables gnn_plan; do mkdir -p build-fuzz/seeds/$target; build-fuzz/fuzz/fuzz_$target -max_total_time=40 -max_len=8192 -rss_limit_mb=2000 -print_final_stats=0 "
     "build-fuzz/seeds/$target fuzz/corpus/$target; done", {}),
    ("bench", 1800, f"{PYTHON} bench/bench.py --check", {}),
]

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed")
NINJA = re.compile(r"^\[(\d+)/(\d+)\] ")  # a progress line of Ninja: about 20 of them are shown
CTEST = re.compile(r"tests passed, (\d+) tests failed out of (\d+)")


def run_stage(name, budget, command, environment):
    """Runs a stage and prints its output as it arrives. Returns (number of passed tests, number of failed tests, seconds)."""
    print(f"== {name} (budget {budget} s)", flush=True)
    start, passed, failed, counted = time.monotonic(), 0, 0, False
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env=dict(os.environ, **NO_CACHE, **environment), text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    stop = threading.Timer(3 * budget, os.killpg, (process.pid, signal.SIGKILL))
    stop.start()
    for line in process.stdout:
        step = NINJA.match(line)
        if not step or int(step.group(1)) * 20 % int(step.group(2)) < 20:
            print(line, end="", flush=True)
        if match := COUNTS.match(line):
            passed, failed, counted = int(match.group(1)), int(match.group(2)), True
        elif match := CTEST.search(line):
            failed, counted = int(match.group(1)), True
            passed = int(match.group(2)) - failed
    process.wait()
    stop.cancel()
    seconds = time.monotonic() - start
    if process.returncode == -signal.SIGKILL:
        print(f"killed after {seconds:.0f} s, three times the budget", flush=True)
    if process.returncode != 0 and failed == 0:
        failed = 1  # the stage failed, but printed no number of failures
    if process.returncode == 0 and not counted:
        passed = 1
    over = ", OVER BUDGET" if seconds > budget else ""
    print(f"-- {name}: {passed} passed, {failed} failed, {seconds:.0f} s{over}", flush=True)
    return passed, failed, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sweeps", action="store_true")
    arguments = parser.parse_args()
    stages = STAGES + SWEEPS + LONGER if arguments.all else SWEEPS if arguments.sweeps else STAGES
    if arguments.stages:
        stages = [stage for stage in stages if any(name in stage[0] for name in arguments.stages)]
    results = []
    for stage in stages:
        results.append((stage[0], stage[1], *run_stage(*stage)))
        if stage[0].startswith("build") and results[-1][3]:
            print("the build failed: the remaining stages are skipped")
            break
    print("\nstage                                               passed  failed   seconds  budget")
    for name, budget, passed, failed, seconds in results:
        print(f"{name:50} {passed:7} {failed:7} {seconds:9.0f} {budget:7}")
    failed = sum(result[3] for result in results)
    print(f"{sum(result[2] for result in results)} passed, {failed} failed", flush=True)
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
