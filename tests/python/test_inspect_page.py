"""Tests the page that `cleave inspect --html` writes, in a real browser.

    python tests/python/test_inspect_page.py [--keep FOLDER]   skipped if no Chromium is installed; CLEAVE_BROWSER can name one

The page must have no errors and load no other files. It must agree with `cleave inspect --nodes --json` and with the model: its
operators, attributes, shapes, verdicts, and the statistics and first values of weights. Names with HTML in them must be shown as
text. Thousands of nodes must not slow the page down.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import browser as browsers
import oracle
import test_page
import models  # from tools/, which oracle adds to the path

SPEC = '{"operators": {"Conv": {}, "Relu": {}, "Add": {}, "Concat": {}, "Neg": {}, "Gather": {}}}'
SCREENS = [(1600, 1000), (420, 900)]
DESCRIBED = ["min", "max", "mean", "std"]


class Case:
    """A model, what `cleave inspect --json` says about it, and its page."""

    def __init__(self, tally, browser, folder, name, model, *options):
        self.tally, self.name, self.folder, self.model = tally, name, folder, model
        path, page, spec = (os.path.join(folder, f"{name}{end}") for end in (".onnx", ".html", ".spec.json"))
        onnx.save(model, path)
        with open(spec, "w", encoding="utf-8") as file:
            file.write(SPEC)
        self.info = json.loads(oracle.cleave("inspect", path, "--json", "--nodes", "--html", page, "--devices", "npu,cpu", "--npu-spec", spec, *options))
        self.size = os.path.getsize(page)
        self.browser, self.address = browser, "file://" + page
        self.page = browser.open(self.address, SCREENS[0])

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

    def find(self, name):
        """Searches for a node and chooses the first result."""
        self.page.evaluate(f"""(() => {{ const s = document.getElementById('search'); s.value = {json.dumps(name)};
            s.dispatchEvent(new Event('input')); document.querySelector('.results li').click(); }})()""")

    def pairs(self, title):
        """Returns the rows of the table, or the items of the list, under the heading `title` of the details."""
        return self.page.evaluate(f"""(() => {{
            const head = [...document.querySelectorAll('.details h3')].find(item => item.textContent.startsWith({json.dumps(title)}));
            if (!head) return [];
            const rows = head.nextElementSibling.rows;
            return rows ? [...rows].map(row => [...row.cells].map(cell => cell.innerText)) : [...head.nextElementSibling.children].map(item => item.innerText);
        }})()""")


def check_view(case):
    """Checks that on every screen size and in both colour schemes nothing overflows, and that nodes are in view at first."""
    for width, height in SCREENS:
        page, seen = case.browser.open(case.address, (width, height)), []
        for scheme in ("light", "dark"):
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            case.check(f"{width} pixels, {scheme}: no overflow", over <= 0, f"{over} pixels")
            seen.append(page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.picture .pill, .picture .chip')).stroke]"))
            page.screenshot(os.path.join(case.folder, f"{case.name}-{width}-{scheme}.png"))
        case.check(f"{width} pixels: light and dark differ", all(a != b for a, b in zip(*seen)), f"{seen}")
        inside = page.evaluate("""(() => {
            const view = document.querySelector('.picture').getBoundingClientRect();
            const boxes = [...document.querySelectorAll('.picture .node, .picture .value')].map(box => box.getBoundingClientRect());
            return boxes.filter(box => box.left < view.right && box.right > view.left && box.top < view.bottom && box.bottom > view.top).length;
        })()""")
        case.check(f"{width} pixels: something is in view", inside > 0)
        case.check(f"{width} pixels: no errors or warnings", page.complaints() == [], f"{page.complaints()}")
        page.close()


def check_node(case, node):
    """Checks that the details describe this node of `cleave inspect --json`."""
    page, name = case.page, node["name"]
    case.same(f"{name}: title", page.evaluate("document.querySelector('.details h2').textContent"), name)
    case.check(f"{name}: operator", page.text(".details p.soft").startswith(node["op"]), page.text(".details p.soft"))
    verdicts = page.evaluate("[...document.querySelectorAll('.details .verdicts tr')].map(row => [row.cells[0].innerText, row.cells[1].innerText])")
    expected = [] if node["folded"] else [[device, f"cannot: {node['refused_by'][device]}" if device in node["refused_by"] else "can run it"]
                                          for device in ("npu", "cpu")]
    case.same(f"{name}: verdicts", verdicts, expected)
    for title, values in (("Reads", node["inputs"]), ("Writes", node["outputs"])):
        shown = page.evaluate(f"""(() => {{
            const head = [...document.querySelectorAll('.details h3')].find(item => item.textContent === {json.dumps(title)});
            return head ? [...head.nextElementSibling.querySelectorAll(':scope > li')].map(item => [item.querySelector('.link').textContent, item.querySelector('code').textContent]) : [];
        }})()""")
        wanted = [[value["name"], type_of(value)] for value in values if value is not None]
        case.same(f"{name}: {title.lower()}", shown, wanted)


def type_of(value):
    if value["shape"] is None:
        return f"{value['dtype']}[…]"
    return f"{value['dtype']}[{','.join('?' if dim is None else str(dim) for dim in value['shape'])}]"


def check_weight(case, name, array):
    """Checks the statistics and the first values of an initializer, after its reader was chosen."""
    found = case.page.evaluate(f"""(() => {{
        const item = [...document.querySelectorAll('.details .values > li')].find(item => item.querySelector('.link').textContent === {json.dumps(name)});
        return [[...item.querySelectorAll('.weight dl > div')].map(pair => [pair.children[0].textContent, pair.children[1].textContent]), item.querySelector('.weight > code').textContent];
    }})()""")
    shown = dict(found[0])
    finite = array[np.isfinite(array)].astype(np.float64)
    for key, value in zip(DESCRIBED, (finite.min(), finite.max(), finite.mean(), finite.std())):
        case.check(f"{name}: {key}", abs(float(shown[key]) - value) <= 2e-5 * max(1e-3, abs(value)), f"is {shown[key]}, expected {value}")
    case.same(f"{name}: elements", shown["elements"], f"{array.size:,}")
    case.same(f"{name}: zeros", shown["zeros"], f"{np.count_nonzero(array == 0):,}")
    case.same(f"{name}: NaN", shown["NaN"], f"{np.count_nonzero(np.isnan(array)):,}")
    first = [float(text) for text in found[1].rstrip("…, ").split(", ")]
    case.check(f"{name}: first values", np.allclose(first, array.flatten()[:16], rtol=1e-5, equal_nan=True), found[1])


def small(tally, browser, folder):
    """Checks everything that is shown of a small convolutional network."""
    model, _ = models.make("branchy", seed=0)
    weights = {initializer.name: numpy_helper.to_array(initializer).copy() for initializer in model.graph.initializer}
    spoilt = next(name for name, array in weights.items() if array.dtype == np.float32 and array.size > 20)
    weights[spoilt].flat[1:4] = [np.nan, 0, np.nan]
    for initializer in model.graph.initializer:
        if initializer.name == spoilt:
            initializer.CopyFrom(numpy_helper.from_array(weights[spoilt], spoilt))
    case = Case(tally, browser, folder, "branchy", model)
    check_view(case)
    page, nodes = case.page, case.info["nodes"]
    drawn = {box["id"] for box in boxes(case)}
    case.same("every node has a box", sorted(drawn), list(range(len(nodes))))
    for index, node in enumerate(nodes):
        case.find(node["name"])
        check_node(case, node)
        case.same(f"{node['name']}: one box is marked", page.evaluate("[...document.querySelectorAll('.picture .chosen')].map(box => box.dataset.n)"), [str(index)])
        attributes = {attribute.name for attribute in model.graph.node[index].attribute}
        case.same(f"{node['name']}: attributes", {row[0] for row in case.pairs("Attributes")}, attributes)
        for value in node["inputs"]:
            if value["name"] in weights and weights[value["name"]].dtype == np.float32:
                check_weight(case, value["name"], weights[value["name"]])
    case.check("a node reads the weight with NaNs, so its statistics were checked", any(spoilt in [value["name"] for value in node["inputs"]] for node in nodes))
    conv = next(i for i, node in enumerate(nodes) if node["op"] == "Conv")
    case.find(nodes[conv]["name"])
    strides = helper.get_attribute_value(next(a for a in model.graph.node[conv].attribute if a.name == "strides"))
    case.same("the strides of the first Conv", dict(case.pairs("Attributes"))["strides"], f"[{', '.join(map(str, strides))}]")
    check_shapes_on_edges(case)
    check_keyboard(case)
    check_colors(case)
    rows = page.evaluate("[...document.querySelectorAll('#operators tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
    case.same("operators and their numbers of nodes in the table", {row[0]: int(row[1]) for row in rows}, {row["op"]: row["nodes"] for row in case.info["operators"]})
    case.finish()


def boxes(case):
    """Returns the boxes of all nodes, from the data of the page."""
    return case.page.evaluate("JSON.parse(document.getElementById('model').textContent).graphs[0].boxes.filter(box => box[0] === 0).map(box => ({id: box[1]}))")


def check_shapes_on_edges(case):
    """Checks that an edge of the picture has its value's shape, and that a click on it describes the value."""
    page = case.page
    value = page.evaluate("document.querySelector('.picture text.port').dataset.v")
    label = page.text(".picture text.port") or page.evaluate("document.querySelector('.picture text.port').textContent")
    page.click(".picture text.port")
    case.same("a click on a shape describes the value", page.text(".details code"), label)
    case.check("its edges are marked", page.count(".picture .edge.hot") > 0, value)


