/* See console.h. */
#include "cli/console.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/label.h"

static const char *escape(cli_style style) {
  switch (style) {
    case CLI_BOLD:
      return "\033[1m";
    case CLI_RED:
      return "\033[31m";
    case CLI_GREEN:
      return "\033[32m";
    case CLI_YELLOW:
      return "\033[33m";
    case CLI_DIM:
      return "\033[2m";
    case CLI_PLAIN:
      break;
  }
  return "";
}

const char *cli_begin(const cli_invocation *cli, cli_style style) {
  return cli->color_out ? escape(style) : "";
}
const char *cli_reset(const cli_invocation *cli) {
  return cli->color_out ? "\033[0m" : "";
}

/* Prints the text as one line, whatever it contains, without characters that control the terminal. */
static void print_line(const char *begin, const char *prefix, const char *line, const char *end) {
  char clean[4096];
  (void)clv_label_name(line, 0, clean, sizeof clean);
  fflush(stdout);
  fprintf(stderr, "%s%s%s%s\n", begin, prefix, end, clean);
}

/* Returns whether the note was printed before, for example for another configuration of a bench. Remembers only the latest
 * notes. */
static bool is_repeated(const char *line) {
  static char kept[8][256];
  static uint32_t count;
  for (uint32_t i = 0; i < 8; ++i) {
    if (count > i && strncmp(kept[i], line, sizeof kept[i] - 1) == 0) return true;
  }
  snprintf(kept[count++ % 8], sizeof kept[0], "%.*s", (int)sizeof kept[0] - 1, line);
  return false;
}

void cli_note(cli_invocation *cli, const char *format, ...) {
  if (cli->quiet) return;
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (is_repeated(line)) return;
  cli_progress_end(cli);
  print_line("", "", line, "");
}

void cli_progress(cli_invocation *cli, const char *format, ...) {
  static uint64_t last_ns;
  static const char *last_format;
  if (cli->quiet || cli->environment.dumb_terminal || !isatty(STDERR_FILENO)) return;
  uint64_t now_ns = cli_now_ns();
  if (last_format == format && now_ns - last_ns < 100000000u) return; /* at most ten lines of a kind per second */
  last_ns = now_ns;
  last_format = format;
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  char clean[512];
  (void)clv_label_name(line, 78, clean, sizeof clean);
  fprintf(stderr, "\r\033[K%s", clean);
  fflush(stderr);
  cli->progress_shown = true;
}

void cli_progress_end(cli_invocation *cli) {
  if (!cli->progress_shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  cli->progress_shown = false;
}

void cli_print_error(cli_invocation *cli, const clv_error *error) {
  cli_progress_end(cli);
  const char *message = error->message[0] != '\0' ? error->message : clv_status_name(error->status);
  print_line(cli->color_err ? "\033[31m" : "", "cleave: ", message, cli->color_err ? "\033[0m" : "");
}

clv_status cli_print(cli_invocation *cli, cli_buffer *text, clv_error *error) {
  cli_progress_end(cli);
  clv_status status = CLV_OK;
  if (text->failed)
    status = cli_error_memory(error, text->size_bytes);
  else if (fwrite(text->data, 1, text->size_bytes, stdout) != text->size_bytes)
    status = cli_flush(error);
  cli_buffer_finish(text);
  return status;
}

clv_status cli_print_document(cli_invocation *cli, const char *document, clv_error *error) {
  cli_progress_end(cli);
  const size_t size_bytes = strlen(document);
  return fwrite(document, 1, size_bytes, stdout) == size_bytes ? CLV_OK : cli_flush(error);
}

clv_status cli_flush(clv_error *error) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return CLV_OK;
  return cli_error_set(error, CLV_IO_ERROR, "cannot write to standard output: %s", strerror(errno));
}

void cli_log(void *user_data, int level, const char *text) {
  static const char *const words[] = {"error: ", "warning: ", "", "debug: "};
  cli_invocation *at = user_data;
  if (!at->verbose && level > 0) return;
  cli_progress_end(at);
  print_line("", words[level < 0 ? 0 : level > 3 ? 3 : level], text, "");
}
