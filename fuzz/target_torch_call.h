/* Reads the call of an ATen operator as it is stored in a model. The lines of an input are the operator's name, its
 * arguments up to an empty line, and its results. PyTorch is not needed. */
#ifndef CLEAVE_FUZZ_TARGET_TORCH_CALL_H
#define CLEAVE_FUZZ_TARGET_TORCH_CALL_H

#include <stdlib.h>
#include <string.h>

#include "backends/torch/call.h"

enum { FUZZ_TORCH_LINES = 80 };

static inline int32_t fuzz_torch_number(void) {
  return 1;
}

/* Turns the lines up to an empty line into zero-terminated strings of `attribute`. Sets `at` to the
 * line after the empty one. */
static inline void fuzz_torch_lines(char **at, clv_string *strings, clv_attribute *attribute) {
  while (*at != NULL && **at != '\0' && attribute->count < FUZZ_TORCH_LINES) {
    char *end = strchr(*at, '\n');
    if (end == *at) break;
    if (end != NULL) *end = '\0';
    strings[attribute->count++] = (clv_string){*at, strlen(*at)};
    *at = end == NULL ? NULL : end + 1;
  }
  if (*at != NULL && **at == '\n') ++*at;
}

static inline clv_status fuzz_torch_call_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  static const uint32_t inputs[] = {7, 8, CLV_NO_VALUE}, outputs[] = {9};
  clv_string strings[2][FUZZ_TORCH_LINES];
  clv_attribute attributes[] = {
      {.name = "call", .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .strings = strings[0]},
      {.name = "returns", .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .strings = strings[1]},
  };
  clv__torch_api api = {.layout_strided = fuzz_torch_number,
                        .format_contiguous = fuzz_torch_number,
                        .format_preserve = fuzz_torch_number,
                        .format_channels_last = fuzz_torch_number,
                        .format_channels_last_3d = fuzz_torch_number};
  clv__torch_call call;
  clv__arena arena;
  char *text = malloc(size_bytes + 1), *at = text;
  if (text == NULL) abort();
  if (size_bytes > 0) memcpy(text, data, size_bytes);
  text[size_bytes] = '\0';
  char *end = strchr(text, '\n');
  at = end != NULL ? end + 1 : NULL;
  if (end != NULL) *end = '\0';
  fuzz_torch_lines(&at, strings[0], &attributes[0]);
  fuzz_torch_lines(&at, strings[1], &attributes[1]);
  clv_node_info node = {.struct_size = sizeof node,
                        .op = text,
                        .domain = "aten",
                        .name = "n",
                        .input_count = 3,
                        .inputs = inputs,
                        .output_count = 1,
                        .outputs = outputs,
                        .attribute_count = 2,
                        .attributes = attributes};
  clv__arena_init(&arena, clv__allocator_default());
  clv_status status = clv__torch_call_read(&api, &node, &arena, &call, error);
  if (status != CLV_OK && error->message[0] == '\0') abort();
  for (uint32_t a = 0; status == CLV_OK && a < call.argument_count; ++a) {
    const clv__torch_argument *argument = &call.arguments[a];
    if (argument->count > 0 && argument->items == NULL) abort();
    for (uint32_t i = 0; i < argument->count; ++i) {
      const clv__torch_item *item = &argument->items[i];
      if (argument->kind == CLV__TORCH_TENSOR && !item->is_none && item->input >= node.input_count) abort();
      if (argument->kind == CLV__TORCH_STRING && !item->is_none && item->text == NULL) abort();
    }
  }
  clv__arena_finish(&arena);
  free(text);
  return status;
}

static inline void fuzz_torch_call(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_torch_call_status(data, size_bytes, &error);
}

#endif
