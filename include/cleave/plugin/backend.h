/* The plugin ABI: what a backend implements so that Cleave can place, compile and run parts of a graph on its devices.
 *
 * A backend is a table of functions. It is found through one exported symbol, `clv_backend_query` (a shared library), or
 * through a function of the same type given to clv_context_add_backend() (in process). Built-in backends use nothing else.
 *
 * Layers: backend -> device -> memory space -> stream/event -> executable -> instance.
 *
 *   open a device            once; *not supported* means "not here, or its driver is unusable": the host falls back
 *   supports / prefers       asked for every node; yes must mean that compile() of that node alone succeeds
 *   compile                  a partition becomes an executable: immutable, shared by sessions
 *   weight_upload            a weight lives once on a device, known by its id; executables refer to it and hold no copy
 *   instance_create          an executable's state in one session, for given input shapes
 *   execute                  enqueue on a stream; inputs and outputs are bindings
 *   capture / launch         record what execute() enqueues, and enqueue it again as one
 *
 * Rules for all slots: return a status, fill `error` with a text when it is not CLV_OK, never abort, never print, never let a
 * C++ exception out. Values that cross a boundary are dense row-major in their dtype, bit for bit (several elements to a byte
 * where clv_dtype_size_bytes() is 0); layout inside a partition is the backend's business. More dtypes may come: supports() says
 * yes to those it knows, of every input and output. A slot marked optional may be NULL.
 *
 * Versions: structs only grow at their end. Each carries `struct_size`, the size its maker knew; whoever reads a field beyond it
 * treats the field as zero. `abi_version` changes only when an old field changes its meaning; the host refuses other versions.
 *
 * Threads: the host calls device functions of one device from one thread at a time, except execute(), copies, events,
 * stream_synchronize() and those of capture, which may come from several threads on different streams, and buffers, which are
 * taken and given back at any time (allocate_output() does, on whatever thread it is called from). Those may come while another
 * function is running. An instance is only used on one stream; it may be enqueued again before its last execution is over.
 *
 * A device that hangs is given up: after that it gets no call but close(), which must return, its work finished or abandoned. */
#ifndef CLEAVE_PLUGIN_BACKEND_H
#define CLEAVE_PLUGIN_BACKEND_H

#include "../types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_ABI_VERSION 1u
#define CLV_NO_VALUE UINT32_MAX /* an absent optional input or output of a node */

/* ---- The host's side: graphs through accessors, and services ------------------------------------------------------------ */

/* A part of a graph: nodes in topological order, indices 0..node_count), values 0..value_count). Owned by the host; valid for the
 * call it was given to. */
typedef struct clv_graph_view clv_graph_view;

typedef enum clv_attribute_kind {
  CLV_ATTRIBUTE_INTS = 1, /* one or many; a scalar is count 1 with `is_list` false */
  CLV_ATTRIBUTE_FLOATS = 2,
  CLV_ATTRIBUTE_STRINGS = 3,
  CLV_ATTRIBUTE_TENSOR = 4,
  CLV_ATTRIBUTE_GRAPH = 5
} clv_attribute_kind;

typedef struct clv_attribute {
  const char *name;
  clv_attribute_kind kind;
  bool is_list;
  size_t count;
  const int64_t *ints;
  const float *floats;
  const clv_string *strings;
  const clv_tensor *tensor;
  const clv_graph_view *graph; /* a body; node captures follow its node's explicit inputs, see clv_node_info */
} clv_attribute;

typedef struct clv_node_info {
  uint32_t struct_size; /* set by the asker */
  int32_t opset;        /* version of the node's domain that its model imports */
  const char *name;     /* never empty: `Op#index` where the model gives none or repeats one */
  const char *op;
  const char *domain; /* "" is ONNX's */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  uint32_t capture_count; /* the last `capture_count` of `inputs` are outer values that bodies read */
  const uint32_t *inputs; /* view-local value ids, CLV_NO_VALUE where absent */
  const uint32_t *outputs;
  const clv_attribute *attributes;
} clv_node_info;

typedef struct clv_value_info {
  uint32_t struct_size; /* set by the asker */
  bool is_input;        /* enters the view from outside (never a constant) */
  bool is_output;       /* read outside the view, or an output of the model: must be written */
  const char *name;     /* unique in its graph; "" only for absent */
  clv_tensor type; /* `data` is not NULL for a constant whose bytes are known: an initializer or folded. It may be unaligned. */
  /* Known before the graph runs, though perhaps not yet: while a model is planned whose weights come from elsewhere, `data` is
   * NULL. compile() is only called once all are there. */
  bool is_constant;
} clv_value_info;

