"""Runs the calls of torch_cases.py.

Many calls form one exported module, so that a family of calls needs only one export and one run. If the module fails, each call
is run in its own module, to find the one that fails."""
import copy
import os

import ml_dtypes
import numpy as np
import torch

import oracle
import torch_cases
import torch_random
import torch_to_ir  # from tools/, which oracle adds to the path

# The tolerance of a single call, as a share of oracle.TOLERANCE, which is for whole models.
OF_ONE_CALL = 0.25


def to_numpy(tensor):
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def cast(value, dtype):
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def flat(value):
    """Returns the tensors in a module's result, in the order of torch.export."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


class Group(torch.nn.Module):
    """A module that makes several calls, each with its own inputs, and returns the outputs of all of them."""

    def __init__(self, cases, dtype):
        super().__init__()
        self.cases = cases
        self.examples = []
        self.sources = []  # for each case, a list with where each input is: the name of a buffer, or an index in `examples`
        for c, case in enumerate(cases):
            places = []
            for i, value in enumerate(case.inputs):
                value = cast(value, dtype)
                if i in case.weights:
                    self.register_buffer(f"w{c}_{i}", value)
                    places.append(f"w{c}_{i}")
                else:
                    places.append(len(self.examples))
                    self.examples.append(value)
            self.sources.append(places)

    def outputs_of(self, c, examples):
        inputs = [getattr(self, place) if isinstance(place, str) else examples[place] for place in self.sources[c]]
        return flat(self.cases[c].call(*inputs))

    def forward(self, *examples):
        return tuple(output for c in range(len(self.cases)) for output in self.outputs_of(c, examples))


class Exported:
    """An exported module in a folder, its saved inputs, and PyTorch's outputs."""

    def __init__(self, folder, module, examples):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "model.json")
        self.params = os.path.join(folder, "model.safetensors")
        with torch.no_grad():
            self.model = torch_to_ir.export(module, examples, path=self.path, params=self.params)
        self.state = self.model.get("state", {})  # {input that is a buffer of the module: output with its new contents}
        self.outputs = [tensor["name"] for tensor in self.model["graph_outputs"]]
        self.given = [tensor["name"] for tensor in self.model["graph_inputs"] if tensor["name"] not in self.state]
        self.folder = folder
        self.arguments, self.expected = self.ask(module, examples)

    def ask(self, module, examples):
        """Returns the arguments for a run with these examples and the current contents of the module's buffers, and PyTorch's
        outputs. PyTorch runs a copy of the module, so that its buffers do not change."""
        inputs = {name: to_numpy(example) for name, example in zip(self.given, examples)}
        buffers = dict(module.named_buffers())
        inputs.update({name: to_numpy(buffers[name]) for name in self.state})
        changed = copy.deepcopy(module)
        with torch.no_grad():
            expected = [to_numpy(tensor.clone()) for tensor in flat(changed(*[example.clone() for example in examples]))]
        after = dict(changed.named_buffers())
        return oracle.save_inputs(self.folder, inputs), expected + [to_numpy(after[name]) for name in self.state]

    def run(self, *options):
        return oracle.cleave_run(self.path, self.arguments + ["--params", self.params], self.outputs, *options)


def check(case, expected, actual, tolerance):
    for i, (e, a) in enumerate(zip(expected, actual)):
        different = compare(e, a, case.factor, tolerance)
        if different:
            return f"output {i}: {different}" if len(expected) > 1 else different
    return None


def compare(expected, actual, factor=1.0, share=OF_ONE_CALL):
    """Compares like oracle.compare(), but with its tolerance multiplied by `share` and `factor`."""
    table = oracle.TOLERANCE
    oracle.TOLERANCE = {name: share * factor * value for name, value in table.items()}
    try:
        return oracle.compare(expected, actual)
    finally:
        oracle.TOLERANCE = table


def run_alone(tally, folder, case, dtype, devices):
    """Runs one call in a module of its own. If `case.kept` names an operator, the run must fail, and the error must name it."""
    label = f"{case.name}, {str(dtype).removeprefix('torch.')}, {devices}"
    try:
        exported = Exported(os.path.join(folder, "one"), Group([case], dtype), Group([case], dtype).examples)
    except (RuntimeError, NotImplementedError) as error:
        tally.skip(label, f"PyTorch cannot export it: {str(error).splitlines()[0][:100]}")
        return
    try:
        actual = exported.run("--devices", devices)
    except oracle.CleaveError as error:
        text = str(error)
        named = case.kept != "" and case.kept.removeprefix("aten.") in text and "no device can run it" in text
        tally.add(label, None if named else text[-600:])
        return
    if case.kept:
        tally.add(label, f"the run succeeded, although {case.kept} cannot be lowered to ONNX exactly")
        return
    tally.add(label, check(case, exported.expected, actual, OF_ONE_CALL))


def supported(cases, dtype):
    """Yields the cases that PyTorch itself supports in this dtype."""
    for case in cases:
        try:
            with torch.no_grad():
                flat(case.call(*[cast(value, dtype) for value in case.inputs]))
            yield case
        except (RuntimeError, NotImplementedError):
            pass


def run_group(tally, folder, cases, dtype, devices):
    cases = list(supported(cases, dtype))
    together = [case for case in cases if not case.kept]
    alone = [case for case in cases if case.kept]
    if together:
        group = Group(together, dtype)
        try:
            exported = Exported(folder, group, group.examples)
        except Exception as error:
            print(f"   (the calls cannot be exported as one module, and are run one by one: {str(error).splitlines()[0][:160]})")
            exported, alone = None, cases
        for device_list in devices if exported is not None else []:
            try:
                actual = exported.run("--devices", device_list)
            except oracle.CleaveError as error:
                print(f"   (the module of all calls failed, and the calls are run one by one: {str(error)[-300:]})")
                for case in together:
                    run_alone(tally, folder, case, dtype, device_list)
                continue
            at = 0
            for c, case in enumerate(together):
                with torch.no_grad():
                    count = len(group.outputs_of(c, group.examples))
                label = f"{case.name}, {str(dtype).removeprefix('torch.')}, {device_list}"
                tally.add(label, check(case, exported.expected[at : at + count], actual[at : at + count], OF_ONE_CALL))
                at += count
    for case in alone:
        for device_list in devices:
            run_alone(tally, folder, case, dtype, device_list)


def run_cases(tally, folder, names, devices, every):
    families = dict(torch_cases.make_all())
    for seed in range(16 if every else 2):
        families[f"drawn-{seed}"] = torch_random.draw(60, seed)
    for family, cases in families.items():
        wanted = [case for case in cases if not names or any(name in case.name for name in names)]
        for dtype in torch_cases.FLOATS:
            of_dtype = [case for case in wanted if (dtype in torch_cases.FLOATS[:2] or every) and (dtype in case.dtypes)]
            if of_dtype:
                run_group(tally, os.path.join(folder, f"{family}-{str(dtype).removeprefix('torch.')}"), of_dtype, dtype, devices)
