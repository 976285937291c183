/* What a device can do at best, measured: arithmetic by dtype and bandwidth by the size of what is read, against which steps are
 * held (roofline.h). The host's processor is measured by loops of its own; another device by large nodes that it runs. */
#ifndef CLEAVE_COST_PEAKS_H
#define CLEAVE_COST_PEAKS_H

#include "device/device.h"

/* What arithmetic is done in. */
typedef enum clv__peak {
  CLV__PEAK_F64,
  CLV__PEAK_F32,
  CLV__PEAK_F16,
  CLV__PEAK_BF16,
  CLV__PEAK_INT8, /* products of bytes, sums of 32 bits */
  CLV__PEAK_COUNT
} clv__peak;
const char *clv__peak_name(clv__peak peak);

enum { CLV__PEAK_SIZES = 6 };

typedef struct clv__peaks {
  uint32_t thread_count;                    /* of the host's processor; 0: of another device */
  double flops_per_second[CLV__PEAK_COUNT]; /* 0: not known */
  uint32_t size_count;                      /* 0: no bandwidth is known */
  uint64_t sizes_bytes[CLV__PEAK_SIZES];    /* ascending: how much is gone through, again and again; the last is memory's */
  double read_bytes_per_second[CLV__PEAK_SIZES];
  double copy_bytes_per_second[CLV__PEAK_SIZES]; /* read and written */
} clv__peaks;

/* The processor's, by so many threads (0: as many as there are cores): each figure the best of several short attempts, as others
 * may be running. Takes about half a second. */
clv_status clv__peaks_of_host(uint32_t thread_count, const clv_allocator *allocator, clv__peaks *peaks, clv_error *error);
/* A device's, of `runs` runs of a large product and of a large sum; what it cannot run stays unknown. */
void clv__peaks_of_device(clv_devices *devices, uint32_t device, uint32_t runs, clv__peaks *peaks);
/* The host's where the device is its processor, its own elsewhere. */
clv_status clv__peaks_measure(clv_devices *devices, uint32_t device, uint32_t thread_count, clv__peaks *peaks, clv_error *error);

/* The better of reading and copying for what is that large: between the sizes measured, by the logarithm. 0: not known. */
double clv__peaks_bandwidth(const clv__peaks *peaks, double size_bytes);

/* ---- The loops (peaks_loops.c) ---- */

typedef struct clv__peak_loop {
  void (*run)(uint64_t rounds); /* NULL: the processor has no such instruction, or one that is not measured here */
  double flops_per_round;
} clv__peak_loop;
/* The widest arithmetic in this dtype that the processor has. */
clv__peak_loop clv__peak_loop_find(clv__peak peak);
/* Whether the processor computes in it by way of f32. */
bool clv__peak_is_f32(clv__peak peak);
/* Reads so many bytes, a multiple of 64. */
void clv__peak_read(const void *data, size_t size_bytes);

#endif