/* A node without bodies that is about to run on the host's memory. `inputs` are aligned to their elements and come without
 * captures; an absent one has dtype CLV_DTYPE_NONE. `outputs` are typed and have room in `data`; one that nobody wants has dtype
 * CLV_DTYPE_NONE. Valid for the call. */
typedef struct clv_node_call {
  uint32_t struct_size;
  int32_t opset;
  const char *op;
  const char *domain;
  uint32_t attribute_count;
  uint32_t input_count;
  uint32_t output_count;
  const clv_attribute *attributes;
  const clv_tensor *inputs;
  clv_tensor *outputs;
} clv_node_call;

/* CLV_NOT_SUPPORTED: the host runs the node itself. */
typedef clv_status (*clv_run_node_fn)(void *cookie, const clv_node_call *call, clv_error *error);

/* What the host offers. Valid as long as the backend is loaded. */
typedef struct clv_host {
  uint32_t abi_version;
  uint32_t struct_size;
  void *self;
  const clv_allocator *allocator;
  void (*log)(void *self, int level, const char *text); /* 0 error, 1 warning, 2 info, 3 debug */

  uint32_t (*graph_node_count)(const clv_graph_view *graph);
  uint32_t (*graph_value_count)(const clv_graph_view *graph);
  uint32_t (*graph_input_count)(const clv_graph_view *graph);
  uint32_t (*graph_output_count)(const clv_graph_view *graph);
  uint32_t (*graph_input)(const clv_graph_view *graph, uint32_t index);  /* value id */
  uint32_t (*graph_output)(const clv_graph_view *graph, uint32_t index); /* value id */
  void (*graph_node)(const clv_graph_view *graph, uint32_t node, clv_node_info *info);
  void (*graph_value)(const clv_graph_view *graph, uint32_t value, clv_value_info *info);

  /* The dtype and shape of a node's outputs, given its inputs (captures included; those with `data` are known values). With the
   * data of every input given the shapes are complete, but for If and Loop, whose bodies have to run. */
  clv_status (*infer_node)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                           clv_error *error);

  /* Runs one node with the reference kernels, bodies of If and Loop included. Inputs are host tensors (captures included); the
   * data of each output is allocated with `allocator` and belongs to the caller. */
  clv_status (*evaluate_node)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                              clv_error *error);

  /* The view as an ONNX model in memory, allocated with `allocator`. Constants above `inline_limit_bytes`, and those without
   * data, are left out and become inputs of the model, in the order of their value ids, after its own. */
  clv_status (*graph_to_onnx)(const clv_graph_view *graph, size_t inline_limit_bytes, void **data, size_t *size_bytes,
                              clv_error *error);
  /* The reverse, for programs that carry bodies; close() accepts NULL. The bytes are copied. */
  clv_status (*graph_open)(void *self, const void *data, size_t size_bytes, clv_graph_view **graph, clv_error *error);
  void (*graph_close)(void *self, clv_graph_view *graph);

  /* Says that the backend has its own copy of a constant and will hardly read it again: the host may give its pages back to the
   * system. The bytes stay valid. For compile(), after each weight, so that a model is never in memory twice. */
  void (*constant_copied)(const clv_graph_view *graph, uint32_t value);

  /* Some nodes of a view, ascending, as a view of their own, for a backend that has to try: the verdict on one node, say. It goes
   * with graph_part_close(), which accepts NULL, before the view that it is a part of. */
  clv_status (*graph_part)(void *self, const clv_graph_view *graph, const uint32_t *nodes, uint32_t count, clv_graph_view **part,
                           clv_error *error);
  void (*graph_part_close)(void *self, clv_graph_view *part);

  /* What a backend found out by trying and would not find out again, in the context's cache, under the backend's name and `key`
   * (a text: which device, which driver). recall() gives what was last kept, allocated with `allocator`; CLV_NOT_FOUND where
   * there is nothing. It may be old, or come from a stranger: it is read with doubt. remember() puts it in its place. Any thread.
   */
  clv_status (*recall)(void *self, const char *backend, const char *key, void **data, size_t *size_bytes, clv_error *error);
  clv_status (*remember)(void *self, const char *backend, const char *key, const void *data, size_t size_bytes, clv_error *error);

  /* As evaluate_node(), but `run_node`, which gets `cookie`, runs the node, or those of its bodies: the host's own kernels are
   * reference loops. It is called in the caller's thread, for one node at a time. NULL is the same as evaluate_node(). */
  clv_status (*evaluate_node_with)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                   clv_run_node_fn run_node, void *cookie, clv_error *error);
} clv_host;

