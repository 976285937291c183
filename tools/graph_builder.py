"""Builds ONNX graphs node by node. tools/models.py and the random graphs of the tests use it."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The newest IR version that all readers of these models support. It is valid for each opset that the models use.
IR_VERSION = 10


def dtype_of(array):
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


class GraphBuilder:
    """A graph, or a body of an If or Loop, under construction. A value is represented by its name. Weights are random, from a
    seed."""

    def __init__(self, name, seed=0, opset=17, parent=None):
        self.name, self.opset, self.parent = name, opset, parent
        self.rng = parent.rng if parent else np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self._counters = parent._counters if parent else {}

    def unique(self, hint):
        """Returns a name that is not yet used in this model and its bodies."""
        count = self._counters[hint] = self._counters.get(hint, -1) + 1
        return f"{hint}_{count}" if count else hint

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, dtype=TensorProto.FLOAT, shape=None):
        self.outputs.append(helper.make_tensor_value_info(value, dtype, shape))

    def constant(self, array, hint="w"):
        name = self.unique(hint)
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def normal(self, shape, deviation=1.0, mean=0.0, hint="w"):
        values = self.rng.standard_normal(shape, dtype=np.float32)
        return self.constant(values * np.float32(deviation) + np.float32(mean), hint)

    def uniform(self, shape, low, high, hint="w"):
        return self.constant(self.rng.uniform(low, high, shape).astype(np.float32), hint)

    def ints(self, *values):
        return self.constant(np.array(values, np.int64), "i")

    def op(self, op_type, *inputs, outputs=1, name=None, domain="", **attributes):
        """Adds a node. Returns the name of its output, or a tuple of names if there are several. `outputs` is their number, or a
        list of names ('' for an output that is left out)."""
        if isinstance(outputs, int):
            names = [self.unique(op_type.lower()) for _ in range(outputs)]
        else:
            names = list(outputs)
        if name is None:
            name = self.unique(f"node_{op_type.lower()}")
        node = helper.make_node(op_type, list(inputs), names, name=name, domain=domain)
        # an attribute that is None is left out
        node.attribute.extend(helper.make_attribute(k, v) for k, v in sorted(attributes.items()) if v is not None)
        self.nodes.append(node)
        return names[0] if len(names) == 1 else tuple(names)

    def body(self, name):
        """Begins a body for an If or Loop. The body may read the values of this graph."""
        return GraphBuilder(name, opset=self.opset, parent=self)

    def graph(self):
        return helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)

    def model(self):
        model = helper.make_model(self.graph(), opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="cleave-tools", ir_version=IR_VERSION)
        return model


def save(model, path):
    onnx.save(model, path)
