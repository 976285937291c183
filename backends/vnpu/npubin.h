/* The layout of a `.npubin` file. All numbers are little-endian.
 *
 *   the header of base/files/sealed.h, then:
 *     text    fingerprint of the device                       (text: u32 bytes, then the bytes)
 *     u32     number of inputs; for each: u32 dtype, i32 rank (-1: unknown), i64 dims[rank] (-1: unknown)
 *     u64     size of the graph in bytes; then the graph, an ONNX model whose weights are its last inputs
 *     u32     1: static, with the instruction stream below; 0: dynamic, and the file ends here
 *     u64     size of the scratch in bytes
 *     u32     number of instructions; for each: u32 node, u64 offset of the kernel's scratch, u64 its size in bytes,
 *             u32 number of operands (inputs, then outputs); for each: u32 kind, u32 index, u64 offset
 *             (clv__vnpu_location; an absent operand is all zero) */
#ifndef CLEAVE_BACKENDS_VNPU_NPUBIN_H
#define CLEAVE_BACKENDS_VNPU_NPUBIN_H

#include "base/files/sealed.h"

extern const clv__sealed_kind clv__vnpu_npubin_kind;

#endif
