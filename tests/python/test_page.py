"""Tests the page that `cleave plan --html` writes, in a real browser.

    python tests/python/test_page.py [--keep FOLDER]        skipped if no Chromium is installed; CLEAVE_BROWSER can name one

The page must have no errors and load no other files. Nodes can be clicked and searched for, and are then explained. The
timeline must have its lanes, and fit the window. Names with HTML in them must be shown as text. Thousands of nodes fold into groups,
and must not slow the page down. The SVG of --svg must follow the viewer's preference for dark colours.
"""
import argparse
import json
import os
import random
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
SLOWEST_OPEN_MS = 4000
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


def random_model(count, seed):
    """Makes a graph without repetition: most nodes read values of their neighbours, some any earlier value."""
    choose, nodes, values = random.Random(seed), [], ["input"]
    for number in range(count):
        operator = choose.choice(["Add", "Mul", "Max", "Sub", "Relu", "Neg", "Sigmoid", "Tanh", "Abs"])
        inputs = [values[-1 - min(int(choose.expovariate(0.15)), len(values) - 1)] if choose.random() < 0.93 else choose.choice(values)
                  for _ in range(2 if operator in ("Add", "Mul", "Max", "Sub") else 1)]
        nodes.append(helper.make_node(operator, inputs, [f"v{number}"], name=f"{operator.lower()}_{number}"))
        values.append(f"v{number}")
    read = {value for node in nodes for value in node.input}
    info = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [4, 64]) for value in ["input"] + [v for v in values[1:] if v not in read]]
    return helper.make_model(helper.make_graph(nodes, "random", info[:1], info[1:]), ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


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
        self.tally.add(f"{self.name}: {what}", None if right else str(detail) or "it is not so")

    def same(self, what, actual, expected):
        self.check(what, actual == expected, f"found {actual!r}, expected {expected!r}")

    def finish(self):
        self.page.screenshot(os.path.join(self.folder, f"{self.name}.png"))
        self.same("errors and warnings of the page", self.page.complaints(), [])
        addresses = [address for address in self.page.addresses() if not address.startswith("data:")]
        self.same("addresses loaded", [os.path.basename(address) for address in addresses], [f"{self.name}.html"])
        self.page.close()


def check_view(case):
    """Checks that on every screen size the first picture is large enough to read, that all lanes of the partitions are in view, and that
    the page does not overflow."""
    for width, height in SCREENS:
        page = case.browser.open(case.address, (width, height))
        form, zoom = page.evaluate("""(() => {
            const svg = document.querySelector('.picture svg');
            return [document.querySelector('[data-form][aria-pressed=true]').dataset.form, svg.getBoundingClientRect().width / svg.viewBox.baseVal.width];
        })()""")
        case.check(f"{width} pixels: the first picture is readable", zoom >= 0.49, f"{form} {zoom}")
        if form == "layers":
            page.click("[data-form=partitions]")
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
    case.same("focused element after /", page.evaluate("document.activeElement.id"), "search")
    page.write(node["name"])
    found = page.evaluate("[...document.querySelectorAll('.results li')].map(item => item.firstChild.textContent)")
    case.check("search finds the node", node["name"] in found, f"the first results are {found[:5]}")
    page.press("Enter", 13)
    case.check("Enter explains the first result", page.evaluate("document.querySelector('.details h2').textContent") == (found or [""])[0])
    page.press("Escape", 27)
    case.same("the results are hidden after Escape", page.evaluate("document.querySelector('.results').hidden"), True)


def check_timeline(case):
    page, plan = case.page, case.plan
    spaces = {space for transfer in plan["transfers"] for space in (transfer["from"], transfer["to"])} - {"cpu", "host"}
    case.same("number of lanes in the timeline", page.count(".timeline-lane"), 2 + len(spaces))
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


def check_timeline_fits(case):
    """Checks that no text of the timeline is cut off, that texts do not overlap, and that the timeline follows the size of the window."""
    page, first = case.page, case.page.evaluate("innerWidth")

    def resized(width):  # waits until the page was drawn with this width
        page.evaluate(f"""new Promise(done => {{
            const look = () => innerWidth === {width} ? requestAnimationFrame(() => setTimeout(done, 50)) : setTimeout(look, 10);
            look();
        }})""")

    for width in (420, 700, 1280):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        resized(width)
        chart, room, texts = page.evaluate("""(() => {
            const box = element => { const {left, right, top} = element.getBoundingClientRect(); return [left, right, Math.round(top), element.textContent]; };
            const chart = document.querySelector('.timeline svg'), [left, right] = box(chart);
            return [[left, right], document.querySelector('.timeline').clientWidth, [...chart.querySelectorAll('text')].map(box)];
        })()""")
        case.check(f"{width} pixels: the timeline fits its box", abs(chart[1] - chart[0] - room) <= 1, f"{chart} {room}")
        cut = [text for text in texts if text[0] < chart[0] or text[1] > chart[1]]
        case.check(f"{width} pixels: no text of the timeline is cut off", not cut, f"{cut}")
        texts.sort(key=lambda text: (text[2], text[0]))
        over = [(a, b) for a, b in zip(texts, texts[1:]) if a[2] == b[2] and a[1] > b[0]]
        case.check(f"{width} pixels: texts of the timeline do not overlap", not over, f"{over}")
        case.check(f"{width} pixels: names of the lanes are whole", {"npu", "cpu"} <= {text[3] for text in texts}, f"{texts}")
    page.call("Emulation.clearDeviceMetricsOverride")
    resized(first)


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
    check_timeline_fits(case)
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
    page.click("[data-form=layers]")
    for by in (0, 1):
        page.click(f"[data-by='{by}']")
        page.click("#unfold")
        case.same(f"nodes in the layers, folding {by}", page.count(".picture [data-n]"), len(HOSTILE))
        page.click("#fold")
        if page.count(".picture [data-g]") > 0:
            page.click(".picture [data-g]")
            case.check("a group with a hostile name is explained", "unfold" in page.text(".details").lower())
    names = page.evaluate("JSON.parse(document.getElementById('plan').textContent).nodes.map(node => node[0])")
    plain = [(a, b) for a, b in zip(names, HOSTILE) if "\u202e" not in b]
    case.same("names are unchanged", [a for a, _ in plain], [b for _, b in plain])
    case.same("title after all clicks", page.evaluate("document.title"), "hostile.onnx on npu and cpu")
    case.same("HTML elements created by names", page.count("img, b"), 0)
    case.finish()


def large(tally, browser, folder):
    """Checks the page of a large model: its layers fold, its partitions are boxes without nodes, and it reacts quickly."""
    case = Case(tally, browser, folder, "large", large_model(MANY_NODES), "--strategy", "contiguous", "--force", "Add=cpu")
    check_view(case)
    page = case.page
    case.same("number of nodes in the plan", len(case.plan["nodes"]), MANY_NODES)
    page.click("[data-form=partitions]")
    case.same("no single nodes in the picture", page.count(".picture [data-n]"), 0)
    case.check("boxes in the picture", page.count(".picture [data-p]") > 100)
    check_times(case, (("a click on a box", "() => document.querySelector(\".picture [data-p='3']\").dispatchEvent(new MouseEvent('click', {bubbles: true}))"),
                       ("a search", SEARCH % "relu"), ("a narrower search", SEARCH % "layers.150/add"),
                       ("a result", "() => document.querySelector('.results li').click()"),
                       ("the next node", "() => [...document.querySelectorAll('.details .link')].pop().click()"),
                       ("the other schedule", "() => document.querySelector('[data-schedule=overlapped]').click()")))
    check_search(case, node_of(case, "layers.204/tanh_5"))
    check_timeline(case)
    check_folding(case)
    case.finish()


SEARCH = "(() => { const s = document.getElementById('search'); s.value = '%s'; s.dispatchEvent(new Event('input')); })"


def check_times(case, actions):
    """Measures the time from each action until the page is laid out and painted again. The best of three times counts."""
    case.page.evaluate("""window.timed = action => new Promise(done => {
        const begin = performance.now();
        action();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
    })""")
    for what, action in actions:
        elapsed = min(case.page.evaluate(f"timed({action})") for _ in range(3))
        case.check(f"{what} takes at most {SLOWEST_CLICK_MS} ms", elapsed <= SLOWEST_CLICK_MS, f"but it takes {elapsed:.0f} ms")


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
    page.evaluate("document.querySelector('.picture [data-g]').focus()")
    page.press(" ", 32)
    case.same("groups unfolded by the space key", page.count(".picture .frame"), 1)
    case.check("the focus stays on the group", page.evaluate("document.activeElement.matches('.picture .head')"))
    page.press(" ", 32)
    case.same("groups after the space key was pressed again", page.count(".picture [data-g]"), folded)
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
    case.check("the nodes of the partition are shown", nodes and nodes <= {case.plan["nodes"][n]["name"] for n in shown}, f"{nodes} {shown}")
    first = min(shown, default=0)
    page.click(f".picture [data-n='{first}']")
    check_explained(case, case.plan["nodes"][first], "a click in one partition")


def tangled(tally, browser, folder):
    """Checks the page of a large random graph, which has neither scopes nor repeated blocks."""
    case = Case(tally, browser, folder, "tangled", random_model(3000, 1), "--strategy", "contiguous", "--pin", "*_1???=cpu")
    page = case.page
    opened = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    case.check(f"the page opens within {SLOWEST_OPEN_MS} ms", opened <= SLOWEST_OPEN_MS, f"but it takes {opened:.0f} ms")
    case.check("at first the picture has the groups of the layers", page.count(".picture [data-g]") >= len(case.plan["partitions"]))
    click = "document.querySelector('.picture .grip').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    check_times(case, (("folding or unfolding a group", f"() => {click}"), ("folding all", "() => document.querySelector('#fold').click()"),
                       ("unfolding all", "() => document.querySelector('#unfold').click()"),
                       ("the other groups", "() => document.querySelector('[data-by=\"0\"]').click()")))
    page.click("#unfold")
    drawn = page.count(".picture svg *")
    case.check("of the unfolded picture, only what is in view is drawn", drawn < 6000, f"{drawn} elements")
    check_times(case, (("panning", "() => { document.querySelector('.picture').scrollTop += 900; }"),
                       ("zooming", "() => document.querySelector('#closer').click()"), ("a search", SEARCH % "tanh_2"),
                       ("a result", "() => document.querySelector('.results li').click()")))
    for name in ("relu_17", "max_1500", "add_2999"):
        nodes = [node for node in case.plan["nodes"] if node["name"] == name] or [case.plan["nodes"][int(name.split("_")[1])]]
        page.evaluate("document.querySelector('#fold').click()")
        check_search(case, nodes[0])
        check_explained(case, nodes[0], f"a search for {nodes[0]['name']}")
        case.same("the node is marked", page.count(f".picture .chosen[data-n='{case.plan['nodes'].index(nodes[0])}']"), 1)
    check_timeline_fits(case)
    case.finish()