/* ---- The backend's side -------------------------------------------------------------------------------------------------- */

typedef struct clv_device clv_device;         /* a backend's device; opaque to the host, as are all below */
typedef struct clv_stream clv_stream;         /* an in-order queue */
typedef struct clv_event clv_event;           /* a point in a stream */
typedef struct clv_buffer clv_buffer;         /* memory of the device's memory space */
typedef struct clv_weight clv_weight;         /* a weight resident on the device */
typedef struct clv_executable clv_executable; /* a compiled partition */
typedef struct clv_instance clv_instance;     /* an executable's state in one session */
typedef struct clv_captured clv_captured;     /* launches recorded once */

typedef struct clv_option {
  const char *key;
  const char *value;
} clv_option;

/* An option that a backend's devices know. */
typedef struct clv_option_info {
  const char *key;
  const char *values; /* for people: "auto, own, host", "a whole number of bytes" */
  const char *help;   /* one line; says what holds where it is not given */
} clv_option_info;

typedef struct clv_device_config {
  uint32_t struct_size;
  uint32_t ordinal;      /* which of the backend's devices */
  const char *name;      /* what the user calls it: "cpu", "npu" */
  uint32_t option_count; /* --device-option NAME:key=value */
  const clv_option *options;
  const char *spec;      /* vnpu: "default", "all" or a file; NULL elsewhere */
  uint32_t thread_count; /* 0: as many as there are cores */
} clv_device_config;

typedef struct clv_device_info {
  uint32_t struct_size;
  bool static_shapes_only;     /* every shape must be known when a node is asked about */
  const char *kind;            /* "cpu", "npu", "gpu" */
  const char *description;     /* one line for people */
  const char *fingerprint;     /* device, driver, options: whatever an executable depends on */
  const char *memory_space;    /* "host", or a name of its own; devices that say the same name share memory */
  uint64_t memory_limit_bytes; /* 0: no limit of its own */
  uint32_t alignment_bytes;
  uint32_t max_partition_inputs; /* 0: no limit */
  uint32_t max_partition_nodes;  /* 0: no limit */
  bool is_synchronous;           /* execute() and copies do their work in the caller's thread and return when it is done */
  /* It wants integer weights as the model has them: a DequantizeLinear of them before a Conv, MatMul or Gemm comes as a node
   * with constant inputs, to be computed once where no integer kernel reads it. Elsewhere the host has computed it. */
  bool keeps_quantised;
} clv_device_info;

/* A device's answer about one node. */
typedef struct clv_verdict {
  bool supported;
  char reason[160]; /* when not: what is in the way, with its value: "dtype f64", "rank 5 above 4" */
} clv_verdict;

typedef struct clv_compile_options {
  uint32_t struct_size;
  bool deterministic;  /* exclude algorithms that change rounding */
  bool tune;           /* may measure to choose an algorithm */
  clv_dtype precision; /* CLV_BF16: products of f32 values may be made in bf16, where that is quicker; bindings keep their dtypes.
                          Anything else: as the graph says. A backend that cannot does as the graph says */
} clv_compile_options;

typedef struct clv_executable_info {
  uint32_t struct_size;
  uint32_t weight_count;      /* weights that instance_create() wants, by value name, in this order */
  const char *const *weights; /* owned by the executable */
  uint64_t resident_bytes;    /* memory it keeps beside weights */
  uint64_t scratch_bytes;     /* estimate of an instance's scratch at the compiled shapes */
} clv_executable_info;

/* Where a value is at run time. `type` has the actual dims; its `data` is the host address when the buffer is host memory. */
typedef struct clv_binding {
  clv_buffer *buffer; /* NULL: host memory at type.data (devices whose memory space is "host" only) */
  uint64_t offset_bytes;
  clv_tensor type;
} clv_binding;

typedef struct clv_execute_args {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  const clv_binding *inputs;
  /* An output whose size was unknown when the instance was made comes with dtype set, rank CLV_RANK_UNKNOWN and no memory; the
   * backend calls allocate_output() once its shape is known, which fills the binding. Shapes are valid at the stream's next
   * event. */
  clv_binding *outputs;
  void *cookie;
  clv_status (*allocate_output)(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error);
} clv_execute_args;

