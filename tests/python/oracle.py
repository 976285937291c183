"""Oracles, tolerances, functions that run the command, and counts of results, shared by the Python tests.

There are two oracles: ONNX Runtime, with and without optimisations, and the reference evaluator of the onnx package. If several
of these three ways can run a graph but no two results agree, or if none can run it, NoOracle is raised, and the graph is not
used as a test.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time

import ml_dtypes
import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))

BUILD = os.environ.get("CLEAVE_BUILD", os.path.join(ROOT, "build"))
COMMAND = os.environ.get("CLEAVE_COMMAND", os.path.join(BUILD, "cleave"))
DATA = os.environ.get("CLEAVE_DATA", os.path.join(ROOT, "..", "shared", "data"))
# The folder for outputs: one in memory, because writing to a disk is slow, or None (the default folder for temporary files) if
# there is little space, as in containers.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2**30 else None

# Largest allowed difference, relative to the largest magnitude of the expected tensor. Tensors of other dtypes must be equal.
TOLERANCE = {"float32": 1e-4, "float64": 1e-10, "float16": 5e-3, "bfloat16": 4e-2}
# Replaces that magnitude if it is smaller: intermediate values are usually near 1, so the errors of a small result are not
# small in proportion to the result.
SMALLEST_MAGNITUDE = 0.05


def float_dtypes(graph):
    """Returns the names of the float dtypes of a graph's inputs, weights and casts."""
    found = [info.type.tensor_type.elem_type for info in graph.input] + [tensor.data_type for tensor in graph.initializer]
    names = set()
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to":
                found.append(attribute.i)
            if attribute.HasField("t"):
                found.append(attribute.t.data_type)
            if attribute.HasField("g"):
                names |= float_dtypes(attribute.g)
    names |= {str(onnx.helper.tensor_dtype_to_np_dtype(dtype)) for dtype in found}
    return names & set(TOLERANCE)


def tolerance_of(model):
    """Returns the tolerance of the least precise float dtype in the model, because an f64 output that is computed from f16 values
    has only the precision of f16."""
    return max((TOLERANCE[name] for name in float_dtypes(model.graph)), default=TOLERANCE["float32"])


def compare(expected, actual, tolerance=None):
    """Returns None if the tensors agree, otherwise a description of the worst or first wrong element. `tolerance` replaces
    the dtype's tolerance if it is larger."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if actual.dtype.kind == "V" and actual.dtype.itemsize == 2 and expected.dtype == ml_dtypes.bfloat16:
        actual = actual.view(ml_dtypes.bfloat16)  # npy files have no bf16, so it is read as raw 2-byte elements
    if expected.dtype != actual.dtype:
        return f"the dtype is {actual.dtype}, expected {expected.dtype}"
    if expected.shape != actual.shape:
        return f"the shape is {list(actual.shape)}, expected {list(expected.shape)}"
    if expected.size == 0:
        return None
    own = TOLERANCE.get(str(expected.dtype))
    tolerance = own if tolerance is None or own is None else max(own, tolerance)
    if tolerance is None:
        wrong = np.argwhere((expected != actual) & ~((expected != expected) & (actual != actual)))  # two NaNs are equal
        if len(wrong) == 0:
            return None
        at = tuple(wrong[0])
        return f"{len(wrong)} of {expected.size} elements differ, first at {list(map(int, at))}: {actual[at]}, expected {expected[at]}"
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(e)
    largest = max(np.abs(e[finite]).max(initial=0.0), SMALLEST_MAGNITUDE)
    with np.errstate(invalid="ignore"):
        difference = np.where(finite, np.abs(e - a), np.where((e == a) | (np.isnan(e) & np.isnan(a)), 0.0, np.inf))
    difference = np.where(np.isnan(difference), np.inf, difference)
    worst = np.unravel_index(np.argmax(difference), difference.shape)
    if difference[worst] <= tolerance * largest:
        return None
    return (f"element {list(map(int, worst))} is {a[worst]:.7g}, expected {e[worst]:.7g}: "
            f"the difference is {difference[worst] / largest:.3g} of the largest magnitude {largest:.4g}, {tolerance:g} is allowed")


# --- oracles

def without_names(model):
    """Removes all node names if one is repeated, because ONNX Runtime rejects repeated names. Names do not affect results."""
    def names(graph):
        for node in graph.node:
            yield node.name
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from names(attribute.g)

    def strip(graph):
        for node in graph.node:
            node.name = ""
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    strip(attribute.g)
    given = [name for name in names(model.graph) if name]
    if len(given) == len(set(given)):
        return model
    model = copy.deepcopy(model)
    strip(model.graph)
    return model


def run_onnxruntime(model, inputs, optimize=True, threads=1):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
    data = without_names(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def isolated(functions):
    """Calls the functions in a child process and returns their results. The result of a call that failed is its exception. A
    child is needed because ONNX Runtime aborts when it optimises some valid graphs. After an abort, another child calls
    the remaining functions."""
    results = []
    while len(results) < len(functions):
        given, status = in_child(functions[len(results):])
        results += given
        if len(results) < len(functions):
            results.append(RuntimeError(f"the process died (wait status {status})"))
    return results


def in_child(functions):
    """Returns (the results until the child ended, its wait status)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            sys.stdout.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(writer, "wb") as pipe:
                for function in functions:
                    try:
                        result = function()
                    except Exception as error:
                        result = RuntimeError(str(error))
                    pickle.dump(result, pipe)
                    pipe.flush()
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    results = []
    with os.fdopen(reader, "rb") as pipe:
        while len(results) < len(functions):
            try:
                results.append(pickle.load(pipe))
            except (EOFError, pickle.UnpicklingError):
                break
    return results, os.waitpid(child, 0)[1]


