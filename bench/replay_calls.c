/* Times the backend calls of a run with one partition, without a session: copies in, execute() or capture->launch(), copy out,
 * wait. Also times execute() and capture->launch() alone and, on the virtual NPU, all calls with an idle launch, which takes as
 * long as the real one but computes nothing. */
#include "replay.h"

#include <string.h>
#include <time.h>

#include "analysis/shapes.h"
#include "graph/view.h"

void calls_open(calls *c, const sessions *s, const clv_graph *graph) {
  clv_error error = {0};
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
  *c = (calls){.b = s->devices->items[0].backend,
               .device = s->devices->items[0].handle,
               .in = {s->in[0], s->in[1]},
               .is_synchronous = s->devices->items[0].info.is_synchronous};
  clv__arena_init(&arena, clv__allocator_default());
  check(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), &error, "shapes");
  check(clv__view_create_whole(graph, shapes->types, &arena, &view, &error), &error, "view");
  clv_compile_options options = {.struct_size = sizeof options};
  check(c->b->compile(c->device, view, &options, &c->executable, &error), &error, "compile");
  check(c->b->instance_create(c->device, c->executable, s->inputs, 2, NULL, 0, &c->instance, &error), &error, "instance");
  check(c->b->stream_create(c->device, &c->stream, &error), &error, "stream");
  for (int i = 0; i < 3; ++i) {
    c->bindings[i].type = i < 2 ? s->inputs[i] : s->output;
    check(c->b->buffer_alloc(c->device, VALUE_BYTES, &c->bindings[i].buffer, &error), &error, "buffer");
    c->bindings[i].type.data = c->b->buffer_host_pointer(c->device, c->bindings[i].buffer);
    if (i < 2)
      check(c->b->copy_in(c->device, c->stream, c->bindings[i].buffer, 0, s->in[i], VALUE_BYTES, &error), &error, "copy");
  }
  c->args = (clv_execute_args){
      .struct_size = sizeof c->args, .input_count = 2, .output_count = 1, .inputs = c->bindings, .outputs = &c->bindings[2]};
  if (c->b->capture != NULL) {
    check(c->b->capture->begin(c->device, c->stream, CLV_CAPTURE_THREAD, &error), &error, "capture");
    check(c->b->execute(c->device, c->instance, c->stream, &c->args, &error), &error, "capture");
    check(c->b->capture->end(c->device, c->stream, &c->captured, &error), &error, "capture");
  }
  clv__shapes_destroy(shapes);
  clv__arena_finish(&arena);
}

void calls_close(calls *c) {
  if (c->captured != NULL) c->b->capture->destroy(c->device, c->captured);
  c->b->instance_destroy(c->device, c->instance);
  c->b->executable_destroy(c->device, c->executable);
  c->b->stream_destroy(c->device, c->stream);
  for (int i = 0; i < 3; ++i) c->b->buffer_free(c->device, c->bindings[i].buffer);
}

static void synchronize(calls *c) {
  clv_error error = {0};
  check(c->b->stream_synchronize(c->device, c->stream, &error), &error, "synchronize");
}

static clv_status execute(calls *c, clv_error *error) {
  return c->b->execute(c->device, c->instance, c->stream, &c->args, error);
}
static clv_status replay(calls *c, clv_error *error) {
  return c->b->capture->launch(c->device, c->captured, c->stream, error);
}

static clv_status pass_time(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  double until = read_clock(CLOCK_MONOTONIC) + ((const idle *)launch)->ns;
  (void)error;
  *seconds = 0;
  while (read_clock(CLOCK_MONOTONIC) < until) continue;
  return CLV_OK;
}
static clv_status launch_nothing(calls *c, clv_error *error) {
  c->idle.launch.run = pass_time;
  return clv__vnpu_stream_launch(&c->device->queue, c->stream, &c->idle.launch, error);
}

void need_same(const float *a, const float *b, uint32_t nodes, const char *what) {
  if (memcmp(a, b, VALUE_BYTES) == 0) return;
  fprintf(stderr, "replay: %u nodes: %s\n", nodes, what);
  exit(1);
}

void calls_check(calls *c, bool captured, uint32_t nodes, const float *wanted) {
  float out[ELEMENTS];
  clv_error error = {0};
  check(captured ? replay(c, &error) : execute(c, &error), &error, "call");
  check(c->b->copy_out(c->device, c->stream, out, c->bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
  synchronize(c);
  need_same(out, wanted, nodes, "the results of the backend calls and of the session differ");
}

static cost run_alone(calls *c, clv_status (*call)(calls *c, clv_error *error)) {
  clv_error error = {0};
  cost begun = begin();
  check(call(c, &error), &error, "call");
  begun = end(begun);
  synchronize(c);
  return begun;
}

static cost run_all(calls *c, clv_status (*call)(calls *c, clv_error *error)) {
  clv_error error = {0};
  bool copies = !c->is_synchronous; /* on a synchronous device, a session binds the caller's memory instead */
  cost begun = begin();
  for (int i = 0; i < 2 && copies; ++i)
    check(c->b->copy_in(c->device, c->stream, c->bindings[i].buffer, 0, c->in[i], VALUE_BYTES, &error), &error, "copy");
  check(call(c, &error), &error, "call");
  if (copies) {
    check(c->b->copy_out(c->device, c->stream, c->out, c->bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
    issued();
  }
  synchronize(c);
  return end(begun);
}

cost call_execute(void *cookie) {
  return run_alone(cookie, execute);
}
cost call_replay(void *cookie) {
  return run_alone(cookie, replay);
}
cost chain_execute(void *cookie) {
  return run_all(cookie, execute);
}
cost chain_replay(void *cookie) {
  return run_all(cookie, replay);
}
cost chain_nothing(void *cookie) {
  return run_all(cookie, launch_nothing);
}
