/* Checks that a command's output files can be written, before the command starts work that may take hours. */
#include <sys/stat.h>

#include "base/files/file_writer.h"
#include "cli/options/options.h"

/* Skips an existing pipe, terminal or other special file, because the program at its other end would notice that it was opened.
 */
static clv_status check(const char *path, clv_error *error) {
  struct stat about;
  if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return CLV_OK;
  clv__file_writer writer;
  clv_status status = clv__file_writer_open(path, &writer, error);
  clv__file_writer_abandon(&writer);
  return status;
}

clv_status cli_outputs_check(const cli_invocation *cli, clv_error *error) {
  static const cli_option_id written[] = {OPTION_OUTPUT, OPTION_SVG, OPTION_DOT, OPTION_HTML, OPTION_TRACE};
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i) {
    if (cli_is_given(cli, written[i])) CLV__TRY(check(cli_text(cli, written[i], NULL), error));
  }
  return CLV_OK;
}
