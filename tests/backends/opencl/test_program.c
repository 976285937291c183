/* Tests OpenCL executables: random graphs against the reference with various options of the device, saved and damaged files,
 * captures, scratch, several threads, failing allocations. */
#include <pthread.h>
#include <stdlib.h>

#include "base/files/sealed.h"
#include "base/hash.h"
#include "opencl_host.h"

/* ---- Results ---- */

static void random_graphs_equal_the_reference(void **state) {
  (void)state;
  static const char *const ways[] = {"memory=auto", "memory=own", "memory=own,fuse=off", "fuse=off,binaries=off"};
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
    ocl o;
    ocl_open(&o, ways[w]);
    for (uint64_t i = 0; i < 6; ++i) {
      uint64_t seed = 100 + i;
      char what[80];
      ocl_run r;
      snprintf(what, sizeof what, "%s, graph %d", ways[w], (int)i);
      ocl_run_open(&o, &r, i == 5 ? CLV_F16 : CLV_F32, 4 + (int)(i * 7), &seed);
      for (int again = 0; again < 2; ++again) ocl_run_check(&o, &r, what); /* each time with other buffers */
      ocl_run_close(&r);
    }
    ocl_close(&o);
  }
}

/* Binds the same buffers repeatedly, also at offsets at which no sub-buffer can begin. */
static void bindings_may_begin_anywhere(void **state) {
  (void)state;
  static const char *const memories[] = {"memory=auto", "memory=own"};
  static const uint64_t offsets[] = {0, 4, 64, 260, 4096};
  for (size_t mode = 0; mode < 2; ++mode) {
    ocl o;
    ocl_open(&o, memories[mode]);
    uint64_t seed = 3;
    ocl_run r;
    ocl_run_open(&o, &r, CLV_F32, 10, &seed);
    ocl_memory m;
    ocl_memory_open(&o, &r, 4096, &m); /* room for the largest offset */
    for (size_t k = 0; k < sizeof offsets / sizeof *offsets; ++k) {
      for (uint32_t i = 0; i < m.args.output_count; ++i) m.outputs[i].offset_bytes = offsets[k];
      for (uint32_t i = 0; i < m.args.input_count; ++i) {
        m.inputs[i].offset_bytes = offsets[k];
        assert_ok(o.backend->copy_in(o.device, r.session.stream, m.inputs[i].buffer, offsets[k], r.inputs[i].data,
                                     bytes_of(&r.inputs[i]), &o.error),
                  o.error);
      }
      for (int again = 0; again < 2; ++again) {
        ocl_memory_clear(&o, &r, &m);
        assert_ok(o.backend->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), o.error);
        ocl_memory_check(&o, &r, &m, true, "offset");
      }
    }
    ocl_memory_close(&o, &r, &m);
    ocl_run_close(&r);
    ocl_close(&o);
  }
}

/* Devices that share host memory accept host addresses. Here the addresses change between executions. */
static void host_memory_is_bound_as_it_is(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  clv_device_info info = {.struct_size = sizeof info};
  o.backend->info(o.device, &info);
  uint64_t seed = 4;
  ocl_run r;
  ocl_run_open(&o, &r, CLV_F32, 12, &seed);
  clv_binding in[FAKE_MAX_IO] = {{0}}, out[FAKE_MAX_IO] = {{0}};
  clv_execute_args args = {.struct_size = sizeof args,
                           .input_count = r.graph->input_count,
                           .output_count = r.graph->output_count,
                           .inputs = in,
                           .outputs = out};
  float *places[2][FAKE_MAX_IO];
  for (int set = 0; set < 2; ++set) {
    for (uint32_t i = 0; i < args.output_count; ++i) {
      const clv_tensor type = output_type(r.graph, r.shapes, i);
      places[set][i] = clv__allocate(heap(), bytes_of(&type) + 4);
    }
  }
  for (uint32_t i = 0; i < args.input_count; ++i) in[i].type = r.inputs[i];
  for (int round = 0; round < 6; ++round) {
    for (uint32_t i = 0; i < args.output_count; ++i) {
      out[i].type = output_type(r.graph, r.shapes, i);
      out[i].type.data = places[round % 2][i] + round % 3 / 2; /* in some rounds, four bytes further */
      memset(out[i].type.data, 0, bytes_of(&out[i].type));
    }
    clv_status status = o.backend->execute(o.device, r.session.instance, r.session.stream, &args, &o.error);
    if (strcmp(info.memory_space, "host") != 0) {
      assert_int_equal(status, CLV_INVALID_ARGUMENT);
      break;
    }
    assert_ok(status, o.error);
    assert_ok(o.backend->stream_synchronize(o.device, r.session.stream, &o.error), o.error);
    for (uint32_t i = 0; i < args.output_count; ++i) assert_close(&out[i].type, &r.expected[i], "host memory");
  }
  for (int set = 0; set < 2; ++set) {
    for (uint32_t i = 0; i < args.output_count; ++i) clv__release(heap(), places[set][i]);
  }
  ocl_run_close(&r);
  ocl_close(&o);
}

