"""Tests the page that `cleave plan --html` writes, in a real browser.

    python tests/python/test_page.py [--keep FOLDER]        skipped if no Chromium is installed; CLEAVE_BROWSER can name one

The page must have no errors and load no other files. Nodes can be clicked and searched for, and are then explained. The
timeline must have its lanes. Names with HTML in them must be shown as text. Thousands of nodes must not slow the page down.
"""
import argparse
import json
import os
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

import browser as browsers
import oracle
import models  # from tools/, which oracle adds to the path

DEVICES = ["--devices", "npu,cpu", "--npu-spec", "all"]
HOSTILE = ["</script><script>document.title='broken'</script>", "<img src=x onerror=\"document.title='broken'\">", "a\"b'c`d&amp;e",
           "]]>--><!--", "${document.title='broken'}", "línea\u2028nueva \u202e ¿?", "\\u003c/script>", "__proto__"]
SCREENS = [(1280, 800), (420, 900)]
SLOWEST_CLICK_MS = 400  # enough for a busy machine; usually a click takes a tenth of this
MANY_NODES = 2060


def hostile_model():
    """Makes a chain whose nodes and values have the names in HOSTILE."""
    names, nodes, last = HOSTILE, [], "input <b>"
    for number, name in enumerate(names):
        nodes.append(helper.make_node("Relu" if number % 2 else "Neg", [last], [name], name=name))
        last = name
    graph = helper.make_graph(nodes, "hostile </title>", [helper.make_tensor_value_info("input <b>", TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, [2, 3])])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def large_model(count):
    """Makes blocks of ten nodes, each with a skip connection around it."""
    nodes, last, shape = [], "input", [4, 64]
    for block in range(count // 10):
        begin = last
        for step, operator in enumerate(("Neg", "Abs", "Relu", "Sigmoid", "Neg", "Tanh", "Relu", "Abs", "Neg")):
            value = f"block{block}.{step}"
            nodes.append(helper.make_node(operator, [last], [value], name=f"layers.{block}/{operator.lower()}_{step}"))
            last = value
        nodes.append(helper.make_node("Add", [last, begin], [f"block{block}"], name=f"layers.{block}/add"))
        last = f"block{block}"
    graph = helper.make_graph(nodes, "large", [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


class Case:
    """A model, its plan as JSON, and its page."""

    def __init__(self, tally, browser, folder, name, model, *options):
        self.tally, self.name, self.folder = tally, name, folder
        path, page = os.path.join(folder, f"{name}.onnx"), os.path.join(folder, f"{name}.html")
        onnx.save(model, path)
        self.plan = json.loads(oracle.cleave("plan", path, "--json", "--html", page, *DEVICES, *options))
        self.browser, self.address = browser, "file://" + page
        self.page = browser.open(self.address)

    def check(self, what, right, detail=""):
        self.tally.add(f"{self.name}: {what}", None if right else f"{what} {detail}".strip())

    def same(self, what, actual, expected):
        self.check(what, actual == expected, f"is {actual!r}, expected {expected!r}")

    def finish(self):
        self.page.screenshot(os.path.join(self.folder, f"{self.name}.png"))
        self.same("complaints", self.page.complaints(), [])
        addresses = [address for address in self.page.addresses() if not address.startswith("data:")]
        self.same("addresses loaded", [os.path.basename(address) for address in addresses], [f"{self.name}.html"])
        self.page.close()


def check_view(case):
    """Checks that on every screen size all lanes are in view at first, and that the page does not overflow."""
    for width, height in SCREENS:
        page = case.browser.open(case.address, (width, height))
        lanes, inside = page.evaluate("""(() => {
            const view = document.querySelector('.picture').getBoundingClientRect();
            const lanes = [...document.querySelectorAll('.picture .lane')].map(lane => lane.getBoundingClientRect());
            return [lanes.length, lanes.filter(box => box.left >= view.left - 1 && box.right <= view.right + 1 && box.top < view.bottom).length];
        })()""")
        case.check(f"{width} pixels: all lanes are in view", lanes >= 2 and inside == lanes, f"{inside} of {lanes}")
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        case.check(f"{width} pixels: no overflow", over <= 0, f"{over} pixels")
        page.screenshot(os.path.join(case.folder, f"{case.name}-{width}.png"))
        case.check(f"{width} pixels: no errors or warnings", page.complaints() == [], f"{page.complaints()}")
        page.close()


def check_explained(case, node, title):
    """Checks that the side panel explains this node of the plan."""
    case.same(f"name after {title}", case.page.evaluate("document.querySelector('.details h2').textContent"), node["name"])
    case.same(f"cause after {title}", case.page.text(".details .cause strong"), node["cause"])
    badge = case.page.text(".details .badge")
    case.same(f"device after {title}", badge, node["device"] if node["device"] is not None else "nowhere")


def check_search(case, node):
    page = case.page
    page.evaluate("document.activeElement.blur()")
    page.press("/")
    case.same("focus after /", page.evaluate("document.activeElement.id"), "search")
    page.write(node["name"])
    found = page.evaluate("[...document.querySelectorAll('.results li')].map(item => item.firstChild.textContent)")
    case.check("search finds the node", node["name"] in found, f"the first results are {found[:5]}")
    page.press("Enter", 13)
    case.check("Enter explains the first result", page.evaluate("document.querySelector('.details h2').textContent") == (found or [""])[0])
    page.press("Escape", 27)
    case.same("results after Escape", page.evaluate("document.querySelector('.results').hidden"), True)


def check_timeline(case):
    page, plan = case.page, case.plan
    spaces = {space for transfer in plan["transfers"] for space in (transfer["from"], transfer["to"])} - {"cpu", "host"}
    case.same("lanes", page.count(".timeline-lane"), 2 + len(spaces))
    case.same("partitions in the timeline", page.count(".timeline .bar:not(.copy)"), len(plan["partitions"]))
    case.same("transfers in the timeline", page.count(".timeline .bar.copy"), len(plan["transfers"]))
    spans = {}
    for schedule, total in (("serial", "serial_ms"), ("overlapped", "overlapped_ms")):
        page.click(f"[data-schedule={schedule}]")
        # [beginning of the first bar, end of the last bar, sum of all widths], in pixels
        spans[schedule] = page.evaluate("""(() => {
            const bars = [...document.querySelectorAll('.timeline .bar')].map(bar => bar.getBBox());
            return [Math.min(...bars.map(box => box.x)), Math.max(...bars.map(box => box.x + box.width)),
                    bars.reduce((sum, box) => sum + box.width, 0)];
        })()""")
        case.same(f"{schedule} is pressed", page.evaluate(f"document.querySelector('[data-schedule={schedule}]').ariaPressed"), "true")
        case.check(f"{total} is positive", plan[total] > 0)
    begin, end, covered = spans["serial"]
    bars = len(plan["partitions"]) + len(plan["transfers"])
    case.check("serial schedule: bars follow each other", abs((end - begin) - covered) <= bars + 2, f"{spans['serial']}")


def check_keyboard(case):
    """Checks the keyboard: focus the picture, go to the next box, and choose it."""
    page = case.page
    page.evaluate("document.querySelector('.picture [tabindex=\"0\"]').focus()")
    first = page.evaluate("document.activeElement.dataset.n ?? document.activeElement.dataset.p")
    page.press("ArrowLeft", 37)
    second = page.evaluate("document.activeElement.dataset.n ?? document.activeElement.dataset.p")
    case.check("an arrow key moves the focus to another box", second is not None and second != first, f"{first} {second}")
    page.evaluate("document.querySelector('.details').replaceChildren()")
    page.press("Enter", 13)
    case.check("Enter explains the box", bool(page.text(".details h2")))


def check_colors(case):
    page, seen = case.page, []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, "
                                  "getComputedStyle(document.querySelector('.picture .box')).fill]"))
        page.screenshot(os.path.join(case.folder, f"{case.name}-{scheme}.png"))
    case.check("light and dark differ in all colours", all(a != b for a, b in zip(*seen)), f"{seen}")
    page.call("Emulation.setEmulatedMedia", features=[])


def node_of(case, name):
    return next(node for node in case.plan["nodes"] if node["name"] == name)


def small(tally, browser, folder):
    """Checks the page of a small model, whose picture can show every node."""
    model, _ = models.make("branchy", seed=0)
    case = Case(tally, browser, folder, "branchy", model, "--strategy", "contiguous", "--force", "Concat=cpu")
    check_view(case)
    page, nodes = case.page, [node for node in case.plan["nodes"] if node["device"] is not None]
    case.same("at first the picture shows no single nodes", page.count(".picture [data-n]"), 0)
    page.click("[data-form=nodes]")
    case.same("nodes in the picture", page.count(".picture [data-n]"), len(nodes))
    case.same("boxes in the picture", page.count(".picture [data-p]"), len(case.plan["partitions"]))
    for node in nodes[:: max(1, len(nodes) // 8)]:
        page.click(f".picture [data-n='{case.plan['nodes'].index(node)}']")
        check_explained(case, node, f"a click on {node['name']}")
        other = "cpu" if node["device"] == "npu" else "npu"
        row = page.evaluate(f"[...document.querySelectorAll('.elsewhere tr')].find(row => row.cells[0].innerText === '{other}')"
                            "?.innerText ?? ''")
        case.check(f"{node['name']}: the other device's verdict", "can" in row, row)
        case.check(f"{node['name']}: its values", len(node_values := page.evaluate(
            "[...document.querySelectorAll('.values code')].map(code => code.textContent)")) > 0 and all("[" in t for t in node_values))
    case.same("one box is marked", page.count(".picture .chosen"), 1)
    check_search(case, nodes[-1])
    check_timeline(case)
    check_keyboard(case)
    check_colors(case)
    case.check("the comparison has a row of this plan", page.count(".comparison tr.this") == 1)
    case.check("the comparison has a row for each single device", page.evaluate(
        "[...document.querySelectorAll('.comparison td:first-child')].filter(cell => cell.innerText.startsWith('all on ')).length") == 2)
    page.click("[data-form=partitions]")
    case.same("after 'partitions' the picture shows no single nodes", page.count(".picture [data-n]"), 0)
    page.click(".picture [data-p='1']")
    case.same("a partition is explained", page.text(".details h2"), "Partition 1")
    page.click(".timeline [data-t]")
    case.check("a transfer is explained", page.text(".details h2").startswith("Transfer of "))
    case.finish()


def hostile(tally, browser, folder):
    case = Case(tally, browser, folder, "hostile", hostile_model(), "--strategy", "contiguous", "--force", "Relu=cpu")
    check_view(case)
    page = case.page
    case.same("title", page.evaluate("document.title"), "hostile.onnx on npu and cpu")
    for index, node in enumerate(case.plan["nodes"]):
        page.click(f".picture [data-n='{index}']")
        case.same(f"cause of hostile node {index}", page.text(".details .cause strong"), node["cause"])
    names = page.evaluate("JSON.parse(document.getElementById('plan').textContent).nodes.map(node => node[0])")
    plain = [(a, b) for a, b in zip(names, HOSTILE) if "\u202e" not in b]
    case.same("names are unchanged", [a for a, _ in plain], [b for _, b in plain])
    case.same("title after all clicks", page.evaluate("document.title"), "hostile.onnx on npu and cpu")
    case.same("HTML elements created by names", page.count("img, b"), 0)
    case.finish()


def large(tally, browser, folder):
    """Checks the page of a large model: it shows one box per partition, and reacts quickly."""
    case = Case(tally, browser, folder, "large", large_model(MANY_NODES), "--strategy", "contiguous", "--force", "Add=cpu")
    check_view(case)
    page = case.page
    case.same("nodes", len(case.plan["nodes"]), MANY_NODES)
    case.same("no single nodes in the picture", page.count(".picture [data-n]"), 0)
    case.check("boxes in the picture", page.count(".picture [data-p]") > 100)
    # Measures the time from an action until the page is laid out and painted again.
    page.evaluate("""window.timed = action => new Promise(done => {
        const begin = performance.now();
        action();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
    })""")
    search = "(() => { const s = document.getElementById('search'); s.value = '%s'; s.dispatchEvent(new Event('input')); })"
    for what, action in (("a click on a box", "() => document.querySelector(\".picture [data-p='3']\").dispatchEvent(new MouseEvent('click', {bubbles: true}))"),
                         ("a search", search % "relu"), ("a narrower search", search % "layers.150/add"),
                         ("a result", "() => document.querySelector('.results li').click()"),
                         ("the next node", "() => [...document.querySelectorAll('.details .link')].pop().click()"),
                         ("the other schedule", "() => document.querySelector('[data-schedule=overlapped]').click()")):
        elapsed = min(page.evaluate(f"timed({action})") for _ in range(3))
        case.check(f"{what} takes at most {SLOWEST_CLICK_MS} ms", elapsed <= SLOWEST_CLICK_MS, f"but it takes {elapsed:.0f} ms")
    check_search(case, node_of(case, "layers.204/tanh_5"))
    check_timeline(case)
    check_folding(case)
    case.finish()


def check_folding(case):
    """Checks that groups fold and unfold, and that a search unfolds the groups around the node that it finds."""
    page = case.page
    page.click("[data-form=layers]")
    page.click("[data-by='0']")
    page.click("#fold")
    folded = page.count(".picture [data-g]")
    case.check("there are few groups at first", 2 <= folded <= 48, f"{folded}")
    case.same("no single nodes while all groups are folded", page.count(".picture [data-n]"), 0)
    page.click(".picture [data-g] .sign")
    unfolded = page.count(".picture [data-g], .picture [data-n]")
    case.check("unfolding a group shows its content", unfolded > folded and page.count(".picture .frame") == 1, f"{folded} {unfolded}")
    page.click(".picture .head .sign")
    case.same("groups after it was folded again", page.count(".picture [data-g]"), folded)
    page.click(".picture [data-g]")
    case.check("a group is explained", "unfold" in page.text(".details").lower())
    case.same("the group is marked", page.count(".picture .chosen"), 1)
    node = node_of(case, "layers.120/sigmoid_3")
    check_search(case, node)
    index = case.plan["nodes"].index(node)
    case.same("the search unfolds to the node", page.count(f".picture .chosen[data-n='{index}']"), 1)
    inside = page.evaluate("""(() => {
        const view = document.querySelector('.picture').getBoundingClientRect(), box = document.querySelector('.picture .chosen').getBoundingClientRect();
        return box.left >= view.left && box.right <= view.right && box.top >= view.top && box.bottom <= view.bottom;
    })()""")
    case.check("the node is in view", inside)
    page.click("[data-form=partitions]")
    page.click(".picture [data-p='0']")
    page.evaluate("[...document.querySelectorAll('.details button')].find(button => button.innerText === 'Show its nodes').click()")
    nodes = set(case.plan["partitions"][0]["nodes"])
    shown = page.evaluate("[...document.querySelectorAll('.picture [data-n]')].map(element => Number(element.dataset.n))")
    case.check("nodes of one partition", nodes and nodes <= {case.plan["nodes"][n]["name"] for n in shown}, f"{nodes} {shown}")
    page.click(f".picture [data-n='{min(shown)}']")
    check_explained(case, case.plan["nodes"][min(shown)], "a click in one partition")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="FOLDER", help="keep pages and screenshots in this folder")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    if browsers.find() is None:
        tally.skip("pages", f"no browser: none of {', '.join(browsers.NAMES)} is installed, and CLEAVE_BROWSER names none")
        return tally.finish()
    with tempfile.TemporaryDirectory(prefix="cleave-page-") as temporary:
        folder = os.path.abspath(arguments.keep or temporary)
        os.makedirs(folder, exist_ok=True)
        for run in (small, hostile, large):
            try:
                with browsers.Browser(temporary) as browser:
                    run(tally, browser, folder)
            except (browsers.BrowserError, oracle.CleaveError) as error:
                tally.add(run.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
