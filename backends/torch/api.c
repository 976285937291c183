/* Looks up PyTorch's functions in the loaded library: see api.h. */
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* 2.13.0, the oldest release that has all the functions used here. This code was tested with the same release. */
#define OLDEST_VERSION 0x020d000000000000u

static const struct {
  clv_dtype dtype;
  const char *name;
} dtype_functions[] = {
    {CLV_F32, "aoti_torch_dtype_float32"},   {CLV_F64, "aoti_torch_dtype_float64"}, {CLV_F16, "aoti_torch_dtype_float16"},
    {CLV_BF16, "aoti_torch_dtype_bfloat16"}, {CLV_U8, "aoti_torch_dtype_uint8"},    {CLV_I8, "aoti_torch_dtype_int8"},
    {CLV_U16, "aoti_torch_dtype_uint16"},    {CLV_I16, "aoti_torch_dtype_int16"},   {CLV_U32, "aoti_torch_dtype_uint32"},
    {CLV_I32, "aoti_torch_dtype_int32"},     {CLV_U64, "aoti_torch_dtype_uint64"},  {CLV_I64, "aoti_torch_dtype_int64"},
    {CLV_BOOL, "aoti_torch_dtype_bool"},
};

static clv_status missing(const char *path, const char *name, clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED, "PyTorch at %s has no function %s: PyTorch 2.13 or newer is needed", path,
                        name);
}

clv_status clv__torch_api_fill(void *library, const char *path, clv__torch_api *api, clv_error *error) {
  const struct {
    void *to; /* address of the function pointer */
    const char *name;
  } functions[] = {
      {&api->layout_strided, "aoti_torch_layout_strided"},
      {&api->format_contiguous, "aoti_torch_memory_format_contiguous_format"},
      {&api->format_preserve, "aoti_torch_memory_format_preserve_format"},
      {&api->format_channels_last, "aoti_torch_memory_format_channels_last"},
      {&api->format_channels_last_3d, "aoti_torch_memory_format_channels_last_3d"},
      {&api->tensor_from_blob, "aoti_torch_create_tensor_from_blob"},
      {&api->tensor_empty, "aoti_torch_empty_strided"},
      {&api->tensor_share, "aoti_torch_new_tensor_handle"},
      {&api->tensor_delete, "aoti_torch_delete_tensor_object"},
      {&api->tensor_data, "aoti_torch_get_data_ptr"},
      {&api->tensor_rank, "aoti_torch_get_dim"},
      {&api->tensor_dims, "aoti_torch_get_sizes"},
      {&api->tensor_strides, "aoti_torch_get_strides"},
      {&api->tensor_dtype, "aoti_torch_get_dtype"},
      {&api->list_new, "torch_new_list_reserve_size"},
      {&api->list_size, "torch_list_size"},
      {&api->list_get, "torch_list_get_item"},
      {&api->list_push, "torch_list_push_back"},
      {&api->list_delete, "torch_delete_list"},
      {&api->string_new, "torch_new_string_handle"},
      {&api->string_delete, "torch_delete_string"},
      {&api->optional_new, "torch_new_stable_ivalue"},
      {&api->optional_delete, "torch_delete_stable_ivalue"},
      {&api->call, "torch_call_dispatcher"},
      {&api->last_error, "torch_exception_get_what_without_backtrace"},
      {&api->set_gradients, "aoti_torch_grad_mode_set_enabled"},
  };
  uint64_t (*version)(void);
  int32_t (*number)(void);
  *(void **)&version = dlsym(library, "aoti_torch_abi_version");
  if (version == NULL) return missing(path, "aoti_torch_abi_version", error);
  api->abi_version = version();
  snprintf(api->version, sizeof api->version, "%u.%u.%u", (unsigned)(api->abi_version >> 56),
           (unsigned)(api->abi_version >> 48) & 255, (unsigned)(api->abi_version >> 40) & 255);
  if (api->abi_version < OLDEST_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "PyTorch at %s is version %s: 2.13 or newer is needed", path, api->version);
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    void *found = dlsym(library, functions[i].name);
    if (found == NULL) return missing(path, functions[i].name, error);
    memcpy(functions[i].to, &found, sizeof found);
  }
  for (size_t i = 0; i < CLV__TORCH_DTYPES; ++i) api->dtypes[i] = -1;
  for (size_t i = 0; i < sizeof dtype_functions / sizeof *dtype_functions; ++i) {
    *(void **)&number = dlsym(library, dtype_functions[i].name);
    if (number == NULL) return missing(path, dtype_functions[i].name, error);
    api->dtypes[dtype_functions[i].dtype] = number();
  }
  static const char *const kinds[] = {"aoti_torch_device_type_cpu", "aoti_torch_device_type_meta"};
  int32_t *const numbers[] = {&api->cpu, &api->meta};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    *(void **)&number = dlsym(library, kinds[i]);
    if (number == NULL) return missing(path, kinds[i], error);
    *numbers[i] = number();
  }
  return CLV_OK;
}
