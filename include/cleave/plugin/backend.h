/* The plugin ABI. A backend implements it so that Cleave can place, compile and run parts of a graph on the backend's devices.
 *
 * A backend is a table of functions. A shared library exports one symbol, `clv_backend_query`, which returns the table. A program
 * can pass a function of the same type to clv_context_add_backend() instead. Built-in backends use the same interface.
 *
 * Layers: backend -> device -> memory space -> stream/event -> executable -> instance.
 *
 *   - open() opens a device. CLV_NOT_SUPPORTED means that the device is absent or its driver is unusable. The host then does
 *     without it.
 *   - supports() is called for every node. After a yes, compile() of that node alone must succeed. prefers() says which of
 *     these nodes suit the device best.
 *   - compile() turns a partition into an executable, which is immutable and shared by sessions.
 *   - weight_upload() puts a weight on the device, once, under its id. Executables refer to the weight and hold no copy.
 *   - instance_create() creates an executable's state in one session, for given input shapes.
 *   - execute() enqueues an instance on a stream. Inputs and outputs are bindings.
 *   - `capture` records the work that execute() enqueues, and enqueues it again as one launch.
 *
 * Rules for all slots:
 *   - Return a status. If it is not CLV_OK, put a message in `error`.
 *   - Never abort, never print, never let a C++ exception escape.
 *   - Values that cross a partition boundary are dense, row-major and exactly of the dtype that the graph states. If
 *     clv_dtype_size_bytes() is 0, several elements share a byte. Inside a partition, the backend chooses the layout.
 *   - Later versions may add dtypes. supports() accepts a node only if it knows the dtype of every input and output.
 *   - A slot marked optional may be NULL. Optional slots that need each other form a group: a separate table, to which
 *     clv_backend has a pointer (NULL: not implemented). All slots of a group are required, except those marked optional in it.
 *
 * Versions: a struct with a `struct_size` may grow at its end; other structs do not change. `struct_size` is the size that the
 * code which allocated the struct knows. The other side writes nothing beyond it, and treats fields beyond it as zero.
 * `abi_version` changes only if an existing field changes its meaning. The host rejects backends of other versions.
 *
 * Threads: the host calls a device's functions from one thread at a time. Exceptions: these calls may come at any time, even
 * while another function is running:
 *   - execute(), copies, events, stream_synchronize() and the slots of `capture`, from several threads on different streams
 *   - stream_stop(), from any thread
 *   - buffer_alloc(), buffer_free() and buffer_discard(), from any thread; allocate_output() calls the first two on the thread
 *     that it is called from
 * An instance is used on one stream only. It may be enqueued again before its previous execution has finished.
 *
 * The host abandons a device that hangs. It then calls only close(), which must return after finishing or abandoning the work. */
#ifndef CLEAVE_PLUGIN_BACKEND_H
#define CLEAVE_PLUGIN_BACKEND_H

#include "../info.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_ABI_VERSION 3u

/* ---- The host's side: graph accessors, and services ------------------------------------------------------------ */

typedef struct clv_value_info {
  uint32_t struct_size; /* set by the caller */
  bool is_input;        /* the value enters the view from outside and is not a constant */
  bool is_output;       /* read outside the view, or an output of the model: must be written */
  const char *name;     /* unique in its graph; "" only for an absent value */
  clv_tensor type;      /* `data` is set for a constant whose bytes are known, an initializer or folded. It may be unaligned */
  /* The value is known before the graph runs. During planning, `data` may still be NULL, if the model's weights come from other
   * files. All data is present when compile() is called. */
  bool is_constant;
  bool is_streamed; /* an input that is a weight, copied in for every execution: max_partition_inputs does not count it */
} clv_value_info;

/* A node without bodies, to be run in host memory. `inputs` are aligned to their elements; an absent one has dtype
 * CLV_DTYPE_NONE. `outputs` are typed and have room in `data`; an unused one has dtype CLV_DTYPE_NONE. All pointers are valid
 * only during the call. */
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

