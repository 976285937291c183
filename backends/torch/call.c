/* Calls PyTorch's operators: see call.h. read.c parses the calls. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

/* Whether the last call failed because PyTorch does not have the operator. The call has then not taken over its arguments. */
static bool is_unknown(const clv__torch_api *api) {
  const char *words = api->last_error();
  return words != NULL && strncmp(words, "Could not find schema", 21) == 0;
}

static clv_status failed(const clv__torch_api *api, const clv__torch_call *call, clv_error *error) {
  const char *words = api->last_error();
  if (words == NULL) words = "no reason given";
  return clv__error_set(error, is_unknown(api) ? CLV_NOT_SUPPORTED : CLV_DEVICE_ERROR, "PyTorch %s: %s%s%s: %.*s", api->version,
                        call->op, call->overload[0] != '\0' ? "." : "", call->overload, (int)strcspn(words, "\n"), words);
}

/* ---- Arguments ---- */

static bool make_optional(const clv__torch_api *api, clv__torch_value *value) {
  clv__torch_value *held = NULL;
  if (api->optional_new(&held) != 0) return false;
  *held = *value;
  *value = (clv__torch_value)(uintptr_t)held;
  return true;
}

static bool make_item(const clv__torch_api *api, const clv__torch_argument *argument, const clv__torch_item *item,
                      const clv__torch_tensor *inputs, clv__torch_value *value) {
  clv__torch_tensor tensor;
  clv__torch_string string;
  int32_t number = (int32_t)item->number;
  *value = 0;
  switch (argument->kind) {
    case CLV__TORCH_TENSOR:
      if (api->tensor_share(inputs[item->input], &tensor) != 0) return false;
      *value = (clv__torch_value)(uintptr_t)tensor;
      return true;
    case CLV__TORCH_INT:
      memcpy(value, &item->number, sizeof item->number);
      return true;
    case CLV__TORCH_FLOAT:
      memcpy(value, &item->real, sizeof item->real);
      return true;
    case CLV__TORCH_BOOL:
      *value = item->number != 0;
      return true;
    case CLV__TORCH_STRING:
      if (api->string_new(item->text, strlen(item->text), &string) != 0) return false;
      *value = (clv__torch_value)(uintptr_t)string;
      return true;
    case CLV__TORCH_DTYPE:
    case CLV__TORCH_LAYOUT:
    case CLV__TORCH_FORMAT:
      memcpy(value, &number, sizeof number);
      return true; /* PyTorch reads these 32-bit numbers from the lower half, which comes first on little-endian machines */
    case CLV__TORCH_DEVICE:
      *value = (clv__torch_value)(uint32_t)api->cpu << 32;
      return true;
  }
  return false;
}

/* Deletes an item that no call has taken. */
static void delete_item(const clv__torch_api *api, clv__torch_kind kind, bool is_optional, clv__torch_value value) {
  clv__torch_value *held = (clv__torch_value *)(uintptr_t)value;
  if (is_optional) value = *held;
  if (kind == CLV__TORCH_TENSOR) (void)api->tensor_delete((clv__torch_tensor)(uintptr_t)value);
  if (kind == CLV__TORCH_STRING) (void)api->string_delete((clv__torch_string)(uintptr_t)value);
  if (is_optional) (void)api->optional_delete(held);
}

static void delete_list(const clv__torch_api *api, const clv__torch_argument *argument, clv__torch_list list) {
  size_t size = 0;
  clv__torch_value value;
  (void)api->list_size(list, &size);
  for (size_t i = 0; i < size; ++i) {
    if (argument->items[i].is_none || api->list_get(list, i, &value) != 0) continue;
    delete_item(api, argument->kind, argument->items_are_optional, value);
  }
  (void)api->list_delete(list);
}

/* Deletes an argument that no call has taken. */
static void delete_argument(const clv__torch_api *api, const clv__torch_argument *argument, clv__torch_value value) {
  if (argument->is_none) return;
  if (!argument->is_list) {
    delete_item(api, argument->kind, argument->is_optional, value);
    return;
  }
  clv__torch_value *held = (clv__torch_value *)(uintptr_t)value;
  delete_list(api, argument, (clv__torch_list)(uintptr_t)(argument->is_optional ? *held : value));
  if (argument->is_optional) (void)api->optional_delete(held);
}

