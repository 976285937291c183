/* See values.h. */
#include "cli/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_NAME_BYTES = 200 };

/* Returns the number of bytes of the UTF-8 character at `text`, at least 1 unless it is the end, and sets `*character`; a byte
 * that is not UTF-8 is U+FFFD. */
static size_t decode(const char *text, uint32_t *character) {
  const unsigned char *at = (const unsigned char *)text;
  const size_t length = at[0] == 0 ? 0 : at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length: less would have a shorter form */
  bool is_valid = length < 2 || (at[0] >= 0xc2 && at[0] < 0xf5);
  *character = length < 2 ? at[0] : at[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length && is_valid; ++i) {
    is_valid = (at[i] & 0xc0u) == 0x80u;
    *character = *character << 6 | (at[i] & 0x3fu);
  }
  is_valid = is_valid && *character >= least[length] && *character <= 0x10ffff && *character >> 11 != 0x1b; /* surrogates */
  if (is_valid) return length;
  *character = 0xfffd;
  return 1;
}

/* Copies the name, with `_` for path separators, characters that control terminals, and a leading dot, so that no file is hidden
 * or named "..". Long names are truncated at a character boundary. */
static void file_name(const char *name, char out[FILE_NAME_BYTES]) {
  size_t used = 0;
  uint32_t character;
  for (size_t length; (length = decode(name, &character)) > 0 && used + length < FILE_NAME_BYTES; name += length) {
    bool odd = character < 0x20 || (character >= 0x7f && character < 0xa0) || character == '/' || character == '\\' ||
               (character == '.' && used == 0) || (length == 1 && character == 0xfffd);
    memcpy(out + used, odd ? "_" : name, odd ? 1 : length);
    used += odd ? 1 : length;
  }
  if (used == 0) out[used++] = '_';
  out[used] = '\0';
}

static clv_status make_folder(const char *folder, clv_error *error) {
  char path[4096];
  size_t length = strlen(folder);
  if (length >= sizeof path) return cli_error_set(error, CLV_INVALID_ARGUMENT, "path of %zu bytes is too long", length);
  for (size_t i = 1; i <= length; ++i) { /* also creates the parent folders */
    if (folder[i] != '/' && folder[i] != '\0') continue;
    memcpy(path, folder, i);
    path[i] = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
      return cli_error_set(error, CLV_IO_ERROR, "%s: cannot create the folder: %s", path, strerror(errno));
    }
  }
  struct stat info;
  if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return CLV_OK;
  return cli_error_set(error, CLV_IO_ERROR, "%s: exists, but is not a folder", folder);
}

clv_status cli_values_write(cli_invocation *cli, const char *folder, clv_named_tensor *values, uint32_t count, clv_error *error) {
  CLI_TRY(make_folder(folder, error));
  for (uint32_t i = 0; i < count; ++i) {
    char base[FILE_NAME_BYTES], name[FILE_NAME_BYTES + 24];
    file_name(values[i].name, base);
    snprintf(name, sizeof name, "%s.npy", base);
    size_t room = strlen(folder) + sizeof name + 2;
    char *path = cli_arena_allocate(&cli->arena, room);
    if (path == NULL) return cli_error_memory(error, room);
    snprintf(path, room, "%s/%s", folder, name);
    for (uint32_t k = 0, number = 2; k < i;
         ++k) { /* another value has this file name: try the next number, and compare with all values again */
      if (values[k].file == NULL || strcmp(values[k].file, path) != 0) continue;
      snprintf(path, room, "%s/%s-%u.npy", folder, base, number++);
      k = UINT32_MAX;
    }
    clv_status status = clv_arrays_write(cli->context, path, NULL, &values[i].tensor, 1, error);
    if (status != CLV_OK) return cli_error_prefix(error, status, "value '%s'", values[i].name);
    values[i].file = path;
  }
  return CLV_OK;
}
