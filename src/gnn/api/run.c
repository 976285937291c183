/* Runs for programs: see cleave/gnn.h. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/options.h"
#include "cost/measure.h"
#include "device/device.h"
#include "formats/arrays/npz.h"
#include "gnn/api/handles.h"

/* ---- Creating ---- */

static clv_status begin(clv_devices *devices, const clv_gnn_model *model, const clv_gnn_graph *graph, clv_gnn_run **out,
                        clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv_gnn_run *run = clv__allocate_zero(allocator, sizeof *run);
  if (run == NULL) return clv__error_memory(error, sizeof *run);
  run->allocator = allocator;
  run->devices = devices;
  run->model = model;
  run->graph = clv__gnn_graph_use(graph);
  run->device = CLV__NO_ID;
  run->difference = -1;
  clv__arena_init(&run->arena, allocator);
  clv__arena_init(&run->account_arena, allocator);
  pthread_mutex_init(&run->lock, NULL);
  *out = run;
  return CLV_OK;
}

/* Compiles the blocks of the plan. */
static clv_status open_blocks(clv_gnn_run *run, clv_error *error) {
  const clv__partitioned *partitioned;
  CLV__TRY(clv__gnn_plan_partition(run->plan, &partitioned, error));
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(
      clv__gnn_run_create(run->devices, run->model->model, run->graph->graph, partitioned, &run->schedule, &run->run, error));
  run->compile_ns = (double)(clv__clock_ns() - begin_ns);
  run->is_closed = false;
  return CLV_OK;
}

clv_status clv_gnn_run_create(clv_gnn_plan *plan, clv_gnn_run **run, clv_error *error) {
  clv_gnn_run *made;
  CLV__TRY(clv__argument_check(run, "run", error));
  *run = NULL;
  CLV__TRY(clv__argument_check(plan, "plan", error));
  CLV__TRY(begin(plan->devices, plan->model, plan->graph, &made, error));
  made->plan = plan;
  clv_status status = clv__gnn_schedule_of(&made->arena, plan->plan, &made->schedule, error);
  if (status == CLV_OK) status = open_blocks(made, error);
  if (status == CLV_OK)
    *run = made;
  else
    clv_gnn_run_destroy(made);
  return status;
}

clv_status clv_gnn_run_create_whole(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices, uint32_t device,
                                    clv_gnn_run **run, clv_error *error) {
  clv_gnn_run *made;
  CLV__TRY(clv__argument_check(run, "run", error));
  *run = NULL;
  CLV__TRY(clv__argument_check(model, "model", error));
  CLV__TRY(clv__argument_check(graph, "graph", error));
  CLV__TRY(clv__argument_check(devices, "devices", error));
  if (device != CLV_GNN_ANY_DEVICE && device >= devices->count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "device %u does not exist: %u devices are open", device, devices->count);
  CLV__TRY(begin(devices, model, graph, &made, error));
  made->device = device;
  uint64_t begin_ns = clv__clock_ns();
  clv_status status = clv__gnn_check_fit(model->model, graph->graph, error);
  if (status != CLV_OK) clv__error_prefix(error, status, "%s", graph->name);
  if (status == CLV_OK) status = clv__gnn_single_create(devices, device, model->model, graph->graph, &made->single, error);
  made->compile_ns = (double)(clv__clock_ns() - begin_ns);
  if (status == CLV_OK)
    *run = made;
  else
    clv_gnn_run_destroy(made);
  return status;
}

void clv_gnn_run_destroy(clv_gnn_run *run) {
  if (run == NULL) return;
  clv__gnn_run_destroy(run->run);
  clv__gnn_single_destroy(run->single);
  clv__release(run->allocator, run->output.data);
  clv__arena_finish(&run->account_arena);
  clv__arena_finish(&run->arena);
  pthread_mutex_destroy(&run->lock);
  clv__gnn_graph_unuse(run->graph);
  clv__release(run->allocator, run);
}

/* ---- Times ---- */