/* Runs a node. If this returns CLV_NOT_SUPPORTED, the host runs the node itself. */
typedef clv_status (*clv_run_node_fn)(void *cookie, const clv_node_call *call, clv_error *error);

/* How evaluate_node_with() evaluates a node and its bodies. The host calls both functions in the thread of that call, one at a
 * time. */
typedef struct clv_evaluation {
  uint32_t struct_size;
  clv_run_node_fn run_node; /* runs the node, or each node of its bodies; NULL: the host's kernels, slow reference loops */
  /* Called before each node and each iteration of a body. true: the evaluation ends with CLV_CANCELLED. NULL: it runs to its
   * end. */
  bool (*is_stopped)(void *cookie);
  void *cookie;
} clv_evaluation;

/* The host's services. Valid as long as the backend is loaded. */
struct clv_host {
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

  /* Infers the dtype and shape of a node's outputs. `inputs` are in the order of the node's inputs, captured values included.
   * An input with `data` is a known value. If every input has data, the shapes are complete, except those of If and Loop, whose
   * bodies would have to run. */
  clv_status (*infer_node)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                           clv_error *error);

  /* Runs one node with the reference kernels, including the bodies of If and Loop. `inputs` are host tensors in the order of
   * the node's inputs, captured values included. The data of each output is allocated with `allocator` and belongs to the
   * caller. */
  clv_status (*evaluate_node)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                              clv_error *error);

  /* Writes the view as an ONNX model to memory allocated with `allocator`. Constants larger than `inline_limit_bytes`, and
   * constants without data, become inputs of the model. They follow its own inputs, in the order of their value ids. */
  clv_status (*graph_to_onnx)(const clv_graph_view *graph, size_t inline_limit_bytes, void **data, size_t *size_bytes,
                              clv_error *error);
  /* Opens a view of an ONNX model, the reverse of graph_to_onnx(). For executables that contain the bodies of nodes. The bytes
   * are copied. graph_close() accepts NULL. */
  clv_status (*graph_open)(void *self, const void *data, size_t size_bytes, clv_graph_view **graph, clv_error *error);
  void (*graph_close)(void *self, clv_graph_view *graph);

  /* Tells the host that the backend has copied a constant and is unlikely to read it again. The host may return its pages to the
   * system. The bytes stay valid. Call this in compile() after each weight, so that memory never holds the model twice. */
  void (*constant_copied)(const clv_graph_view *graph, uint32_t value);

  /* Makes a view of some nodes of a view, in ascending order. It serves backends that decide by trial, for example about a single
   * node. Close the part with graph_part_close(), which accepts NULL, while the original view is still valid. */
  clv_status (*graph_part)(void *self, const clv_graph_view *graph, const uint32_t *nodes, uint32_t count, clv_graph_view **part,
                           clv_error *error);
  void (*graph_part_close)(void *self, clv_graph_view *part);

  /* Store results that a backend found by trial, so that it need not repeat the trial. They are kept in the context's cache,
   * under the backend's name and `key`, a string that names the device and the driver. recall() returns the last stored data,
   * allocated with `allocator`, or CLV_NOT_FOUND. The data may be stale or hostile: validate it. remember() replaces the data
   * stored under the key. Any thread may call them. */
  clv_status (*recall)(void *self, const char *backend, const char *key, void **data, size_t *size_bytes, clv_error *error);
  clv_status (*remember)(void *self, const char *backend, const char *key, const void *data, size_t size_bytes, clv_error *error);

  /* Like evaluate_node(), but evaluates the node as `how` says. */
  clv_status (*evaluate_node_with)(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                   const clv_evaluation *how, clv_error *error);

  /* Like graph_to_onnx(), but for readers that do not support functions in ONNX models. graph_to_onnx() defines each operator
   * of domain ai.cleave as a function of the model. This slot replaces the operator by the standard operators that define it,
   * and graph_open() does not restore it. */
  clv_status (*graph_to_standard_onnx)(const clv_graph_view *graph, size_t inline_limit_bytes, void **data, size_t *size_bytes,
                                       clv_error *error);

  /* The name of symbolic dimension `symbol` (see CLV_DIM_SYMBOL) in the model, such as "batch", for messages. NULL: it has none.
   * Valid as long as the view. */
  const char *(*graph_symbol_name)(const clv_graph_view *graph, uint32_t symbol);
};

