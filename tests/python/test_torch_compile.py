"""Compares models that torch.compile(model, backend="cleave") runs with eager PyTorch: their outputs, strides and aliases.

    python tests/python/test_torch_compile.py [--all] [--measure] [NAME...]

By default, a few models; --all: 25, with a static and a dynamic batch. For each model it says how many graph breaks there are, and how
many nodes stay with PyTorch. --measure: instead prints latencies beside eager PyTorch and inductor, with one thread. Needs PyTorch
(`tools/setup torch`) and the Python package in build/python."""
import argparse
import os
import statistics
import sys
import time
import warnings

import oracle

sys.path.insert(0, os.path.join(oracle.ROOT, "build", "python"))
try:
    import torch
except ImportError:
    torch = None
try:
    import cleave
except ImportError:
    cleave = None

QUICK = ("LeNet", "UNet", "BERT", "Llama")
TOLERANCE = 1e-5  # of the largest number of an output, f32


def leaves(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def differs(made, wanted, tolerance=TOLERANCE):
    """Returns how the tensors of two results differ, or None."""
    made, wanted = leaves(made), leaves(wanted)
    if len(made) != len(wanted):
        return f"{len(made)} outputs instead of {len(wanted)}"
    for i, (a, b) in enumerate(zip(made, wanted)):
        if (a.shape, a.dtype, a.stride()) != (b.shape, b.dtype, b.stride()):
            return f"output {i} is {a.dtype} {tuple(a.shape)} {a.stride()} instead of {b.dtype} {tuple(b.shape)} {b.stride()}"
        error = (a.double() - b.double()).abs().max().item() if a.numel() > 0 else 0
        if not error <= tolerance * max(1e-6, b.double().abs().max().item() if b.numel() > 0 else 0):
            return f"output {i} differs by {error:.3g}, and its largest number is {b.double().abs().max().item():.3g}"
        for j in range(i):
            if (a.data_ptr() == made[j].data_ptr()) != (b.data_ptr() == wanted[j].data_ptr()):
                return f"outputs {j} and {i} share memory on one side alone"
    return None


class Small:
    """Modules that show one rule each. Nested, because torch may be missing."""

    @staticmethod
    def all():
        nn = torch.nn

        class Counts(nn.Module):
            """Writes to a buffer."""

            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(3))
                self.linear = nn.Linear(3, 3)

            def forward(self, x):
                self.count += x.sum(0)
                return self.linear(x) * self.count

        class Views(nn.Module):
            """Returns views: of an input, of an output, and transposed."""

            def forward(self, x):
                y = torch.relu(x) * 2
                return y, y.t(), x[:, 1:], x.view(-1), (x + 1).t()

        class Inverse(nn.Module):
            """Has an operator that no device takes."""

            def forward(self, x):
                square = torch.tanh(x.t() @ x) + 4 * torch.eye(x.shape[1])
                y = torch.linalg.inv(square)
                return torch.softmax(y * 2, 1), torch.tensor([1.0, 2.0, 3.0]) * y

        class Breaks(nn.Module):
            """Interrupts the graph."""

            def forward(self, x):
                y = torch.relu(x)
                torch._dynamo.graph_break()
                return y * 2 + 1

        class Sizes(nn.Module):
            """Computes with its sizes, and returns one."""

            def forward(self, x):
                return x.reshape(-1) / x.shape[0], x.shape[0] * 2 + 1, torch.full((x.shape[0], 2), 3.0)
        return {"a buffer": (Counts(), 0, 0), "views": (Views(), 0, 0), "an operator left": (Inverse(), 0, None), "a graph break": (Breaks(), 1, 0),
                "sizes": (Sizes(), 0, 0)}


def check_rules(tally):
    for name, (module, breaks, left) in Small.all().items():
        module = module.eval()
        for dynamic in (False, True):
            label = f"{name}, {'dynamic' if dynamic else 'static'} batch"
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="cleave", dynamic=dynamic)
            problem = None
            with torch.no_grad():
                for batch in (4, 6, 4):
                    x = torch.randn(batch, 3)
                    state = {key: value.clone() for key, value in module.state_dict().items()}
                    wanted = module(x.clone())
                    after = {key: value.clone() for key, value in module.state_dict().items()}
                    module.load_state_dict(state)
                    made = compiled(x)
                    problem = problem or differs(made, wanted) or differs(module.state_dict(), after)
                    numbers = [[item for item in result if isinstance(item, int)] for result in (made, wanted) if isinstance(result, tuple)]
                    problem = problem or (f"numbers {numbers[0]} instead of {numbers[1]}" if numbers and numbers[0] != numbers[1] else None)
            tally.add(label, problem)
        with torch.no_grad():
            said = cleave.torch.explain(module, torch.randn(4, 3))
        problem = None if said.graph_breaks == breaks and (left is None or said.nodes_left == left) else f"explain() says: {said}"
        if left is None and not any(node.operator.startswith("aten.linalg_inv") for graph in said.graphs for node in graph.left):
            problem = f"explain() does not name linalg_inv: {said}"
        tally.add(f"{name}, explained", problem)


