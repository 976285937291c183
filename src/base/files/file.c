/* See file.h. */
#define _GNU_SOURCE /* memfd_create */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/memory.h"

static atomic_int kept_open; /* mappings that keep their file open */

static int64_t modified_ns(const struct stat *info) {
  return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Fills `map`. If fewer than CLV__FILES_KEPT_OPEN files are kept open, `map` takes over the descriptor `file`; otherwise
 * map->file is -1 and the caller closes `file`. */
static void keep_open(clv__file_map *map, const void *data, const struct stat *info, int file) {
  *map = (clv__file_map){data, (size_t)info->st_size, -1, modified_ns(info)};
  if (atomic_fetch_add(&kept_open, 1) < CLV__FILES_KEPT_OPEN)
    map->file = file;
  else
    atomic_fetch_sub(&kept_open, 1);
}

/* Copies everything from the pipe `*file`, up to its end, to a file in memory, whose descriptor replaces `*file`. Does not wait
 * for another process to open the pipe: without a writer, the copy is empty. */
static clv_status take_pipe(const char *path, int *file, clv_error *error) {
  int pipe = *file, memory = memfd_create("cleave-pipe", MFD_CLOEXEC);
  uint8_t block[1 << 16];
  ssize_t got = memory < 0 || fcntl(pipe, F_SETFL, 0) != 0 ? -1 : 1; /* from now on read() waits for data or the end */
  while (got > 0) {
    do got = read(pipe, block, sizeof block);
    while (got < 0 && errno == EINTR);
    if (got > 0 && write(memory, block, (size_t)got) != got) got = -1;
  }
  int code = errno;
  close(pipe);
  *file = memory;
  return got == 0 ? CLV_OK
                  : clv__error_set(error, CLV_IO_ERROR, "%s: cannot copy the pipe into memory: %s", path, strerror(code));
}

clv_status clv__file_map_open(const char *path, clv__file_map *map, clv_error *error) {
  *map = (clv__file_map){0};
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return clv__error_set(error, errno == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
  }
  struct stat info;
  clv_status status = fstat(file, &info) == 0 && S_ISFIFO(info.st_mode) ? take_pipe(path, &file, error) : CLV_OK;
  if (status != CLV_OK) {
    if (file >= 0) close(file);
    return status;
  }
  if (fstat(file, &info) != 0) {
    status = clv__error_set(error, CLV_IO_ERROR, "%s: cannot read the file's size: %s", path, strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: not a regular file", path);
  } else if (info.st_size > 0) {
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      status =
          clv__error_set(error, CLV_IO_ERROR, "%s: cannot map %lld bytes: %s", path, (long long)info.st_size, strerror(errno));
    } else {
      keep_open(map, data, &info, file);
    }
  }
  if (map->data == NULL || map->file != file) close(file);
  return status;
}

void clv__file_map_close(clv__file_map *map) {
  if (map->data != NULL) munmap((void *)map->data, map->size_bytes);
  if (map->data != NULL && map->file >= 0) {
    close(map->file);
    atomic_fetch_sub(&kept_open, 1);
  }
  *map = (clv__file_map){0};
}

bool clv__file_map_check(const clv__file_map *map) {
  struct stat info;
  if (map->data == NULL || map->file < 0) return true;
  return fstat(map->file, &info) == 0 && (size_t)info.st_size == map->size_bytes && modified_ns(&info) == map->modified_ns;
}

clv_status clv__file_map_read(const clv__file_map *map, const void *data, size_t size_bytes, void *to, clv_error *error) {
  if (map->file < 0) {
    memcpy(to, data, size_bytes);
    return CLV_OK;
  }
  off_t offset = (const uint8_t *)data - map->data;
  for (size_t done = 0; done < size_bytes;) {
    ssize_t more = pread(map->file, (char *)to + done, size_bytes - done, offset + (off_t)done);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return clv__error_set(error, CLV_IO_ERROR, "cannot read %zu bytes: %s", size_bytes, strerror(errno));
    if (more == 0) {
      return clv__error_set(error, CLV_IO_ERROR, "the file ends at byte %lld, but had %zu bytes when it was loaded",
                            (long long)offset + (long long)done, map->size_bytes);
    }
    done += (size_t)more;
  }
  return CLV_OK;
}

void clv__file_map_drop(const clv__file_map *map, const void *data, size_t size_bytes) {
  const uint8_t *from = data;
  if (map->data == NULL || from < map->data || from >= map->data + map->size_bytes) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = ((uintptr_t)from + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)from + size_bytes) / page * page;
  if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
}

