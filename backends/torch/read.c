/* Parses the call of an ATen node: see call.h. The text comes from a model file, so it is checked thoroughly. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

enum { MAX_ARGUMENTS = 64, MAX_ITEMS = 4096 };

typedef struct reader {
  const clv__torch_api *api;
  const clv_node_info *node;
  clv__arena *arena;
  const char *at;       /* position in the value that is being read */
  const char *argument; /* the whole argument, for errors */
  clv_error *error;
} reader;

static clv_status wrong(const reader *r, const char *what) {
  return clv__error_set(r->error, CLV_INVALID_MODEL, "argument \"%.100s\": %s", r->argument, what);
}

/* ---- Types: "Tensor", "int[]?", "Tensor?[]" ---- */

static bool take_word(const char **at, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

static bool read_kind(const char **at, clv__torch_kind *kind) {
  static const struct {
    const char *word;
    clv__torch_kind kind;
  } words[] = {{"Tensor", CLV__TORCH_TENSOR}, {"int", CLV__TORCH_INT},
               {"float", CLV__TORCH_FLOAT},   {"bool", CLV__TORCH_BOOL},
               {"str", CLV__TORCH_STRING},    {"ScalarType", CLV__TORCH_DTYPE},
               {"Layout", CLV__TORCH_LAYOUT}, {"MemoryFormat", CLV__TORCH_FORMAT},
               {"Device", CLV__TORCH_DEVICE}};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    const char *behind = *at;
    if (!take_word(&behind, words[i].word) || isalnum((unsigned char)*behind)) continue;
    *at = behind;
    *kind = words[i].kind;
    return true;
  }
  return false;
}

/* Reads a type, which ends at a blank. Sets `any` if the type is unknown but optional ("Generator?"): such an argument is
 * accepted if its value is None. */
static bool read_type(const char *text, size_t length, clv__torch_argument *argument, bool *any) {
  const char *at = text, *end = text + length;
  *argument = (clv__torch_argument){0};
  *any = false;
  if (!read_kind(&at, &argument->kind)) {
    *any = length > 1 && end[-1] == '?';
    argument->is_optional = *any;
    return *any;
  }
  bool question = take_word(&at, "?");
  argument->is_list = take_word(&at, "[]");
  argument->is_optional = argument->is_list ? take_word(&at, "?") : question;
  argument->items_are_optional = argument->is_list && question;
  return at == end;
}

/* ---- Values ---- */

static bool is_end(char c) {
  return c == '\0' || c == ',' || c == ']';
}

static bool read_named(reader *r, const char *const *names, int32_t (*const *numbers)(void), size_t count, int64_t *number) {
  for (size_t i = 0; i < count; ++i) {
    const char *behind = r->at;
    if (!take_word(&behind, names[i]) || !is_end(*behind)) continue;
    r->at = behind;
    *number = numbers[i]();
    return true;
  }
  return false;
}

static bool read_dtype(reader *r, int64_t *number) {
  static const struct {
    const char *name;
    clv_dtype dtype;
  } names[] = {{"float32", CLV_F32}, {"float64", CLV_F64}, {"float16", CLV_F16}, {"bfloat16", CLV_BF16}, {"uint8", CLV_U8},
               {"int8", CLV_I8},     {"uint16", CLV_U16},  {"int16", CLV_I16},   {"uint32", CLV_U32},    {"int32", CLV_I32},
               {"uint64", CLV_U64},  {"int64", CLV_I64},   {"bool", CLV_BOOL}};
  if (!take_word(&r->at, "torch.")) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char *behind = r->at;
    if (!take_word(&behind, names[i].name) || !is_end(*behind)) continue;
    r->at = behind;
    *number = r->api->dtypes[names[i].dtype];
    return true;
  }
  return false;
}

/* Reads a JSON string. */
static bool read_string(reader *r, const char **text) {
  size_t length = strlen(r->at), used = 0;
  char *out = clv__arena_allocate(r->arena, length + 1);
  if (out == NULL || !take_word(&r->at, "\"")) return false;
  for (; *r->at != '"'; ++r->at) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (*r->at == '\0') return false;
    char c = *r->at;
    if (c == '\\') {
      const char *letter = r->at[1] != '\0' ? strchr(letters, r->at[1]) : NULL;
      if (letter == NULL) return false; /* \uXXXX is rejected: no operator of ATen needs it */
      c = meant[letter - letters];
      ++r->at;
    }
    out[used++] = c;
  }
  ++r->at;
  out[used] = '\0';
  *text = out;
  return true;
}

static bool read_int(reader *r, int64_t *number) {
  char *end;
  errno = 0;
  *number = strtoll(r->at, &end, 10);
  if (end == r->at || errno != 0 || !is_end(*end)) return false;
  r->at = end;
  return true;
}

static bool read_float(reader *r, double *number) {
  char *end;
  *number = strtod(r->at, &end);
  if (end == r->at || !is_end(*end)) return false;
  r->at = end;
  return true;
}

