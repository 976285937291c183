/* See fourier.h. */
#include "operators/signal/fourier.h"

#include <math.h>
#include <string.h>

/* The longest transform: too long for any memory, but short enough that sizes computed from it do not overflow. */
#define LONGEST (INT64_C(1) << 44)
/* Up to this length, direct summation is as fast as Bluestein's algorithm. */
#define SHORT 32
#define PI 3.14159265358979323846264338327950288

static bool is_power(int64_t n) {
  return (n & (n - 1)) == 0;
}

/* The power of two used to transform a length; 0 for direct summation. */
static int64_t inner_of(int64_t length) {
  if (is_power(length)) return length;
  if (length <= SHORT) return 0;
  int64_t inner = 1;
  while (inner < 2 * length - 1) inner *= 2;
  return inner;
}

size_t clv__fourier_table_count(int64_t length) {
  if (length < 1 || length > LONGEST) return SIZE_MAX;
  int64_t inner = inner_of(length);
  if (inner == 0) return (size_t)length;
  return (size_t)(inner == length ? (inner + 1) / 2 : inner / 2 + length + inner);
}

size_t clv__fourier_work_count(int64_t length) {
  if (length < 1 || length > LONGEST) return SIZE_MAX;
  int64_t inner = inner_of(length);
  return (size_t)(inner == 0 ? length : inner == length ? 0 : inner);
}

static clv__complex multiply(clv__complex a, clv__complex b) {
  return (clv__complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^(-2πi·part/whole), exact at multiples of a quarter turn, where sin() and cos() are not. */
static clv__complex root(int64_t part, int64_t whole) {
  static const clv__complex quarters[4] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  if (4 * part % whole == 0) return quarters[4 * part / whole % 4];
  double angle = -2 * PI * ((double)part / (double)whole);
  return (clv__complex){cos(angle), sin(angle)};
}

/* Transforms a power of two of elements in place: bit-reverses their order, then applies butterflies of growing length. */
static void radix2(clv__complex *data, int64_t n, const clv__complex *roots, const clv__stop *stop) {
  for (int64_t i = 1, reversed = 0; i < n && !clv__is_stopped(stop); ++i) {
    int64_t bit = n / 2;
    for (; reversed & bit; bit /= 2) reversed ^= bit;
    reversed |= bit;
    if (i < reversed) {
      clv__complex swapped = data[i];
      data[i] = data[reversed];
      data[reversed] = swapped;
    }
  }
  for (int64_t half = 1; half < n && !clv__is_stopped(stop); half *= 2) {
    int64_t step = n / (2 * half);
    for (int64_t from = 0; from < n && !clv__is_stopped(stop); from += 2 * half) {
      clv__complex *low = data + from, *high = low + half;
      for (int64_t k = 0; k < half; ++k) {
        clv__complex turned = multiply(high[k], roots[k * step]), kept = low[k];
        low[k] = (clv__complex){kept.re + turned.re, kept.im + turned.im};
        high[k] = (clv__complex){kept.re - turned.re, kept.im - turned.im};
      }
    }
  }
}

static void plain_sum(const clv__fourier *f, clv__complex *data, clv__complex *work) {
  for (int64_t k = 0; k < f->length && !clv__is_stopped(f->stop); ++k) {
    clv__complex sum = {0, 0};
    for (int64_t i = 0; i < f->length; ++i) {
      clv__complex term = multiply(data[i], f->roots[i * k % f->length]);
      sum.re += term.re;
      sum.im += term.im;
    }
    work[k] = sum;
  }
  memcpy(data, work, (size_t)f->length * sizeof *data);
}

static void conjugate(clv__complex *data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i].im = -data[i].im;
}

/* Transforms any length as a convolution with a chirp, by the identity jk = (j² + k² - (k - j)²) / 2. */
static void bluestein(const clv__fourier *f, clv__complex *data, clv__complex *work) {
  for (int64_t i = 0; i < f->length; ++i) work[i] = multiply(data[i], f->chirp[i]);
  memset(work + f->length, 0, (size_t)(f->inner - f->length) * sizeof *work);
  radix2(work, f->inner, f->roots, f->stop);
  for (int64_t i = 0; i < f->inner; ++i) work[i] = multiply(work[i], f->spectrum[i]);
  conjugate(work, f->inner); /* inverse transform; `spectrum` contains its factor 1 / inner */
  radix2(work, f->inner, f->roots, f->stop);
  conjugate(work, f->length);
  for (int64_t i = 0; i < f->length; ++i) data[i] = multiply(work[i], f->chirp[i]);
}

void clv__fourier_init(clv__fourier *fourier, int64_t length, const clv__stop *stop, clv__complex *tables) {
  const int64_t inner = inner_of(length), whole = inner == 0 ? length : inner, count = inner == 0 ? length : (inner + 1) / 2;
  *fourier = (clv__fourier){.length = length, .inner = inner, .roots = tables, .stop = stop};
  for (int64_t k = 0; k < count && !clv__is_stopped(stop); ++k) tables[k] = root(k, whole);
  if (inner == 0 || inner == length) return;
  clv__complex *chirp = tables + count, *spectrum = chirp + length;
  memset(spectrum, 0, (size_t)inner * sizeof *spectrum);
  for (int64_t k = 0; k < length && !clv__is_stopped(stop); ++k) {
    /* k² modulo 2·length, so that the angle keeps its precision */
    int64_t square = (int64_t)((unsigned __int128)k * (unsigned __int128)k % (unsigned __int128)(2 * length));
    chirp[k] = root(square, 2 * length);
    clv__complex back = {chirp[k].re / (double)inner, -chirp[k].im / (double)inner};
    spectrum[k] = back;
    if (k > 0) spectrum[inner - k] = back;
  }
  radix2(spectrum, inner, tables, stop);
  fourier->chirp = chirp;
  fourier->spectrum = spectrum;
}

void clv__fourier_run(const clv__fourier *fourier, clv__complex *data, bool inverse, clv__complex *work) {
  const int64_t length = fourier->length;
  if (inverse) conjugate(data, length);
  if (fourier->inner == 0)
    plain_sum(fourier, data, work);
  else if (fourier->inner == length)
    radix2(data, length, fourier->roots, fourier->stop);
  else
    bluestein(fourier, data, work);
  for (int64_t i = 0; inverse && i < length; ++i) {
    data[i].re /= (double)length;
    data[i].im /= -(double)length;
  }
}
