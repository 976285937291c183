"""Runs many cases, whose outputs are compared with those of an oracle, in one process of `cleave test`.

The cases are written as ONNX test directories. `cleave test` allows an error of atol + rtol * |expected| per element, but
oracle.compare allows a share of the tensor's largest magnitude. A batch gives `cleave test` such small rtol and atol that a case
that passes also satisfies oracle.compare. A case that fails is run again alone, and oracle.compare decides. If its outputs are
wrong only when it runs together with other cases, it counts as a failure.
"""
import os

import numpy as np
import onnx

import oracle
import test_directories  # from tools/, which oracle adds to the path

LARGEST_BATCH = 24
CPU = ("--devices", "cpu")


def strictest(expected, tolerance=None):
    """Returns (rtol, atol) such that all results that `cleave test` accepts with them also satisfy oracle.compare(...,
    tolerance). Each is half of the error that oracle.compare allows, because `cleave test` allows the sum of both."""
    shares, allowed = [], []
    for array in map(np.asarray, expected):
        own = oracle.TOLERANCE.get(str(array.dtype))
        if own is None and array.dtype.kind in "biu":
            continue  # `cleave test` and oracle.compare accept only equal values of these dtypes
        if own is None:
            return 0.0, 0.0
        shares.append(own if tolerance is None else max(own, tolerance))
        magnitudes = np.abs(array.astype(np.float64))
        allowed.append(shares[-1] * max(magnitudes[np.isfinite(magnitudes)].max(initial=0.0), oracle.SMALLEST_MAGNITUDE))
    return (min(shares) / 2, min(allowed) / 2) if shares else (0.0, 0.0)


class Case:
    """A test directory and how to run it: `bounds` (rtol and atol for `cleave test`), options of the command, number of
    threads, a file of pins or None, and `judge` (see Batch.add). The pinned nodes must have names that no other case has."""

    def __init__(self, label, directory, bounds, options, pins, threads, judge):
        self.label, self.directory, self.bounds = label, directory, bounds
        self.options, self.pins, self.threads, self.judge = tuple(map(str, options)), pins, threads, judge

    def own(self):
        return ["--pins", self.pins] if self.pins else []

    def reason_alone(self):
        """Runs the case alone. Returns None, or what is wrong."""
        path, data = os.path.join(self.directory, "model.onnx"), os.path.join(self.directory, "test_data_set_0")
        graph = onnx.load(path).graph
        files = test_directories.numbered_files(data, "input")
        inputs = [text for value, file in zip(graph.input, files) for text in ("--input", f"{value.name}={file}")]
        names = [value.name for value in graph.output]
        actual = oracle.cleave_run(path, inputs, names, *self.options, *self.own(), threads=self.threads)
        reasons = ((name, self.judge(e, a)) for name, e, a in zip(names, test_directories.read_tensors(data, "output"), actual))
        return next((f"output '{name}': {reason}" for name, reason in reasons if reason), None)


class Batch:
    def __init__(self):
        self.cases, self.alone = [], 0

    def write(self, directory, model, inputs, expected):
        """Writes a test directory. `inputs` must be in the order of the graph's inputs. Inputs with a default value may be left
        out at the end."""
        test_directories.write(directory, model, [(list(inputs.values()), expected)])

    def add(self, label, directory, expected, options=CPU, pins=None, threads=1, tolerance=None, judge=None):
        """Adds a directory to run. judge(expected, actual) returns None if an output is right, otherwise what is wrong (default:
        oracle.compare)."""
        judge = judge or (lambda e, a: oracle.compare(e, a, tolerance))
        self.cases.append(Case(label, directory, strictest(expected, tolerance), options, pins, threads, judge))

    def parts(self):
        """Yields lists of cases. Those of a list run in one process: they have equal options and threads, and similar
        tolerances."""
        groups = {}
        for case in self.cases:
            groups.setdefault((case.options, case.threads, case.bounds[0]), []).append(case)
        for group in groups.values():
            group.sort(key=lambda case: case.bounds[1])
            for start in range(0, len(group), LARGEST_BATCH):
                yield group[start:start + LARGEST_BATCH]

    def run(self):
        """Runs all cases. Yields (label, None or what is wrong) for each."""
        for part, found in oracle.each(self.tested, list(self.parts())):
            if isinstance(found, Exception):
                raise found
            yield from zip((case.label for case in part), found)

    def tested(self, part):
        """Runs the cases of a part. Returns a list: None or what is wrong for each case. If the process crashes, only the case
        that crashes it fails."""
        options = (*part[0].options, "--rtol", part[0].bounds[0], "--atol", min(case.bounds[1] for case in part))
        try:
            pins = [option for case in part for option in case.own()]
            results = oracle.cleave_test([case.directory for case in part], *options, *pins, threads=part[0].threads)
        except oracle.CleaveError as error:
            if len(part) == 1:
                return [str(error)]
            return self.tested(part[:len(part) // 2]) + self.tested(part[len(part) // 2:])
        return [self.verdict(case, result, options) for case, result in zip(part, results)]

    def verdict(self, case, result, options):
        if result["status"] == "PASS":
            return None
        reason = f"{result['status']}: {result.get('reason')}"
        if result["status"] != "FAIL":
            return reason
        self.alone += 1
        try:
            if oracle.cleave_test([case.directory], *options, *case.own(), threads=case.threads)[0]["status"] == "PASS":
                return f"fails only together with other cases: {reason}"
            return case.reason_alone()
        except oracle.CleaveError as error:
            return str(error)

    def tally(self, tally):
        """Runs all cases and counts them."""
        for label, reason in self.run():
            tally.add(label, reason)
        print(f"{len(self.cases)} cases, {self.alone} of which failed in their batch and were run again alone", flush=True)


def run_seeds(description, name, count, make):
    """Runs a test over seeded models: make(seed, directory, batch) writes a model to the directory and adds its cases. Returns
    the exit status."""
    tally, batch, folder = oracle.Tally(), Batch(), oracle.build_folder(name)
    for seed in oracle.asked_seeds(description, count):
        try:
            make(seed, os.path.join(folder, str(seed)), batch)
        except Exception as error:
            tally.add(str(seed), f"{type(error).__name__}: {error}")
    batch.tally(tally)
    return tally.finish()


def add_ways(batch, seed, directory, model, inputs, ways):
    """Adds a case for each (threads, options) in `ways`, which runs the model on the CPU and compares it with ONNX Runtime."""
    expected = oracle.run_onnxruntime(model, inputs, optimize=False)
    batch.write(directory, model, inputs, expected)
    for threads, options in ways:
        batch.add(f"{seed} {threads} {' '.join(options)}", directory, expected, (*CPU, *options), threads=threads)