/* ---- The backend's side -------------------------------------------------------------------------------------------------- */

typedef struct clv_device clv_device;         /* a backend's device; opaque to the host, like all types below */
typedef struct clv_stream clv_stream;         /* an in-order queue */
typedef struct clv_event clv_event;           /* a point in a stream */
typedef struct clv_buffer clv_buffer;         /* memory in the device's memory space */
typedef struct clv_weight clv_weight;         /* a weight resident on the device */
typedef struct clv_executable clv_executable; /* a compiled partition */
typedef struct clv_instance clv_instance;     /* an executable's state in one session */
typedef struct clv_captured clv_captured;     /* a capture: recorded launches */

typedef struct clv_option {
  const char *key;
  const char *value;
} clv_option;

/* An option that a backend's devices accept. */
typedef struct clv_option_info {
  const char *key;
  const char *values; /* the valid values, for the user: "auto, own, host", "a whole number of bytes" */
  const char *help;   /* one line; states the default */
} clv_option_info;

typedef struct clv_device_config {
  uint32_t struct_size;
  uint32_t ordinal;      /* which of the backend's devices to open, counted from 0 */
  const char *name;      /* the user's name for it: "cpu", "npu" */
  uint32_t option_count; /* the user's options for this device (--device-option NAME:key=value) */
  const clv_option *options;
  uint32_t thread_count; /* for a device that computes on the host's cores; 0: one per core */
} clv_device_config;

/* A device's answer about one node. */
typedef struct clv_verdict {
  bool supported;
  char reason[160]; /* if not supported: the obstacle, with its value, such as "dtype f64" or "rank 5 above 4" */
} clv_verdict;

typedef struct clv_compile_options {
  uint32_t struct_size;
  bool deterministic;  /* exclude faster algorithms that round differently, such as Winograd convolution */
  bool tune;           /* may measure to choose an algorithm */
  clv_dtype precision; /* CLV_BF16: f32 values may be multiplied in bf16 if that is faster; bindings keep their dtypes. Any other
                          value, or a backend without bf16: compute as the graph says */
} clv_compile_options;

typedef struct clv_executable_info {
  uint32_t struct_size;
  uint32_t weight_count;
  const char *const *weights; /* their names, in the order in which instance_create() gets them; owned by the executable */
  uint64_t resident_bytes;    /* memory that the executable holds, without weights */
  uint64_t scratch_bytes;     /* estimate of an instance's scratch at the compiled shapes */
} clv_executable_info;

/* The location of a value at run time. `type` has the actual dims. `type.data` is used only if `buffer` is NULL. */
typedef struct clv_binding {
  clv_buffer *buffer; /* NULL: the value is in host memory at type.data; only for devices whose memory space is "host" */
  uint64_t offset_bytes;
  clv_tensor type;
} clv_binding;

typedef struct clv_execute_args {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  const clv_binding *inputs;
  /* If the size of an output was unknown when the instance was created, its binding has a dtype, rank CLV_RANK_UNKNOWN and no
   * memory. The backend calls allocate_output() once the shape is known. That call fills in the binding. The host reads the
   * shape only after the stream's next event. */
  clv_binding *outputs;
  void *cookie;
  clv_status (*allocate_output)(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error);
} clv_execute_args;

