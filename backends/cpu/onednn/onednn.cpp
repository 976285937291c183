// oneDNN's engine, memories and execution. Only the C++ files of this folder include its headers, and no exception leaves them.
#include <sys/mman.h>

#include <cstdio>

#include "own.h"

static_assert(CLV__DNN_SOURCE == DNNL_ARG_SRC && CLV__DNN_SOURCE_1 == DNNL_ARG_SRC_1 && CLV__DNN_DESTINATION == DNNL_ARG_DST &&
                  CLV__DNN_WEIGHTS == DNNL_ARG_WEIGHTS && CLV__DNN_BIAS == DNNL_ARG_BIAS && CLV__DNN_MEAN == DNNL_ARG_MEAN &&
                  CLV__DNN_VARIANCE == DNNL_ARG_VARIANCE && CLV__DNN_SCRATCH == DNNL_ARG_SCRATCHPAD &&
                  CLV__DNN_MANY_SOURCES == DNNL_ARG_MULTIPLE_SRC && CLV__DNN_WEIGHTS == DNNL_ARG_SCALE_SHIFT,
              "argument ids are oneDNN's");
static_assert(sizeof(clv__dnn_argument) == sizeof(dnnl_exec_arg_t), "arguments are passed as they are");

clv_status clv__dnn_failed(clv_error *error, dnnl_status_t status, const char *call) {
  switch (status) {
    case dnnl_out_of_memory:
      return clv__error_set(error, CLV_OUT_OF_MEMORY, "oneDNN: %s: out of memory", call);
    case dnnl_unimplemented:
    case dnnl_invalid_arguments:
      return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s: no implementation (status %d)", call, (int)status);
    default:
      return clv__error_set(error, CLV_DEVICE_ERROR, "oneDNN: %s failed with status %d", call, (int)status);
  }
}

clv_status clv__dnn_check_headroom(clv_error *error) {
  // A kernel's code begins as 256 KiB, and a primitive has up to a few dozen kernels.
  const size_t headroom_bytes = (size_t)16 << 20;
  void *tried = mmap(nullptr, headroom_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (tried == MAP_FAILED) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory: oneDNN needs %zu bytes for the code of its kernels",
                          headroom_bytes);
  }
  munmap(tried, headroom_bytes);
  return CLV_OK;
}

int clv__dnn_post_argument(uint32_t post) {
  return DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)post) | DNNL_ARG_SRC_1;
}

// Limits oneDNN as CLEAVE_ISA limits the kernels, for the process. oneDNN accepts a limit only before its first use.
static clv_status limit_isa(clv_error *error) {
  static const dnnl_cpu_isa_t levels[] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core};
  clv__isa limit;
  if (!clv__isa_limit(&limit)) return CLV_OK;
  (void)dnnl_set_max_cpu_isa(levels[limit]);  // fails from the second call on
  if ((dnnl_get_effective_cpu_isa() & ~levels[limit]) == 0) return CLV_OK;
  return clv__error_set(
      error, CLV_INVALID_ARGUMENT,
      "environment variable CLEAVE_ISA cannot limit oneDNN: this process used oneDNN before CLEAVE_ISA was set, or before "
      "it used Cleave; set CLEAVE_ISA earlier, or unset it");
}

clv_status clv__dnn_open(const clv_allocator *allocator, clv__dnn **dnn, clv_error *error) {
  *dnn = nullptr;
  CLV__TRY(limit_isa(error));
  return clv__dnn_guarded(error, "engine", [&]() -> clv_status {
    auto *made = static_cast<clv__dnn *>(clv__allocate_zero(allocator, sizeof(clv__dnn)));
    if (made == nullptr) return clv__error_memory(error, sizeof(clv__dnn));
    made->allocator = allocator;
    dnnl_status_t status = dnnl_engine_create(&made->engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
      clv__dnn_close(made);
      return clv__dnn_failed(error, status, "dnnl_engine_create");
    }
    *dnn = made;
    return CLV_OK;
  });
}

void clv__dnn_close(clv__dnn *dnn) {
  if (dnn == nullptr) return;
  if (dnn->stream != nullptr) dnnl_stream_destroy(dnn->stream);
  if (dnn->engine != nullptr) dnnl_engine_destroy(dnn->engine);
  clv__release(dnn->allocator, dnn);
}

void clv__dnn_describe(char *text, size_t size_bytes) {
  const dnnl_version_t *version = dnnl_version();
  const char *isa = "baseline";
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      isa = "sse41";
      break;
    case dnnl_cpu_isa_avx:
      isa = "avx";
      break;
    case dnnl_cpu_isa_avx2:
      isa = "avx2";
      break;
    case dnnl_cpu_isa_avx2_vnni:
      isa = "avx2_vnni";
      break;
    case dnnl_cpu_isa_avx512_core:
      isa = "avx512_core";
      break;
    case dnnl_cpu_isa_avx512_core_vnni:
      isa = "avx512_core_vnni";
      break;
    case dnnl_cpu_isa_avx512_core_bf16:
      isa = "avx512_core_bf16";
      break;
    case dnnl_cpu_isa_avx512_core_amx:
      isa = "avx512_core_amx";
      break;
    default:
      break;
  }
  std::snprintf(text, size_bytes, "oneDNN %d.%d.%d %s", version->major, version->minor, version->patch, isa);
}

