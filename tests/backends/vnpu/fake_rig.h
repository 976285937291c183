/* A test fixture: small_graph() on its own device, ready to be executed, with an allocator that counts. */
#ifndef CLEAVE_TESTS_BACKENDS_VNPU_FAKE_RIG_H
#define CLEAVE_TESTS_BACKENDS_VNPU_FAKE_RIG_H

#include "fake_graphs.h"

typedef struct fake_rig {
  test_allocator counting;
  fake_host fake;
  const clv_backend *b;
  clv_device *device;
  clv_graph *graph;
  clv__shapes *shapes;
  fake_session session;
  clv_binding in, out;
  clv_execute_args args;
} fake_rig;

/* Opens the rig. The device gets the option `key` with the value `value`; if `key` is NULL, it gets none. */
static inline void fake_rig_open(fake_rig *r, const char *key, const char *value) {
  clv_error error = {0};
  memset(r, 0, sizeof *r);
  test_allocator_init(&r->counting);
  fake_host_init(&r->fake, &r->counting.allocator);
  r->b = fake_backend(&r->fake);
  clv_option option = {key, value};
  clv_device_config config = {.struct_size = sizeof config, .name = "npu", .option_count = key != NULL, .options = &option};
  assert_ok(r->b->open(NULL, &r->fake.host, &config, &r->device, &error), error);
  r->graph = small_graph(&r->counting.allocator, CLV_F32);
  r->shapes = shapes_of(r->graph);
  clv_executable *executable = NULL;
  compile_whole(&r->fake, r->device, r->graph, r->shapes->types, &executable);
  clv_tensor x = r->graph->values[r->graph->inputs[0]].type;
  assert_ok(fake_session_open(&r->session, r->b, r->device, executable, r->graph, &x, 1, &error), error);
  r->in.type = x;
  r->out.type = output_type(r->graph, r->shapes, 0);
  assert_ok(r->b->buffer_alloc(r->device, ROWS * COLUMNS * 4, &r->in.buffer, &error), error);
  assert_ok(r->b->buffer_alloc(r->device, ROWS * COLUMNS * 4, &r->out.buffer, &error), error);
  r->args = (clv_execute_args){
      .struct_size = sizeof r->args, .input_count = 1, .output_count = 1, .inputs = &r->in, .outputs = &r->out};
}

/* Destroys the graph, and checks that all memory was freed. The caller has already closed the session and the device. */
static inline void fake_rig_close(fake_rig *r) {
  clv__shapes_destroy(r->shapes);
  clv__graph_destroy(r->graph);
  assert_int_equal(r->counting.live, 0);
}

/* Closes the session, the device and the rig. */
static inline void fake_rig_finish(fake_rig *r) {
  r->b->buffer_free(r->device, r->in.buffer);
  r->b->buffer_free(r->device, r->out.buffer);
  fake_session_close(&r->session);
  r->b->close(r->device);
  fake_rig_close(r);
}

#endif
