/* See text_blocks.h. Uses read() rather than mmap(): a file that shrinks meanwhile causes an error, not a signal. */
#include "gnn/data/text_blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/arrays/zip.h"

enum { BLOCK_BYTES = 4 << 20, PACKED_BYTES = 1 << 18 };

struct clv__text_blocks {
  const clv_allocator *allocator;
  int file; /* the file's descriptor; -1: reads from `memory` */
  const uint8_t *memory;
  /* The size of the file or of `memory`; the offset of the next byte to read; both before decompression. */
  uint64_t size_bytes, at;
  bool by_word;
  bool is_packed, inflating, at_end, in_member;
  z_stream inflate;
  uint8_t *packed;
  char *block;
  size_t begin, end; /* the part of the block not yet returned */
};

static clv_status open_file(const char *path, int *file, uint64_t *size_bytes, clv_error *error) {
  struct stat info;
  *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0) {
    return clv__error_set(error, errno == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
  }
  if (fstat(*file, &info) != 0) {
    return clv__error_set(error, CLV_IO_ERROR, "%s: cannot read its size: %s", path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: not a regular file; graph files are read twice", path);
  }
  *size_bytes = (uint64_t)info.st_size;
  return CLV_OK;
}

/* Reads the file's raw bytes. Returns fewer than `room` only at the end. */
static clv_status read_raw(int file, void *to, size_t room, size_t *count, clv_error *error) {
  *count = 0;
  while (*count < room) {
    ssize_t got = read(file, (uint8_t *)to + *count, room - *count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return clv__error_set(error, CLV_IO_ERROR, "cannot read: %s", strerror(errno));
    if (got == 0) break;
    *count += (size_t)got;
  }
  return CLV_OK;
}

clv_status clv__bytes_peek(const clv__bytes_at *bytes, uint8_t *head, size_t room, size_t *size_bytes, clv_error *error) {
  if (bytes->data != NULL) {
    *size_bytes = bytes->size_bytes < room ? bytes->size_bytes : room;
    if (*size_bytes > 0) memcpy(head, bytes->data, *size_bytes);
    return CLV_OK;
  }
  int file;
  uint64_t total;
  clv_status status = open_file(bytes->path, &file, &total, error);
  if (status == CLV_OK) {
    status = read_raw(file, head, room, size_bytes, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "%s", bytes->path);
  }
  if (file >= 0) close(file);
  return status;
}

static clv_status fill_raw(clv__text_blocks *b, void *to, size_t room, size_t *count, clv_error *error) {
  if (b->file >= 0) {
    CLV__TRY(read_raw(b->file, to, room, count, error));
  } else {
    uint64_t left = b->size_bytes - b->at;
    *count = left < room ? (size_t)left : room;
    if (*count > 0) memcpy(to, b->memory + b->at, *count);
  }
  b->at += *count;
  return CLV_OK;
}

/* Decompresses up to `room` bytes. A gzip file may consist of several concatenated members. */
static clv_status fill_unpacked(clv__text_blocks *b, char *to, size_t room, size_t *count, clv_error *error) {
  *count = 0;
  while (*count < room) {
    if (b->inflate.avail_in == 0) {
      size_t got;
      CLV__TRY(fill_raw(b, b->packed, PACKED_BYTES, &got, error));
      b->inflate.next_in = b->packed;
      b->inflate.avail_in = (uInt)got;
      if (got == 0 && b->in_member) {
        return clv__error_set(error, CLV_INVALID_MODEL, "gzip: the file is truncated");
      }
      if (got == 0) return CLV_OK;
    }
    if (!b->in_member) {
      if (inflateReset(&b->inflate) != Z_OK) return clv__error_set(error, CLV_INTERNAL_ERROR, "gzip: inflateReset() failed");
      b->in_member = true;
    }
    b->inflate.next_out = (uint8_t *)to + *count;
    b->inflate.avail_out = (uInt)(room - *count);
    int code = inflate(&b->inflate, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return clv__error_memory(error, 1 << 15);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return clv__error_set(error, CLV_INVALID_MODEL, "gzip: damaged near byte %llu: %s",
                            (unsigned long long)(b->at - b->inflate.avail_in),
                            b->inflate.msg != NULL ? b->inflate.msg : "unknown");
    }
    *count = room - b->inflate.avail_out;
    if (code == Z_STREAM_END) b->in_member = false;
  }
  return CLV_OK;
}

clv_status clv__text_blocks_rewind(clv__text_blocks *b, clv_error *error) {
  b->at = 0;
  b->begin = b->end = 0;
  b->at_end = b->in_member = false;
  b->inflate.avail_in = 0;
  if (b->file >= 0 && lseek(b->file, 0, SEEK_SET) != 0) {
    return clv__error_set(error, CLV_IO_ERROR, "cannot read again from the beginning: %s", strerror(errno));
  }
  return CLV_OK;
}

static clv_status prepare(clv__text_blocks *b, clv_error *error) {
  uint8_t head[2];
  size_t count = 0;
  CLV__TRY(fill_raw(b, head, sizeof head, &count, error));
  b->is_packed = count == 2 && head[0] == 0x1f && head[1] == 0x8b;
  CLV__TRY(clv__text_blocks_rewind(b, error));
  b->block = clv__allocate(b->allocator, BLOCK_BYTES);
  if (b->block == NULL) return clv__error_memory(error, BLOCK_BYTES);
  if (!b->is_packed) return CLV_OK;
  b->packed = clv__allocate(b->allocator, PACKED_BYTES);
  if (b->packed == NULL) return clv__error_memory(error, PACKED_BYTES);
  b->inflate.zalloc = clv__zlib_allocate;
  b->inflate.zfree = clv__zlib_release;
  b->inflate.opaque = (void *)b->allocator;
  b->inflating = inflateInit2(&b->inflate, MAX_WBITS + 16) == Z_OK; /* + 16: expect gzip's header and checksum */
  return b->inflating ? CLV_OK : clv__error_memory(error, 1 << 15);
}

clv_status clv__text_blocks_open(const clv_allocator *allocator, const clv__bytes_at *bytes, bool by_word, clv__text_blocks **out,
                                 clv_error *error) {
  *out = NULL;
  clv__text_blocks *b = clv__allocate_zero(allocator, sizeof *b);
  if (b == NULL) return clv__error_memory(error, sizeof *b);
  *b = (clv__text_blocks){
      .allocator = allocator, .file = -1, .memory = bytes->data, .size_bytes = bytes->size_bytes, .by_word = by_word};
  clv_status status = CLV_OK;
  if (bytes->data == NULL) status = open_file(bytes->path, &b->file, &b->size_bytes, error);
  if (status == CLV_OK) status = prepare(b, error);
  if (status == CLV_OK)
    *out = b;
  else
    clv__text_blocks_close(b);
  return status;
}

void clv__text_blocks_close(clv__text_blocks *b) {
  if (b == NULL) return;
  if (b->inflating) inflateEnd(&b->inflate);
  if (b->file >= 0) close(b->file);
  clv__release(b->allocator, b->packed);
  clv__release(b->allocator, b->block);
  clv__release(b->allocator, b);
}

uint64_t clv__text_blocks_size(const clv__text_blocks *b) {
  return b->size_bytes;
}

static bool ends_block(const clv__text_blocks *b, char c) {
  return c == '\n' || (b->by_word && (c == ' ' || c == '\t'));
}

clv_status clv__text_blocks_next(clv__text_blocks *b, const char **data, size_t *size_bytes, clv_error *error) {
  size_t kept = b->end - b->begin, got = 0;
  if (kept > 0) memmove(b->block, b->block + b->begin, kept);
  b->begin = 0;
  b->end = kept;
  if (!b->at_end) {
    size_t room = BLOCK_BYTES - kept;
    CLV__TRY(b->is_packed ? fill_unpacked(b, b->block + kept, room, &got, error)
                          : fill_raw(b, b->block + kept, room, &got, error));
    b->at_end = got < room;
    b->end += got;
  }
  size_t cut = b->end;
  if (!b->at_end) {
    while (cut > 0 && !ends_block(b, b->block[cut - 1])) --cut;
    if (cut == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "%d bytes without the end of a %s: not a text file of this kind",
                            BLOCK_BYTES, b->by_word ? "word" : "line");
    }
  }
  b->begin = cut;
  *data = b->block;
  *size_bytes = cut;
  return CLV_OK;
}