static bool read_input(reader *r, uint32_t *input) {
  int64_t number;
  if (!take_word(&r->at, "%") || !isdigit((unsigned char)*r->at) || !read_int(r, &number)) return false;
  *input = (uint32_t)number;
  return number < r->node->input_count && r->node->inputs[number] != CLV_NO_VALUE;
}

static clv_status read_item(reader *r, clv__torch_kind kind, bool may_be_none, clv__torch_item *item) {
  int32_t (*const formats[])(void) = {r->api->format_contiguous, r->api->format_preserve, r->api->format_channels_last,
                                      r->api->format_channels_last_3d};
  static const char *const format_names[] = {"torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
                                             "torch.channels_last_3d"};
  int32_t (*const layouts[])(void) = {r->api->layout_strided};
  static const char *const layout_names[] = {"torch.strided"};
  const char *behind = r->at;
  *item = (clv__torch_item){0};
  if (take_word(&behind, "None") && is_end(*behind)) {
    r->at = behind;
    item->is_none = true;
    return may_be_none ? CLV_OK : wrong(r, "it must not be None");
  }
  switch (kind) {
    case CLV__TORCH_TENSOR:
      return read_input(r, &item->input) ? CLV_OK
                                         : wrong(r, "a tensor must be one of the node's inputs, written as % and its number");
    case CLV__TORCH_INT:
      return read_int(r, &item->number) ? CLV_OK : wrong(r, "expected a whole number");
    case CLV__TORCH_FLOAT:
      return read_float(r, &item->real) ? CLV_OK : wrong(r, "expected a number");
    case CLV__TORCH_STRING:
      return read_string(r, &item->text) ? CLV_OK : wrong(r, "expected a quoted string");
    case CLV__TORCH_DTYPE:
      return read_dtype(r, &item->number) ? CLV_OK : wrong(r, "expected a dtype that Cleave supports");
    case CLV__TORCH_BOOL:
      item->number = take_word(&r->at, "True");
      return item->number != 0 || take_word(&r->at, "False") ? CLV_OK : wrong(r, "expected True or False");
    case CLV__TORCH_LAYOUT:
      return read_named(r, layout_names, layouts, 1, &item->number) ? CLV_OK : wrong(r, "the layout is not torch.strided");
    case CLV__TORCH_FORMAT:
      return read_named(r, format_names, formats, 4, &item->number) ? CLV_OK : wrong(r, "unknown memory format");
    case CLV__TORCH_DEVICE:
      return take_word(&r->at, "cpu") ? CLV_OK : wrong(r, "the device is not the CPU");
  }
  return wrong(r, "unknown type");
}

/* Reads "[a, b]". First counts the commas in the rest of the text, which limit the number of items. */
static clv_status read_list(reader *r, clv__torch_argument *argument) {
  if (!take_word(&r->at, "[")) return wrong(r, "expected a list in brackets");
  size_t most = 1;
  for (const char *at = r->at; *at != '\0'; ++at) most += *at == ',';
  if (most > MAX_ITEMS) return wrong(r, "the list is too long");
  argument->items = clv__arena_allocate_zero(r->arena, most, sizeof *argument->items);
  if (argument->items == NULL) return clv__error_memory(r->error, most * sizeof *argument->items);
  if (take_word(&r->at, "]")) return CLV_OK;
  do {
    while (*r->at == ' ') ++r->at;
    if (argument->count == most) return wrong(r, "the list is malformed");
    CLV__TRY(read_item(r, argument->kind, argument->items_are_optional, &argument->items[argument->count++]));
  } while (take_word(&r->at, ","));
  return take_word(&r->at, "]") ? CLV_OK : wrong(r, "the list has no closing bracket");
}

/* Reads "TYPE NAME=VALUE". */
static clv_status read_argument(reader *r, clv__torch_argument *argument) {
  const char *space = strchr(r->argument, ' '), *equals = strchr(r->argument, '=');
  bool any;
  if (space == NULL || equals == NULL || equals < space) {
    return clv__error_set(r->error, CLV_NOT_SUPPORTED,
                          "argument \"%.100s\" has no type: the file was written without the operator's schema", r->argument);
  }
  if (!read_type(r->argument, (size_t)(space - r->argument), argument, &any)) {
    return clv__error_set(r->error, CLV_NOT_SUPPORTED, "argument \"%.100s\": PyTorch's C interface does not support its type",
                          r->argument);
  }
  r->at = equals + 1;
  if (argument->is_optional && strcmp(r->at, "None") == 0) {
    argument->is_none = true;
    return CLV_OK;
  }
  if (any) {
    return clv__error_set(r->error, CLV_NOT_SUPPORTED, "argument \"%.100s\": PyTorch's C interface does not support its type",
                          r->argument);
  }
  if (argument->is_list) {
    CLV__TRY(read_list(r, argument));
  } else {
    argument->items = clv__arena_allocate_zero(r->arena, 1, sizeof *argument->items);
    if (argument->items == NULL) return clv__error_memory(r->error, sizeof *argument->items);
    argument->count = 1;
    CLV__TRY(read_item(r, argument->kind, false, &argument->items[0]));
  }
  return *r->at == '\0' ? CLV_OK : wrong(r, "unexpected text after its value");
}

