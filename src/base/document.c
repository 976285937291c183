/* See document.h. */
#include "base/document.h"

#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/memory.h"

/* Stored directly before a text that the caller frees: the allocator to release it with, because clv_text_free() gets only the
 * text. */
typedef struct text_head {
  clv_allocator allocator;
} text_head;

clv_status clv__document_check(clv_form form, char **out, clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "text must not be NULL");
  *out = NULL;
  if (form == CLV_FORM_TEXT || form == CLV_FORM_JSON || form == CLV_FORM_TERMINAL) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "form %d is unknown: give CLV_FORM_TEXT, CLV_FORM_JSON or CLV_FORM_TERMINAL",
                        (int)form);
}

clv_status clv__document_give(clv__text *text, char **out, clv_error *error) {
  const size_t size_bytes = sizeof(text_head) + text->size_bytes + 1;
  text_head *head = text->failed ? NULL : clv__allocate(text->allocator, size_bytes);
  if (head != NULL) {
    head->allocator = *text->allocator;
    *out = memcpy(head + 1, text->data, text->size_bytes + 1);
  }
  clv__text_finish(text);
  return head == NULL ? clv__error_memory(error, size_bytes) : CLV_OK;
}

clv_status clv__document_check_target(const char *path, clv_emit_fn write, clv_error *error) {
  if ((path == NULL) != (write == NULL)) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "give either a path or a write function, not %s",
                        path == NULL ? "neither" : "both");
}

clv_status clv__document_write(clv__text *text, const char *path, clv_emit_fn write, void *user_data, clv_error *error) {
  clv_status status = clv__document_check_target(path, write, error);
  if (status == CLV_OK && text->failed)
    status = clv__error_memory(error, text->size_bytes);
  else if (status == CLV_OK && path != NULL)
    status = clv__file_write(path, text->data, text->size_bytes, error);
  else if (status == CLV_OK && !write(user_data, text->data, text->size_bytes))
    status = clv__error_set(error, CLV_CANCELLED, "the write function stopped the output of %zu bytes", text->size_bytes);
  clv__text_finish(text);
  return status;
}

void clv_text_free(char *text) {
  if (text == NULL) return;
  text_head *head = (text_head *)(void *)text - 1;
  const clv_allocator allocator = head->allocator;
  clv__release(&allocator, head);
}