/* A step of an instance: what a device does without looking up. Its times are sums over the executions that were timed. */
typedef struct clv_step_info {
  uint32_t struct_size; /* set by the device */
  /* Nodes of the view that was compiled, ascending, whose work the step does: several where they are fused. A node is in one step
   * at most, and in none where nothing is done for it (a view, a constant). */
  uint32_t node_count;
  const uint32_t *nodes;
  uint32_t beside;            /* of a step without nodes, which is the device's own: the node it is for, or CLV_NO_VALUE */
  const char *what;           /* the device's word for it: "Conv", "reorder" */
  const char *implementation; /* which of several; "" where there is nothing to say */
  uint64_t size_bytes;        /* read and written; 0 where the device does not know */
  uint64_t time_ns;
  uint64_t executions;
} clv_step_info;

typedef clv_status (*clv_step_fn)(void *cookie, const clv_step_info *step); /* `step` is valid for the call */
typedef clv_status (*clv_write_fn)(void *cookie, const void *data, size_t size_bytes);
typedef clv_status (*clv_claim_fn)(void *cookie, const uint32_t *nodes, uint32_t count);
typedef void (*clv_notify_fn)(void *cookie);
/* `name` is what the user writes behind the backend's: "GPU.0" of "openvino:GPU.0"; "" for the backend's only device. */
typedef clv_status (*clv_found_fn)(void *cookie, const char *name, const char *kind);