/* Chains of elementwise nodes with operands that are broadcast in many ways. Some of the nodes can be fused into the node before
 * them. */
static void fused_operands_broadcast(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  uint64_t seed = 12;
  fake_graph g = fake_graph_begin(&o.counting.allocator);
  fake_input(&g, "x", CLV_F32, 4, (int64_t[]){2, 3, 4, 5});
  fake_input(&g, "late", CLV_F32, 4, (int64_t[]){2, 3, 4, 5});
  random_constant(&g, "channel", CLV_F32, 3, (int64_t[]){3, 1, 1}, &seed);
  random_constant(&g, "last", CLV_F32, 1, (int64_t[]){5}, &seed);
  random_constant(&g, "one", CLV_F32, 0, NULL, &seed);
  random_constant(&g, "middle", CLV_F32, 4, (int64_t[]){1, 3, 4, 1}, &seed);
  random_constant(&g, "ends", CLV_F32, 4, (int64_t[]){2, 1, 1, 5}, &seed); /* not periodic, so its node is not fused */
  fake_node(&g, "Relu", "x", "a", NULL, 0);
  fake_node(&g, "Mul", "a channel", "b", NULL, 0);
  fake_node(&g, "Sub", "last b", "c", NULL, 0); /* the computed value is the second operand */
  fake_node(&g, "Sigmoid", "c", "d", NULL, 0);
  fake_node(&g, "Add", "d late", "e", NULL, 0);
  fake_node(&g, "Exp", "e", "f", NULL, 0);
  fake_node(&g, "Div", "one f", "g", NULL, 0);
  fake_node(&g, "Add", "g middle", "h", NULL, 0);
  fake_node(&g, "Mul", "h ends", "i", NULL, 0);
  fake_node(&g, "Add", "i i", "j", NULL, 0);
  fake_node(&g, "Neg", "d", "k", NULL, 0); /* d has two readers, so it must be stored */
  fake_node(&g, "Log", "late", "m", NULL, 0);
  fake_node(&g, "IsNaN", "m", "n", NULL, 0); /* the output has another dtype, so it is not fused */
  fake_output(&g, "j");
  fake_output(&g, "k");
  fake_output(&g, "c");
  fake_output(&g, "n");
  ocl_run r;
  ocl_run_open_graph(&o, &r, fake_graph_end(&g), &seed);
  ocl_run_check(&o, &r, "fused");
  ocl_run_close(&r);
  ocl_close(&o);
}

/* Instances of one executable with different numbers of rows. The number of rows was unknown when the executable was
 * compiled. */
static void instances_are_for_their_shapes(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  uint64_t seed = 21;
  fake_graph g = fake_graph_begin(&o.counting.allocator);
  fake_input(&g, "x", CLV_F32, 2, (int64_t[]){CLV_DIM_UNKNOWN, COLUMNS});
  random_constant(&g, "w", CLV_F32, 2, (int64_t[]){COLUMNS, COLUMNS}, &seed);
  fake_node(&g, "MatMul", "x w", "y", NULL, 0);
  fake_node(&g, "Shape", "y", "s", NULL, 0); /* s depends only on the shape of y */
  fake_node(&g, "Relu", "y", "z", NULL, 0);
  fake_output(&g, "z");
  fake_output(&g, "s");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  assert_ok(ocl_compile(&o, graph, shapes->types, &executable), o.error);
  for (int64_t rows = 0; rows < 40; rows += 13) {
    clv_tensor x = clv__tensor_make(CLV_F32, 2, (int64_t[]){rows, COLUMNS}, NULL), made[2], expected[2] = {{0}};
    float *data = clv__allocate(heap(), (size_t)rows * COLUMNS * sizeof *data + 1);
    for (int64_t i = 0; i < rows * COLUMNS; ++i) data[i] = test_random_float(&seed);
    x.data = data;
    fake_session s;
    assert_ok(fake_session_open(&s, o.backend, o.device, executable, graph, &x, 1, &o.error), o.error);
    made[0] = x;
    made[1] = clv__tensor_make(CLV_I64, 1, (int64_t[]){2}, NULL);
    assert_ok(fake_session_run(&s, heap(), &x, 1, made, 2, &o.error), o.error);
    evaluate(graph, &x, expected);
    assert_close(&made[0], &expected[0], "z");
    assert_same(&made[1], &expected[1], "s");
    release_tensors(heap(), made, 2);
    release_tensors(heap(), expected, 2);
    clv__release(heap(), data);
    s.executable = NULL; /* keep the executable for the next round */
    fake_session_close(&s);
  }
  o.backend->executable_destroy(o.device, executable);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  ocl_close(&o);
}

static void wrong_bindings_are_refused(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "memory=own");
  uint64_t seed = 8;
  ocl_run r;
  ocl_memory m;
  ocl_run_open_graph(&o, &r, small_graph(&o.counting.allocator, CLV_F32), &seed);
  ocl_memory_open(&o, &r, 0, &m);