static bool make_list(const clv__torch_api *api, const clv__torch_argument *argument, const clv__torch_tensor *inputs,
                      clv__torch_list *list) {
  if (api->list_new(argument->count, list) != 0) return false;
  for (uint32_t i = 0; i < argument->count; ++i) {
    const clv__torch_item *item = &argument->items[i];
    clv__torch_value value = 0;
    bool made = item->is_none || make_item(api, argument, item, inputs, &value), wrapped = false;
    if (made && !item->is_none && argument->items_are_optional) made = wrapped = make_optional(api, &value);
    if (made && api->list_push(*list, value) == 0) continue;
    if (value != 0) delete_item(api, argument->kind, wrapped, value);
    delete_list(api, argument, *list);
    return false;
  }
  return true;
}

/* Makes the value of an argument. If it fails, nothing is left to delete. */
static bool make_argument(const clv__torch_api *api, const clv__torch_argument *argument, const clv__torch_tensor *inputs,
                          clv__torch_value *value) {
  clv__torch_list list = NULL;
  *value = 0;
  if (argument->is_none) return true;
  if (argument->is_list ? !make_list(api, argument, inputs, &list)
                        : !make_item(api, argument, &argument->items[0], inputs, value))
    return false;
  if (argument->is_list) *value = (clv__torch_value)(uintptr_t)list;
  if (!argument->is_optional || make_optional(api, value)) return true;
  if (argument->is_list)
    delete_list(api, argument, list);
  else
    delete_item(api, argument->kind, false, *value);
  return false;
}

/* Makes all arguments and the call, which takes them. */
static clv_status run_call(const clv__torch_api *api, const clv__torch_call *call, const clv__torch_tensor *inputs,
                           clv__torch_value *stack, clv_error *error) {
  uint32_t made = 0;
  while (made < call->argument_count && make_argument(api, &call->arguments[made], inputs, &stack[made])) ++made;
  if (made == call->argument_count && api->call(call->op, call->overload, stack, api->abi_version) == 0) return CLV_OK;
  const clv_status status = failed(api, call, error);
  if (made < call->argument_count || is_unknown(api)) {
    while (made-- > 0) delete_argument(api, &call->arguments[made], stack[made]);
  }
  return status;
}

/* ---- Results ---- */

/* Takes the tensors out of a list, and deletes the list. Returns false if they are more than `outputs` has room for. */
static bool take_list(const clv__torch_api *api, clv__torch_list list, clv__torch_tensor *outputs, uint32_t output_count,
                      uint32_t *taken) {
  size_t size = 0;
  bool fits = api->list_size(list, &size) == 0 && size <= output_count - *taken;
  for (size_t i = 0; i < size; ++i) {
    clv__torch_value value;
    if (api->list_get(list, i, &value) != 0) continue;
    clv__torch_tensor tensor = (clv__torch_tensor)(uintptr_t)value;
    if (fits)
      outputs[(*taken)++] = tensor;
    else
      (void)api->tensor_delete(tensor);
  }
  (void)api->list_delete(list);
  return fits;
}

clv_status clv__torch_call_make(const clv__torch_api *api, const clv__torch_call *call, const clv__torch_tensor *inputs,
                                clv__torch_value *stack, clv__torch_tensor *outputs, uint32_t output_count, clv_error *error) {
  CLV__TRY(run_call(api, call, inputs, stack, error));
  uint32_t taken = 0;
  bool fits = true;
  for (uint32_t i = 0; i < call->return_count; ++i) {
    if (call->returns_list[i]) {
      fits = take_list(api, (clv__torch_list)(uintptr_t)stack[i], outputs, output_count, &taken) && fits;
    } else if (taken < output_count) {
      outputs[taken++] = (clv__torch_tensor)(uintptr_t)stack[i];
    } else {
      (void)api->tensor_delete((clv__torch_tensor)(uintptr_t)stack[i]);
      fits = false;
    }
  }
  if (fits && taken == output_count) return CLV_OK;
  for (uint32_t i = 0; i < taken; ++i) (void)api->tensor_delete(outputs[i]);
  return clv__error_set(error, CLV_INVALID_MODEL, "%s: the file declares %u outputs, but PyTorch %s returned a different number",
                        call->op, output_count, api->version);
}
