/* Memory that is freed and allocated again at the same address, as drivers do. The device's buffers are handles that are reused
 * as soon as they are free, each time for other memory. A capture refers to the memory at the time of capture, and only the
 * generation of a buffer shows that its address now belongs to other memory. */
#include "scene.h"

/* ---- A virtual NPU that reuses handles ---- */

enum { MOST_HANDLES = 64, MOST_MEMORY = 512 };

struct clv_buffer {
  clv_buffer *memory; /* the NPU's buffer behind the handle; NULL: the handle is free */
};

/* Freed memory keeps its contents until the device is closed. So an erroneous use of it always reads old values, or has no
 * effect, and the test fails deterministically. */
static struct recycler {
  clv_backend table;
  clv_scratch_slots scratch;
  clv_capture_slots capture;
  const clv_backend *inner;
  pthread_mutex_t lock;
  clv_buffer handles[MOST_HANDLES];
  clv_buffer *freed[MOST_MEMORY];
  uint32_t freed_count;
  uint32_t distinct, given, refused; /* handles ever used; successful allocations; failed allocations */
  uint32_t refuse;                   /* how many of the next allocations fail */
  const clv_buffer *last_output;     /* handle of the last output passed to execute() or captured_bind() */
  const clv_buffer *last_memory;     /* the NPU's buffer behind `last_output` */
} recycler = {.lock = PTHREAD_MUTEX_INITIALIZER};

static clv_status recycle_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  struct recycler *r = &recycler;
  *buffer = NULL;
  pthread_mutex_lock(&r->lock);
  bool refused = r->refuse > 0;
  if (refused) {
    --r->refuse;
    ++r->refused;
  }
  pthread_mutex_unlock(&r->lock);
  if (refused) return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for the test");
  clv_buffer *memory;
  CLV__TRY(r->inner->buffer_alloc(device, size_bytes, &memory, error));
  pthread_mutex_lock(&r->lock);
  uint32_t i = 0;
  while (i < MOST_HANDLES && r->handles[i].memory != NULL) ++i;
  assert_true(i < MOST_HANDLES);
  r->handles[i].memory = memory;
  if (i >= r->distinct) r->distinct = i + 1;
  ++r->given;
  *buffer = &r->handles[i];
  pthread_mutex_unlock(&r->lock);
  return CLV_OK;
}

static void recycle_free(clv_device *device, clv_buffer *buffer) {
  struct recycler *r = &recycler;
  (void)device;
  if (buffer == NULL) return;
  pthread_mutex_lock(&r->lock);
  assert_true(buffer->memory != NULL && r->freed_count < MOST_MEMORY);
  r->freed[r->freed_count++] = buffer->memory;
  buffer->memory = NULL;
  pthread_mutex_unlock(&r->lock);
}

static void *recycle_host_pointer(clv_device *device, clv_buffer *buffer) {
  return recycler.inner->buffer_host_pointer(device, buffer->memory);
}

static void recycle_discard(clv_device *device, clv_buffer *buffer) {
  recycler.inner->buffer_discard(device, buffer->memory);
}

static clv_status recycle_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                             uint64_t size_bytes, clv_error *error) {
  return recycler.inner->copy_in(device, stream, to->memory, to_offset, from, size_bytes, error);
}

static clv_status recycle_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                              uint64_t size_bytes, clv_error *error) {
  return recycler.inner->copy_out(device, stream, to, from->memory, from_offset, size_bytes, error);
}

/* Arguments of execute() with the memory that is behind the handles now. */
typedef struct behind {
  clv_execute_args args;
  clv_binding inputs[8], outputs[8];
} behind;

static const clv_execute_args *look_behind(const clv_execute_args *args, behind *b) {
  assert_true(args->input_count <= 8 && args->output_count <= 8);
  b->args = *args;
  for (uint32_t i = 0; i < args->input_count; ++i) {
    b->inputs[i] = args->inputs[i];
    if (b->inputs[i].buffer != NULL) b->inputs[i].buffer = b->inputs[i].buffer->memory;
  }
  for (uint32_t i = 0; i < args->output_count; ++i) {
    b->outputs[i] = args->outputs[i];
    if (b->outputs[i].buffer == NULL) continue;
    b->outputs[i].buffer = b->outputs[i].buffer->memory;
    recycler.last_output = args->outputs[i].buffer;
    recycler.last_memory = b->outputs[i].buffer;
  }
  b->args.inputs = b->inputs;
  b->args.outputs = b->outputs;
  return &b->args;
}

static clv_status recycle_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                  clv_error *error) {
  behind b;
  (void)look_behind(args, &b);
  return recycler.inner->execute(device, instance, stream, &b.args, error);
}

static clv_status recycle_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                               clv_error *error) {
  behind b;
  return recycler.inner->capture->bind(device, captured, index, look_behind(args, &b), error);
}

static clv_status recycle_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes,
                                  clv_error *error) {
  return recycler.inner->scratch->bind(device, instance, buffer->memory, offset_bytes, error);
}

static void recycle_close(clv_device *device) {
  struct recycler *r = &recycler;
  while (r->freed_count > 0) r->inner->buffer_free(device, r->freed[--r->freed_count]);
  r->inner->close(device);
}

static clv_status recycle_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  struct recycler *r = &recycler;
  CLV__TRY(clv__vnpu_backend_query(host, user_data, &r->inner, error));
  r->table = *r->inner;
  r->table.close = recycle_close;
  r->table.buffer_alloc = recycle_alloc;
  r->table.buffer_free = recycle_free;
  r->table.buffer_discard = recycle_discard;
  r->table.buffer_host_pointer = recycle_host_pointer;
  r->table.copy_in = recycle_in;
  r->table.copy_out = recycle_out;
  r->table.execute = recycle_execute;
  r->scratch = *r->inner->scratch;
  r->scratch.bind = recycle_scratch;
  r->table.scratch = &r->scratch;
  r->capture = *r->inner->capture;
  r->capture.bind = recycle_bind;
  r->table.capture = &r->capture;
  *backend = &r->table;
  return CLV_OK;
}