def check_keyboard(case):
    page = case.page
    page.evaluate("document.querySelector('.picture').focus()")
    case.find(case.info["nodes"][0]["name"])
    page.evaluate("document.querySelector('.picture').focus()")
    page.press("ArrowDown", 40)
    second = page.text(".details h2")
    reads = {value["name"] for node in case.info["nodes"] if node["name"] == second for value in node["inputs"]}
    case.check("the arrow leads to a reader", case.info["nodes"][0]["outputs"][0]["name"] in reads, second)
    page.press("ArrowUp", 38)
    case.same("the arrow up leads back", page.text(".details h2"), case.info["nodes"][0]["name"])
    page.press("Escape", 27)
    case.same("nothing is chosen after Escape", page.count(".picture .chosen"), 0)


def check_colors(case):
    """Checks the colours by device: what the npu cannot run is marked."""
    page = case.page
    page.click("[data-device='0']")
    refused = {index for index, node in enumerate(case.info["nodes"]) if "npu" in node["refused_by"]}
    marked = page.evaluate("[...document.querySelectorAll('.picture .node')].filter(box => box.querySelector('.chip.nobody')).map(box => Number(box.dataset.n))")
    shown = page.evaluate("[...document.querySelectorAll('.picture .node')].map(box => Number(box.dataset.n))")
    case.same("the marked nodes are those that the npu cannot run", sorted(marked), sorted(refused & set(shown)))
    case.check("some nodes are refused", len(refused) > 0)
    reasons = set(page.evaluate("[...document.querySelectorAll('#refusals tbody tr')].map(row => row.cells[2].innerText)"))
    case.same("reasons in the table of refusals", reasons, {reason for node in case.info["nodes"] for reason in node["refused_by"].values()})
    page.click("[data-device='-1']")


