"""Runs `cleave check-backend` on the backends of this repository; the last line is 'N passed, N failed'.

    python3 tools/conformance.py [--every N] [--write] [NAME...]

NAME is a device of the list below, such as cpu or openvino:CPU; default: all of them. --write also writes the report into
docs/conformance.md. Needs only Python and a built command. Frameworks that are not installed are reported and skipped.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.path.join(ROOT, os.environ.get("CLEAVE_COMMAND", "build/cleave"))
DOCUMENT = os.path.join(ROOT, "docs", "conformance.md")
BEGIN, END = "<!-- report: tools/conformance.py --write -->\n", "<!-- end of the report -->\n"

# (name in the report, arguments, every Nth operator case and random graph unless --every is given)
DEVICES = [
    ("cpu", ["cpu"], 1),
    ("npu", ["npu"], 1),
    ("npu, every operator", ["npu", "--npu-spec", "all"], 1),
    # Compiling for these is slow, so they get only a part of the cases.
    ("opencl", ["opencl"], 16),
    ("openvino", ["openvino:CPU"], 40),
    ("onnxruntime", ["onnxruntime:CPU"], 4),
    ("torch", ["torch"], 4),
]
REQUIRED = ("cpu", "npu", "opencl")  # if one of these cannot be checked, it counts as a failure
ENVIRONMENT = dict(os.environ, CLEAVE_CACHE_DIR="")
if os.path.isdir(os.path.join(ROOT, ".venv")):
    ENVIRONMENT.setdefault("VIRTUAL_ENV", os.path.join(ROOT, ".venv"))  # where frameworks are found


def check(arguments, every):
    """Returns (report, None), or (None, why there is no report)."""
    done = subprocess.run([COMMAND, "check-backend", *arguments, "--every", str(every), "--json"], capture_output=True, text=True,
                          errors="replace", env=ENVIRONMENT)
    try:
        return json.loads(done.stdout), None
    except ValueError:
        return None, done.stderr.strip() or f"exit status {done.returncode}"


def tell(name, report, seconds):
    print(f"{name}: {report['description']}: {report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped, {seconds:.1f} s")
    for section in report["sections"]:
        for failure in section["failures"]:
            print(f"  FAIL {section['name']}: {failure['what']}: {failure['text']}")
        more = section["failed"] - len(section["failures"])
        if more > 0:
            print(f"  FAIL {section['name']}: and {more} more")
    sys.stdout.flush()


def cell(section):
    text = str(section["passed"])
    if section["failed"]:
        text += f", **{section['failed']} failed**"
    if section["skipped"]:
        text += f" ({section['skipped']} skipped)"
    return text


def escape(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def skips_text(section, most):
    skips = sorted(section["skips"], key=lambda skip: (-skip["count"], skip["reason"]))
    lines = [f"  - {escape(skip['reason'])}" + (f" ({skip['count']})" if skip["count"] > 1 else "") for skip in skips[:most]]
    if len(skips) > most:
        lines.append(f"  - and {len(skips) - most} more reasons")
    return lines


def document(results):
    """The report as Markdown: counts per section, then the skipped checks with their reasons."""
    lines = ["| section | " + " | ".join(name for name, _ in results) + " |", "| --- |" + " --- |" * len(results)]
    for i, section in enumerate(results[0][1]["sections"]):
        lines.append(f"| {section['name']} | " + " | ".join(cell(report["sections"][i]) for _, report in results) + " |")
    lines.append("| all | " + " | ".join(cell(report) for _, report in results) + " |")
    for name, report in results:
        lines += ["", f"### Skipped: {name}", "", f"{escape(report['description'])}.", ""]
        for section in report["sections"]:
            if section["skips"]:
                lines.append(f"- **{section['name']}**")
                lines += skips_text(section, 12)
    return "\n".join(lines) + "\n"


def write(results):
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + document(results) + "\n" + END + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--every", type=int, metavar="N", help="run only every Nth operator case and random graph (1: all; default: set per device)")
    parser.add_argument("--write", action="store_true", help="write the report into docs/conformance.md")
    arguments = parser.parse_args()
    results, passed, failed = [], 0, 0
    for name, device, every in DEVICES:
        if arguments.names and device[0] not in arguments.names:
            continue
        start = time.monotonic()
        report, why = check(device, arguments.every or every)
        if report is None:
            print(f"{name}: not checked: {why}", flush=True)
            failed += device[0] in REQUIRED
            continue
        tell(name, report, time.monotonic() - start)
        passed += report["passed"]
        failed += report["failed"]
        results.append((name, report))
    if arguments.write and not failed:
        write(results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