#define REFUSED(says)                                                                                                            \
  assert_int_equal(o.backend->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), CLV_INVALID_ARGUMENT); \
  if (strstr(o.error.message, says) == NULL) fail_msg("the error message '%s' does not contain '%s'", o.error.message, says)
  m.args.input_count = 0;
  REFUSED("0 inputs and 1 outputs are bound, but the executable has 1 and 1");
  m.args.input_count = 1;
  m.inputs[0].type.dims[0] = ROWS + 1;
  REFUSED("input 0 is f32[5,40], but the instance was created for f32[4,40]");
  m.inputs[0].type.dims[0] = ROWS;
  m.outputs[0].offset_bytes = 4;
  REFUSED("output 0: 640 bytes at offset 4 do not fit the buffer of 640 bytes");
  m.outputs[0].offset_bytes = UINT64_MAX - 8;
  REFUSED("do not fit");
  m.outputs[0].offset_bytes = 0;
  clv_buffer *buffer = m.inputs[0].buffer;
  m.inputs[0].buffer = NULL;
  REFUSED("input 0 has no memory on the device");
  m.inputs[0].buffer = buffer;
  clv_instance *instance = NULL;
  assert_int_equal(o.backend->instance_create(o.device, r.session.executable, r.inputs, 1, NULL, 0, &instance, &o.error),
                   CLV_INVALID_ARGUMENT);
  assert_int_equal(o.backend->instance_resize(o.device, r.session.instance, r.inputs, 1, &o.error), CLV_NOT_SUPPORTED);
  assert_ok(o.backend->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), o.error);
  ocl_memory_check(&o, &r, &m, true, "after refusals");
  ocl_memory_close(&o, &r, &m);
  ocl_run_close(&r);
  ocl_close(&o);
}

/* ---- Files ---- */

/* A file in memory. */
typedef struct ocl_file {
  uint8_t data[1 << 22];
  size_t size_bytes;
} ocl_file;

static clv_status ocl_file_write(void *cookie, const void *data, size_t size_bytes) {
  ocl_file *file = cookie;
  if (size_bytes > sizeof file->data - file->size_bytes) return CLV_IO_ERROR;
  memcpy(file->data + file->size_bytes, data, size_bytes);
  file->size_bytes += size_bytes;
  return CLV_OK;
}

static clv_status load(ocl *o, const ocl_file *file, clv_executable **executable) {
  *executable = NULL;
  return o->backend->save->load(o->device, file->data, file->size_bytes, executable, &o->error);
}

static void save(ocl *o, clv_executable *executable, ocl_file *file) {
  file->size_bytes = 0;
  assert_ok(o->backend->save->save(o->device, executable, ocl_file_write, file, &o->error), o->error);
}

/* Repeats the run with an executable that was loaded from a file. */
static void check_loaded(ocl *o, ocl_run *r, clv_executable *executable) {
  fake_session_close(&r->session);
  assert_ok(
      fake_session_open(&r->session, o->backend, o->device, executable, r->graph, r->inputs, r->graph->input_count, &o->error),
      o->error);
  ocl_run_check(o, r, "from a file");
}

static void files_come_back(void **state) {
  (void)state;
  static ocl_file file, other;
  for (int binaries = 1; binaries >= 0; --binaries) {
    ocl o, again;
    uint64_t seed = 31;
    ocl_run r;
    clv_executable *executable;
    ocl_open(&o, binaries ? "" : "binaries=off");
    ocl_run_open(&o, &r, CLV_F32, 14, &seed);
    save(&o, r.session.executable, &file);
    assert_ok(load(&o, &file, &executable), o.error);
    check_loaded(&o, &r, executable);
    save(&o, r.session.executable, &other); /* the loaded executable is saved as a file of the same size */
    assert_int_equal(file.size_bytes, other.size_bytes);
    ocl_open(&again, binaries ? "" : "binaries=off"); /* a device that has built no programs */
    assert_ok(load(&again, &file, &executable), again.error);
    ocl_run there = r; /* uses only the file, because nothing was compiled on this device */
    assert_ok(fake_session_open(&there.session, again.backend, again.device, executable, r.graph, r.inputs, r.graph->input_count,
                                &again.error),
              again.error);
    ocl_run_check(&again, &there, "from a file, on another device");
    fake_session_close(&there.session);
    ocl_close(&again);
    ocl_open(&again, "f16=off"); /* this option gives the device another fingerprint */
    assert_int_equal(load(&again, &file, &executable), CLV_NOT_SUPPORTED);
    assert_null(executable);
    ocl_close(&again);
    ocl_run_close(&r);
    ocl_close(&o);
  }
}

static void copy_file(ocl_file *to, const ocl_file *from) {
  to->size_bytes = from->size_bytes;
  memcpy(to->data, from->data, from->size_bytes);
}