typedef struct clv_backend {
  uint32_t abi_version;
  uint32_t struct_size;
  const char *name;    /* "cpu", "vnpu", … */
  const char *version; /* joins cache keys */
  void *self;          /* passed to open() */

  /* Devices. */
  clv_status (*open)(void *self, const clv_host *host, const clv_device_config *config, clv_device **device, clv_error *error);
  void (*close)(clv_device *device);                       /* accepts NULL */
  void (*info)(clv_device *device, clv_device_info *info); /* strings live as long as the device */

  /* Capability. */
  void (*supports)(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);
  bool (*prefers)(clv_device *device, const clv_graph_view *graph, uint32_t node); /* optional */

  /* Memory. A buffer is aligned to alignment_bytes. */
  clv_status (*buffer_alloc)(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error);
  void (*buffer_free)(clv_device *device, clv_buffer *buffer);          /* accepts NULL */
  void *(*buffer_host_pointer)(clv_device *device, clv_buffer *buffer); /* NULL when the host cannot address it */

  /* Order. Copies are between host memory and this device; both ends stay valid until the stream passes them. */
  clv_status (*stream_create)(clv_device *device, clv_stream **stream, clv_error *error);
  void (*stream_destroy)(clv_device *device, clv_stream *stream);
  clv_status (*stream_synchronize)(clv_device *device, clv_stream *stream, clv_error *error); /* reports what failed before it */
  clv_status (*event_create)(clv_device *device, clv_event **event, clv_error *error);
  void (*event_destroy)(clv_device *device, clv_event *event);
  clv_status (*event_record)(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
  clv_status (*event_wait)(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error); /* on the device */
  clv_status (*event_synchronize)(clv_device *device, clv_event *event, clv_error *error);              /* on the host */
  clv_status (*copy_in)(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                        uint64_t size_bytes, clv_error *error);
  clv_status (*copy_out)(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                         uint64_t size_bytes, clv_error *error);

  /* Weights and executables. */
  clv_status (*weight_upload)(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight, clv_error *error);
  void (*weight_release)(clv_device *device, clv_weight *weight);
  clv_status (*compile)(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                        clv_executable **executable, clv_error *error); /* CLV_TOO_LARGE: split here */
  void (*executable_destroy)(clv_device *device, clv_executable *executable);
  void (*executable_info)(clv_device *device, clv_executable *executable, clv_executable_info *info);
  clv_status (*executable_save)(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                clv_error *error); /* optional, with load */
  clv_status (*executable_load)(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                clv_error *error);

  /* Instances. `inputs` has the view's inputs in order; `weights` those of executable_info() in order. */
  clv_status (*instance_create)(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error);
  void (*instance_destroy)(clv_device *device, clv_instance *instance);
  clv_status (*instance_resize)(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                clv_error *error); /* optional; CLV_NOT_SUPPORTED: make a new one, or compile again */
  clv_status (*execute)(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args, clv_error *error);

  /* What the device says of its own time, for planning where nothing was measured: optional, in seconds, negative where unknown.
   * Shapes in `graph` may be unknown. Also asked for nodes that the device does not support: what if it did? A node's launch and
   * its copies are apart. */
  double (*node_seconds)(clv_device *device, const clv_graph_view *graph, uint32_t node);
  double (*copy_seconds)(clv_device *device, uint64_t size_bytes);
  double (*launch_seconds)(clv_device *device);

  /* Optional: a delegate that chooses its own groups of nodes. Calls `add` for each, with ascending nodes that `is_free`; a node
   * in no group is not for this device. A group becomes one partition, or is cut where it is not convex. */
  clv_status (*claim)(clv_device *device, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add, void *cookie,
                      clv_error *error);

  /* Optional: calls `notify` once, when what was last recorded in the event has been reached, or was skipped because of a failure
   * (event_synchronize() then says which, without waiting); at once where that is so already. From any thread: it is short, and
   * calls no slot. Without this the host waits in a thread of its own. */
  clv_status (*event_notify)(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

  /* Scratch from the host's pool: optional, both or none. The bytes that the instance needs for its shapes, and memory for them,
   * which is there whenever the instance executes; where it has moved the instance is bound again before that, when nothing of it
   * runs. Instances of one stream may be given the same memory. Without these an instance has its own. */
  uint64_t (*instance_scratch_bytes)(clv_device *device, clv_instance *instance);
  clv_status (*instance_bind_scratch)(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes,
                                      clv_error *error);

  /* Capture: optional, all but captured_bind() or none. From capture_begin() to capture_end() execute() on that stream checks and
   * records, and nothing runs; only execute() of instances without outputs sized by data comes in between. capture_end() gives
   * what was recorded; with `captured` NULL, and where it fails, the recording is dropped and the stream is as before
   * capture_begin(). A captured graph refers to its instances, which outlive it and keep their scratch, and to the memory of its
   * bindings, which is there at every launch; in between it may go, and then the graph is bound again or destroyed.
   * captured_launch() enqueues it: the same results as the executions, in order. captured_bind() gives the `index`th execution
   * recorded other memory for the same shapes, while the graph does not run; without it, or with CLV_NOT_SUPPORTED, which changes
   * nothing, the host captures again. captured_destroy() comes when its last launch is over, and accepts NULL. captured_bytes():
   * what it holds. */
  clv_status (*capture_begin)(clv_device *device, clv_stream *stream, clv_error *error);
  clv_status (*capture_end)(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error);
  clv_status (*captured_launch)(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error);
  clv_status (*captured_bind)(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                              clv_error *error);
  void (*captured_destroy)(clv_device *device, clv_captured *captured);
  uint64_t (*captured_bytes)(clv_device *device, const clv_captured *captured);

  /* The keys of options that open() takes: optional. With a list the host refuses any other key, and tells people of these. */
  const clv_option_info *options;
  uint32_t option_count;

  /* Optional: the devices that are here, best first, without opening them. Without it there is one, or more by number. What
   * `found` answers, when it is not CLV_OK, is given back. CLV_NOT_SUPPORTED, with the reason: the driver is not here. */
  clv_status (*list)(void *self, const clv_host *host, clv_found_fn found, void *cookie, clv_error *error);

  /* Optional: builds at once what compile() and executable_load() only prepared. Called with all executables of a session that
   * are new to the device, before anything else is done with them but executable_info() and executable_destroy(). When it fails,
   * all of them are destroyed. */
  clv_status (*finish)(clv_device *device, clv_executable *const *executables, uint32_t count, clv_error *error);

  /* What each step of an instance takes: optional, both or none. From instance_time_steps() with `on`, which begins anew, to the
   * one without, executions are timed: they may be slower, never different; those of captured graphs need not be. Called while
   * nothing of the instance runs, as is instance_steps(), which calls `found` for every step in their order, and gives back what
   * that answers when it is not CLV_OK. CLV_NOT_SUPPORTED, with the reason: not of this instance. A resize may end it. */
  clv_status (*instance_time_steps)(clv_device *device, clv_instance *instance, bool on, clv_error *error);
  clv_status (*instance_steps)(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error);
} clv_backend;

/* The one exported symbol of a plugin. Fills `backend` with a table that lives as long as the library is loaded. */
typedef clv_status (*clv_backend_query_fn)(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
