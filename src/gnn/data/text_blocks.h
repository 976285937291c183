/* A text file in blocks that end where a line (or a word) ends, packed by gzip or not. Read as often as one likes, never kept. */
#ifndef CLEAVE_GNN_DATA_TEXT_BLOCKS_H
#define CLEAVE_GNN_DATA_TEXT_BLOCKS_H

#include "cleave/types.h"

typedef struct clv__text_blocks clv__text_blocks;

/* Where the bytes are: a file, or (path is then only a name) memory that outlives the reader. */
typedef struct clv__bytes_at {
  const char *path;
  const void *data; /* NULL: the file at `path` */
  size_t size_bytes;
} clv__bytes_at;

/* Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_ARGUMENT for what is no regular file. `by_word`: blocks may end inside of a
 * line, after white space; otherwise a line is at most a block long. Errors of opening name the file, those of reading do not. */
clv_status clv__text_blocks_open(const clv_allocator *allocator, const clv__bytes_at *bytes, bool by_word,
                                 clv__text_blocks **blocks, clv_error *error);
void clv__text_blocks_close(clv__text_blocks *blocks); /* accepts NULL */
clv_status clv__text_blocks_rewind(clv__text_blocks *blocks, clv_error *error);
/* The next block; none is left: `size_bytes` is 0. It lives until the next call. CLV_INVALID_MODEL for a gzip file that is
 * damaged or cut off and for a line that does not end. */
clv_status clv__text_blocks_next(clv__text_blocks *blocks, const char **data, size_t *size_bytes, clv_error *error);
/* Bytes of the file: packed ones, where it is packed. */
uint64_t clv__text_blocks_size(const clv__text_blocks *blocks);

/* Reads up to `room` bytes of the begin of a file: to see what it is. */
clv_status clv__bytes_peek(const clv__bytes_at *bytes, uint8_t *head, size_t room, size_t *size_bytes, clv_error *error);

#endif
