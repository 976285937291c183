/* See programs.h. */
#include "programs.h"

#include <stdio.h>

/* Requests correctly rounded divisions and roots if the device supports them. Requests no optimisation that changes results. */
static const char *build_options(const clv_device *device, char options[128]) {
  cl_device_fp_config config = 0;
  device->cl->clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
  bool rounds = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  snprintf(options, 128, "-cl-std=CL1.2%s", rounds ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
  return options;
}

static uint64_t mix(uint64_t hash, const char *text) {
  for (; *text != '\0'; ++text) hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
  return (hash ^ 0xff) * UINT64_C(1099511628211);
}

static const clv__opencl_source *find_source(const char *name) {
  for (const clv__opencl_source *s = clv__opencl_sources; s->name != NULL; ++s) {
    if (strcmp(s->name, name) == 0) return s;
  }
  return NULL;
}

static char *copy_text(clv_device *device, const char *text) {
  size_t size_bytes = strlen(text) + 1;
  char *copy = clv__allocate(device->allocator, size_bytes);
  return copy == NULL ? NULL : memcpy(copy, text, size_bytes);
}

static void program_free(clv_device *device, clv__opencl_program *program) {
  if (program == NULL) return;
  if (program->program != NULL) device->cl->clReleaseProgram(program->program);
  clv__release(device->allocator, program->binary);
  clv__release(device->allocator, program->functions);
  clv__release(device->allocator, program->defines);
  clv__release(device->allocator, program);
}

clv_status clv__opencl_program_get(clv_device *device, const char *family, const char *defines, const char *functions,
                                   clv__opencl_program **out, clv_error *error) {
  *out = NULL;
  const clv__opencl_source *source = find_source(family);
  if (source == NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "kernels/%s.cl does not exist", family);
  uint64_t hash = mix(mix(mix(UINT64_C(14695981039346656037), family), defines), functions);
  clv_status status = CLV_OK;
  pthread_mutex_lock(&device->lock);
  for (clv__opencl_program *p = device->programs; p != NULL && *out == NULL; p = p->next) {
    if (p->hash == hash && p->family == source && strcmp(p->defines, defines) == 0 && strcmp(p->functions, functions) == 0)
      *out = p;
  }
  if (*out == NULL) {
    clv__opencl_program *program = clv__allocate_zero(device->allocator, sizeof *program);
    if (program != NULL) {
      program->hash = hash;
      program->family = source;
      program->defines = copy_text(device, defines);
      program->functions = copy_text(device, functions);
    }
    if (program == NULL || program->defines == NULL || program->functions == NULL) {
      program_free(device, program);
      status = clv__error_memory(error, sizeof *program + strlen(defines) + strlen(functions));
    } else {
      program->next = device->programs;
      device->programs = program;
      *out = program;
    }
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* ---- Building ---- */

/* Puts the beginning of the compiler's log into the error. */
static clv_status build_failed(clv_device *device, cl_program program, cl_int code, const char *what, clv_error *error) {
  char log[700] = "";
  size_t length = 0;
  if (device->cl->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &length) == CL_SUCCESS &&
      length > 1) {
    char *whole = clv__allocate_zero(device->allocator, length + 1);
    if (whole != NULL &&
        device->cl->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, length, whole, NULL) == CL_SUCCESS) {
      snprintf(log, sizeof log, "%s", whole);
    }
    clv__release(device->allocator, whole);
  }
  for (char *at = log; *at != '\0'; ++at) {
    if (*at == '\n') *at = ' ';
  }
  return clv__error_set(error, CLV_DEVICE_ERROR, "clBuildProgram of %s: %s (%d): %s", what, clv__opencl_code_name(code), code,
                        log);
}

static clv_status build(clv_device *device, cl_program program, const char *what, clv_error *error) {
  char options[128];
  cl_int code = device->cl->clBuildProgram(program, 1, &device->id, build_options(device, options), NULL, NULL);
  return code == CL_SUCCESS ? CLV_OK : build_failed(device, program, code, what, error);
}

clv_status clv__opencl_program_make(clv_device *device, uint32_t count, const char *const *texts, const size_t *sizes,
                                    const char *what, cl_program *program, clv_error *error) {
  cl_int code;
  *program = device->cl->clCreateProgramWithSource(device->context, count, (const char **)texts, sizes, &code);
  if (*program == NULL) return clv__opencl_failed(error, "clCreateProgramWithSource", code);
  clv_status status = build(device, *program, what, error);
  if (status == CLV_OK) return CLV_OK;
  device->cl->clReleaseProgram(*program);
  *program = NULL;
  return status;
}

static clv_status make_from_source(clv_device *device, clv__opencl_program *program, clv_error *error) {
  const clv__opencl_source *header = find_source("clv_kernel");
  const char *texts[] = {program->defines, header->text, program->functions, program->family->text};
  const size_t sizes[] = {strlen(program->defines), header->size_bytes, strlen(program->functions), program->family->size_bytes};
  char what[80];
  snprintf(what, sizeof what, "kernels/%s.cl", program->family->name);
  return clv__opencl_program_make(device, 4, texts, sizes, what, &program->program, error);
}

/* Returns false if the driver rejects the binary, because it is damaged or from another driver. */
static bool make_from_binary(clv_device *device, clv__opencl_program *program) {
  cl_int code = CL_SUCCESS, taken = CL_SUCCESS;
  const unsigned char *bytes = program->binary;
  cl_program made =
      device->cl->clCreateProgramWithBinary(device->context, 1, &device->id, &program->binary_bytes, &bytes, &taken, &code);
  if (made == NULL) return false;
  if (code == CL_SUCCESS && taken == CL_SUCCESS && build(device, made, program->family->name, NULL) == CLV_OK) {
    program->program = made;
    return true;
  }
  device->cl->clReleaseProgram(made);
  return false;
}

clv_status clv__opencl_program_build(clv_device *device, clv__opencl_program *program, clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&device->build_lock);
  if (program->program == NULL && (program->binary == NULL || !make_from_binary(device, program))) {
    status = make_from_source(device, program, error);
  }
  clv__release(device->allocator, program->binary);
  program->binary = NULL;
  pthread_mutex_unlock(&device->build_lock);
  return status;
}

