/* The part of OpenVINO's C API that is used here. It is declared here, so that the build does not need OpenVINO's headers. The
 * entry points are looked up in a library that is loaded at run time.
 *
 * Two things here can differ between releases: the numbers of element types (those of 2025.0 were one higher), and the structs
 * passed by value. So only versions from CLV__OPENVINO_OLDEST up to, but not including, CLV__OPENVINO_BEYOND are accepted.
 * Also, the types of every compiled model's inputs and outputs are read and compared with the expected ones. */
#ifndef CLEAVE_BACKENDS_OPENVINO_API_H
#define CLEAVE_BACKENDS_OPENVINO_API_H

#include "base/error.h"
#include "cleave/plugin/backend.h"

enum { CLV__OPENVINO_OLDEST = 202504, CLV__OPENVINO_BEYOND = 202700 }; /* the year, then two digits for the release */

typedef struct ov_core ov_core;
typedef struct ov_model ov_model;
typedef struct ov_compiled_model ov_compiled_model;
typedef struct ov_infer_request ov_infer_request;
typedef struct ov_port ov_port; /* ov_output_const_port_t in OpenVINO's headers: an input or output of a model */
typedef struct ov_tensor ov_tensor;

typedef struct ov_version {
  const char *build_number;
  const char *description;
} ov_version;

typedef struct ov_device_names {
  char **names;
  size_t count;
} ov_device_names;

typedef struct ov_shape {
  int64_t rank;
  int64_t *dims;
} ov_shape;

/* The bounds of a dimension. An upper bound of -1 means unbounded. */
typedef struct ov_dimension {
  int64_t min, max;
} ov_dimension;

typedef struct ov_partial_shape {
  ov_dimension rank;
  ov_dimension *dims;
} ov_partial_shape;

/* Every function that returns an int returns 0, or a negative code for an error. */
#define CLV__OPENVINO_ENTRY_POINTS(X)                                                                                           \
  X(int, get_openvino_version, (ov_version * version))                                                                          \
  X(void, version_free, (ov_version * version))                                                                                 \
  X(const char *, get_error_info, (int code))                                                                                   \
  X(const char *, get_last_err_msg, (void))                                                                                     \
  X(void, free, (const char *text))                                                                                             \
  X(int, core_create, (ov_core * *core))                                                                                        \
  X(void, core_free, (ov_core * core))                                                                                          \
  X(int, core_get_available_devices, (const ov_core *core, ov_device_names *devices))                                           \
  X(void, available_devices_free, (ov_device_names * devices))                                                                  \
  X(int, core_get_property, (const ov_core *core, const char *device, const char *key, char **value))                           \
  X(int, core_set_property, (const ov_core *core, const char *device, ...))                                                     \
  X(int, core_read_model_from_memory_buffer,                                                                                    \
    (const ov_core *core, const char *data, size_t size_bytes, const ov_tensor *weights, ov_model **model))                     \
  X(void, model_free, (ov_model * model))                                                                                       \
  X(int, model_inputs_size, (const ov_model *model, size_t *count))                                                             \
  X(int, model_const_input_by_name, (const ov_model *model, const char *name, ov_port **port))                                  \
  X(int, core_compile_model,                                                                                                    \
    (const ov_core *core, const ov_model *model, const char *device, size_t property_count, ov_compiled_model **compiled, ...)) \
  X(int, core_import_model,                                                                                                     \
    (const ov_core *core, const char *data, size_t size_bytes, const char *device, ov_compiled_model **compiled))               \
  X(int, compiled_model_export_model, (const ov_compiled_model *compiled, const char *path))                                    \
  X(void, compiled_model_free, (ov_compiled_model * compiled))                                                                  \
  X(int, compiled_model_inputs_size, (const ov_compiled_model *compiled, size_t *count))                                        \
  X(int, compiled_model_outputs_size, (const ov_compiled_model *compiled, size_t *count))                                       \
  X(int, compiled_model_input_by_index, (const ov_compiled_model *compiled, size_t index, ov_port **port))                      \
  X(int, compiled_model_output_by_index, (const ov_compiled_model *compiled, size_t index, ov_port **port))                     \
  X(int, compiled_model_create_infer_request, (const ov_compiled_model *compiled, ov_infer_request **request))                  \
  X(int, port_get_any_name, (const ov_port *port, char **name))                                                                 \
  X(int, port_get_element_type, (const ov_port *port, int *type))                                                               \
  X(int, port_get_partial_shape, (const ov_port *port, ov_partial_shape *shape))                                                \
  X(void, partial_shape_free, (ov_partial_shape * shape))                                                                       \
  X(void, output_const_port_free, (ov_port * port))                                                                             \
  X(int, tensor_create_from_host_ptr, (int type, ov_shape shape, void *data, ov_tensor **tensor))                               \
  X(int, tensor_get_shape, (const ov_tensor *tensor, ov_shape *shape))                                                          \
  X(int, tensor_get_byte_size, (const ov_tensor *tensor, size_t *size_bytes))                                                   \
  X(int, tensor_data, (const ov_tensor *tensor, void **data))                                                                   \
  X(void, tensor_free, (ov_tensor * tensor))                                                                                    \
  X(int, shape_free, (ov_shape * shape))                                                                                        \
  X(int, infer_request_set_tensor_by_const_port, (ov_infer_request * request, const ov_port *port, const ov_tensor *tensor))    \
  X(int, infer_request_get_tensor_by_const_port, (const ov_infer_request *request, const ov_port *port, ov_tensor **tensor))    \
  X(int, infer_request_infer, (ov_infer_request * request))                                                                     \
  X(int, infer_request_cancel, (ov_infer_request * request))                                                                    \
  X(void, infer_request_free, (ov_infer_request * request))

/* The loaded library: a pointer to each entry point, named without "ov_". The library is never unloaded,
 * because its threads may still run. */
typedef struct clv__openvino {
#define FIELD(result, name, parameters) result(*name) parameters;
  CLV__OPENVINO_ENTRY_POINTS(FIELD)
#undef FIELD
  char build[96]; /* the version: "2026.4.1-22982-e213a147257-releases/2026/4" */
} clv__openvino;

/* Finds and loads the library, and checks its version. Returns CLV_NOT_SUPPORTED with the reason. */
clv_status clv__openvino_load(const clv_host *host, void **library, clv_error *error);

/* Formats the error of a failed call: "OpenVINO: ov_core_import_model: GENERAL_ERROR (-1): …". The last part is OpenVINO's last
 * message, on one line. */
clv_status clv__openvino_failed(const clv__openvino *ov, clv_error *error, const char *call, int code);

/* Calls an entry point of `ov`. If the call fails, returns its error. */
#define CLV__OPENVINO_TRY(ov, error, name, ...)                                                               \
  do {                                                                                                        \
    int clv__openvino_code = (ov)->name(__VA_ARGS__);                                                         \
    if (clv__openvino_code != 0) return clv__openvino_failed((ov), (error), "ov_" #name, clv__openvino_code); \
  } while (0)

/* OpenVINO's number for a dtype; 0 (a dynamic type) if it has none. */
int clv__openvino_type(clv_dtype dtype);
/* Formats a type as "f32", or as "type 7" if no dtype matches. */
void clv__openvino_type_text(int type, char text[24]);

#endif
