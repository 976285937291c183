"""ONNX's own operator tests with `cleave test`, and the table of coverage in README.md that is generated from them.

    python tests/python/test_node_cases.py [PATTERN...]     --write-table: write the table into README.md

A test of supported operators and dtypes (supported.py) passes, or stands in exclusions.txt with a reason. The others pass or are
reported as unsupported; a wrong result, an error or a crash is a failure. Without patterns the table is compared with the README's.
"""
import argparse
import fnmatch
import json
import os
import sys

import oracle
import supported
import coverage  # of tools/, which oracle makes visible
import node_tests

OPTIONS = ["--devices", "cpu"]
CHUNK = 64


def read_exclusions():
    """{name: reason}"""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exclusions.txt")
    excluded = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, _, reason = line.partition(" ")
            if not reason.strip():
                raise SystemExit(f"{path}:{number}: '{name}' has no reason")
            excluded[name] = reason.strip()
    return excluded


def tolerances(case):
    """Options for what the onnx package says of a test; where it says what it says of all, the command's own, which go by dtype."""
    usual = (case["rtol"], case["atol"]) == (1e-3, 1e-7)
    return [] if usual else ["--rtol", case["rtol"], "--atol", case["atol"]]


def run(folder, cases):
    """{name: (status, reason)}; a crash costs its own test alone."""
    def tested(part):
        directories = [os.path.join(folder, case["name"]) for case in part]
        try:
            found = oracle.cleave_test(directories, *OPTIONS, *tolerances(part[0]), timeout=20 + 2 * len(part))
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
    arguments = parser.parse_args()
    folder = oracle.build_folder("node")
    cases = node_tests.write_all(folder)
    if arguments.patterns:
        cases = [case for case in cases if any(fnmatch.fnmatch(case["name"], pattern) for pattern in arguments.patterns)]
    excluded = read_exclusions()
    tally = oracle.Tally()
    results = run(folder, cases)
    unsupported = required = 0
    for case in cases:
        name, (status, reason) = case["name"], results[case["name"]]
        promised = set(case["operators"]) <= supported.OPERATORS and set(case["dtypes"]) <= supported.DTYPES
        required += promised
        case["status"] = status
        if name in excluded:
            if status == "PASS":
                tally.add(name, "passes, and stands in exclusions.txt")
            else:
                tally.skipped += 1
        elif status == "UNSUPPORTED" and not promised:
            unsupported += 1
        else:
            tally.add(name, None if status == "PASS" else f"{status}: {reason}")
    for name in sorted(set(excluded) - {case["name"] for case in cases}) if not arguments.patterns else []:
        tally.add(name, "stands in exclusions.txt, and is no test")
    print(f"{len(cases)} tests: {required} of supported operators and dtypes, {unsupported} not supported")
    if not arguments.patterns:
        with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
            json.dump(cases, file, indent=1)
        table = coverage.table(cases, supported.OPERATORS)
        if arguments.write_table:
            coverage.write(table)
        else:
            tally.add("README.md: coverage table", coverage.difference(table))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