/* Corrects the size and the checksum after a change, as an attacker would. */
static void forge(ocl_file *file) {
  clv__hasher hasher;
  clv__hash hash;
  const uint64_t payload = file->size_bytes - CLV__SEALED_HEADER_BYTES;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, file->data + CLV__SEALED_HEADER_BYTES, payload);
  clv__hasher_finish(&hasher, &hash);
  memcpy(file->data + 16, &payload, 8);
  memcpy(file->data + CLV__SEALED_HASH_AT, hash.bytes, sizeof hash.bytes);
}

static void damaged_files_are_refused(void **state) {
  (void)state;
  static ocl_file file, bad;
  ocl o;
  uint64_t seed = 32;
  ocl_run r;
  clv_executable *executable;
  ocl_open(&o, "binaries=off"); /* no binaries, because the driver reads them, not Cleave */
  ocl_run_open_graph(&o, &r, small_graph(&o.counting.allocator, CLV_F32), &seed);
  save(&o, r.session.executable, &file);
  for (int round = 0; round < 400; ++round) {
    copy_file(&bad, &file);
    const size_t at = test_random(&seed) % file.size_bytes;
    if (round % 2 == 0)
      bad.size_bytes = at;
    else
      bad.data[at] ^= (uint8_t)(1u << test_random(&seed) % 8);
    clv_status status = load(&o, &bad, &executable);
    if (status != CLV_INVALID_MODEL && status != CLV_NOT_SUPPORTED)
      fail_msg("loading a file that was %s byte %zu returned status %d, expected %d or %d",
               round % 2 == 0 ? "cut off at" : "changed in", at, (int)status, CLV_INVALID_MODEL, CLV_NOT_SUPPORTED);
    assert_true(o.error.message[0] != '\0');
  }
  int taken = 0;
  for (int round = 0; round < 600; ++round) { /* damaged files with a correct checksum */
    copy_file(&bad, &file);
    const int changes = 1 + (int)(test_random(&seed) % 3);
    for (int k = 0; k < changes; ++k) {
      const size_t at = CLV__SEALED_HEADER_BYTES + test_random(&seed) % (file.size_bytes - CLV__SEALED_HEADER_BYTES);
      bad.data[at] = round % 3 == 0 ? 0xff : (uint8_t)test_random(&seed);
    }
    if (round % 5 == 0)
      bad.size_bytes = CLV__SEALED_HEADER_BYTES + test_random(&seed) % (file.size_bytes - CLV__SEALED_HEADER_BYTES);
    forge(&bad);
    if (load(&o, &bad, &executable) == CLV_OK) {
      ++taken;
      o.backend->executable_destroy(o.device, executable);
    }
  }
  /* Some changed files must still load, such as those in which only a name was changed. This shows that forge() works. */
  assert_true(taken > 0);
  ocl_run_check(&o, &r, "after damaged files");
  ocl_run_close(&r);
  ocl_close(&o);
}

/* If the driver rejects a binary, because it is damaged or another driver's, the sources are compiled. Only the beginning of the
 * binary is damaged, because PoCL fails an assertion if its contents are not an ELF file. */
static void foreign_binaries_fall_back_to_sources(void **state) {
  (void)state;
  static ocl_file file;
  ocl o, again;
  uint64_t seed = 33;
  ocl_run r;
  clv_executable *executable;
  ocl_open(&o, "");
  ocl_run_open_graph(&o, &r, small_graph(&o.counting.allocator, CLV_F32), &seed);
  save(&o, r.session.executable, &file);
  static const char magic[] = "poclbin";
  int broken = 0;
  for (size_t i = CLV__SEALED_HEADER_BYTES; i + sizeof magic < file.size_bytes; ++i) {
    if (memcmp(file.data + i, magic, sizeof magic - 1) != 0) continue;
    memset(file.data + i, 'x', sizeof magic - 1);
    ++broken;
  }
  forge(&file);
  ocl_run_close(&r);
  ocl_close(&o);
  if (broken == 0) skip(); /* the binaries are not in PoCL's format */
  ocl_open(&again, "");
  ocl_run_open_graph(&again, &r, small_graph(&again.counting.allocator, CLV_F32), &seed);
  assert_ok(load(&again, &file, &executable), again.error);
  check_loaded(&again, &r, executable);
  ocl_run_close(&r);
  ocl_close(&again);
}

/* ---- Capture ---- */

static void capture(ocl *o, ocl_run *r, ocl_memory *m, int executions, clv_captured **captured) {
  const clv_backend *b = o->backend;
  *captured = NULL;
  assert_ok(b->capture->begin(o->device, r->session.stream, CLV_CAPTURE_THREAD, &o->error), o->error);
  for (int i = 0; i < executions; ++i) {
    assert_ok(b->execute(o->device, r->session.instance, r->session.stream, &m[i].args, &o->error), o->error);
  }
  assert_ok(b->capture->end(o->device, r->session.stream, captured, &o->error), o->error);
  assert_non_null(*captured);
  assert_true(b->capture->size_bytes(o->device, *captured) > 0);
}

