/* Reads a text file in blocks that end at a line end (or a word end). The file may be gzip-compressed. It can be read any
 * number of times and is never kept in memory. */
#ifndef CLEAVE_GNN_DATA_TEXT_BLOCKS_H
#define CLEAVE_GNN_DATA_TEXT_BLOCKS_H

#include "cleave/types.h"

typedef struct clv__text_blocks clv__text_blocks;

/* The location of the bytes: a file, or memory that outlives the reader (`path` is then only a name). */
typedef struct clv__bytes_at {
  const char *path;
  const void *data; /* NULL: the file at `path` */
  size_t size_bytes;
} clv__bytes_at;

/* Errors: CLV_NOT_FOUND, CLV_IO_ERROR, and CLV_INVALID_ARGUMENT if the path is not a regular file. With `by_word`, a block may
 * end inside a line, after white space; otherwise a line is at most one block long. Errors from opening name the file; errors
 * from reading do not. */
clv_status clv__text_blocks_open(const clv_allocator *allocator, const clv__bytes_at *bytes, bool by_word,
                                 clv__text_blocks **blocks, clv_error *error);
void clv__text_blocks_close(clv__text_blocks *blocks); /* accepts NULL */
clv_status clv__text_blocks_rewind(clv__text_blocks *blocks, clv_error *error);
/* Returns the next block, valid until the next call. At the end, `size_bytes` is 0. Returns CLV_INVALID_MODEL if a gzip file
 * is damaged or truncated, or if a line (with `by_word`, a word) is longer than a block. */
clv_status clv__text_blocks_next(clv__text_blocks *blocks, const char **data, size_t *size_bytes, clv_error *error);
/* The file's size in bytes. For a compressed file, the compressed size. */
uint64_t clv__text_blocks_size(const clv__text_blocks *blocks);

/* Reads up to `room` bytes from the start of a file, to detect its format. */
clv_status clv__bytes_peek(const clv__bytes_at *bytes, uint8_t *head, size_t room, size_t *size_bytes, clv_error *error);

#endif