/* A step of an instance: a unit of work that the device does in one go. */
typedef struct clv_step_info {
  uint32_t struct_size; /* set by the device */
  /* The nodes that the step computes, numbered as in the graph that was compiled, in ascending order; several if they are fused.
   * A node is in at most one step. A node that needs no work, such as a Reshape or a constant, is in none. */
  uint32_t node_count;
  const uint32_t *nodes;
  uint32_t beside;            /* for a step without nodes, such as a reorder: the node that it serves, or CLV_NO_VALUE */
  const char *what;           /* the device's name for the step: "Conv", "reorder" */
  const char *implementation; /* which implementation it uses; may be "" */
  uint64_t size_bytes;        /* bytes read and written by one execution; 0 if the device does not know */
  uint64_t time_ns;           /* sum over the timed executions */
  uint64_t executions;        /* number of timed executions */
} clv_step_info;

typedef clv_status (*clv_step_fn)(void *cookie, const clv_step_info *step); /* `step` is valid during the call */
typedef clv_status (*clv_write_fn)(void *cookie, const void *data, size_t size_bytes);
typedef clv_status (*clv_claim_fn)(void *cookie, const uint32_t *nodes, uint32_t count);
typedef void (*clv_notify_fn)(void *cookie);
/* `name` is the part that follows the backend's name: "GPU.0" of "openvino:GPU.0"; "" for the backend's only device. */
typedef clv_status (*clv_found_fn)(void *cookie, const char *name, const char *kind);

/* ---- Optional groups of slots ---- */

/* Executables in files: save() writes an executable, load() creates one from the bytes.
 *
 * graph() is optional. It returns the graph that the executable computes, as the host's graph_open() opened it, and the limit
 * with which graph_to_onnx() wrote it. The executable keeps owning the graph. After each load(), the host compares the graph
 * with the partition, and compiles the partition if they differ. If graph() is absent or returns NULL, the host uses the
 * executable if it was saved under the partition's cache key. */
typedef struct clv_save_slots {
  uint32_t struct_size;
  clv_status (*save)(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie, clv_error *error);
  clv_status (*load)(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable, clv_error *error);
  const clv_graph_view *(*graph)(clv_device *device, const clv_executable *executable, size_t *inline_limit_bytes);
} clv_save_slots;

/* Scratch memory from the host's pool. size_bytes() returns what the instance needs for its shapes. bind() gives it memory,
 * which is valid whenever the instance executes. If the memory moves, the host binds it again before the next execution, while
 * no execution of the instance is running. Instances of one stream may share scratch. Without this group an instance allocates
 * its own. */
typedef struct clv_scratch_slots {
  uint32_t struct_size;
  uint64_t (*size_bytes)(clv_device *device, clv_instance *instance);
  clv_status (*bind)(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes, clv_error *error);
} clv_scratch_slots;

/* The calls that other threads may make to the device while a stream records. */
typedef enum clv_capture_mode {
  CLV_CAPTURE_GLOBAL = 0, /* no calls: until end(), only the recording thread calls the device */
  CLV_CAPTURE_THREAD = 1  /* all calls that the rules for threads allow, on other streams */
} clv_capture_mode;

/* Recorded launches.
 *
 * begin() may return CLV_NOT_SUPPORTED for a mode that the driver does not have; the host then captures nothing.
 *
 * Between begin() and end(), execute() on that stream checks and records, and nothing runs. The host calls only execute() on
 * the stream in between, and only for instances without outputs whose size depends on data. end() returns the recording. If the
 * host passes NULL as `captured`, or the call fails, the recording is discarded and the stream is as it was before begin().
 *
 * A capture refers to its instances, which outlive it and keep their scratch. It also refers to the memory of its bindings,
 * which must exist at every launch. Between launches that memory may be freed; the host then rebinds or destroys the capture.
 *
 * launch() enqueues the capture. Its results are those of the recorded executions in order. bind() gives the `index`th recorded
 * execution other memory of the same shapes, while the capture is not running. If bind() is NULL, or changes nothing and returns
 * CLV_NOT_SUPPORTED, the host captures again. destroy() accepts NULL; the host calls it after the last launch has finished.
 * size_bytes() returns the memory that the capture holds. */