def run_reference(model, inputs):
    from onnx.reference import ReferenceEvaluator
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(without_names(model)).run(None, inputs)


def first_difference(expected, actual, tolerance=None):
    for index, (e, a) in enumerate(zip(expected, actual)):
        if reason := compare(e, a, tolerance):
            return f"output {index}: {reason}"
    return None


class NoOracle(Exception):
    """No oracle can run the graph, or the oracles disagree."""


def raised(result):
    if isinstance(result, Exception):
        raise result
    return result


def expected_outputs(model, inputs, optimised):
    """Returns (outputs, name of the oracle). If several oracles can run the graph and no two of them agree, or if none can,
    raises NoOracle. `optimised`: the result of run_onnxruntime() with optimisations, or its exception, from isolated()."""
    runs, errors, tolerance = [], [], tolerance_of(model)
    oracles = [("onnxruntime", lambda: raised(optimised)),
               ("onnxruntime, not optimised", lambda: run_onnxruntime(model, inputs, optimize=False)),
               ("onnx reference", lambda: run_reference(model, inputs))]
    for name, run in oracles:
        try:
            runs.append((name, [np.asarray(output) for output in run()]))
        except Exception as error:  # after any exception, this oracle cannot be used for the graph
            errors.append(f"{name}: {str(error).splitlines()[0][:300] if str(error) else type(error).__name__}")
            continue
        for other, outputs in runs[:-1]:
            if first_difference(outputs, runs[-1][1], tolerance) is None:
                return outputs, other
    if len(runs) == 1:
        return runs[0][1], runs[0][0]  # only one oracle can run it (only the reference evaluator supports bf16)
    if runs:
        reason = first_difference(runs[0][1], runs[1][1], tolerance)
        raise NoOracle(f"{runs[0][0]} and {runs[1][0]} disagree: {reason}")
    raise NoOracle("; ".join(errors))


# --- the command

class CleaveError(Exception):
    pass


def environment(threads=1):
    """Returns the environment of the command. It fixes the number of threads, because without AVX-512 the result of a product
    depends on that number, and some tests compare results bit for bit. Threads that wait sleep, because other tests use the same
    processors."""
    return dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")


