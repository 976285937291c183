"""Runs ONNX's own operator tests with `cleave test`, and generates a part of docs/operators.md and README.md from the results.

    python tests/python/test_node_cases.py [--write-table] [--devices LIST] [PATTERN...]

PATTERN: only tests whose name matches. --write-table: write the results for the devices into the documents. --devices: other
devices than the CPU (skipped if one is absent).

A test of supported operators and dtypes (supported.py) must pass, or be in exclusions.txt with a reason. Other tests must pass
or be reported as unsupported. A wrong result, an error or a crash is a failure. Without patterns, the text for the CPU is
compared with the documents; those for other devices depend on their drivers. Devices other than the CPU need not support a
node, but their results must be right. If such a device needs constant inputs, the test is run again with all inputs but the
first as initializers.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import shutil
import sys

import onnx

import oracle
import supported
import coverage  # from tools/, which oracle adds to the path
import node_tests
import test_directories

CHUNK = 64


def read_exclusions(devices):
    """Returns {name: reason} from exclusions.txt, and from exclusions_BACKEND.txt of the first device's backend if it exists."""
    folder = os.path.dirname(os.path.abspath(__file__))
    backend = devices.split(",")[0].split(":")[0]
    own = os.path.join(folder, f"exclusions_{backend}.txt")
    return read_exclusion_file(os.path.join(folder, "exclusions.txt")) | (read_exclusion_file(own) if os.path.exists(own) else {})


def read_exclusion_file(path):
    excluded = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, _, reason = line.partition(" ")
            if not reason.strip():
                raise SystemExit(f"{path}:{number}: a reason is missing after '{name}'")
            excluded[name] = reason.strip()
    return excluded


def written_cases(folder):
    """Writes the tests of the onnx package, and returns the list for cases.json. Does nothing if the same versions of the package
    and of this code have written them before, because it takes seconds."""
    digest = hashlib.sha256(onnx.__version__.encode())
    for module in (node_tests, test_directories):
        with open(module.__file__, "rb") as file:
            digest.update(file.read())
    path = os.path.join(folder, "written.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            written = json.load(file)
        if written["digest"] == digest.hexdigest():
            return written["cases"]
        os.remove(path)
    cases = node_tests.write_all(folder)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"digest": digest.hexdigest(), "cases": cases}, file)
    return cases


def tolerances(case):
    """Returns options for the tolerances that the onnx package gives for a test. There are none if these are the package's
    defaults: then the command's defaults are used, which depend on the dtype."""
    usual = (case["rtol"], case["atol"]) == (1e-3, 1e-7)
    return [] if usual else ["--rtol", case["rtol"], "--atol", case["atol"]]


def write_constants(folder, case, to):
    """Writes a copy of the test with all inputs but the first as initializers. For ConstantOfShape, the first input becomes
    one, too."""
    name = case["name"]
    source, target = os.path.join(folder, name), os.path.join(to, name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    data = os.path.join(target, "test_data_set_0")
    model = onnx.load(os.path.join(source, "model.onnx"))
    first = 0 if model.graph.node[0].op_type == "ConstantOfShape" else 1
    for number, value in list(enumerate(model.graph.input))[first:]:
        path = os.path.join(data, f"input_{number}.pb")
        tensor = onnx.load_tensor(path)
        tensor.name = value.name
        model.graph.initializer.append(tensor)
        os.remove(path)
    del model.graph.input[first:]
    onnx.save(model, os.path.join(target, "model.onnx"))


def run(folder, cases, devices):
    """Runs the tests and returns {name: (status, reason)}. If the process crashes, only the test that crashes it fails."""
    def tested(part):
        directories = [os.path.join(folder, case["name"]) for case in part]
        try:
            found = oracle.cleave_test(directories, "--devices", devices, *tolerances(part[0]), timeout=20 + 2 * len(part))
        except oracle.CleaveError as error:
            if len(part) == 1:
                return {part[0]["name"]: ("CRASH", str(error))}
            middle = len(part) // 2
            return tested(part[:middle]) | tested(part[middle:])
        return {case["name"]: (result["status"], result.get("reason") or "") for case, result in zip(part, found)}

    cases = sorted(cases, key=lambda case: (case["rtol"], case["atol"], case["name"]))
    parts, start = [], 0
    for end in range(1, len(cases) + 1):
        same = end < len(cases) and all(cases[end][key] == cases[start][key] for key in ("rtol", "atol"))
        if not same or end - start == CHUNK:
            parts.append(cases[start:end])
            start = end
    results = {}
    for part, found in oracle.each(tested, parts):
        if isinstance(found, Exception):
            raise found
        results |= found
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--write-table", action="store_true")
    parser.add_argument("--devices", default="cpu")
    arguments = parser.parse_args()
    only_cpu, has_cpu = arguments.devices == "cpu", "cpu" in arguments.devices.split(",")
    if (absent := oracle.missing_device(arguments.devices)) is not None:
        tally = oracle.Tally()
        tally.skip(arguments.devices, absent)
        return tally.finish()
    folder = oracle.build_folder("node")
    cases = written_cases(folder)
    if arguments.patterns:
        cases = [case for case in cases if any(fnmatch.fnmatch(case["name"], pattern) for pattern in arguments.patterns)]
    excluded = read_exclusions(arguments.devices)
    tally = oracle.Tally()
    results = run(folder, cases, arguments.devices)
    again = [case for case in cases if results[case["name"]][0] == "UNSUPPORTED" and "is not a constant" in results[case["name"]][1]]
    if not has_cpu and again:
        constants = oracle.build_folder("node_constants")
        for case in again:
            write_constants(folder, case, constants)
        results |= run(constants, again, arguments.devices)
        print(f"{len(again)} tests were run again with constant inputs")
    unsupported = required = 0
    for case in cases:
        name, (status, reason) = case["name"], results[case["name"]]
        promised = has_cpu and set(case["operators"]) <= supported.OPERATORS and set(case["dtypes"]) <= supported.DTYPES
        required += promised
        case["status"], case["reason"] = status, excluded.get(name, reason)
        if name in excluded:
            if status == "PASS" and only_cpu:
                tally.add(name, "the test passes, but it is listed in exclusions.txt as failing")
            else:
                tally.skipped += 1
        elif status == "UNSUPPORTED" and not promised:
            unsupported += 1
        else:
            tally.add(name, None if status == "PASS" else f"{status}: {reason}")
    for name in sorted(set(excluded) - {case["name"] for case in cases}) if only_cpu and not arguments.patterns else []:
        tally.add(name, "exclusions.txt lists this test, but it does not exist")
    print(f"{len(cases)} tests: {required} use only supported operators and dtypes, {unsupported} were reported as unsupported")
    if only_cpu and not arguments.patterns:
        with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
            json.dump(cases, file, indent=1)
        texts = coverage.of_cpu(cases)
        if arguments.write_table:
            coverage.write("cpu", texts)
        else:
            tally.add("the documents have the current text for the CPU", coverage.difference("cpu", texts))
    elif arguments.write_table and not arguments.patterns:
        coverage.write(arguments.devices, coverage.of_device(arguments.devices, cases))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