typedef struct clv_capture_slots {
  uint32_t struct_size;
  clv_status (*begin)(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error);
  clv_status (*end)(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error);
  clv_status (*launch)(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error);
  clv_status (*bind)(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                     clv_error *error); /* optional */
  void (*destroy)(clv_device *device, clv_captured *captured);
  uint64_t (*size_bytes)(clv_device *device, const clv_captured *captured);
} clv_capture_slots;

/* The time of each step of an instance. The host calls both slots only while the instance is not running.
 *
 * enable() with `on` true resets the times and starts timing; with `on` false it stops. Timed executions may be slower, but
 * their results must not change. Launches of captures need not be timed. A resize may stop the timing. CLV_NOT_SUPPORTED, with
 * the reason: this instance cannot be timed.
 *
 * steps() calls `found` for every step in order. If `found` returns an error, return it. */
typedef struct clv_timing_slots {
  uint32_t struct_size;
  clv_status (*enable)(clv_device *device, clv_instance *instance, bool on, clv_error *error);
  clv_status (*steps)(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error);
} clv_timing_slots;

struct clv_backend {
  uint32_t abi_version;
  uint32_t struct_size;
  const char *name;    /* "cpu", "vnpu", … */
  const char *version; /* part of cache keys */
  void *self;          /* passed to open() */

  /* Devices. */
  clv_status (*open)(void *self, const clv_host *host, const clv_device_config *config, clv_device **device, clv_error *error);
  void (*close)(clv_device *device);                       /* accepts NULL */
  void (*info)(clv_device *device, clv_device_info *info); /* its strings are valid as long as the device */

  /* Capability. */
  void (*supports)(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);
  /* Optional; true: the device suits the node, for example because of much arithmetic, and should get it even if the node's
   * weights are in another device's memory. The host weighs the copies of the weights against the gain; the backend need not. */
  bool (*prefers)(clv_device *device, const clv_graph_view *graph, uint32_t node);

  /* Memory. Buffers are aligned to alignment_bytes. */
  clv_status (*buffer_alloc)(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error);
  void (*buffer_free)(clv_device *device, clv_buffer *buffer);          /* accepts NULL */
  void *(*buffer_host_pointer)(clv_device *device, clv_buffer *buffer); /* NULL if the host cannot address it */