def open_sizes(tally, browser, folder):
    """Checks that the page shows the names of symbolic dimensions."""
    model, _ = models.make("bert", seed=0)
    case = Case(tally, browser, folder, "bert", model)
    check_view(case)
    case.find("node_gather_2")
    check_node(case, next(node for node in case.info["nodes"] if node["name"] == "node_gather_2"))
    case.check("a dimension's name is in the picture", "batch" in case.page.evaluate("document.querySelector('.picture').textContent"))
    case.finish()


def bodies(tally, browser, folder):
    """Opens the bodies of an If in the picture, and goes back to the graph around it."""
    def branch(operator):
        return helper.make_graph([helper.make_node(operator, ["x"], [f"{operator} out"], name=f"inner {operator}")], f"<{operator}>", [],
                                 [helper.make_tensor_value_info(f"{operator} out", TensorProto.FLOAT, None)])
    node = helper.make_node("If", ["which"], ["y"], name="choice", then_branch=branch("Neg"), else_branch=branch("Abs"))
    graph = helper.make_graph([node], "bodies", [helper.make_tensor_value_info("which", TensorProto.BOOL, []),
                                                 helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    case = Case(tally, browser, folder, "bodies", helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]))
    page = case.page
    for branch_name, operator in (("else_branch", "Abs"), ("then_branch", "Neg")):
        page.click(".picture [data-n='0']")
        case.same(f"{branch_name}: size", dict(case.pairs("Attributes"))[branch_name], "graph of 1 node open")
        page.evaluate(f"[...document.querySelectorAll('.details tr')].find(row => row.cells[0].innerText === '{branch_name}').querySelector('.link').click()")
        case.same(f"{branch_name}: its node is drawn", page.evaluate("document.querySelector('.picture .node .op').textContent"), operator)
        page.click(".picture [data-n='0']")
        case.same(f"{branch_name}: its node is described", page.text(".details h2"), f"inner {operator}")
        page.click("#back")
        case.same(f"{branch_name}: back", page.text(".details h2"), "choice")
    case.finish()