static void captures_do_what_executions_did(void **state) {
  (void)state;
  static const char *const ways[] = {"capture=list", "capture=list,memory=own", "capture=buffer", "capture=buffer,memory=own",
                                     "capture=auto"};
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
    ocl o;
    if (ocl_try_open(&o, "opencl", 0, ways[w]) != CLV_OK) {
      print_message("skipped: %s\n", o.error.message);
      continue;
    }
    const clv_backend *b = o.backend;
    uint64_t seed = 40 + w;
    ocl_run r;
    ocl_memory m[3];
    clv_captured *captured;
    ocl_run_open(&o, &r, CLV_F32, 15, &seed);
    for (int i = 0; i < 3; ++i) {
      ocl_memory_open(&o, &r, i == 1 ? 256 : 0, &m[i]);
      ocl_memory_clear(&o, &r, &m[i]);
    }
    capture(&o, &r, m, 2, &captured);
    for (int i = 0; i < 2; ++i) ocl_memory_check(&o, &r, &m[i], false, "recorded only");
    for (int launch = 0; launch < 3; ++launch) { /* in the second round twice, without waiting in between */
      assert_ok(b->capture->launch(o.device, captured, r.session.stream, &o.error), o.error);
      if (launch == 1) assert_ok(b->capture->launch(o.device, captured, r.session.stream, &o.error), o.error);
      for (int i = 0; i < 2; ++i) ocl_memory_check(&o, &r, &m[i], true, ways[w]);
      for (int i = 0; i < 2; ++i) ocl_memory_clear(&o, &r, &m[i]);
    }
    /* An execution of the instance with other bindings does not change the bindings of the capture. */
    assert_ok(b->execute(o.device, r.session.instance, r.session.stream, &m[2].args, &o.error), o.error);
    ocl_memory_check(&o, &r, &m[2], true, "eager");
    ocl_memory_clear(&o, &r, &m[2]);
    assert_ok(b->capture->launch(o.device, captured, r.session.stream, &o.error), o.error);
    for (int i = 0; i < 2; ++i) ocl_memory_check(&o, &r, &m[i], true, ways[w]);
    ocl_memory_check(&o, &r, &m[2], false, "not in the capture");
    /* Binds other buffers to the second execution. */
    for (int i = 0; i < 2; ++i) ocl_memory_clear(&o, &r, &m[i]);
    clv_status status = b->capture->bind(o.device, captured, 1, &m[2].args, &o.error);
    if (status != CLV_NOT_SUPPORTED) {
      assert_ok(status, o.error);
      assert_int_equal(b->capture->bind(o.device, captured, 2, &m[2].args, &o.error), CLV_INVALID_ARGUMENT);
      assert_ok(b->capture->launch(o.device, captured, r.session.stream, &o.error), o.error);
      ocl_memory_check(&o, &r, &m[0], true, "bound");
      ocl_memory_check(&o, &r, &m[1], false, "no longer bound");
      ocl_memory_check(&o, &r, &m[2], true, "bound");
    }
    b->capture->destroy(o.device, captured);
    b->capture->destroy(o.device, NULL);
    for (int i = 0; i < 3; ++i) ocl_memory_close(&o, &r, &m[i]);
    ocl_run_close(&r);
    ocl_close(&o);
  }
}

static void captures_keep_to_their_rules(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  const clv_backend *b = o.backend;
  uint64_t seed = 50;
  ocl_run r;
  ocl_memory m;
  clv_captured *captured = NULL;
  clv_event *event = NULL;
  ocl_run_open(&o, &r, CLV_F32, 8, &seed);
  ocl_memory_open(&o, &r, 0, &m);
  ocl_memory_clear(&o, &r, &m);
  assert_ok(b->event_create(o.device, &event, &o.error), o.error);
  assert_int_equal(b->capture->end(o.device, r.session.stream, &captured, &o.error), CLV_INVALID_ARGUMENT);
  assert_ok(b->capture->begin(o.device, r.session.stream, CLV_CAPTURE_THREAD, &o.error), o.error);
  assert_int_equal(b->capture->begin(o.device, r.session.stream, CLV_CAPTURE_THREAD, &o.error), CLV_INVALID_ARGUMENT);
  assert_int_equal(b->copy_in(o.device, r.session.stream, m.inputs[0].buffer, 0, "abc", 4, &o.error), CLV_INVALID_ARGUMENT);
  assert_int_equal(b->event_record(o.device, event, r.session.stream, &o.error), CLV_INVALID_ARGUMENT);
  assert_int_equal(b->event_wait(o.device, r.session.stream, event, &o.error), CLV_INVALID_ARGUMENT);
  assert_ok(b->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), o.error);
  m.args.input_count += 1; /* recording checks the arguments, and continues after an error */
  assert_int_equal(b->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), CLV_INVALID_ARGUMENT);
  m.args.input_count -= 1;
  assert_ok(b->capture->end(o.device, r.session.stream, NULL, &o.error), o.error); /* discards the recording */
  ocl_memory_check(&o, &r, &m, false, "dropped");
  assert_ok(b->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), o.error);
  ocl_memory_check(&o, &r, &m, true, "as before");
  b->event_destroy(o.device, event);
  ocl_memory_close(&o, &r, &m);
  ocl_run_close(&r);
  ocl_close(&o);
  ocl_open(&o, "capture=off");
  ocl_run_open(&o, &r, CLV_F32, 3, &seed);
  assert_int_equal(o.backend->capture->begin(o.device, r.session.stream, CLV_CAPTURE_THREAD, &o.error), CLV_NOT_SUPPORTED);
  ocl_run_check(&o, &r, "capture=off");
  ocl_run_close(&r);
  ocl_close(&o);
}