def empty(tally, browser, folder):
    """Checks the page of a model whose only node is computed when planning: the layers are empty."""
    tensors = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [2])]
    graph = helper.make_graph([helper.make_node("Neg", ["weight"], ["out"], name="node")], "empty", [], tensors,
                              [helper.make_tensor("weight", TensorProto.FLOAT, [2], [1, 2])])
    case = Case(tally, browser, folder, "empty", helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]))
    case.page.click("[data-form=layers]")
    for button in ("#unfold", "#fold", "#fit", "#closer"):
        case.page.click(button)
    case.same("boxes in the layers", case.page.count(".picture [data-g], .picture [data-n]"), 0)
    check_search(case, case.plan["nodes"][0])
    check_explained(case, case.plan["nodes"][0], "a search")
    case.finish()


def drawing(tally, browser, folder):
    """Checks that the SVG of --svg has the viewer's preferred colours."""
    path = os.path.join(folder, "drawing.svg")
    oracle.cleave("plan", os.path.join(folder, "branchy.onnx"), "--svg", path, *DEVICES)
    page, seen = browser.open("file://" + path), []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(page.evaluate("['.paper', '.title', '.lane', '.box'].map(name => getComputedStyle(document.querySelector(name)).fill)"))
        page.screenshot(os.path.join(folder, f"drawing-{scheme}.png"))
    tally.add("drawing: light and dark differ in all colours", None if all(a != b for a, b in zip(*seen)) else f"{seen}")
    page.close()


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
        for run in (small, hostile, large, tangled, empty, drawing):
            try:
                with browsers.Browser(temporary) as browser:
                    run(tally, browser, folder)
            except (browsers.BrowserError, oracle.CleaveError) as error:
                tally.add(run.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