def finished(*arguments, timeout=120, threads=1):
    """Runs the command and returns the completed process. Raises a CleaveError if the command crashes or takes longer than
    `timeout` seconds."""
    command = [COMMAND, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, env=environment(threads))
    except subprocess.TimeoutExpired:
        raise CleaveError(f"timeout after {timeout} s: {' '.join(command)}") from None
    if done.returncode < 0:
        raise CleaveError(f"the command was killed by signal {-done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    return done


def last_line(done):
    return (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]


def cleave(*arguments, timeout=120, check=True, threads=1):
    """Runs the command and returns its standard output. A crash, or a failure unless `check` is False, raises a CleaveError
    with the last line of the output."""
    done = finished(*arguments, timeout=timeout, threads=threads)
    if check and done.returncode != 0:
        raise CleaveError(f"exit status {done.returncode}: {last_line(done)}")
    return done.stdout


def output_file_name(value_name):
    return value_name.replace("/", "_") + ".npy"


def save_inputs(folder, inputs):
    """Writes the inputs as .npy files and returns the --input arguments."""
    arguments = []
    for index, (name, value) in enumerate(inputs.items()):
        path = os.path.join(folder, f"input_{index}.npy")
        np.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    return arguments


def cleave_run(model_path, input_arguments, output_names, *options, timeout=120, threads=1):
    """Runs a model with the command and returns its outputs, in order."""
    with tempfile.TemporaryDirectory(prefix="cleave-", dir=MEMORY) as folder:
        cleave("run", model_path, *input_arguments, "--output-dir", folder, "-q", *options, timeout=timeout, threads=threads)
        outputs = []
        for name in output_names:
            path = os.path.join(folder, output_file_name(name))
            if not os.path.exists(path):
                raise CleaveError(f"output '{name}' was not written")
            outputs.append(np.load(path))
        return outputs


def cleave_test(directories, *options, timeout=600, threads=1):
    """Runs ONNX test directories. Returns [{name, status, reason}], in order."""
    done = finished("test", *directories, "--json", *options, timeout=timeout, threads=threads)
    try:
        cases = json.loads(done.stdout)["cases"]
    except (ValueError, KeyError) as error:
        raise CleaveError(f"the output of cleave test is not the expected JSON ({error}): {done.stdout[:200]!r}") from None
    if len(cases) != len(directories):
        raise CleaveError(f"cleave test reported {len(cases)} cases, but {len(directories)} directories were given")
    right = 1 if any(case["status"] in ("FAIL", "ERROR") for case in cases) else 0
    if done.returncode != right:  # for instance because a sanitizer reported an error
        raise CleaveError(f"exit status {done.returncode}, expected {right}, after {len(cases)} cases: {last_line(done)}")
    return cases


def missing_device(devices):
    """Returns None if all devices in the list are available, otherwise the reason why not."""
    try:
        cleave("devices", "--devices", devices)
    except CleaveError as error:
        return str(error)
    return None


def plan_nodes(model_path, *options):
    """Plans the model. Returns a list with {name, op, device, cause} of each node."""
    return json.loads(cleave("plan", model_path, "--json", *options))["nodes"]


def random_pins(nodes, rng, devices=("npu", "cpu"), can_run=lambda node, device: True):
    """Returns the lines of a file of pins, PATTERN=DEVICE, which places the nodes at random. Some placements change the device at
    nearly every node, others rarely. A node is not pinned if no pattern names it alone, or if can_run(node, device) is false."""
    stay = rng.choice([0.0, 0.5, 0.9])
    device, lines = rng.choice(devices), []
    for node in nodes:
        if rng.random() >= stay:
            device = rng.choice(devices)
        # "?", which matches any character, replaces those that have a meaning in a pattern or in the file
        pattern = "".join("?" if c in "*?#=" or c.isspace() else c for c in node["name"])
        if pattern.strip("?") and can_run(node, device):  # '?' alone would contradict the pins of other nodes
            lines.append(f"{pattern}={device}")
    return lines


# --- counting

class Tally:
    """Counts results and prints failures immediately. The last line is 'N passed, N failed, N skipped'."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.started = time.monotonic()

    def add(self, name, reason):
        """Counts a result: passed if `reason` is None, otherwise failed."""
        if reason is None:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {name}: {reason}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"SKIP {name}: {reason}", flush=True)

    def finish(self):
        """Prints the last line and returns the exit status."""
        print(f"in {time.monotonic() - self.started:.0f} s", flush=True)
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed or not self.passed + self.skipped else 0


processes = os.cpu_count() or 1  # how many processes a script runs at the same time; run.py sets it to 1


def each(function, items):
    """Calls function(item) for every item, in several threads. Yields (item, result or exception), in order."""
    def guarded(item):
        try:
            return function(item)
        except Exception as error:
            return error
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        yield from zip(items, pool.map(guarded, items))


def asked_seeds(description, count):
    """Reads the command line of a test over seeded models, and returns the range of seeds."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    return range(arguments.first, arguments.first + arguments.count)


def each_seed(description, tally, name, count, check):
    """Calls check(seed, folder) for the seeds on the command line. Yields its results, and counts its exceptions as failures."""
    folder = build_folder(name)
    for seed, found in each(lambda seed: check(seed, folder), asked_seeds(description, count)):
        if isinstance(found, Exception):
            tally.add(f"seed {seed}", f"{type(found).__name__}: {found}")
        else:
            yield seed, found


def save_case(folder, name, model, inputs):
    """Writes the model and its inputs. Returns the model's path and the --input arguments."""
    path, own = os.path.join(folder, f"{name}.onnx"), os.path.join(folder, str(name))
    onnx.save(model, path)
    os.makedirs(own, exist_ok=True)
    return path, save_inputs(own, inputs)


def build_folder(name):
    """Returns a folder for the files that a test generates. It is kept, so that failures can be investigated."""
    folder = os.path.join(BUILD, "generated", name)
    os.makedirs(folder, exist_ok=True)
    return folder