/* ---- The node ---- */

/* Splits the node's operator into PyTorch's name and overload. "linalg_inv.default" is aten::linalg_inv without an overload. An
 * operator from another namespace begins with that namespace and a dot. */
static clv_status read_name(reader *r, clv__torch_call *call) {
  const char *op = r->node->op, *dot = strrchr(op, '.');
  if (dot == NULL || dot == op || dot[1] == '\0') {
    return clv__error_set(r->error, CLV_NOT_SUPPORTED, "operator '%.80s' has no overload name", op);
  }
  const char *inner = memchr(op, '.', (size_t)(dot - op));
  const char *space = inner == NULL ? "aten" : op, *name = inner == NULL ? op : inner + 1;
  size_t space_length = inner == NULL ? 4 : (size_t)(inner - op), name_length = (size_t)(dot - name);
  char *whole = clv__arena_allocate(r->arena, space_length + name_length + 3);
  if (whole == NULL) return clv__error_memory(r->error, name_length);
  memcpy(whole, space, space_length);
  memcpy(whole + space_length, "::", 2);
  memcpy(whole + space_length + 2, name, name_length);
  whole[space_length + 2 + name_length] = '\0';
  call->op = whole;
  call->overload = strcmp(dot + 1, "default") == 0 ? "" : clv__arena_string(r->arena, dot + 1, strlen(dot + 1));
  return call->overload == NULL ? clv__error_memory(r->error, strlen(dot)) : CLV_OK;
}

static const clv_attribute *find_list(const clv_node_info *node, const char *name) {
  for (uint32_t i = 0; i < node->attribute_count; ++i) {
    const clv_attribute *attribute = &node->attributes[i];
    if (attribute->kind == CLV_ATTRIBUTE_STRINGS && strcmp(attribute->name, name) == 0) return attribute;
  }
  return NULL;
}

/* Copies a string and terminates it. Returns "" if the string contains a zero byte, and NULL if memory runs out. */
static const char *text_of(reader *r, const clv_string *string) {
  return memchr(string->data, '\0', string->size_bytes) != NULL ? ""
                                                                : clv__arena_string(r->arena, string->data, string->size_bytes);
}

static clv_status read_returns(reader *r, const clv_attribute *list, clv__torch_call *call) {
  call->return_count = (uint32_t)list->count;
  call->returns_list = clv__arena_allocate_zero(r->arena, list->count, sizeof *call->returns_list);
  if (call->returns_list == NULL) return clv__error_memory(r->error, list->count);
  for (uint32_t i = 0; i < call->return_count; ++i) {
    const char *text = text_of(r, &list->strings[i]);
    if (text == NULL) return clv__error_memory(r->error, list->strings[i].size_bytes);
    call->returns_list[i] = strcmp(text, "Tensor[]") == 0;
    if (call->returns_list[i] || strcmp(text, "Tensor") == 0) continue;
    return clv__error_set(r->error, CLV_NOT_SUPPORTED, "a result of type '%.60s' is not a tensor", text);
  }
  return CLV_OK;
}

clv_status clv__torch_call_read(const clv__torch_api *api, const clv_node_info *node, clv__arena *arena, clv__torch_call *call,
                                clv_error *error) {
  reader r = {.api = api, .node = node, .arena = arena, .error = error};
  const clv_attribute *arguments = find_list(node, "call"), *returns = find_list(node, "returns");
  *call = (clv__torch_call){0};
  if (arguments == NULL || returns == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "the node lacks the attribute 'call' or 'returns', which state the types of the operator's call");
  }
  if (arguments->count > MAX_ARGUMENTS || returns->count > MAX_ARGUMENTS) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%zu arguments and %zu results; the maximum is %d", arguments->count,
                          returns->count, MAX_ARGUMENTS);
  }
  CLV__TRY(read_name(&r, call));
  call->argument_count = (uint32_t)arguments->count;
  call->arguments = clv__arena_allocate_zero(arena, arguments->count, sizeof *call->arguments);
  if (call->arguments == NULL) return clv__error_memory(error, arguments->count * sizeof *call->arguments);
  for (uint32_t i = 0; i < call->argument_count; ++i) {
    r.argument = text_of(&r, &arguments->strings[i]);
    if (r.argument == NULL) return clv__error_memory(error, arguments->strings[i].size_bytes);
    CLV__TRY(read_argument(&r, &call->arguments[i]));
  }
  CLV__TRY(read_returns(&r, returns, call));
  call->room = call->argument_count > call->return_count ? call->argument_count : call->return_count;
  return CLV_OK;
}
