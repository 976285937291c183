/* Measures whether launches are faster as a command buffer or enqueued one by one. The measurement is made once per device,
 * with kernels that do nothing. */
#include "backends/opencl/programs.h"
#include "base/clock.h"
#include "capture.h"

/* As many launches as in a large partition, because the cost of a buffer may not be proportional to its length. */
enum { LAUNCHES = 512, ROUNDS = 7 };

static const char source[] =
    "__kernel void nothing(__global int *x, int never) {\n"
    "  if (never) x[get_global_id(0)] = never;\n"
    "}\n";

typedef struct trial {
  cl_program program;
  cl_kernel kernel;
  cl_mem memory;
  cl_command_buffer_khr commands;
} trial;

static bool set_up(clv_device *device, trial *t) {
  const clv__opencl_icd *cl = device->cl;
  const char *text = source;
  const size_t size_bytes = sizeof source - 1;
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  const size_t items = 1;
  const cl_int never = 0;
  cl_int code;
  if (clv__opencl_program_make(device, 1, &text, &size_bytes, "a trial", &t->program, NULL) != CLV_OK) return false;
  t->kernel = cl->clCreateKernel(t->program, "nothing", &code);
  if (t->kernel == NULL || clv__opencl_memory_create(device, 64, &t->memory, NULL) != CLV_OK) return false;
  if (cl->clSetKernelArg(t->kernel, 0, sizeof t->memory, &t->memory) != CL_SUCCESS) return false;
  if (cl->clSetKernelArg(t->kernel, 1, sizeof never, &never) != CL_SUCCESS) return false;
  t->commands = device->commands.create(1, &device->service, properties, &code);
  if (t->commands == NULL) return false;
  for (int i = 0; i < LAUNCHES; ++i) {
    code = device->commands.kernel(t->commands, NULL, NULL, t->kernel, 1, NULL, &items, &items, 0, NULL, NULL, NULL);
    if (code != CL_SUCCESS) return false;
  }
  return device->commands.finalize(t->commands) == CL_SUCCESS;
}

static void tear_down(clv_device *device, trial *t) {
  if (t->commands != NULL) device->commands.release(t->commands);
  if (t->kernel != NULL) device->cl->clReleaseKernel(t->kernel);
  clv__opencl_memory_release(device, t->memory);
  if (t->program != NULL) device->cl->clReleaseProgram(t->program);
}

/* Measures the time of LAUNCHES launches that are enqueued one by one; 0 if one fails. */
static uint64_t time_list(clv_device *device, const trial *t) {
  const size_t items = 1;
  uint64_t begin = clv__clock_ns();
  for (int i = 0; i < LAUNCHES; ++i) {
    if (device->cl->clEnqueueNDRangeKernel(device->service, t->kernel, 1, NULL, &items, &items, 0, NULL, NULL) != CL_SUCCESS)
      return 0;
  }
  return device->cl->clFinish(device->service) == CL_SUCCESS ? clv__clock_ns() - begin : 0;
}

static uint64_t time_buffer(clv_device *device, const trial *t) {
  uint64_t begin = clv__clock_ns();
  if (device->commands.enqueue(1, &device->service, t->commands, 0, NULL, NULL) != CL_SUCCESS) return 0;
  return device->cl->clFinish(device->service) == CL_SUCCESS ? clv__clock_ns() - begin : 0;
}

/* Runs several rounds, each with a list and then a buffer, and compares the shortest times. */
static clv__opencl_capture measure(clv_device *device) {
  trial t = {0};
  uint64_t best_list = UINT64_MAX, best_buffer = UINT64_MAX;
  bool works = set_up(device, &t);
  for (int round = 0; round < ROUNDS && works; ++round) {
    uint64_t list = time_list(device, &t), buffer = time_buffer(device, &t);
    works = list > 0 && buffer > 0;
    if (list < best_list) best_list = list;
    if (buffer < best_buffer) best_buffer = buffer;
  }
  tear_down(device, &t);
  /* Choose the buffer only if it is clearly faster, because it cannot be used any more after rebinding. A list can. */
  return works && best_buffer < best_list / 10 * 9 ? CLV__OPENCL_CAPTURE_BUFFER : CLV__OPENCL_CAPTURE_LIST;
}

clv__opencl_capture clv__opencl_capture_choice(clv_device *device) {
  if (device->capture != CLV__OPENCL_CAPTURE_AUTO) return device->capture;
  if (device->commands.create == NULL) return CLV__OPENCL_CAPTURE_LIST;
  pthread_mutex_lock(&device->service_lock);
  if (device->measured == CLV__OPENCL_CAPTURE_AUTO) device->measured = measure(device);
  clv__opencl_capture choice = device->measured;
  pthread_mutex_unlock(&device->service_lock);
  return choice;
}