/* ---- Scratch, steady state ---- */

static void scratch_may_be_the_hosts(void **state) {
  (void)state;
  static const char *const memories[] = {"memory=auto", "memory=own"};
  for (size_t mode = 0; mode < 2; ++mode) {
    ocl o;
    ocl_open(&o, memories[mode]);
    const clv_backend *b = o.backend;
    uint64_t seed = 60;
    ocl_run r;
    clv_buffer *buffers[2] = {NULL};
    ocl_run_open(&o, &r, CLV_F32, 30, &seed);
    const uint64_t needed = b->scratch->size_bytes(o.device, r.session.instance);
    assert_true(needed > 0);
    for (int k = 0; k < 2; ++k) assert_ok(b->buffer_alloc(o.device, needed + 1000, &buffers[k], &o.error), o.error);
    assert_int_equal(b->scratch->bind(o.device, r.session.instance, buffers[0], 1500, &o.error), CLV_INVALID_ARGUMENT);
    assert_int_equal(b->scratch->bind(o.device, r.session.instance, NULL, 0, &o.error), CLV_INVALID_ARGUMENT);
    for (int round = 0; round < 4; ++round) {
      assert_ok(b->scratch->bind(o.device, r.session.instance, buffers[round % 2], round < 2 ? 0 : 900, &o.error), o.error);
      ocl_run_check(&o, &r, "scratch");
    }
    ocl_run_close(&r);
    for (int k = 0; k < 2; ++k) b->buffer_free(o.device, buffers[k]);
    ocl_close(&o);
  }
}

static void noted(void *cookie) {
  __atomic_add_fetch((int *)cookie, 1, __ATOMIC_RELEASE);
}

static void steady_state_allocates_nothing(void **state) {
  (void)state;
  static const char *const ways[] = {"capture=list", "capture=auto,memory=own"};
  for (size_t w = 0; w < 2; ++w) {
    ocl o;
    ocl_open(&o, ways[w]);
    const clv_backend *b = o.backend;
    uint64_t seed = 61;
    ocl_run r;
    ocl_memory m;
    clv_event *event;
    clv_captured *captured;
    int notes = 0;
    ocl_run_open(&o, &r, CLV_F32, 20, &seed);
    ocl_memory_open(&o, &r, 0, &m);
    assert_ok(b->event_create(o.device, &event, &o.error), o.error);
    capture(&o, &r, &m, 1, &captured);
    size_t calls = 0;
    for (int round = 0; round < 12; ++round) {
      assert_ok(b->execute(o.device, r.session.instance, r.session.stream, &m.args, &o.error), o.error);
      assert_ok(b->capture->launch(o.device, captured, r.session.stream, &o.error), o.error);
      assert_ok(b->event_record(o.device, event, r.session.stream, &o.error), o.error);
      assert_ok(b->event_notify(o.device, event, noted, &notes, &o.error), o.error);
      assert_ok(b->event_synchronize(o.device, event, &o.error), o.error);
      while (__atomic_load_n(&notes, __ATOMIC_ACQUIRE) <= round) sched_yield();
      if (round == 1) calls = o.counting.calls;
    }
    assert_int_equal(o.counting.calls, calls);
    b->capture->destroy(o.device, captured);
    b->event_destroy(o.device, event);
    ocl_memory_close(&o, &r, &m);
    ocl_run_close(&r);
    ocl_close(&o);
  }
}

/* ---- Threads, failing allocations ---- */

typedef struct worker {
  ocl *o;
  ocl_run *r;
  fake_session session;
  int wrong;
} worker;

static void *work(void *cookie) {
  worker *w = cookie;
  clv_error error = {0};
  for (int round = 0; round < 12; ++round) {
    clv_tensor outputs[FAKE_MAX_IO];
    const uint32_t count = w->r->graph->output_count;
    for (uint32_t i = 0; i < count; ++i) outputs[i] = output_type(w->r->graph, w->r->shapes, i);
    clv_status status = fake_session_run(&w->session, heap(), w->r->inputs, w->r->graph->input_count, outputs, count, &error);
    for (uint32_t i = 0; i < count && status == CLV_OK; ++i) {
      size_t elements = 0;
      clv__tensor_count(&outputs[i], &elements);
      for (size_t k = 0; k < elements; ++k) {
        const double a = clv__tensor_get(&outputs[i], k), b = clv__tensor_get(&w->r->expected[i], k);
        if (!(fabs(a - b) <= 1e-3 * fmax(1, fabs(b)))) ++w->wrong;
      }
    }
    if (status != CLV_OK) ++w->wrong;
    release_tensors(heap(), outputs, count);
  }
  return NULL;
}

