/* Shared by the files of the template: the operators, the compiled program, and the slots of the plugin ABI that each file
 * implements.
 *
 * The backend computes on the host, in the caller's thread. operators.c and run.c do the work of a driver. */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <cleave/plugin/host_device.h>

#define TEMPLATE_VERSION "1" /* part of the cache keys: raise it whenever the meaning of programs changes */

enum { MAX_INPUTS = 2, NO_OUTPUT = -1 };

struct clv_device {
  clv_host_device base; /* must be first: see host_device.h */
  bool trace;
  char fingerprint[64];
};

struct clv_weight {
  clv_tensor tensor; /* its data is stored after this struct */
};

/* ---- Operators (operators.c) ---- */

/* Describes an operator. To add an operator, add a line to template_operators. */
typedef struct template_operator {
  const char *name;
  uint32_t input_count;
  int32_t since; /* the first opset with the meaning implemented here */
  /* Computes the output's dims from inputs with known dims. Returns false if the inputs do not match each other. */
  bool (*shape)(const clv_tensor *inputs, clv_tensor *output);
  void (*run)(const clv_tensor *inputs, const clv_tensor *output);
  double (*flops)(const clv_tensor *inputs, const clv_tensor *output);
} template_operator;

extern const template_operator template_operators[];
extern const uint32_t template_operator_count;

/* Finds a node's operator in the table. Returns template_operator_count if there is none. */
uint32_t template_find_operator(const clv_node_info *node);

/* ---- Programs (compile.c, save.c) ---- */

typedef enum template_source { FROM_INPUT, FROM_WEIGHT, FROM_STEP, SOURCE_COUNT } template_source;

/* A value of the partition: where its data comes from (`index` among the inputs, weights or steps), and its index among the
 * outputs or NO_OUTPUT. */
typedef struct template_value {
  uint32_t source, index;
  int32_t output;
} template_value;

typedef struct template_step {
  uint32_t op;                         /* index into template_operators */
  uint32_t inputs[MAX_INPUTS], output; /* indices of values */
} template_step;

/* A partition as a sequence of steps. It refers to weights by name and contains none. */
struct clv_executable {
  uint32_t input_count, output_count, weight_count, value_count, step_count;
  template_value *values;
  template_step *steps;
  char **weights;
};

/* Creates an empty program with room for the given counts. Returns NULL if memory runs out. */
clv_executable *template_program_create(const clv_host *host, const clv_executable *counts);

/* ---- Slots ---- */

void template_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);
double template_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node);
double template_copy_seconds(clv_device *device, uint64_t size_bytes);
double template_launch_seconds(clv_device *device);

clv_status template_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                            clv_executable **executable, clv_error *error);
void template_executable_destroy(clv_device *device, clv_executable *executable);
void template_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info);
clv_status template_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                    clv_error *error);
clv_status template_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                    clv_error *error);

clv_status template_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                    uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                    clv_instance **instance, clv_error *error);
void template_instance_destroy(clv_device *device, clv_instance *instance);
clv_status template_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                    clv_error *error);
clv_status template_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                            clv_error *error);

#endif