/* ---- Binaries ---- */

clv_status clv__opencl_program_offer(clv_device *device, clv__opencl_program *program, const void *binary, size_t size_bytes,
                                     clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&device->build_lock);
  if (program->program == NULL && program->binary == NULL && size_bytes > 0) {
    program->binary = clv__allocate(device->allocator, size_bytes);
    program->binary_bytes = size_bytes;
    if (program->binary == NULL)
      status = clv__error_memory(error, size_bytes);
    else
      memcpy(program->binary, binary, size_bytes);
  }
  pthread_mutex_unlock(&device->build_lock);
  return status;
}

clv_status clv__opencl_program_binary(clv_device *device, const clv__opencl_program *program, void **binary, size_t *size_bytes,
                                      clv_error *error) {
  const clv__opencl_icd *cl = device->cl;
  *binary = NULL;
  *size_bytes = 0;
  CLV__OPENCL_TRY(error, "clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)",
                  cl->clGetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof *size_bytes, size_bytes, NULL));
  if (*size_bytes == 0) return CLV_OK;
  *binary = clv__allocate(device->allocator, *size_bytes);
  if (*binary == NULL) return clv__error_memory(error, *size_bytes);
  unsigned char *bytes = *binary;
  cl_int code = cl->clGetProgramInfo(program->program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL);
  if (code == CL_SUCCESS) return CLV_OK;
  clv__release(device->allocator, *binary);
  *binary = NULL;
  *size_bytes = 0;
  return clv__opencl_failed(error, "clGetProgramInfo(CL_PROGRAM_BINARIES)", code);
}

void clv__opencl_programs_finish(clv_device *device) {
  while (device->programs != NULL) {
    clv__opencl_program *program = device->programs;
    device->programs = program->next;
    program_free(device, program);
  }
}
