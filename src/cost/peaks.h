/* The measured peaks of a device: arithmetic per dtype, and bandwidth by the size of the data read. roofline.h computes lower
 * bounds on times from them. The host's processor is measured with dedicated loops; other devices are measured by running large
 * nodes. */
#ifndef CLEAVE_COST_PEAKS_H
#define CLEAVE_COST_PEAKS_H

#include "device/device.h"

/* The number format of the arithmetic that a peak refers to. */
typedef enum clv__peak {
  CLV__PEAK_F64,
  CLV__PEAK_F32,
  CLV__PEAK_F16,
  CLV__PEAK_BF16,
  CLV__PEAK_INT8, /* products of bytes, added up in 32 bits */
  CLV__PEAK_COUNT
} clv__peak;
const char *clv__peak_name(clv__peak peak);

enum { CLV__PEAK_SIZES = 6 };

typedef struct clv__peaks {
  uint32_t thread_count;                    /* threads that ran on the host's processor; 0: another device was measured */
  double flops_per_second[CLV__PEAK_COUNT]; /* 0: unknown */
  uint32_t size_count;                      /* 0: no bandwidth is known */
  /* Numbers of bytes that are read repeatedly, ascending; the largest measures main memory. */
  uint64_t sizes_bytes[CLV__PEAK_SIZES];
  double read_bytes_per_second[CLV__PEAK_SIZES];
  double copy_bytes_per_second[CLV__PEAK_SIZES]; /* read and written bytes together */
} clv__peaks;

/* Measures the processor with `thread_count` threads (0: one per core). Each figure is the best of several short attempts,
 * because other programs may be running. Takes about half a second. */
clv_status clv__peaks_of_host(uint32_t thread_count, const clv_allocator *allocator, clv__peaks *peaks, clv_error *error);
/* Measures a device with `runs` runs of a large product and of a large sum. A peak stays 0 if the device cannot run any of the
 * nodes for it. */
void clv__peaks_of_device(clv_devices *devices, uint32_t device, uint32_t runs, clv__peaks *peaks);
/* Calls clv__peaks_of_host() if the device is the host's processor, otherwise clv__peaks_of_device(). */
clv_status clv__peaks_measure(clv_devices *devices, uint32_t device, uint32_t thread_count, clv__peaks *peaks, clv_error *error);

/* The better of the read and copy bandwidths for data of this size. Interpolates between measured sizes by the logarithm of
 * the size. 0: unknown. */
double clv__peaks_bandwidth(const clv__peaks *peaks, double size_bytes);

/* ---- The loops (peaks_loops.c) ---- */

typedef struct clv__peak_loop {
  void (*run)(uint64_t rounds); /* NULL: the processor lacks the instruction, or has a faster one for which there is no loop */
  double flops_per_round;
} clv__peak_loop;
/* Returns the loop that uses the widest instructions of the processor for this dtype. */
clv__peak_loop clv__peak_loop_find(clv__peak peak);
/* Whether the processor computes in this dtype by converting to f32. */
bool clv__peak_is_f32(clv__peak peak);
/* Reads all bytes of `data`, to measure the bandwidth of memory. `size_bytes` must be a multiple of 64. */
void clv__peak_read(const void *data, size_t size_bytes);

#endif