static void add_time(clv__gnn_times *times, double time_ns) {
  if (times->count == 0)
    times->first_ns = time_ns;
  else
    times->warm_ns[(times->count - 1) % CLV__GNN_WARM_TIMES] = (uint64_t)time_ns;
  times->last_ns = time_ns;
  ++times->count;
}

double clv__gnn_times_warm_ns(const clv__gnn_times *times) {
  uint64_t sorted[CLV__GNN_WARM_TIMES];
  if (times->count < 2) return -1;
  uint32_t count = times->count - 1 < CLV__GNN_WARM_TIMES ? times->count - 1 : CLV__GNN_WARM_TIMES;
  memcpy(sorted, times->warm_ns, count * sizeof *sorted);
  return (double)clv__measure_of(sorted, count).time_ns;
}

/* ---- Tensors ---- */

static clv_tensor features_type(const clv_gnn_run *run) {
  const int64_t dims[] = {run->graph->graph->csr.vertex_count, run->model->model->layers[0].in};
  return clv__tensor_make(CLV_F32, 2, dims, NULL);
}

static clv_tensor output_type(const clv_gnn_run *run) {
  const clv__gnn_model *model = run->model->model;
  const int64_t dims[] = {run->graph->graph->csr.vertex_count, clv__gnn_layer_width(&model->layers[model->layer_count - 1])};
  return clv__tensor_make(CLV_F32, 2, dims, NULL);
}

static clv_status check_tensor(const clv_gnn_run *run, const char *what, const clv_tensor *tensor, const clv_tensor *wanted,
                               clv_error *error) {
  char is[160], should[160];
  bool is_right = tensor->dtype == wanted->dtype && tensor->rank == wanted->rank && tensor->dims[0] == wanted->dims[0] &&
                  tensor->dims[1] == wanted->dims[1];
  bool has_data = tensor->data != NULL || wanted->dims[0] == 0;
  if (is_right && has_data && (uintptr_t)tensor->data % _Alignof(float) == 0) return CLV_OK;
  clv__tensor_text(tensor, is, sizeof is);
  clv__tensor_text(wanted, should, sizeof should);
  if (is_right)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: the %s have %s", run->graph->name, what,
                          has_data ? "an address that is not aligned for f32" : "no data");
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: the %s are %s; expected %s", run->graph->name, what, is, should);
}

