/* Macros to write IR JSON in tests. */
#ifndef CLEAVE_TESTS_IRJSON_TEXT_H
#define CLEAVE_TESTS_IRJSON_TEXT_H

#define IR_TENSOR(name, shape, dtype) "{\"name\":\"" name "\",\"shape\":[" shape "],\"dtype\":\"" dtype "\"}"
#define IR_FROM(name, shape, dtype, producer, index)                                                   \
  "{\"name\":\"" name "\",\"shape\":[" shape "],\"dtype\":\"" dtype "\",\"producer_node\":\"" producer \
  "\",\"producer_output_idx\":" index "}"
#define IR_NODE(name, op, inputs, outputs, attrs) \
  "{\"name\":\"" name "\",\"op_type\":\"" op "\",\"inputs\":[" inputs "],\"outputs\":[" outputs "],\"attrs\":{" attrs "}}"
#define IR_MODEL(inputs, outputs, weights, mapping, nodes)                                                         \
  "{\"model_name\":\"m\",\"pytorch_version\":\"2.10.0\",\"graph_inputs\":[" inputs "],\"graph_outputs\":[" outputs \
  "],\"weights\":[" weights "],\"weight_name_mapping\":{" mapping "},\"nodes\":[" nodes "]}"

/* A model: x f32[1,2,3] -> linear, whose weight has no data -> relu. An assertion node also reads the linear's output. */
#define IR_LAYER                                                                                                               \
  IR_MODEL(                                                                                                                    \
      IR_TENSOR("x", "1,2,3", "float32"), IR_FROM("relu", "1,2,4", "float32", "relu", "0"),                                    \
      IR_TENSOR("fc.weight", "4,3", "float32"), "\"p_fc_weight\":\"fc.weight\"",                                               \
      IR_NODE("linear", "aten.linear.default",                                                                                 \
              IR_FROM("x", "1,2,3", "float32", "x", "0") "," IR_TENSOR("p_fc_weight", "4,3", "float32"),                       \
              IR_TENSOR("linear", "1,2,4", "float32"),                                                                         \
              "") "," IR_NODE("check", "aten._assert_tensor_metadata.default",                                                 \
                              IR_FROM("linear", "1,2,4", "float32", "linear", "0"), "",                                        \
                              "\"dtype\":\"torch.float32\"") "," IR_NODE("relu", "aten.relu.default",                          \
                                                                         IR_FROM("linear", "1,2,4", "float32", "linear", "0"), \
                                                                         IR_TENSOR("relu", "1,2,4", "float32"), ""))

#endif