/* A file in memory of `size_bytes` (whole pages) filled with the element; -1 if the system refuses. */
static int make_pattern(const void *element, size_t element_bytes, size_t size_bytes) {
  int file = memfd_create("cleave-fill", MFD_CLOEXEC);
  if (file < 0) return -1;
  uint8_t *pattern =
      ftruncate(file, (off_t)size_bytes) != 0 ? MAP_FAILED : mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pattern == MAP_FAILED) {
    close(file);
    return -1;
  }
  memcpy(pattern, element, element_bytes);
  for (size_t done = element_bytes; done < size_bytes;) { /* each step doubles the filled part */
    size_t more = done < size_bytes - done ? done : size_bytes - done;
    memcpy(pattern + done, pattern, more);
    done += more;
  }
  munmap(pattern, size_bytes);
  return file;
}

size_t clv__file_map_fill_memory(size_t size_bytes) {
  enum { MOST_PIECES = 1024 }; /* limit: the system bounds the number of mappings per process */
  size_t piece = 256u << 10;   /* small enough to stay in a cache while it is read repeatedly */
  while (size_bytes / piece > MOST_PIECES) piece *= 2;
  return piece;
}

clv_status clv__file_map_fill(const void *element, size_t element_bytes, size_t size_bytes, clv__file_map *map,
                              clv_error *error) {
  const size_t piece = clv__file_map_fill_memory(size_bytes);
  *map = (clv__file_map){0};
  int file = make_pattern(element, element_bytes, piece);
  if (file < 0) return clv__error_set(error, CLV_NOT_SUPPORTED, "cannot create a file in memory: %s", strerror(errno));
  uint8_t *data = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool mapped = data != MAP_FAILED;
  for (size_t done = 0; mapped && done < size_bytes; done += piece) {
    size_t length = size_bytes - done < piece ? size_bytes - done : piece;
    mapped = mmap(data + done, length, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  }
  close(file);
  if (!mapped) {
    if (data != MAP_FAILED) munmap(data, size_bytes);
    return clv__error_set(error, CLV_NOT_SUPPORTED, "cannot map %zu bytes: %s", size_bytes, strerror(errno));
  }
  *map = (clv__file_map){.data = data, .size_bytes = size_bytes, .file = -1};
  return CLV_OK;
}

clv_status clv__file_write(const char *path, const void *data, size_t size_bytes, clv_error *error) {
  clv__file_writer writer;
  CLV__TRY(clv__file_writer_open(path, &writer, error));
  clv_status status = clv__file_writer_append(&writer, data, size_bytes, error);
  if (status == CLV_OK) status = clv__file_writer_commit(&writer, error);
  clv__file_writer_abandon(&writer);
  return status;
}

char *clv__path_join(const clv_allocator *allocator, const char *folder, const char *name) {
  size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
  char *path = clv__allocate(allocator, folder_bytes + name_bytes + 2);
  if (path == NULL) return NULL;
  memcpy(path, folder, folder_bytes);
  path[folder_bytes] = '/';
  memcpy(path + folder_bytes + 1, name, name_bytes + 1);
  return path;
}

char *clv__path_beside(const clv_allocator *allocator, const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return clv__path_join(allocator, ".", name);
  size_t folder_bytes = (size_t)(slash - path), name_bytes = strlen(name);
  char *joined = clv__allocate(allocator, folder_bytes + name_bytes + 2);
  if (joined == NULL) return NULL;
  memcpy(joined, path, folder_bytes + 1);
  memcpy(joined + folder_bytes + 1, name, name_bytes + 1);
  return joined;
}
