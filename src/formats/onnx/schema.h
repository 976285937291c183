/* The field numbers of the ONNX messages that Cleave reads or writes. The names are those of onnx.proto. */
#ifndef CLEAVE_FORMATS_ONNX_SCHEMA_H
#define CLEAVE_FORMATS_ONNX_SCHEMA_H

enum { /* ModelProto */
       MODEL_IR_VERSION = 1,
       MODEL_PRODUCER_NAME = 2,
       MODEL_GRAPH = 7,
       MODEL_OPSET_IMPORT = 8,
       MODEL_METADATA_PROPS = 14,
       MODEL_FUNCTIONS = 25
};

enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };

enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 }; /* StringStringEntryProto */

enum { /* GraphProto */
       GRAPH_NODE = 1,
       GRAPH_NAME = 2,
       GRAPH_INITIALIZER = 5,
       GRAPH_INPUT = 11,
       GRAPH_OUTPUT = 12,
       GRAPH_VALUE_INFO = 13,
       GRAPH_SPARSE_INITIALIZER = 15
};

enum { VALUE_NAME = 1, VALUE_TYPE = 2 }; /* ValueInfoProto */

enum { TYPE_TENSOR = 1, TENSOR_TYPE_ELEM = 1, TENSOR_TYPE_SHAPE = 2, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };

enum { /* NodeProto */
       NODE_INPUT = 1,
       NODE_OUTPUT = 2,
       NODE_NAME = 3,
       NODE_OP_TYPE = 4,
       NODE_ATTRIBUTE = 5,
       NODE_DOMAIN = 7,
       NODE_OVERLOAD = 8
};

enum { /* AttributeProto */
       ATTRIBUTE_NAME = 1,
       ATTRIBUTE_F = 2,
       ATTRIBUTE_I = 3,
       ATTRIBUTE_S = 4,
       ATTRIBUTE_T = 5,
       ATTRIBUTE_G = 6,
       ATTRIBUTE_FLOATS = 7,
       ATTRIBUTE_INTS = 8,
       ATTRIBUTE_STRINGS = 9,
       ATTRIBUTE_TYPE = 20,
       ATTRIBUTE_REF_NAME = 21
};

enum { /* AttributeProto.AttributeType */
       ATTRIBUTE_TYPE_UNDEFINED = 0,
       ATTRIBUTE_TYPE_FLOAT = 1,
       ATTRIBUTE_TYPE_INT = 2,
       ATTRIBUTE_TYPE_STRING = 3,
       ATTRIBUTE_TYPE_TENSOR = 4,
       ATTRIBUTE_TYPE_GRAPH = 5,
       ATTRIBUTE_TYPE_FLOATS = 6,
       ATTRIBUTE_TYPE_INTS = 7,
       ATTRIBUTE_TYPE_STRINGS = 8
};

enum { /* TensorProto */
       TENSOR_DIMS = 1,
       TENSOR_DATA_TYPE = 2,
       TENSOR_SEGMENT = 3,
       TENSOR_FLOAT_DATA = 4,
       TENSOR_INT32_DATA = 5,
       TENSOR_STRING_DATA = 6,
       TENSOR_INT64_DATA = 7,
       TENSOR_NAME = 8,
       TENSOR_RAW_DATA = 9,
       TENSOR_DOUBLE_DATA = 10,
       TENSOR_UINT64_DATA = 11,
       TENSOR_EXTERNAL_DATA = 13,
       TENSOR_DATA_LOCATION = 14,
       TENSOR_LOCATION_EXTERNAL = 1 /* a value of field TENSOR_DATA_LOCATION */
};

enum { /* FunctionProto */
       FUNCTION_NAME = 1,
       FUNCTION_INPUT = 4,
       FUNCTION_OUTPUT = 5,
       FUNCTION_NODE = 7,
       FUNCTION_OPSET_IMPORT = 9,
       FUNCTION_DOMAIN = 10,
       FUNCTION_ATTRIBUTE_PROTO = 11,
       FUNCTION_VALUE_INFO = 12,
       FUNCTION_OVERLOAD = 13
};

#endif
