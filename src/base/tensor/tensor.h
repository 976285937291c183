/* Arithmetic on tensor types, and the two 16-bit float formats. */
#ifndef CLEAVE_BASE_TENSOR_TENSOR_H
#define CLEAVE_BASE_TENSOR_TENSOR_H

#include <string.h>

#include "cleave/types.h"

/* A bit for each dtype, for masks of dtypes. */
#define CLV__DTYPE_BIT(dtype) (1u << (unsigned)(dtype))
#define CLV__DTYPE_COUNT (CLV_I2 + 1) /* size of tables indexed by dtype */
#define CLV__DTYPES_FLOAT (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F64) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))
#define CLV__DTYPES_SIGNED (CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_I16) | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64))
#define CLV__DTYPES_UNSIGNED \
  (CLV__DTYPE_BIT(CLV_U8) | CLV__DTYPE_BIT(CLV_U16) | CLV__DTYPE_BIT(CLV_U32) | CLV__DTYPE_BIT(CLV_U64))
#define CLV__DTYPES_INTEGER (CLV__DTYPES_SIGNED | CLV__DTYPES_UNSIGNED)
#define CLV__DTYPES_NUMBER (CLV__DTYPES_FLOAT | CLV__DTYPES_INTEGER)
#define CLV__DTYPES_ANY (CLV__DTYPES_NUMBER | CLV__DTYPE_BIT(CLV_BOOL)) /* all except strings and the small dtypes */
/* The small dtypes: floats of one byte, and types smaller than a byte. They are stored, moved and converted but not computed
 * in (see small.h). */
#define CLV__DTYPES_F8                                                                                                           \
  (CLV__DTYPE_BIT(CLV_F8E4M3FN) | CLV__DTYPE_BIT(CLV_F8E4M3FNUZ) | CLV__DTYPE_BIT(CLV_F8E5M2) | CLV__DTYPE_BIT(CLV_F8E5M2FNUZ) | \
   CLV__DTYPE_BIT(CLV_F8E8M0))
#define CLV__DTYPES_PACKED_INTEGER \
  (CLV__DTYPE_BIT(CLV_U4) | CLV__DTYPE_BIT(CLV_I4) | CLV__DTYPE_BIT(CLV_U2) | CLV__DTYPE_BIT(CLV_I2))
#define CLV__DTYPES_PACKED (CLV__DTYPES_PACKED_INTEGER | CLV__DTYPE_BIT(CLV_F4E2M1))
#define CLV__DTYPES_SMALL_FLOAT (CLV__DTYPES_F8 | CLV__DTYPE_BIT(CLV_F4E2M1))
#define CLV__DTYPES_SMALL (CLV__DTYPES_F8 | CLV__DTYPES_PACKED)

/* True if `number` is a dtype. `number` may be any value read from a file. */
static inline bool clv__dtype_is_known(int64_t number) {
  return number > 0 && number <= INT32_MAX && clv_dtype_size_bits((clv_dtype)number) > 0;
}
static inline bool clv__dtype_is_in(clv_dtype dtype, uint32_t dtypes) {
  return (unsigned)dtype < 32 && (CLV__DTYPE_BIT(dtype) & dtypes) != 0;
}

/* True if the dtype, the rank and every dim are known. */
bool clv__tensor_is_static(const clv_tensor *tensor);
/* Compute the number and the bytes of the elements of a tensor. Return false if a dim is unknown or negative, or if there are
 * more than 2^58 elements. */
bool clv__tensor_count(const clv_tensor *tensor, size_t *count);
bool clv__tensor_size_bytes(const clv_tensor *tensor, size_t *size_bytes);
/* Number of elements of dims [from, to). Only for shapes whose element count has been checked. */
static inline int64_t clv__dims_product(const clv_tensor *tensor, int32_t from, int32_t to) {
  int64_t product = 1;
  for (int32_t i = from; i < to; ++i) product *= tensor->dims[i];
  return product;
}
/* Whether both have the same dtype, rank and dims (a symbol equals itself; an unknown dim equals nothing). */
bool clv__tensor_same_type(const clv_tensor *a, const clv_tensor *b);
/* Writes a type as text, such as "f32[1,3,s0,?]": symbol k is s<k>, because its name is not known here, and an unknown dim is
 * `?`. Always terminates the text. To print the names of symbols, use clv__graph_type_text() or clv__infer_text(). */
void clv__tensor_text(const clv_tensor *tensor, char *text, size_t size_bytes);
/* Returns the name of a symbol, or NULL if it has none. */
typedef const char *(*clv__symbol_name_fn)(const void *cookie, uint32_t symbol);
/* "f32[1,3,batch,?]": like clv__tensor_text(), with the names of symbols. A symbol without a name is printed like an
 * unknown dim, as `?`. */
void clv__tensor_text_named(const clv_tensor *tensor, clv__symbol_name_fn name, const void *cookie, char *text,
                            size_t size_bytes);

static inline clv_tensor clv__tensor_make(clv_dtype dtype, int32_t rank, const int64_t *dims, void *data) {
  clv_tensor t;
  memset(&t, 0, sizeof t);
  t.dtype = dtype;
  t.rank = rank;
  t.data = data;
  for (int32_t i = 0; i < rank; ++i) t.dims[i] = dims[i];
  return t;
}

static inline float clv__bf16_to_f32(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Rounds to the nearest number, and ties to even. A NaN stays a quiet NaN. */
static inline uint16_t clv__f32_to_bf16(float value) {
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  if ((wide & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((wide >> 16) | 0x0040u);
  return (uint16_t)((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
}

float clv__f16_to_f32(uint16_t bits);
uint16_t clv__f32_to_f16(float value);  /* round to nearest even, overflow to infinity */
uint16_t clv__f64_to_f16(double value); /* rounds once, not first to f32 and then to f16 */
uint16_t clv__f64_to_bf16(double value);

/* The value of element `index`, rounded if a double cannot represent it; 0 for strings. */
double clv__tensor_get(const clv_tensor *tensor, size_t index);
/* Sets one element: `real` if the dtype is a float, `whole` if it is an integer, `truth` if it is bool. Otherwise does
 * nothing. */
void clv__tensor_put(const clv_tensor *tensor, size_t index, double real, int64_t whole, bool truth);
int64_t clv__tensor_get_int(const clv_tensor *tensor, size_t index); /* u64 wraps from 2^63 on; floats truncate and saturate */

#endif
