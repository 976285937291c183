/* Calls PyTorch's operators: see call.h. read.c parses the calls. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

static clv_status failed(const clv__torch_api *api, const clv__torch_call *call, clv_error *error) {
  const char *words = api->last_error();
  if (words == NULL) words = "no reason given";
  bool unknown = strncmp(words, "Could not find schema", 21) == 0;
  return clv__error_set(error, unknown ? CLV_NOT_SUPPORTED : CLV_DEVICE_ERROR, "PyTorch %s: %s%s%s: %.*s", api->version, call->op,
                        call->overload[0] != '\0' ? "." : "", call->overload, (int)strcspn(words, "\n"), words);
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

static bool make_argument(const clv__torch_api *api, const clv__torch_argument *argument, const clv__torch_tensor *inputs,
                          clv__torch_value *value) {
  *value = 0;
  if (argument->is_none) return true;
  if (!argument->is_list) {
    if (!make_item(api, argument, &argument->items[0], inputs, value)) return false;
  } else {
    clv__torch_list list;
    if (api->list_new(argument->count, &list) != 0) return false;
    for (uint32_t i = 0; i < argument->count; ++i) {
      clv__torch_value item = 0;
      if (!argument->items[i].is_none) {
        if (!make_item(api, argument, &argument->items[i], inputs, &item)) return false;
        if (argument->items_are_optional && !make_optional(api, &item)) return false;
      }
      if (api->list_push(list, item) != 0) return false;
    }
    *value = (clv__torch_value)(uintptr_t)list;
  }
  return !argument->is_optional || make_optional(api, value);
}

/* ---- Results ---- */

/* Takes the tensors out of a list, and deletes the list. */
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
  for (uint32_t i = 0; i < call->argument_count; ++i) {
    /* This fails only if memory runs out. The values of earlier arguments then leak. */
    if (!make_argument(api, &call->arguments[i], inputs, &stack[i])) return failed(api, call, error);
  }
  if (api->call(call->op, call->overload, stack, api->abi_version) != 0) return failed(api, call, error);
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