/* Instances of one executable run at the same time, each on its own stream. */
static void threads_run_beside_each_other(void **state) {
  (void)state;
  enum { WORKERS = 4 };
  ocl o;
  ocl_open(&o, "memory=own");
  uint64_t seed = 70;
  ocl_run r;
  worker workers[WORKERS];
  pthread_t threads[WORKERS];
  ocl_run_open(&o, &r, CLV_F32, 20, &seed);
  for (int i = 0; i < WORKERS; ++i) {
    workers[i] = (worker){.o = &o, .r = &r};
    assert_ok(fake_session_open(&workers[i].session, o.backend, o.device, r.session.executable, r.graph, r.inputs,
                                r.graph->input_count, &o.error),
              o.error);
  }
  for (int i = 0; i < WORKERS; ++i) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < WORKERS; ++i) {
    pthread_join(threads[i], NULL);
    assert_int_equal(workers[i].wrong, 0);
    workers[i].session.executable = NULL;
    fake_session_close(&workers[i].session);
  }
  ocl_run_close(&r);
  ocl_close(&o);
}

/* One allocation by the backend fails, between opening the device and creating an instance: each of the first 60 in turn, then
 * every seventh. The calls must then succeed or return CLV_OUT_OF_MEMORY, and no allocation may be left after closing. */