def hostile(tally, browser, folder):
    case = Case(tally, browser, folder, "hostile", test_page.hostile_model())
    check_view(case)
    page = case.page
    case.same("title", page.evaluate("document.title"), "hostile.onnx")
    for index, name in enumerate(test_page.HOSTILE):
        page.click(f".picture [data-n='{index}']")
        case.same(f"name of hostile node {index}", page.evaluate("document.querySelector('.details h2').textContent"), name)
    case.same("title after all clicks", page.evaluate("document.title"), "hostile.onnx")
    case.same("HTML elements created by names", page.count("img, b"), 0)
    case.finish()


def large(tally, browser, folder):
    """Checks that the page of a large graph reacts quickly, and that only the visible part of it is in the document."""
    case = Case(tally, browser, folder, "large", test_page.large_model(3000))
    check_view(case)
    page = case.page
    case.same("number of nodes", len(case.info["nodes"]), 3000)
    case.check("the page is small", case.size < 2 << 20, f"{case.size} bytes")
    case.check("few nodes are in the document", 0 < page.count(".picture .node") < 300, f"{page.count('.picture .node')}")
    page.evaluate("""window.timed = action => new Promise(done => {
        const begin = performance.now();
        action();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
    })""")
    search = "(() => { const s = document.getElementById('search'); s.value = '%s'; s.dispatchEvent(new Event('input')); })"
    for what, action in (("scrolling", "() => { document.querySelector('.picture').scrollTop += 5000; }"), ("a search", search % "relu"),
                         ("a result", "() => document.querySelector('.results li').click()"),
                         ("the next node", "() => [...document.querySelectorAll('.details .link')].pop().click()"),
                         ("zooming out", "() => document.querySelector('#farther').click()"),
                         ("the whole width", "() => document.querySelector('#fit').click()")):
        elapsed = min(page.evaluate(f"timed({action})") for _ in range(3))
        case.check(f"{what} takes at most {test_page.SLOWEST_CLICK_MS} ms", elapsed <= test_page.SLOWEST_CLICK_MS, f"but it takes {elapsed:.0f} ms")
    for name in ("layers.204/tanh_5", "layers.299/add"):
        case.find(name)
        check_node(case, next(node for node in case.info["nodes"] if node["name"] == name))
        case.same(f"{name} is in view", page.evaluate("""(() => {
            const view = document.querySelector('.picture').getBoundingClientRect(), box = document.querySelector('.picture .chosen').getBoundingClientRect();
            return box.top >= view.top && box.bottom <= view.bottom && box.left >= view.left && box.right <= view.right;
        })()"""), True)
    case.finish()


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
        for run in (small, open_sizes, bodies, hostile, large):
            try:
                with browsers.Browser(temporary) as browser:
                    run(tally, browser, folder)
            except (browsers.BrowserError, oracle.CleaveError) as error:
                tally.add(run.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
