/* Runs graphs on the device through the backend's slots (see check.h), as the host does: compile, create an instance, put the
 * operands in the device's memory, execute. A section that checks something between these steps calls one function per step.
 * clv__check_view_agrees() performs all of them. */
#ifndef CLEAVE_CHECK_RUN_H
#define CLEAVE_CHECK_RUN_H

#include "analysis/shapes.h"
#include "check/check.h"

#define CLV__CHECK_POISON 0xff /* a float in memory filled with this byte is NaN */

/* The results of the reference evaluator for every value of a graph. */
typedef struct clv__check_truth {
  const clv_graph *graph;
  clv__arena arena;
  clv_tensor *values; /* by value id; `data` is NULL if there is no result */
} clv__check_truth;

clv_status clv__check_truth_make(clv__check *check, const clv_graph *graph, const clv_tensor *inputs, clv__check_truth *truth,
                                 clv_error *error);
void clv__check_truth_finish(clv__check_truth *truth); /* accepts a zeroed one */

/* Some nodes of a graph: a view of them and, once it is compiled, the executable and its weights. */
typedef struct clv__check_program {
  clv__check *check;
  const clv_graph *graph;
  clv__arena arena;
  clv__shapes *shapes;
  const clv_graph_view *view;
  clv_executable *executable;
  clv_executable_info info;
  clv_weight **weights;
} clv__check_program;

/* Creates a view of the graph for supports() and compile(), but does not compile it. The view has the sizes of `inputs`, the
 * graph's inputs, or the declared sizes if `inputs` is NULL. `nodes` are the ids of its nodes; NULL: all nodes whose results
 * are not known at plan time. Call clv__check_program_finish() even if this fails. */
clv_status clv__check_program_view(clv__check *check, const clv_graph *graph, const clv_tensor *inputs, const clv_node_id *nodes,
                                   uint32_t node_count, clv__check_program *program, clv_error *error);
/* Compiles the view, and uploads the weights that the executable needs. */
clv_status clv__check_program_compile(clv__check_program *program, clv_error *error);
/* Uses an executable, for example from save->load(), instead of compiling. The program then owns it. */
clv_status clv__check_program_take(clv__check_program *program, clv_executable *executable, clv_error *error);
void clv__check_program_finish(clv__check_program *program); /* accepts a zeroed one */
/* Returns the first node of the view that the device does not support, and writes the reason. Returns NULL if it supports all
 * nodes. */
const clv__node *clv__check_program_refused(const clv__check_program *program, char reason[160]);

/* An operand: its type, and the memory of its elements. */
typedef struct clv__check_operand {
  clv_tensor type;
  clv_buffer *buffer; /* NULL: host memory */
  void *memory;       /* host memory, if `buffer` is NULL */
  uint64_t offset_bytes;
  size_t size_bytes;
  bool is_borrowed; /* the operand does not own the buffer and the memory */
} clv__check_operand;

/* An instance with its operands. */
typedef struct clv__check_job {
  clv__check_program *program;
  clv__check *check;
  clv__arena arena;
  clv_instance *instance;
  clv_buffer *scratch;
  clv_stream *stream;
  clv__check_operand *operands; /* inputs, followed by outputs */
  uint32_t input_count, output_count;
  clv_binding *bindings;
  clv_execute_args args; /* the arguments that clv__check_job_execute() passes */
  bool refuse_rooms;     /* makes allocate_output() fail */
  uint32_t rooms;        /* number of calls of allocate_output() */
} clv__check_job;

/* Creates an instance for the shapes of `values` (indexed by the graph's value ids; only their types are used), with its scratch,
 * a stream, and operands in the device's memory. Call clv__check_job_finish() even if this fails. */
clv_status clv__check_job_open(clv__check_program *program, const clv_tensor *values, clv__check_job *job, clv_error *error);
void clv__check_job_finish(clv__check_job *job); /* accepts a zeroed one; waits for the stream */
/* Sets *types to the types of the view's inputs, as instance_create() expects them. They are allocated in `arena`. */
clv_status clv__check_job_types(const clv__check_job *job, const clv_tensor *values, clv__arena *arena, clv_tensor **types,
                                clv_error *error);
/* Call both after a resize. clv__check_job_scratch() gives the instance the scratch that it now needs. clv__check_job_place()
 * allocates operands for the sizes of `values`. */
clv_status clv__check_job_scratch(clv__check_job *job, clv_error *error);
clv_status clv__check_job_place(clv__check_job *job, const clv_tensor *values, clv_error *error);
clv_status clv__check_operand_alloc(clv__check *check, const clv_tensor *type, clv__check_operand *operand, clv_error *error);
void clv__check_operand_free(clv__check *check, clv__check_operand *operand);
/* Write, fill and read the bytes of an operand. Each call waits until the copy is complete. */
clv_status clv__check_operand_write(clv__check *check, clv_stream *stream, const clv__check_operand *operand, const void *data,
                                    clv_error *error);
clv_status clv__check_operand_fill(clv__check *check, clv_stream *stream, const clv__check_operand *operand, int byte,
                                   clv_error *error);
clv_status clv__check_operand_read(clv__check *check, clv_stream *stream, const clv__check_operand *operand, void *data,
                                   clv_error *error);
void clv__check_bind(const clv__check *check, const clv__check_operand *operand, clv_binding *binding);
/* Writes the inputs from `values` (indexed by value id), fills the outputs with `byte`, and sets the bindings. */
clv_status clv__check_job_load(clv__check_job *job, const clv_tensor *values, int byte, clv_error *error);
/* Enqueues one execution. */
clv_status clv__check_job_execute(clv__check_job *job, clv_error *error);
clv_status clv__check_job_wait(clv__check_job *job, clv_error *error);
/* Compares the outputs with `values`. Returns false, with the text, if one differs. */
bool clv__check_job_agrees(clv__check_job *job, const clv_tensor *values, char *text, size_t text_bytes);
/* Calls clv__check_job_load(), clv__check_job_execute(), clv__check_job_wait() and clv__check_job_agrees(). Returns false, with
 * the text, if a call fails or an output differs. */
bool clv__check_job_run(clv__check_job *job, const clv_tensor *values, char *text, size_t text_bytes);

/* Compiles the program's view, unless it is compiled, and runs it once. Returns false, with the text, if a call fails or an
 * output differs from `values`. */
bool clv__check_view_agrees(clv__check_program *program, const clv_tensor *values, char *text, size_t text_bytes);

/* Returns false if the two tensors differ, with a text such as "'y' f32[4,8]: element 3 is 0.5; expected 0.25 (tolerance 1e-05)".
 */
bool clv__check_same(const clv_tensor *expected, const clv_tensor *actual, const char *name, char *text, size_t text_bytes);
/* Formats a failed call as a text: "compile: not supported: no such kernel". */
void clv__check_call_text(const char *call, clv_status status, const clv_error *error, char *text, size_t text_bytes);

#endif