static void open_recycled(scene *s, clv_capture_policy mode, const char *spec, uint64_t without) {
  recycler.distinct = recycler.given = recycler.refused = recycler.refuse = recycler.freed_count = 0;
  recycler.last_output = recycler.last_memory = NULL;
  memset(recycler.handles, 0, sizeof recycler.handles);
  open_scene(
      s, (scene_options){
             .is_npu = true, .is_asynchronous = true, .mode = mode, .spec = spec, .without = without, .query = recycle_query});
}

/* Makes a run of a larger shape. The first allocation for it fails, so the old memory is freed first, and the new memory gets the
 * same handle. */
static void grow(part *p, int64_t n, const char *wanted) {
  const clv_buffer *handle = recycler.last_output, *memory = recycler.last_memory;
  uint32_t distinct = recycler.distinct, given = recycler.given, refused = recycler.refused;
  recycler.refuse = 1;
  run_into(p, n, p->out);
  expect_log(p->s, SCENE, wanted);
  assert_int_equal(recycler.refused, refused + 1); /* the allocation must have failed once, or the test checks nothing */
  assert_int_equal(recycler.distinct, distinct);
  assert_true(recycler.given > given);
  assert_ptr_equal(recycler.last_output, handle);
  assert_ptr_not_equal(recycler.last_memory, memory);
}

/* ---- Captures ---- */

#define BOTH_BOUND "captured_bind captured_launch captured_bind captured_launch"

static void graphs_are_bound_again(void **state) {
  (void)state;
  scene s;
  part p;
  open_recycled(&s, CLV_CAPTURE_ON, NULL, 0);
  open_part(&p, &s, make_split(&s, true), "middle=cpu");
  run(&p, 4, CAPTURES " " CAPTURES);
  run(&p, 4, "captured_launch*2");
  for (int64_t n = 12; n <= MOST; n += 8) {
    grow(&p, n, CAPTURES " " CAPTURES);
    for (int64_t k = 4; k < n; k += 8) { /* the handles are the same as in the capture, but the memory behind them is not */
      run(&p, k, BOTH_BOUND);
      run(&p, k, "captured_launch*2");
    }
    run(&p, n, "captured_launch*2");
  }
  clv__capture_counters c = counters(&p);
  assert_int_equal(c.patches, 2 * 28);
  assert_int_equal(c.recaptures + c.failures, 0);
  close_part(&p);
  close_scene(&s);
}

/* If a device cannot change the bindings of a capture, some runs after the memory moved are executed without capture, and then
 * the shape is captured again. */
static void graphs_are_captured_again(void **state) {
  (void)state;
  scene s;
  part p;
  open_recycled(&s, CLV_CAPTURE_ON, NULL, INTERPOSER_BIT(captured_bind));
  open_part(&p, &s, make_split(&s, true), "middle=cpu");
  run(&p, 4, CAPTURES " " CAPTURES);
  for (int i = 0; i < 3; ++i) run(&p, 4, "captured_launch*2");
  grow(&p, 20, CAPTURES " " CAPTURES);
  for (int i = 0; i < 4; ++i) run(&p, 4, "execute*2");
  run(&p, 4, "captured_destroy " CAPTURES " captured_destroy " CAPTURES);
  run(&p, 4, "captured_launch*2");
  run(&p, 20, "captured_launch*2");
  close_part(&p);
  close_scene(&s);
}

/* Several partitions in one capture: the bindings of each are changed. */
static void graphs_of_several_are_bound_again(void **state) {
  (void)state;
  scene s;
  part p;
  open_recycled(&s, CLV_CAPTURE_ON, one_node_each, 0);
  open_part(&p, &s, make_split(&s, true), NULL);
  run(&p, 4, "capture_begin execute*3 capture_end captured_launch");
  run(&p, 4, "captured_launch");
  for (int64_t n = 20; n <= MOST; n += 16) {
    grow(&p, n, "capture_begin execute*3 capture_end captured_launch");
    run(&p, 4, "captured_bind*3 captured_launch");
    run(&p, 4, "captured_launch");
    run(&p, n, "captured_launch");
  }
  close_part(&p);
  close_scene(&s);
}

/* ---- Scratch, without captures ---- */

static void executions_have_their_scratch(void **state) {
  (void)state;
  scene s;
  part p;
  open_recycled(&s, CLV_CAPTURE_OFF, NULL, 0);
  open_part(&p, &s, make_attention(&s), NULL);
  uint64_t random = 9;
  run(&p, 1, "execute");
  for (int64_t n = 8; n <= MOST; n += 7) {
    uint32_t binds = (uint32_t)interposer_count(s.logged, INTERPOSER_instance_bind_scratch);
    recycler.refuse = 1;
    run(&p, n, "execute");
    assert_int_equal(recycler.refuse, 0);
    run(&p, 1, "execute"); /* the instance for one row must use the new scratch */
    assert_true(interposer_count(s.logged, INTERPOSER_instance_bind_scratch) >= binds + 2);
    for (int i = 0; i < 3; ++i) run(&p, 1 + (int64_t)(test_random(&random) % (uint64_t)n), "execute");
  }
  assert_true(recycler.given > recycler.distinct); /* handles were reused */
  close_part(&p);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graphs_are_bound_again),
      cmocka_unit_test(graphs_are_captured_again),
      cmocka_unit_test(graphs_of_several_are_bound_again),
      cmocka_unit_test(executions_have_their_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