static void memory_may_be_out_anywhere(void **state) {
  (void)state;
  ocl probe;
  ocl_open(&probe, "");
  ocl_close(&probe);
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  bool finished = false;
  for (size_t fail_at = 1; !finished; fail_at += fail_at < 60 ? 1 : 7) {
    ocl o;
    clv_executable *executable = NULL;
    clv_instance *instance = NULL;
    clv_weight *weight = NULL;
    memset(&o, 0, sizeof o);
    test_allocator_init(&o.counting);
    fake_host_init(&o.fake, &o.counting.allocator);
    assert_ok(clv__opencl_backend_query(&o.fake.host, NULL, &o.backend, &o.error), o.error);
    clv_graph *own = small_graph(&o.counting.allocator, CLV_F32);
    const size_t before = o.counting.calls;
    o.counting.fail_at = before + fail_at;
    const clv_device_config config = {.struct_size = sizeof config, .name = "opencl"};
    clv_status status = o.backend->open(NULL, &o.fake.host, &config, &o.device, &o.error);
    if (status == CLV_OK) status = ocl_compile(&o, own, shapes->types, &executable);
    if (status == CLV_OK) {
      const clv_tensor *type = &own->values[clv__graph_find_value(own, "w")].type;
      status = o.backend->weight_upload(o.device, "w", type, &weight, &o.error);
    }
    if (status == CLV_OK) {
      const clv_tensor x = clv__tensor_make(CLV_F32, 2, (int64_t[]){ROWS, COLUMNS}, NULL);
      status = o.backend->instance_create(o.device, executable, &x, 1, &weight, 1, &instance, &o.error);
    }
    finished = o.counting.calls < o.counting.fail_at; /* fewer than `fail_at` allocations were made, so none failed */
    if (finished) assert_ok(status, o.error);
    if (!finished && status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    o.counting.fail_at = 0;
    if (o.device != NULL) {
      o.backend->instance_destroy(o.device, instance);
      o.backend->weight_release(o.device, weight);
      o.backend->executable_destroy(o.device, executable);
    }
    o.backend->close(o.device);
    clv__graph_destroy(own);
    assert_int_equal(o.counting.live, 0);
  }
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* ---- Input errors that kernels find ---- */

/* A graph of one SparseAggregate, which sums rows: x [6, 20], offsets [4], sources [5]. */
static clv_graph *sums_graph(const clv_allocator *allocator) {
  static const char *const names[] = {"x", "offsets", "sources"};
  fake_graph g = fake_graph_begin(allocator);
  clv_value_id in[3], out;
  fake_input(&g, "x", CLV_F32, 2, (int64_t[]){6, 20});
  fake_input(&g, "offsets", CLV_I64, 1, (int64_t[]){4});
  fake_input(&g, "sources", CLV_I32, 1, (int64_t[]){5});
  assert_ok(clv__builder_import(g.builder, "ai.cleave", 1, &g.error), g.error);
  for (int i = 0; i < 3; ++i) assert_ok(clv__builder_value(g.builder, names[i], &in[i], &g.error), g.error);
  assert_ok(clv__builder_value(g.builder, "y", &out, &g.error), g.error);
  assert_ok(clv__builder_node(g.builder, "sums", "ai.cleave", "SparseAggregate", in, 3, &out, 1, NULL, 0, &g.error), g.error);
  fake_output(&g, "y");
  return fake_graph_end(&g);
}

/* Every wait reports an input error until the stream has been synchronised, and no wait after that. Each allocation from the
 * creation of the instance on fails once. Closing the device frees the objects that still exist. */
static void what_is_found_is_told_once(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  ocl_close(&o);
  bool finished = false;
  for (size_t fail_at = 0; !finished; ++fail_at) {
    ocl_open(&o, "");
    const clv_backend *b = o.backend;
    clv_graph *graph = sums_graph(&o.counting.allocator);
    clv__shapes *shapes = shapes_of(graph);
    clv_executable *executable = NULL;
    clv_instance *instance = NULL;
    clv_stream *stream = NULL;
    clv_event *event = NULL;
    float x[6 * 20] = {0}, y[3 * 20];
    int64_t offsets[4] = {0, 2, 3, 5};
    int32_t sources[5] = {0, 5, 1, 2, 3};
    clv_tensor tensors[4] = {
        clv__tensor_make(CLV_F32, 2, (int64_t[]){6, 20}, x), clv__tensor_make(CLV_I64, 1, (int64_t[]){4}, offsets),
        clv__tensor_make(CLV_I32, 1, (int64_t[]){5}, sources), clv__tensor_make(CLV_F32, 2, (int64_t[]){3, 20}, y)};
    clv_binding bindings[4];
    clv_buffer *buffers[4] = {0};
    assert_ok(ocl_compile(&o, graph, shapes->types, &executable), o.error);
    assert_ok(b->stream_create(o.device, &stream, &o.error), o.error);
    assert_ok(b->event_create(o.device, &event, &o.error), o.error);
    for (int i = 0; i < 4; ++i) {
      assert_ok(b->buffer_alloc(o.device, 4096, &buffers[i], &o.error), o.error);
      bindings[i] = (clv_binding){.type = tensors[i], .buffer = buffers[i]};
      bindings[i].type.data = NULL;
    }
    clv_execute_args args = {
        .struct_size = sizeof args, .input_count = 3, .output_count = 1, .inputs = bindings, .outputs = &bindings[3]};
    o.counting.fail_at = fail_at == 0 ? 0 : o.counting.calls + fail_at;
    clv_status status = b->instance_create(o.device, executable, tensors, 3, NULL, 0, &instance, &o.error);
    for (int round = 0; round < 4 && status == CLV_OK; ++round) {
      const bool lies = round % 2 == 0;
      sources[4] = lies ? 6 : 3;
      for (int i = 0; i < 3; ++i) {
        size_t size_bytes;
        assert_true(clv__tensor_size_bytes(&tensors[i], &size_bytes));
        assert_ok(b->copy_in(o.device, stream, buffers[i], 0, tensors[i].data, size_bytes, &o.error), o.error);
      }
      status = b->execute(o.device, instance, stream, &args, &o.error);
      if (status != CLV_OK) break;
      assert_ok(b->event_record(o.device, event, stream, &o.error), o.error);
      for (int again = 0; again < 2; ++again) {
        clv_status said = b->event_synchronize(o.device, event, &o.error);
        assert_int_equal(said, lies ? CLV_INVALID_ARGUMENT : CLV_OK);
        if (lies) assert_string_equal(o.error.message, "node 'sums' (SparseAggregate): sources[4] is 6: data has 6 rows");
      }
      assert_int_equal(b->stream_synchronize(o.device, stream, &o.error), lies ? CLV_INVALID_ARGUMENT : CLV_OK);
      assert_ok(b->stream_synchronize(o.device, stream, &o.error), o.error);
    }
    finished = fail_at > 0 && o.counting.calls < o.counting.fail_at;
    if (finished || fail_at == 0) assert_ok(status, o.error);
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    o.counting.fail_at = 0;
    assert_ok(b->stream_synchronize(o.device, stream, &o.error), o.error);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
    ocl_close(&o); /* checks that nothing is left */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs_equal_the_reference),
      cmocka_unit_test(bindings_may_begin_anywhere),
      cmocka_unit_test(host_memory_is_bound_as_it_is),
      cmocka_unit_test(fused_operands_broadcast),
      cmocka_unit_test(instances_are_for_their_shapes),
      cmocka_unit_test(wrong_bindings_are_refused),
      cmocka_unit_test(files_come_back),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(foreign_binaries_fall_back_to_sources),
      cmocka_unit_test(captures_do_what_executions_did),
      cmocka_unit_test(captures_keep_to_their_rules),
      cmocka_unit_test(scratch_may_be_the_hosts),
      cmocka_unit_test(steady_state_allocates_nothing),
      cmocka_unit_test(threads_run_beside_each_other),
      cmocka_unit_test(memory_may_be_out_anywhere),
      cmocka_unit_test(what_is_found_is_told_once),
  };
  return cmocka_run_group_tests_name("opencl programs", tests, NULL, NULL);
}
