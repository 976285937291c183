/* Devices reached through a framework that is loaded at run time (OpenVINO, ONNX Runtime, PyTorch). A framework supplies the code
 * that compiles and runs a partition. This folder supplies the rest: the slots of the plugin ABI, memory, streams, verdicts found
 * by trial, and their storage.
 *
 *   library    the framework's shared library, found and opened once (library.c)
 *   device     one of the devices that the library lists: "CPU" in "openvino:CPU"
 *   model      a partition compiled for a device: immutable, used by several requests
 *   request    a model's state in one session: one run at a time
 *
 * Memory is the host's: bindings are host addresses, which a framework reads and writes in place if it can. Models contain their
 * weights; no weight is uploaded separately. A device that computes on the host's cores is synchronous. Other devices, and those
 * with the option async=yes, have one thread per stream, which runs requests in order. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_FRAMEWORK_H
#define CLEAVE_BACKENDS_FRAMEWORK_FRAMEWORK_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cleave/plugin/backend.h"

typedef struct clv__framework_device_info {
  const char *kind;        /* "cpu", "gpu", "npu"; a static string, or owned by the device until it is closed */
  const char *description; /* one line for people: "OpenVINO 2026.4.1, CPU: AMD EPYC" */
  const char *fingerprint; /* everything that a model depends on: device, driver, framework version, options */
  bool static_shapes_only; /* models are compiled for fixed shapes */
  bool computes_on_host;   /* the device computes on the host's cores */
  uint64_t memory_limit_bytes;
} clv__framework_device_info;

/* The inputs and outputs of one run. `inputs` and `outputs` are in the order of the view. All data are host addresses. An
 * output whose size depends on data comes with rank CLV_RANK_UNKNOWN and without memory. For it the framework calls
 * run->allocate_output(run->cookie, index, &type, &run->outputs[index], error), and then writes to the type.data of that
 * binding. */
typedef clv_execute_args clv__framework_run;

/* A framework. A slot returns a status, sets a text in `error` if the status is not CLV_OK, and lets no C++ exception escape. The
 * framework owns what the void pointers point to. Slots marked optional may be NULL. */
typedef struct clv__framework {
  const char *name;               /* the name of the backend: "openvino" */
  const char *version;            /* version of the backend's code; part of the cache keys */
  const clv_option_info *options; /* in addition to `async`, which all frameworks have; may be NULL */
  uint32_t option_count;

  /* Finds and opens the library, and checks its version. On failure returns CLV_NOT_SUPPORTED; the message lists the places that
   * were searched, or says why the library is unusable. Called under a lock. It is called again only if the last call failed. */
  clv_status (*load)(const clv_host *host, void **library, clv_error *error);
  /* Lists the names and kinds of the library's devices, best first. */
  clv_status (*list)(void *library, clv_found_fn found, void *cookie, clv_error *error);

  /* Opens the device called `name` ("CPU"). `config` has the framework's own options, in any order, and the number of threads. */
  clv_status (*device_open)(void *library, const clv_host *host, const char *name, const clv_device_config *config, void **device,
                            clv__framework_device_info *info, clv_error *error);
  void (*device_close)(void *device);

  /* Checks a node before a trial compilation. Returns false, with the reason in `verdict`, if the node is not supported, for
   * instance because it compiles but gives wrong results. If the slot returns true, the node is compiled alone, and the outcome
   * is the verdict. It is cached across processes, under the node's signature (verdicts.h). If the slot also sets `is_sure`,
   * which the caller has set to false, the verdict is yes without a trial. Not called for nodes with strings or unknown types,
   * and, if `static_shapes_only` is set, not for nodes with dynamic shapes. */
  bool (*may_support)(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict);

  /* Compiles a partition to a model. clv__framework_onnx() writes the partition as ONNX. Shapes may be unknown if the device
   * accepts that. */
  clv_status (*model_compile)(void *device, const clv_host *host, const clv_graph_view *graph, const clv_compile_options *options,
                              void **model, clv_error *error);
  void (*model_destroy)(void *model);
  clv_status (*model_save)(void *model, clv_write_fn write, void *cookie, clv_error *error); /* optional; requires model_load */
  clv_status (*model_load)(void *device, const void *data, size_t size_bytes, void **model, clv_error *error);
  uint64_t (*model_bytes)(void *model); /* optional: the memory that the model keeps */

  /* Checks whether `part`, a graph of one node, compiles. Returns CLV_OK, or an error with the reason. Optional: without this
   * slot, model_compile() is used. A framework sets it if it can try a node without its large weights: see
   * clv__framework_onnx_trial(). */
  clv_status (*node_try)(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error);

  /* Creates a request for inputs of these dtypes and shapes. */
  clv_status (*request_create)(void *model, const clv_tensor *inputs, uint32_t input_count, void **request, clv_error *error);
  /* Adapts the request to other shapes. Optional. CLV_NOT_SUPPORTED: create a new request. */
  clv_status (*request_resize)(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
  void (*request_destroy)(void *request);
  /* Runs the request and returns when it is complete. May be called on any thread; the same request never runs twice at a
   * time. */
  clv_status (*request_run)(void *request, clv__framework_run *run, clv_error *error);
  /* request_stop() makes this request's request_run(), which is about to begin or in progress on another thread, return an
   * error as soon as the library allows that. request_resume() is called before each run, and cancels the effect of an earlier
   * request_stop(). Both are optional: without request_stop(), a run that has begun runs to its end. */
  void (*request_stop)(void *request);
  void (*request_resume)(void *request);
} clv__framework;

/* Returns the backend table of a framework, for the framework's query function to return. The table is never freed. `framework`
 * must stay valid as well. NULL if too many frameworks are registered. */
const clv_backend *clv__framework_backend(const clv__framework *framework);

/* Writes the view as ONNX with all its constants inside. The caller releases `data` with the host's allocator. Returns
 * CLV_TOO_LARGE above protobuf's limit of 2 GiB. */
clv_status clv__framework_onnx(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                               clv_error *error);

/* Like clv__framework_onnx(), but large constants become inputs. For trials of a node. */
clv_status clv__framework_onnx_trial(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                                     clv_error *error);

/* ---- Finding a library (library.c) ---- */

typedef struct clv__library_search {
  const char *what;          /* name of the framework in error messages: "OpenVINO" */
  const char *variable_name; /* name of the environment variable: "CLEAVE_OPENVINO" */
  const char *variable; /* its value: the library file, or a folder that has it directly or in one of `subfolders`; may be NULL */
  const char *const *names;      /* file names in which `*` stands for any text ("libopenvino_c.so*"); ends with NULL */
  const char *const *subfolders; /* folders of a Python wheel, below site-packages: "openvino/libs"; ends with NULL */
} clv__library_search;

/* Opens the library. If the variable has a value, only that is searched. Otherwise the order is: the loader's path, then the
 * site-packages of VIRTUAL_ENV, of the user and of the system. The current directory is never searched. `path` (may be NULL)
 * receives the place where it was found. `flags` are those of dlopen(). Returns CLV_NOT_SUPPORTED with the places that were
 * searched, or the loader's message. */
clv_status clv__library_open(const clv__library_search *search, int flags, void **handle, char *path, size_t path_bytes,
                             clv_error *error);

#endif
