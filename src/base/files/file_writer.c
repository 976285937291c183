/* See file_writer.h. */
#define _GNU_SOURCE /* memfd_create, O_TMPFILE */
#include "base/files/file_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/temporaries.h"

#define MARK ".tmp-" /* followed by six random letters or digits */
enum { LETTERS = 6 };

/* Opens a file without a name in the folder of `path`. The file disappears if the process is killed. Returns -1 on failure,
 * for example if the file system does not support this, and if name_unnamed() would fail because there is no /proc. */
static int open_unnamed(const char *path) {
  char folder[sizeof((clv__file_writer *)NULL)->temporary] = ".";
  const char *slash = strrchr(path, '/');
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  if (slash != NULL) snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static void remove_file(const char *path) {
  (void)unlink(path);
}

/* Gives the unnamed file a temporary name, like mkostemp(). The caller renames it to its target, because linkat() cannot replace
 * an existing file. */
static clv_status name_unnamed(clv__file_writer *writer, clv_error *error) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  char from[32], *end = writer->temporary + strlen(writer->temporary) - LETTERS;
  snprintf(from, sizeof from, "/proc/self/fd/%d", writer->file);
  for (int attempt = 0; attempt < 100; ++attempt) {
    uint8_t drawn[LETTERS];
    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) break;
    for (int i = 0; i < LETTERS; ++i) end[i] = letters[drawn[i] % (sizeof letters - 1)];
    clv__temporary_begin();
    int code = linkat(AT_FDCWD, from, AT_FDCWD, writer->temporary, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
    clv__temporary_end(code == 0 ? writer->temporary : NULL, remove_file);
    writer->is_unnamed = code != 0;
    if (code == 0) return CLV_OK;
    errno = code;
    if (errno != EEXIST) break;
  }
  return clv__error_set(error, CLV_IO_ERROR, "%s: cannot create: %s", writer->path, strerror(errno));
}

clv_status clv__file_writer_open(const char *path, clv__file_writer *writer, clv_error *error) {
  struct stat info;
  *writer = (clv__file_writer){.path = path, .file = -1, .special = -1};
  int length = snprintf(writer->temporary, sizeof writer->temporary, "%s" MARK "XXXXXX", path);
  if (length < 0 || (size_t)length >= sizeof writer->temporary) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "path of %zu bytes is too long", strlen(path));
  }
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    writer->special = open(path, O_WRONLY | O_CLOEXEC);
    if (writer->special < 0) {
      return clv__error_set(error, CLV_IO_ERROR, "%s: cannot open for writing: %s", path, strerror(errno));
    }
    writer->file = memfd_create("cleave-write", MFD_CLOEXEC);
  } else {
    writer->file = open_unnamed(path);
    writer->is_unnamed = writer->file >= 0;
    if (!writer->is_unnamed) {
      clv__temporary_begin();
      writer->file = mkostemp(writer->temporary, O_CLOEXEC);
      int code = errno;
      clv__temporary_end(writer->file >= 0 ? writer->temporary : NULL, remove_file);
      errno = code;
    }
  }
  if (writer->file < 0) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot create: %s", path, strerror(errno));
  return CLV_OK;
}

enum { STEP_BYTES = 1 << 30 }; /* bytes per call of write(), which writes at most 2 GiB at once */

static clv_status write_all(const char *path, int file, const uint8_t *data, size_t size_bytes, clv_error *error) {
  while (size_bytes > 0) {
    ssize_t written = write(file, data, size_bytes < STEP_BYTES ? size_bytes : STEP_BYTES);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
    data += written;
    size_bytes -= (size_t)written;
  }
  return CLV_OK;
}

clv_status clv__file_writer_append(clv__file_writer *writer, const void *data, size_t size_bytes, clv_error *error) {
  return write_all(writer->path, writer->file, data, size_bytes, error);
}

clv_status clv__file_writer_patch(clv__file_writer *writer, uint64_t offset, const void *data, size_t size_bytes,
                                  clv_error *error) {
  const uint8_t *from = data;
  while (size_bytes > 0) {
    ssize_t written = pwrite(writer->file, from, size_bytes < STEP_BYTES ? size_bytes : STEP_BYTES, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot write: %s", writer->path, strerror(errno));
    from += written;
    offset += (uint64_t)written;
    size_bytes -= (size_t)written;
  }
  return CLV_OK;
}

/* Copies the whole temporary file into a pipe or a device. */
static clv_status copy_out(clv__file_writer *writer, clv_error *error) {
  struct stat info;
  void *data = MAP_FAILED;
  if (fstat(writer->file, &info) == 0) {
    if (info.st_size == 0) return CLV_OK;
    data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, writer->file, 0);
  }
  if (data == MAP_FAILED) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot write: %s", writer->path, strerror(errno));
  clv_status status = write_all(writer->path, writer->special, data, (size_t)info.st_size, error);
  munmap(data, (size_t)info.st_size);
  return status;
}

static void close_all(clv__file_writer *writer) {
  if (writer->file >= 0) close(writer->file);
  if (writer->special >= 0) close(writer->special);
  writer->file = writer->special = -1;
}

clv_status clv__file_writer_commit(clv__file_writer *writer, clv_error *error) {
  clv_status status = CLV_OK;
  bool is_special = writer->special >= 0;
  if (is_special) {
    status = copy_out(writer, error);
  } else {
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(writer->file, 0666 & ~mask) != 0 || fsync(writer->file) != 0) {
      status = clv__error_set(error, CLV_IO_ERROR, "%s: cannot flush: %s", writer->path, strerror(errno));
    }
    if (status == CLV_OK && writer->is_unnamed) status = name_unnamed(writer, error);
  }
  close_all(writer);
  if (is_special || writer->is_unnamed) return status;
  if (status == CLV_OK && rename(writer->temporary, writer->path) != 0) {
    status = clv__error_set(error, CLV_IO_ERROR, "%s: cannot replace: %s", writer->path, strerror(errno));
  }
  if (status != CLV_OK) unlink(writer->temporary);
  clv__temporary_forget(writer->temporary);
  return status;
}

void clv__file_writer_abandon(clv__file_writer *writer) {
  if (writer->file < 0 && writer->special < 0) return;
  bool has_temporary = writer->special < 0 && !writer->is_unnamed;
  close_all(writer);
  if (!has_temporary) return;
  unlink(writer->temporary);
  clv__temporary_forget(writer->temporary);
}

/* Whether the directory entry is `name` followed by MARK and LETTERS more characters. */
static bool is_temporary(const char *entry, const char *name) {
  size_t length = strlen(name), mark = sizeof MARK - 1;
  return strlen(entry) == length + mark + LETTERS && memcmp(entry, name, length) == 0 && memcmp(entry + length, MARK, mark) == 0;
}

void clv__file_writer_sweep(const char *path) {
  char folder[4096] = ".";
  struct stat info;
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  if (slash != NULL) {
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof folder) return; /* clv__file_writer_open() rejects such a long path */
    memcpy(folder, path, length);
    folder[length] = '\0';
  }
  DIR *open = opendir(folder);
  if (open == NULL) return;
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    if (is_temporary(entry->d_name, name) && fstatat(dirfd(open), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode))
      unlinkat(dirfd(open), entry->d_name, 0);
  }
  closedir(open);
}
