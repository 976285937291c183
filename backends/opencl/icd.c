/* See icd.h. */
#include "icd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static clv__opencl_icd table;
static bool table_ready;
static char table_reason[200];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void load_table(void) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror();
    snprintf(table_reason, sizeof table_reason, "no OpenCL loader found (%.150s)", why != NULL ? why : "libOpenCL.so.1");
    return;
  }
#define LOAD(name)                                                                                                 \
  *(void **)&table.name = dlsym(library, #name);                                                                   \
  if (table.name == NULL) {                                                                                        \
    snprintf(table_reason, sizeof table_reason, "libOpenCL.so.1 lacks " #name ": an OpenCL 1.2 loader is needed"); \
    return;                                                                                                        \
  }
  CLV__OPENCL_ENTRY_POINTS(LOAD)
#undef LOAD
  table_ready = true;
}

clv_status clv__opencl_icd_open(const clv__opencl_icd **icd, clv_error *error) {
  *icd = NULL;
  pthread_once(&table_once, load_table);
  if (!table_ready) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s; install ocl-icd-libopencl1 and a driver", table_reason);
  *icd = &table;
  return CLV_OK;
}

const char *clv__opencl_code_name(cl_int code) {
  switch (code) {
#define CODE(name) \
  case name:       \
    return #name;
    CODE(CL_SUCCESS)
    CODE(CL_DEVICE_NOT_FOUND)
    CODE(CL_DEVICE_NOT_AVAILABLE)
    CODE(CL_COMPILER_NOT_AVAILABLE)
    CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    CODE(CL_OUT_OF_RESOURCES)
    CODE(CL_OUT_OF_HOST_MEMORY)
    CODE(CL_PROFILING_INFO_NOT_AVAILABLE)
    CODE(CL_MEM_COPY_OVERLAP)
    CODE(CL_BUILD_PROGRAM_FAILURE)
    CODE(CL_MAP_FAILURE)
    CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    CODE(CL_COMPILE_PROGRAM_FAILURE)
    CODE(CL_LINKER_NOT_AVAILABLE)
    CODE(CL_LINK_PROGRAM_FAILURE)
    CODE(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
    CODE(CL_INVALID_VALUE)
    CODE(CL_INVALID_DEVICE_TYPE)
    CODE(CL_INVALID_PLATFORM)
    CODE(CL_INVALID_DEVICE)
    CODE(CL_INVALID_CONTEXT)
    CODE(CL_INVALID_QUEUE_PROPERTIES)
    CODE(CL_INVALID_COMMAND_QUEUE)
    CODE(CL_INVALID_HOST_PTR)
    CODE(CL_INVALID_MEM_OBJECT)
    CODE(CL_INVALID_BINARY)
    CODE(CL_INVALID_BUILD_OPTIONS)
    CODE(CL_INVALID_PROGRAM)
    CODE(CL_INVALID_PROGRAM_EXECUTABLE)
    CODE(CL_INVALID_KERNEL_NAME)
    CODE(CL_INVALID_KERNEL_DEFINITION)
    CODE(CL_INVALID_KERNEL)
    CODE(CL_INVALID_ARG_INDEX)
    CODE(CL_INVALID_ARG_VALUE)
    CODE(CL_INVALID_ARG_SIZE)
    CODE(CL_INVALID_KERNEL_ARGS)
    CODE(CL_INVALID_WORK_DIMENSION)
    CODE(CL_INVALID_WORK_GROUP_SIZE)
    CODE(CL_INVALID_WORK_ITEM_SIZE)
    CODE(CL_INVALID_GLOBAL_OFFSET)
    CODE(CL_INVALID_EVENT_WAIT_LIST)
    CODE(CL_INVALID_EVENT)
    CODE(CL_INVALID_OPERATION)
    CODE(CL_INVALID_BUFFER_SIZE)
    CODE(CL_INVALID_GLOBAL_WORK_SIZE)
    CODE(CL_INVALID_PROPERTY)
    CODE(CL_INVALID_COMPILER_OPTIONS)
    CODE(CL_INVALID_LINKER_OPTIONS)
    CODE(CL_PLATFORM_NOT_FOUND_KHR)
    CODE(CL_INVALID_COMMAND_BUFFER_KHR)
    CODE(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR)
    CODE(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR)
#undef CODE
    default:
      return "unknown code";
  }
}

clv_status clv__opencl_failed(clv_error *error, const char *call, cl_int code) {
  bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  return clv__error_set(error, memory ? CLV_OUT_OF_MEMORY : CLV_DEVICE_ERROR, "%s: %s (%d)", call, clv__opencl_code_name(code),
                        code);
}
