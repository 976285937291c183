/* The functions of libtorch's stable C interface that are used here. They are declared here, so that the build does not need
 * PyTorch's headers. Every function is looked up by name in the library, which is loaded at run time. The interface is that of
 * PyTorch 2.13. The headers torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h of its wheel document each
 * function. Functions return 0 on success. */
#ifndef CLEAVE_BACKENDS_TORCH_API_H
#define CLEAVE_BACKENDS_TORCH_API_H

#include "base/error.h"
#include "cleave/plugin/backend.h"

typedef uint64_t clv__torch_value; /* an argument or a result: a number, or a handle that the callee takes over */
typedef struct clv__torch_tensor_ *clv__torch_tensor; /* the owner must delete it or pass it to a function that takes it over */
typedef struct clv__torch_list_ *clv__torch_list;
typedef struct clv__torch_string_ *clv__torch_string;

enum { CLV__TORCH_DTYPES = CLV_BF16 + 1 };

typedef struct clv__torch_api {
  uint64_t abi_version;              /* version 2.13.0 is 0x020d000000000000: one byte each for major, minor, patch */
  char version[32];                  /* "2.13.0" */
  int32_t dtypes[CLV__TORCH_DTYPES]; /* PyTorch's number of each Cleave dtype; -1 if it has none */
  int32_t cpu, meta;                 /* PyTorch's numbers of these device kinds */

  int32_t (*layout_strided)(void);
  int32_t (*format_contiguous)(void);
  int32_t (*format_preserve)(void);
  int32_t (*format_channels_last)(void);
  int32_t (*format_channels_last_3d)(void);

  int (*tensor_from_blob)(void *data, int64_t rank, const int64_t *dims, const int64_t *strides, int64_t offset, int32_t dtype,
                          int32_t device, int32_t index, clv__torch_tensor *tensor);
  int (*tensor_empty)(int64_t rank, const int64_t *dims, const int64_t *strides, int32_t dtype, int32_t device, int32_t index,
                      clv__torch_tensor *tensor);
  int (*tensor_share)(clv__torch_tensor tensor, clv__torch_tensor *another);
  int (*tensor_delete)(clv__torch_tensor tensor);
  int (*tensor_data)(clv__torch_tensor tensor, void **data);
  int (*tensor_rank)(clv__torch_tensor tensor, int64_t *rank);
  int (*tensor_dims)(clv__torch_tensor tensor, int64_t **dims);
  int (*tensor_strides)(clv__torch_tensor tensor, int64_t **strides);
  int (*tensor_dtype)(clv__torch_tensor tensor, int32_t *dtype);

  int (*list_new)(size_t reserved, clv__torch_list *list);
  int (*list_size)(clv__torch_list list, size_t *size);
  int (*list_get)(clv__torch_list list, size_t index, clv__torch_value *value);
  int (*list_push)(clv__torch_list list, clv__torch_value value);
  int (*list_delete)(clv__torch_list list);
  int (*string_new)(const char *data, size_t length, clv__torch_string *string);
  int (*string_delete)(clv__torch_string string);
  int (*optional_new)(clv__torch_value **value); /* allocates memory for the value of an optional argument that is not None */
  int (*optional_delete)(clv__torch_value *value);

  int (*call)(const char *op, const char *overload, clv__torch_value *stack, uint64_t abi_version);
  const char *(*last_error)(void); /* message of the last function that failed on this thread */
  void (*set_gradients)(bool on);  /* for this thread */
} clv__torch_api;

/* Fills `api` from an open library. Returns CLV_NOT_SUPPORTED if a function is missing, or the version is too old. */
clv_status clv__torch_api_fill(void *library, const char *path, clv__torch_api *api, clv_error *error);

#endif
