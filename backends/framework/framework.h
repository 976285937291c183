/* Devices reached through a framework that is loaded at run time (OpenVINO, ONNX Runtime, PyTorch): everything that is the same
 * for them. A framework says how it compiles a partition and how it runs it; the slots of the plugin ABI, memory, streams,
 * verdicts by trial and what is remembered of them are here.
 *
 *   library    the framework's shared library, found and opened once (library.c)
 *   device     one of the devices that it lists, "CPU" of "openvino:CPU"
 *   model      a partition compiled for a device: immutable, used by several requests
 *   request    a model's state in one session: one run at a time
 *
 * Memory is the host's: bindings are host addresses, which a framework reads and writes in place where it can. Weights go into
 * models; nothing is uploaded apart. A device that computes on the host's own cores is synchronous; others, and those asked to by
 * option async=yes, have a thread for each stream, which runs requests in order. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_FRAMEWORK_H
#define CLEAVE_BACKENDS_FRAMEWORK_FRAMEWORK_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cleave/plugin/backend.h"

typedef struct clv__framework_device_info {
  const char *kind;        /* "cpu", "gpu", "npu"; static, or the device's own until it is closed */
  const char *description; /* one line for people: "OpenVINO 2026.4.1, CPU: AMD EPYC" */
  const char *fingerprint; /* device, driver, framework's version, options: whatever a model depends on */
  bool static_shapes_only; /* models are compiled for fixed shapes */
  bool computes_on_host;   /* its work takes the host's own cores */
  uint64_t memory_limit_bytes;
} clv__framework_device_info;

/* What one run reads and writes. `inputs` and `outputs` are in the order of the view's; all data are host addresses. An output
 * whose size follows from data comes with rank CLV_RANK_UNKNOWN and without memory: the framework calls
 * run->allocate_output(run->cookie, index, &type, &run->outputs[index], error), and writes to the type.data that it finds there.
 */
typedef clv_execute_args clv__framework_run;

/* A framework. Slots return a status, with a text in `error` when it is not CLV_OK, and let no exception out. Pointers to void
 * are the framework's own. Slots marked optional may be NULL. */
typedef struct clv__framework {
  const char *name;               /* the backend's: "openvino" */
  const char *version;            /* of this code, joins cache keys */
  const clv_option_info *options; /* beside `async`, which all have; may be NULL */
  uint32_t option_count;

  /* The library: found, opened, its version checked. CLV_NOT_SUPPORTED with where it was looked for, or what is wrong with it.
   * Called once in a process (the result is kept, a refusal is not), under a lock. */
  clv_status (*load)(const clv_host *host, void **library, clv_error *error);
  /* Its devices, best first: names and kinds. */
  clv_status (*list)(void *library, clv_found_fn found, void *cookie, clv_error *error);

  /* Opens the device called `name` ("CPU"); of `config` the options are its, in any order, and the number of threads. */
  clv_status (*device_open)(void *library, const clv_host *host, const char *name, const clv_device_config *config, void **device,
                            clv__framework_device_info *info, clv_error *error);
  void (*device_close)(void *device);

  /* Whether it may be tried: a table of what is known to be well, never more. False: no, with verdict's reason. True: the verdict
   * is that of compiling the node alone, once a signature, remembered across processes; with `is_sure` (false when asked) it is
   * yes without that. Strings and unknown types never get here, nor do open shapes where `static_shapes_only`. */
  bool (*may_support)(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict);

  /* A partition becomes a model. clv__framework_onnx() writes it as ONNX. Shapes may be unknown where the device takes that. */
  clv_status (*model_compile)(void *device, const clv_host *host, const clv_graph_view *graph, const clv_compile_options *options,
                              void **model, clv_error *error);
  void (*model_destroy)(void *model);
  clv_status (*model_save)(void *model, clv_write_fn write, void *cookie, clv_error *error); /* optional, with load */
  clv_status (*model_load)(void *device, const void *data, size_t size_bytes, void **model, clv_error *error);
  uint64_t (*model_bytes)(void *model); /* optional: memory that it keeps */

  /* Whether `part`, one node of a graph, compiles: CLV_OK, or why not. Optional: without it the node is compiled as a model. For
   * frameworks that can do with less than all of its weights: see clv__framework_onnx_trial(). */
  clv_status (*node_try)(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error);

  /* A request for inputs of given dtypes and shapes. */
  clv_status (*request_create)(void *model, const clv_tensor *inputs, uint32_t input_count, void **request, clv_error *error);
  /* The same request for other shapes; optional. CLV_NOT_SUPPORTED: make another. */
  clv_status (*request_resize)(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
  void (*request_destroy)(void *request);
  /* Runs, and returns when it is done. On any thread; the same request is never run twice at a time. */
  clv_status (*request_run)(void *request, clv__framework_run *run, clv_error *error);
} clv__framework;

/* The backend of a framework: for its query function. The table lives as long as the process. */
const clv_backend *clv__framework_backend(const clv__framework *framework);

/* The view as ONNX with all its constants inside. The caller releases `data` with the host's allocator. CLV_TOO_LARGE beyond what
 * protobuf can hold (2 GiB). */
clv_status clv__framework_onnx(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                               clv_error *error);

/* The same without large constants, which become inputs: what a node is tried with. */
clv_status clv__framework_onnx_trial(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                                     clv_error *error);

/* ---- Finding a library (library.c) ---- */

typedef struct clv__library_search {
  const char *what;              /* "OpenVINO", for errors */
  const char *variable_name;     /* "CLEAVE_OPENVINO" */
  const char *variable;          /* what it says: a file, or a folder that holds one (any of `subfolders` below it too); NULL */
  const char *const *names;      /* file names, a `*` stands for any text ("libopenvino_c.so*"); NULL at the end */
  const char *const *subfolders; /* where a Python wheel has it, below site-packages: "openvino/libs"; NULL at the end */
} clv__library_search;

/* Opens the first of: what the variable says (nothing else, when it says something), the loader's path, the site-packages of
 * VIRTUAL_ENV, of the user and of the system. Never the current directory. `path` (may be NULL) gets where it was found.
 * CLV_NOT_SUPPORTED: where it was looked for, or the loader's words. */
clv_status clv__library_open(const clv__library_search *search, int flags, void **handle, char *path, size_t path_bytes,
                             clv_error *error);

#endif
