"""Tests the pages that `cleave gnn plan --html` and `cleave gnn run --html` write, in a real browser.

    python tests/python/test_gnn_page.py [--keep FOLDER]        skipped if no Chromium is installed; CLEAVE_BROWSER can name one

The pages must have no errors and load no other files. The timeline must show every task of the plan and of the run, and work
with mouse and keyboard. The tables must agree with the JSON output. Light, dark and narrow layouts must work. Names with HTML
in them must be shown as text.
"""
import argparse
import json
import os
import shutil
import sys

import browser as browsers
import gnn_made
import oracle

HOSTILE = "<script><b>title'\".json"
WIDTHS = (1280, 400)


class Case:
    """A page, and the JSON output of the command that wrote it."""

    def __init__(self, tally, browser, folder, name, *arguments):
        self.tally, self.name, self.folder = tally, name, folder
        path = os.path.join(folder, f"{name}.html")
        self.said = json.loads(oracle.cleave("gnn", *arguments, "--html", path, "--json"))
        self.page = browser.open("file://" + path)

    def check(self, what, right, detail=""):
        self.tally.add(f"{self.name}: {what}", None if right else str(detail) or "it is not so")

    def same(self, what, actual, expected):
        self.check(what, actual == expected, f"found {actual!r}, expected {expected!r}")

    def resize(self, width):
        self.page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def finish(self):
        self.same("errors and warnings of the page", self.page.complaints(), [])
        self.same("addresses loaded", [os.path.basename(address) for address in self.page.addresses()], [f"{self.name}.html"])
        self.page.close()


def labels(page, kind):
    return page.evaluate(f"[...document.querySelectorAll(\".task[data-kind='{kind}']\")].map(task => task.getAttribute('aria-label'))")


def check_timeline(case, has_run):
    page, tasks = case.page, sum(block["tasks"] for block in case.said["blocks"])
    case.same("number of predicted tasks in the timeline", len(labels(page, "predicted")), tasks)
    case.same("number of measured tasks in the timeline", len(labels(page, "measured")), tasks if has_run else 0)
    # [(name of a row, [beginning and end of each task, in pixels])]
    ends = page.evaluate("""(() => {
        const rows = {};
        for (const task of document.querySelectorAll('.task')) {
            const box = task.querySelector('.span').getBBox(), name = task.dataset.kind + box.y;
            (rows[name] = rows[name] || []).push([box.x, box.x + box.width]);
        }
        return Object.entries(rows).map(([name, spans]) => [name, spans.sort((a, b) => a[0] - b[0])]);
    })()""")
    case.same("number of rows in the timeline", len(ends), len(case.said["per_k"][0]["devices"]) * (2 if has_run else 1))
    case.check("tasks of a row follow each other", all(a[1] <= b[0] + 1.5 for _, spans in ends for a, b in zip(spans, spans[1:])), f"{ends}")
    data = page.evaluate("(() => { const plan = JSON.parse(document.getElementById('plan').textContent); "
                         "return [plan.predicted / 1e6, Math.max(...plan.spans.map(span => span[8])) / 1e6]; })()")
    if has_run:
        done = page.evaluate("(() => { const plan = JSON.parse(document.getElementById('plan').textContent); "
                             "return Math.max(...plan.spans.map(span => span[15])) / 1e6; })()")
        case.check("the last measured task ends within the measured time", 0 < done <= case.said["measured_ms"] + 1e-5, f"{done} {case.said['measured_ms']}")
    case.check("predictions end with the makespan", all(abs(value - case.said["makespan_ms"]) <= 1e-3 * value for value in data), f"{data}")


def check_mouse(case, has_run):
    page = case.page
    page.click(".task[data-kind='predicted']")
    case.check("a click explains the task", page.text(".details h2").startswith("Layer 0, subgraph"), page.text(".details h2"))
    case.same("number of marks of the task", page.count(".task.chosen"), 2 if has_run else 1)
    terms = page.evaluate("[...document.querySelectorAll('.details dt')].map(term => term.textContent)")
    case.check("predicted time, rows and edges are shown", {"predicted", "rows computed", "rows read", "edges"} <= set(terms), f"{terms}")
    case.same("measured times are shown", "measured" in terms and "measured / predicted" in terms, has_run)
    cut = page.evaluate("(timeline => timeline.scrollWidth - timeline.clientWidth)(document.querySelector('.timeline'))")
    case.same("the whole time is in view at first", cut, 0)
    wide = page.evaluate("document.querySelector('.timeline svg').getBoundingClientRect().width")
    page.click("#closer")
    case.check("zooming in widens the timeline", page.evaluate("document.querySelector('.timeline svg').getBoundingClientRect().width") > 1.8 * wide)
    page.click("#fit")
    case.same("width of the timeline after #fit", page.evaluate("document.querySelector('.timeline svg').getBoundingClientRect().width"), wide)


def focused(page):
    return page.evaluate("[document.activeElement.dataset.span ?? null, document.activeElement.dataset.kind ?? null]")


def check_keyboard(case, has_run):
    page = case.page
    page.evaluate("(document.activeElement.blur(), document.querySelector('#closer').focus())")
    page.press("Tab", 9)
    first = focused(page)
    case.check("Tab leads into the timeline", first[1] == "predicted", f"{first}")
    page.press("ArrowRight", 39)
    second = focused(page)
    case.check("→ leads along the row", second != first and second[1] == "predicted", f"{second}")
    case.check("→ explains the task", page.evaluate(f"document.querySelector('.task.chosen').dataset.span === '{second[0]}'"))
    page.press("ArrowDown", 40)
    third = focused(page)
    case.check("↓ leads to the row below", third == [second[0], "measured"] if has_run else third[0] != second[0], f"{third}")
    page.press("ArrowUp", 38)
    case.same("↑ leads back", focused(page)[1], "predicted")
    page.press("+", 187)
    case.check("+ keeps the task", focused(page)[0] is not None)
    page.press("0", 48)
    page.press("Tab", 9)
    case.same("focus after Tab leaves the timeline", page.evaluate("document.activeElement.closest('.wide')?.getAttribute('aria-label') ?? null"), "table of every k")