bool clv__dnn_has_bf16(void) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

bool clv__dnn_sums_integers(void) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx2_vnni || (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

clv_status clv__dnn_memory_create(clv__dnn *dnn, const clv__dnn_layout *layout, void *data, clv__dnn_memory **memory,
                                  clv_error *error) {
  *memory = nullptr;
  return clv__dnn_guarded(error, "memory", [&]() -> clv_status {
    dnnl_memory_t made = nullptr;
    dnnl_status_t status = dnnl_memory_create(&made, &layout->desc, dnn->engine, data);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "memory");
    *memory = reinterpret_cast<clv__dnn_memory *>(made);
    return CLV_OK;
  });
}

clv_status clv__dnn_memory_create_bytes(clv__dnn *dnn, size_t size_bytes, void *data, clv__dnn_memory **memory,
                                        clv_error *error) {
  *memory = nullptr;
  return clv__dnn_guarded(error, "memory", [&]() -> clv_status {
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = {(dnnl_dim_t)size_bytes};
    dnnl_memory_t made = nullptr;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&desc, 1, dims, dnnl_u8, dnnl_a);
    if (status == dnnl_success) status = dnnl_memory_create(&made, &desc, dnn->engine, data);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "memory");
    *memory = reinterpret_cast<clv__dnn_memory *>(made);
    return CLV_OK;
  });
}

void clv__dnn_memory_release(clv__dnn_memory *memory) {
  if (memory != nullptr) dnnl_memory_destroy(reinterpret_cast<dnnl_memory_t>(memory));
}

clv_status clv__dnn_memory_move(clv__dnn_memory *memory, void *data, clv_error *error) {
  return clv__dnn_guarded(error, "memory", [&]() -> clv_status {
    dnnl_status_t status = dnnl_memory_set_data_handle(reinterpret_cast<dnnl_memory_t>(memory), data);
    return status == dnnl_success ? CLV_OK : clv__dnn_failed(error, status, "memory handle");
  });
}

clv_status clv__dnn_execute(clv__dnn *dnn, const clv__dnn_primitive *primitive, const clv__dnn_argument *arguments,
                            uint32_t count, clv_error *error) {
  return clv__dnn_guarded(error, "execute", [&]() -> clv_status {
    if (!__atomic_load_n(primitive->has_run, __ATOMIC_RELAXED)) {
      CLV__TRY(clv__dnn_check_headroom(error));
      __atomic_store_n(primitive->has_run, true, __ATOMIC_RELAXED);
    }
    dnnl_status_t status = dnnl_primitive_execute(static_cast<dnnl_primitive_t>(primitive->handle), dnn->stream, (int)count,
                                                  reinterpret_cast<const dnnl_exec_arg_t *>(arguments));
    return status == dnnl_success ? CLV_OK : clv__dnn_failed(error, status, "execute");
  });
}

clv_status clv__dnn_reorder_now(clv__dnn *dnn, const clv__dnn_layout *from, void *from_data, const clv__dnn_layout *to,
                                void *to_data, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, dnn->allocator);
  clv__dnn_primitive *primitive = nullptr;
  clv__dnn_argument arguments[3] = {{CLV__DNN_SOURCE, nullptr}, {CLV__DNN_DESTINATION, nullptr}, {CLV__DNN_SCRATCH, nullptr}};
  void *scratch = nullptr;
  clv_status status = clv__dnn_reorder_create(dnn, from, to, &arena, &primitive, error);
  if (status == CLV_OK) status = clv__dnn_memory_create(dnn, from, from_data, &arguments[0].memory, error);
  if (status == CLV_OK) status = clv__dnn_memory_create(dnn, to, to_data, &arguments[1].memory, error);
  uint32_t count = 2;
  if (status == CLV_OK && primitive->scratch_bytes > 0) {
    scratch = clv__allocate(dnn->allocator, primitive->scratch_bytes);
    status = scratch == nullptr
                 ? clv__error_memory(error, primitive->scratch_bytes)
                 : clv__dnn_memory_create_bytes(dnn, primitive->scratch_bytes, scratch, &arguments[2].memory, error);
    count = 3;
  }
  if (status == CLV_OK) status = clv__dnn_execute(dnn, primitive, arguments, count, error);
  for (clv__dnn_argument &argument : arguments) clv__dnn_memory_release(argument.memory);
  clv__release(dnn->allocator, scratch);
  clv__dnn_primitive_release(primitive);
  clv__arena_finish(&arena);
  return status;
}
