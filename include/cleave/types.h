/* The plain types shared by applications, backends and the library: status, error, dtype, tensor, allocator.
 *
 * Every type here is a value with a fixed layout. It never owns memory, and filling it in needs no library call. */
#ifndef CLEAVE_TYPES_H
#define CLEAVE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define CLV_API
#else
#define CLV_API __attribute__((visibility("default")))
#endif
#if defined(__GNUC__)
#define CLV_MUST_USE __attribute__((warn_unused_result))
#define CLV_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define CLV_MUST_USE
#define CLV_PRINTF(format_index, first_argument)
#endif

/* The result of a call. Any status but CLV_OK leaves every output NULL or untouched. */
typedef enum clv_status {
  CLV_OK = 0,
  CLV_INVALID_ARGUMENT = 1, /* a caller's mistake: a NULL, a wrong shape, an unknown option */
  CLV_INVALID_MODEL = 2,    /* a file or memory block is damaged or violates its specification */
  CLV_NOT_SUPPORTED = 3,    /* the request is valid, but nothing available can do it; the message says what could */
  CLV_NOT_FOUND = 4,        /* a file, device, value or name does not exist */
  CLV_OUT_OF_MEMORY = 5,    /* host or device memory; the message has the size requested */
  CLV_IO_ERROR = 6,         /* the operating system reported a failed read or write */
  CLV_DEVICE_ERROR = 7,     /* a driver call failed; the message has the call and its code */
  CLV_TOO_LARGE = 8,        /* a group of nodes does not fit its device; a smaller group may fit */
  CLV_INTERNAL_ERROR = 9,   /* a bug in Cleave */
  CLV_CANCELLED = 10,       /* clv_run_cancel() or a progress callback ended the run */
  CLV_TIMED_OUT = 11        /* the run exceeded its time limit */
} clv_status;

/* The text of a failure. The caller owns it. Its size is fixed, and filling it allocates nothing.
 * Any `clv_error *` argument may be NULL. */
typedef struct clv_error {
  clv_status status;
  char message[1020];
} clv_error;

/* Element types, with the numbers of ONNX's TensorProto.DataType. */
typedef enum clv_dtype {
  CLV_DTYPE_NONE = 0, /* unknown, or an absent optional tensor */
  CLV_F32 = 1,
  CLV_U8 = 2,
  CLV_I8 = 3,
  CLV_U16 = 4,
  CLV_I16 = 5,
  CLV_I32 = 6,
  CLV_I64 = 7,
  CLV_STRING = 8, /* host only; elements are clv_string */
  CLV_BOOL = 9,   /* one byte, 0 or 1 */
  CLV_F16 = 10,
  CLV_F64 = 11,
  CLV_U32 = 12,
  CLV_U64 = 13,
  CLV_BF16 = 16,
  CLV_F8E4M3FN = 17,   /* one byte: 1 sign, 4 exponent, 3 mantissa bits; no infinity, NaN is S.1111.111 */
  CLV_F8E4M3FNUZ = 18, /* one byte; no infinity, no negative zero: 0x80 is NaN */
  CLV_F8E5M2 = 19,     /* one byte; infinity and NaN as in IEEE formats */
  CLV_F8E5M2FNUZ = 20, /* one byte; no infinity, no negative zero: 0x80 is NaN */
  CLV_U4 = 21,         /* two per byte, the first in the low bits, as ONNX packs them; CLV_I4 likewise */
  CLV_I4 = 22,
  CLV_F4E2M1 = 23, /* two per byte: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives */
  CLV_F8E8M0 = 24, /* one byte: 2^(byte - 127), 255 is NaN */
  CLV_U2 = 25,     /* four per byte */
  CLV_I2 = 26
} clv_dtype;

#define CLV_MAX_RANK 8

/* An unknown dimension is -1, or a symbol of the graph: CLV_DIM_SYMBOL(k), with the symbol's index k. */
#define CLV_DIM_UNKNOWN ((int64_t)-1)
#define CLV_DIM_SYMBOL(index) (-2 - (int64_t)(index))
#define CLV_RANK_UNKNOWN (-1)

/* A dense row-major tensor. If `data` is NULL, it is only a type: dtype, rank and dims.
 * It never owns `data`. dims[rank..CLV_MAX_RANK) are unspecified. Rank 0 is a scalar of one element.
 * An absent optional input or output has dtype CLV_DTYPE_NONE. A tensor of zero elements may have any `data`;
 * a non-NULL pointer means that its value is known. */
typedef struct clv_tensor {
  clv_dtype dtype;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK];
  void *data;
} clv_tensor;

typedef struct clv_string {
  const char *data; /* not terminated */
  size_t size_bytes;
} clv_string;

/* The source of all memory of the library and its built-in backends, set when the context is created.
 * `allocate` returns memory aligned to `alignment`, a power of two, or NULL. Both functions may be called from any thread. */
typedef struct clv_allocator {
  void *user_data;
  void *(*allocate)(void *user_data, size_t size_bytes, size_t alignment);
  void (*release)(void *user_data, void *pointer); /* pointer may be NULL */
} clv_allocator;

/* How a document is written that a function of the library makes for people and programs to read. */
typedef enum clv_form {
  CLV_FORM_TEXT = 0,    /* for people: UTF-8 lines and aligned tables, as the command `cleave` prints them to a file */
  CLV_FORM_JSON = 1,    /* for programs: one JSON object or array, as the command prints it with --json */
  CLV_FORM_TERMINAL = 2 /* as CLV_FORM_TEXT, with the escape sequences of terminals for bold and coloured text */
} clv_form;

/* Frees a document that a function of the library made, from any thread, also after its context was destroyed, but before the
 * allocator of that context ends. Accepts NULL. */
CLV_API void clv_text_free(char *text);

/* Receives a document in pieces, one after the other: `size` bytes at `bytes`, which are valid during the call. Return false to
 * stop; the function that was called then returns CLV_CANCELLED. */
typedef bool (*clv_emit_fn)(void *user_data, const char *bytes, size_t size);

/* The size of an element in bytes. For CLV_STRING, this is the size of a clv_string. Returns 0 for dtypes smaller than a byte,
 * for CLV_DTYPE_NONE, and for numbers that are not a dtype. Elements smaller than a byte are packed: n of them take n *
 * clv_dtype_size_bits() / 8 bytes, rounded up. Any thread may call it. */
CLV_API size_t clv_dtype_size_bytes(clv_dtype dtype);

/* The size of an element in bits; 0 only for CLV_DTYPE_NONE and numbers that are not a dtype. Any thread may call it. */
CLV_API size_t clv_dtype_size_bits(clv_dtype dtype);

/* "f32", "i64", "bool", …; "none" for CLV_DTYPE_NONE and numbers that are not a dtype. Static storage. Any thread may call it. */
CLV_API const char *clv_dtype_name(clv_dtype dtype);

/* "ok", "invalid argument", …. Static storage. Any thread may call it. */
CLV_API const char *clv_status_name(clv_status status);

#ifdef __cplusplus
}
#endif
#endif