/* Completes the output: with the run's own memory if the caller gives none. */
static clv_status find_output(clv_gnn_run *run, const clv_tensor *given, clv_tensor *out, clv_error *error) {
  *out = output_type(run);
  size_t size_bytes;
  if (given->data != NULL) {
    CLV__TRY(check_tensor(run, "outputs", given, out, error));
    out->data = given->data;
    return CLV_OK;
  }
  if (run->output.data == NULL) {
    if (!clv__tensor_size_bytes(out, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
    run->output.data = clv__allocate(run->allocator, size_bytes);
    if (run->output.data == NULL) return clv__error_memory(error, size_bytes);
  }
  out->data = run->output.data;
  return CLV_OK;
}

/* ---- Executing ---- */

typedef struct teller {
  bool (*progress)(void *user_data, const clv_gnn_progress *progress);
  void *user_data;
} teller;

static bool tell_progress(void *user_data, const clv__gnn_progress *progress) {
  const teller *t = user_data;
  const clv_gnn_progress told = {progress->layer, progress->layer_count, progress->done,
                                 progress->of,    progress->elapsed_s,   progress->left_s};
  return t->progress(t->user_data, &told);
}

static clv_status execute_plan(clv_gnn_run *run, const clv_tensor *features, clv_tensor *out, const clv_gnn_execute_options *how,
                               clv_error *error) {
  teller t = {how->progress, how->user_data};
  const clv__gnn_run_options options = {how->progress != NULL ? tell_progress : NULL, &t, how->state_path, how->resume};
  if (run->is_closed) {
    clv__gnn_run_destroy(run->run);
    run->run = NULL;
    run->record = (clv__gnn_record){0};
    CLV__TRY(open_blocks(run, error));
  }
  CLV__TRY(clv__gnn_run_execute(run->run, features, out, &options, error));
  clv__gnn_run_record(run->run, &run->record);
  run->state_ns += run->record.state_ns;
  add_time(&run->times, run->record.measured_ns);
  return CLV_OK;
}

static clv_status execute(clv_gnn_run *run, const clv_tensor *features, clv_tensor *output, const clv_gnn_execute_options *how,
                          clv_error *error) {
  clv_tensor out, wanted = features_type(run);
  if (features != NULL) CLV__TRY(check_tensor(run, "features", features, &wanted, error));
  CLV__TRY(find_output(run, output, &out, error));
  clv__arena_finish(&run->account_arena);
  clv__arena_init(&run->account_arena, run->allocator);
  run->account = (clv__gnn_account){0};
  if (run->plan == NULL) {
    uint64_t begin_ns = clv__clock_ns();
    CLV__TRY(clv__gnn_single_run(run->single, features, &out, error));
    add_time(&run->times, (double)(clv__clock_ns() - begin_ns));
  } else {
    CLV__TRY(execute_plan(run, features, &out, how, error));
  }
  *output = out;
  return CLV_OK;
}

clv_status clv_gnn_run_execute(clv_gnn_run *run, const clv_tensor *features, clv_tensor *output,
                               const clv_gnn_execute_options *options, clv_error *error) {
  clv_gnn_execute_options how = CLV_GNN_EXECUTE_OPTIONS_INIT;
  CLV__TRY(clv__argument_check(run, "run", error));
  CLV__TRY(clv__argument_check(output, "output", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_EXECUTE_OPTIONS_INIT", error));
  if (run->plan == NULL && (how.state_path != NULL || how.resume))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "only a run of a plan keeps its rows in a file: this one has no plan");
  if (how.resume && how.state_path == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "to resume a run, give the state_path of the interrupted one");
  pthread_mutex_lock(&run->lock);
  clv_status status = execute(run, features, output, &how, error);
  pthread_mutex_unlock(&run->lock);
  return status;
}

/* ---- Verifying ---- */

typedef struct comparison {
  double difference; /* relative to the largest expected value */
  size_t at;         /* where it is */
} comparison;

static comparison compare(const float *actual, const float *expected, size_t count) {
  comparison c = {0, 0};
  double largest = 0, worst = 0;
  for (size_t i = 0; i < count; ++i) {
    double off = fabs((double)expected[i] - (double)actual[i]);
    largest = fmax(largest, fabs((double)expected[i]));
    if (off <= worst) continue;
    worst = isnan(off) ? INFINITY : off;
    c.at = i;
  }
  c.difference = largest > 0 ? worst / largest : worst;
  return c;
}

static clv_status run_whole(clv_gnn_run *run, const clv_tensor *features, clv_tensor *expected, clv_error *error) {
  clv__gnn_single *single;
  if (run->plan != NULL) {
    clv__gnn_run_close(run->run); /* two open runs would need the devices' memory at the same time */
    run->is_closed = true;
  }
  CLV__TRY(clv__gnn_single_create(run->devices, CLV__NO_ID, run->model->model, run->graph->graph, &single, error));
  clv_status status = clv__gnn_single_run(single, features, expected, error);
  clv__gnn_single_destroy(single);
  return status;
}

static clv_status verify(clv_gnn_run *run, const clv_tensor *features, const clv_tensor *output, double tolerance,
                         clv_error *error) {
  clv_tensor expected = output_type(run), wanted = features_type(run);
  size_t count, size_bytes;
  if (features != NULL) CLV__TRY(check_tensor(run, "features", features, &wanted, error));
  CLV__TRY(check_tensor(run, "outputs", output, &expected, error));
  if (!clv__tensor_count(&expected, &count) || !clv__tensor_size_bytes(&expected, &size_bytes))
    return clv__error_memory(error, SIZE_MAX);
  expected.data = clv__allocate(run->allocator, size_bytes);
  if (expected.data == NULL) return clv__error_memory(error, size_bytes);
  clv_status status = run_whole(run, features, &expected, error);
  if (status == CLV_OK) {
    const float *actual = output->data, *rows = expected.data;
    const comparison c = compare(actual, rows, count);
    size_t columns = (size_t)expected.dims[1];
    run->difference = c.difference;
    if (!(c.difference <= tolerance))
      status = clv__error_set(error, CLV_INTERNAL_ERROR,
                              "vertex %zu, column %zu is %.9g, but %.9g if the graph is run in one piece: the difference is %.3g "
                              "of the largest value; %.0e is allowed",
                              c.at / columns, c.at % columns, (double)actual[c.at], (double)rows[c.at], c.difference, tolerance);
  }
  clv__release(run->allocator, expected.data);
  return status;
}

clv_status clv_gnn_run_verify(clv_gnn_run *run, const clv_tensor *features, const clv_tensor *output, double tolerance,
                              double *difference, clv_error *error) {
  CLV__TRY(clv__argument_check(run, "run", error));
  CLV__TRY(clv__argument_check(output, "output", error));
  if (!(tolerance >= 0)) return clv__error_set(error, CLV_INVALID_ARGUMENT, "tolerance %g is not a number from 0 on", tolerance);
  pthread_mutex_lock(&run->lock);
  run->difference = -1;
  clv_status status = verify(run, features, output, tolerance, error);
  if (difference != NULL && run->difference >= 0) *difference = run->difference;
  pthread_mutex_unlock(&run->lock);
  return status;
}

/* ---- Results ---- */

clv_status clv_gnn_run_write(const clv_gnn_run *run, const clv_tensor *output, const char *path, clv_error *error) {
  static const char *const names[] = {"out"};
  CLV__TRY(clv__argument_check(run, "run", error));
  CLV__TRY(clv__argument_check(output, "output", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  clv_tensor wanted = output_type(run);
  CLV__TRY(check_tensor(run, "outputs", output, &wanted, error));
  clv__file_writer_sweep(path); /* temporary files of programs that were killed while writing */
  return clv__npz_write(run->allocator, path, names, output, 1, false, error);
}

clv_status clv__gnn_run_account(clv_gnn_run *run, const clv__gnn_account **account, clv_error *error) {
  if (run->plan == NULL) return clv__error_set(error, CLV_NOT_SUPPORTED, "the run has no plan: it runs the graph in one piece");
  if (run->times.count == 0 || run->record.layer_ns == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the run has not been executed");
  if (run->account.plan == NULL) {
    clv_status status =
        clv__gnn_account_make(&run->account_arena, run->plan->plan, run->model->stages, &run->record, &run->account, error);
    if (status != CLV_OK) run->account = (clv__gnn_account){0};
    CLV__TRY(status);
  }
  *account = &run->account;
  return CLV_OK;
}

void clv_gnn_run_get_info(clv_gnn_run *run, clv_gnn_run_info *info) {
  pthread_mutex_lock(&run->lock);
  const clv_gnn_run_info filled = {.run_count = run->times.count,
                                   .task_count = run->plan != NULL ? run->plan->account.span_count : 0,
                                   .compile_ns = run->compile_ns,
                                   .first_ns = run->times.first_ns,
                                   .last_ns = run->times.last_ns,
                                   .warm_ns = clv__gnn_times_warm_ns(&run->times),
                                   .state_ns = run->state_ns};
  pthread_mutex_unlock(&run->lock);
  clv__info_fill(info, &filled, sizeof filled);
}

bool clv_gnn_run_task(clv_gnn_run *run, uint32_t index, clv_gnn_task_info *info) {
  const clv__gnn_account nothing = {0}, *account;
  pthread_mutex_lock(&run->lock);
  if (clv__gnn_run_account(run, &account, NULL) != CLV_OK) account = run->plan != NULL ? &run->plan->account : &nothing;
  bool exists = clv__gnn_task_fill(account, index, info);
  pthread_mutex_unlock(&run->lock);
  return exists;
}