  /* Order. Copies are between host memory and this device. The host keeps the source and the destination of a copy valid until
   * the stream has passed the copy. */
  clv_status (*stream_create)(clv_device *device, clv_stream **stream, clv_error *error);
  void (*stream_destroy)(clv_device *device, clv_stream *stream);
  clv_status (*stream_synchronize)(clv_device *device, clv_stream *stream, clv_error *error); /* reports earlier failures */
  clv_status (*event_create)(clv_device *device, clv_event **event, clv_error *error);
  void (*event_destroy)(clv_device *device, clv_event *event);
  clv_status (*event_record)(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
  clv_status (*event_wait)(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error); /* the stream waits */
  clv_status (*event_synchronize)(clv_device *device, clv_event *event, clv_error *error);              /* the caller waits */
  clv_status (*copy_in)(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                        uint64_t size_bytes, clv_error *error);
  clv_status (*copy_out)(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                         uint64_t size_bytes, clv_error *error);

  /* Weights and executables. */
  clv_status (*weight_upload)(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight, clv_error *error);
  void (*weight_release)(clv_device *device, clv_weight *weight);
  clv_status (*compile)(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                        clv_executable **executable, clv_error *error); /* CLV_TOO_LARGE: the partition does not fit the device */
  void (*executable_destroy)(clv_device *device, clv_executable *executable);
  void (*executable_info)(clv_device *device, clv_executable *executable, clv_executable_info *info);

  /* Instances. `inputs` are in the order of the view's inputs. `weights` are in the order of executable_info(). */
  clv_status (*instance_create)(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error);
  void (*instance_destroy)(clv_device *device, clv_instance *instance);
  /* Optional. After CLV_NOT_SUPPORTED the host creates a new instance, or recompiles. */
  clv_status (*instance_resize)(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                clv_error *error);
  clv_status (*execute)(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args, clv_error *error);

  /* Optional: the device's own time estimates, used for planning if nothing was measured. In seconds; negative if unknown. Shapes
   * in `graph` may be unknown. node_seconds() is also called for nodes that the device does not support, for what-if plans. It
   * excludes the launch and the copies. */
  double (*node_seconds)(clv_device *device, const clv_graph_view *graph, uint32_t node);
  double (*copy_seconds)(clv_device *device, uint64_t size_bytes);
  double (*launch_seconds)(clv_device *device);

  /* Optional, for a delegate that chooses its own groups of nodes. It calls `add` once per group. The nodes of a group are in
   * ascending order. Each must be one that this device may get: `is_free`, indexed by node, is true for it. A node in no group is
   * not placed on this device. A group becomes one partition, or several if it is not convex. */
  clv_status (*claim)(clv_device *device, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add, void *cookie,
                      clv_error *error);

  /* Optional: calls `notify` exactly once, when the stream reaches the event's last recorded point, or skips it because of a
   * failure. event_synchronize() then returns which of the two happened, without waiting. If the point has already passed, it
   * calls `notify` at once. Any thread may call `notify`, which is short and calls no slot. Without this slot the host waits in a
   * thread of its own. */
  clv_status (*event_notify)(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

  /* Optional: the option keys that open() accepts. If there is a list, the host rejects any other key and lists these to the
   * user. */
  const clv_option_info *options;
  uint32_t option_count;

  /* Optional: lists the available devices, best first, without opening them. Without this slot the backend has one device, or
   * several by number. `options` are the ones that open() would get. If they describe a device (as option `spec` of vnpu does),
   * it is listed under the name in that description. If `found` returns an error, return it. CLV_NOT_SUPPORTED, with the
   * reason: there is no driver. */
  clv_status (*list)(void *self, const clv_host *host, const clv_option *options, uint32_t option_count, clv_found_fn found,
                     void *cookie, clv_error *error);

  /* Optional: builds, in one call, the executables that compile() and save->load() only prepared. The host passes all
   * executables of a session that are new to the device. Before this call it uses them only in executable_info() and
   * executable_destroy(). If the call fails, the host destroys all of them. */
  clv_status (*finish)(clv_device *device, clv_executable *const *executables, uint32_t count, clv_error *error);

  /* Optional: stops the work of a stream. Work that has not begun does not start, launches of captures included; work that is
   * running may finish or end early. The stream is usable again once stream_synchronize() has returned: CLV_OK if all of the work
   * was done, CLV_CANCELLED if some was not. Until then, work that is enqueued on the stream may be skipped too. Events whose
   * point was skipped report CLV_CANCELLED. The call does not wait. It may come from any thread, also during execute() and
   * stream_synchronize(). */
  clv_status (*stream_stop)(clv_device *device, clv_stream *stream, clv_error *error);

  /* Optional groups of slots. */
  const clv_save_slots *save;
  const clv_scratch_slots *scratch;
  const clv_capture_slots *capture;
  const clv_timing_slots *timing;

  /* Optional: says that no byte in the buffer is needed any more. Every byte is written again before it is read. The host calls
   * this at the beginning of each run, for the memory of the values between partitions, while nothing uses that memory. A
   * device that checks its programs overwrites the bytes with garbage. A value that the run forgets to write is then visibly
   * wrong, instead of being the value of the previous run. */
  void (*buffer_discard)(clv_device *device, clv_buffer *buffer);
};

#ifdef __cplusplus
}
#endif
#endif