def check_weights(tally):
    """Changed weights are seen: in place, by load_state_dict(), and by new storage. Unchanged ones are packed once."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    torch._dynamo.reset()
    compiled, x = torch.compile(module, backend="cleave"), torch.randn(3, 8)

    def scale():
        module[0].weight.mul_(1.5)

    def load():
        module.load_state_dict({key: value + 0.25 for key, value in module.state_dict().items()})

    def replace():
        module[2].weight.data = torch.randn(4, 8)
    with torch.no_grad():
        for name, change in (("first", lambda: None), ("scaled", scale), ("loaded", load), ("new storage", replace), ("often", scale),
                             ("often", scale), ("often", scale)):
            change()
            tally.add(f"weights, {name}", differs(compiled(x), module(x)))
        with torch.inference_mode():
            tally.add("weights, inference mode", differs(compiled(x), module(x)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = compiled(x).sum()
        y.backward()
    problem = None if module[0].weight.grad is not None else "training gives no gradients"
    tally.add("training runs eagerly", problem or (None if any("is for inference" in str(one.message) for one in told) else "nothing says so"))


def check_options(tally):
    module, x = torch.nn.Linear(4, 4).eval(), torch.randn(2, 4)
    with torch.no_grad():
        for options, said in (({"device": "cpu"}, "has no option 'device'"), ({"devices": "nothing"}, "nothing"), ({"precision": "f8"}, "precision is")):
            torch._dynamo.reset()
            try:
                torch.compile(module, backend="cleave", options=options)(x)
                problem = "no error"
            except Exception as error:
                problem = None if said in str(error) else f"it says: {error}"
            tally.add(f"options {options}", problem)
        torch._dynamo.reset()
        made = torch.compile(module, backend="cleave", options={"devices": "npu,cpu", "threads": 1})(x)
        tally.add("two devices", differs(made, module(x)))


def check_export(tally):
    module, x = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval(), torch.randn(1, 3, 8, 8)
    session = cleave.Session(cleave.torch.export(module, (x,)))
    (made,) = session.run([x]).values()
    with torch.no_grad():
        tally.add("export without a file", differs(torch.from_numpy(made), module(x)))


def place(inputs):
    return ([inputs["x"]], {}) if "x" in inputs else ([], inputs)


def check_model(tally, name, make, inputs):
    import compile_models
    torch.manual_seed(7)
    module = compile_models.settle(make())
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled, problem = torch.compile(module, backend="cleave", dynamic=None if dynamic else False), None
        with torch.no_grad():
            for batch in (2, 3, 5) if dynamic else (2, 2):
                given = inputs(batch)
                args, named = place(given)
                wanted = module(*args, **named)
                if dynamic:
                    for tensor in given.values():
                        torch._dynamo.maybe_mark_dynamic(tensor, 0)
                problem = problem or differs(compiled(*args, **named), wanted)
        tally.add(f"{name}, {'dynamic' if dynamic else 'static'} batch", problem)
    args, named = place(inputs(2))
    said = cleave.torch.explain(module, *args, **named)
    print(f"  {name}: {said.graph_breaks} graph breaks, {said.nodes} nodes, {said.nodes_left} left to PyTorch", flush=True)
    tally.add(f"{name}, nothing is left to PyTorch", None if said.nodes_left == 0 and said.graph_breaks == 0 else str(said)[:600])


def measure(names):
    """Medians of runs that alternate between the three, with one thread."""
    import compile_models
    torch.set_num_threads(1)
    print(f"{'model, batch 1':22} {'eager':>10} {'inductor':>10} {'cleave':>10}   eager/cleave inductor/cleave", flush=True)
    for name, (make, inputs) in compile_models.all_models().items():
        if names and not any(part in name for part in names):
            continue
        torch.manual_seed(7)
        torch._dynamo.reset()
        module = compile_models.settle(make())
        args, named = place(inputs(1))
        runs = {"eager": module, "inductor": torch.compile(module), "cleave": torch.compile(module, backend="cleave", options={"threads": 1})}
        times = {kind: [] for kind in runs}
        with torch.no_grad():
            wanted = module(*args, **named)
            for kind in list(runs):
                try:
                    for _ in range(5):
                        problem = differs(runs[kind](*args, **named), wanted, 1e-4)
                    if problem:
                        print(f"{name}: {kind}: {problem}")
                except Exception as error:  # inductor needs a compiler
                    print(f"{name}: {kind} fails: {str(error).splitlines()[0][:100]}")
                    del runs[kind]
            for _ in range(60):
                for kind, run in runs.items():
                    begin = time.perf_counter()
                    run(*args, **named)
                    times[kind].append(time.perf_counter() - begin)
        medians = {kind: statistics.median(values) if values else float("nan") for kind, values in times.items()}
        print(f"{name:22} " + " ".join(f"{medians[kind] * 1e6:7.0f} µs" for kind in times) +
              f"   {medians['eager'] / medians['cleave']:8.2f} {medians['inductor'] / medians['cleave']:12.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only the models whose name contains NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--measure", action="store_true")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    if torch is None or cleave is None:
        missing = "PyTorch" if torch is None else "the package cleave in build/python (cmake -DCLEAVE_PYTHON=ON)"
        tally.skip("torch.compile", f"no {missing} in {sys.executable}")
        return tally.finish()
    from cleave.torch import compile_graph
    import compile_models
    torch._dynamo.register_backend(compile_graph, name="cleave")  # an installed package does it by its entry point
    warnings.simplefilter("ignore")
    if compile_models.transformers is not None:
        compile_models.transformers.logging.set_verbosity_error()
    else:
        tally.skip("models of transformers", f"no transformers in {sys.executable}: 'tools/setup transformers' installs it")
    if arguments.measure:
        measure(arguments.names)
        return 0
    if not arguments.names:
        check_rules(tally)
        check_weights(tally)
        check_options(tally)
        check_export(tally)
    for name, (make, inputs) in compile_models.all_models().items():
        if any(part in name for part in arguments.names) if arguments.names else arguments.all or name in QUICK:
            check_model(tally, name, make, inputs)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