def check_tables(case, has_run):
    page, said = case.page, case.said
    rows = page.evaluate("[...document.querySelectorAll('.per-k tbody tr')].map(row => row.cells[0].innerText)")
    case.same("rows of the table of every k", rows, [str(item["k"]) for item in said["per_k"]])
    case.same("k of the marked row", page.evaluate("document.querySelector('.per-k tr.this td').innerText"), str(said["k"]))
    chosen = next(item for item in said["per_k"] if item["k"] == said["k"])
    text = page.text(".per-k tr.this").replace(",", "")
    missing = [value for value in (f"×{chosen['gain']:.2f}", str(chosen["halo_rows"]), str(chosen["padding_rows"]), str(chosen["switches"])) if value
               not in text]
    missing += [device["device"] for device in chosen["devices"] if f"{100 * device['busy_ms'] / chosen['makespan_ms']:.0f} %" not in text]
    case.check("the row of the chosen k has its gain, halo, padding, switches and loads", not missing, f"{missing} missing in {text}")
    bars = page.evaluate("[...document.querySelectorAll('.per-k tr.this .bar-fill')].map(bar => [bar.getBoundingClientRect().width / "
                         "bar.parentElement.getBoundingClientRect().width, getComputedStyle(bar).backgroundColor])")
    case.check("loads are drawn", all(abs(bar[0] - device["busy_ms"] / chosen["makespan_ms"]) < 0.02 and "0, 0, 0, 0" not in bar[1]
                                      for bar, device in zip(bars, chosen["devices"])) and len(bars) == len(chosen["devices"]), f"{bars}")
    blocks = page.evaluate("[...document.querySelectorAll('.blocks tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
    case.same("devices and numbers of tasks in the table of blocks", [[row[2], row[4]] for row in blocks], [[block["device"], str(block["tasks"])] for block in said["blocks"]])
    if has_run:
        ratios = [f"×{block['measured_ms'] / block['predicted_ms']:.2f}" for block in said["blocks"]]
        case.same("ratios of measured to predicted times", [row[7] for row in blocks], ratios)


def check_looks(case):
    page, seen = case.page, []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, "
                                  "getComputedStyle(document.querySelector('.task .span')).fill]"))
        for width in WIDTHS:
            case.resize(width)
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            case.check(f"{scheme}, {width} pixels: no overflow", overflow <= 0, f"{overflow} pixels")
            svg, room = page.evaluate("[document.querySelector('.timeline svg').getBoundingClientRect().width, "
                                      "document.querySelector('.timeline').clientWidth]")
            case.check(f"{scheme}, {width} pixels: the timeline fills its place", room - 6 <= svg <= max(room, 200), f"{svg} of {room}")
            page.screenshot(os.path.join(case.folder, f"{case.name}-{scheme}-{width}.png"))
    case.check("light and dark differ in all colours", all(a != b for a, b in zip(*seen)), f"{seen}")
    page.call("Emulation.setEmulatedMedia", features=[])
    case.resize(WIDTHS[0])


def check_page(tally, browser, folder, name, has_run, *arguments):
    case = Case(tally, browser, folder, name, *arguments)
    case.resize(WIDTHS[0])
    check_timeline(case, has_run)
    check_mouse(case, has_run)
    check_keyboard(case, has_run)
    check_tables(case, has_run)
    check_looks(case)
    case.finish()


def check_hostile(tally, browser, folder, made, costs):
    """Checks that a file name with HTML in it is shown as text."""
    model = os.path.join(os.path.dirname(made["model"]), HOSTILE)  # the model must be in the folder of its weights
    shutil.copy(made["model"], model)
    case = Case(tally, browser, folder, "hostile", "plan", "--model", model, "--graph", made["graph"], *costs)
    title = case.page.evaluate("document.querySelector('h1').textContent")
    case.check("the name is unchanged", HOSTILE in title, title)
    case.same("HTML elements created by names", case.page.count("b"), 0)
    case.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="FOLDER", help="keep pages and screenshots in this folder")
    arguments = parser.parse_args()
    tally, folder = oracle.Tally(), oracle.build_folder("gnn_page")
    if browsers.find() is None:
        tally.skip("pages", f"no browser: none of {', '.join(browsers.NAMES)} is installed, and CLEAVE_BROWSER names none")
        return tally.finish()
    made, pages = gnn_made.make(folder), os.path.abspath(arguments.keep or folder)
    os.makedirs(pages, exist_ok=True)
    asked, plan = ("--model", made["model"], "--graph", made["graph"], *gnn_made.DEVICES, "--cache-dir", ""), os.path.join(folder, "plan.json")
    costs = (*gnn_made.KSET, *gnn_made.DEVICES, "--cache-dir", "", "--profile", made["costs"])
    try:
        with browsers.Browser(folder) as browser:
            check_page(tally, browser, pages, "plan", False, "plan", "--model", made["model"], "--graph", made["graph"], *costs, "-o", plan)
            check_page(tally, browser, pages, "run", True, "run", *asked, "--plan", plan)
            check_hostile(tally, browser, pages, made, costs)
    except (browsers.BrowserError, oracle.CleaveError) as error:
        tally.add("pages", str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
