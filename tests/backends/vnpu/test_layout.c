/* The scratch layout of static programs: pieces that are live at the same time never overlap, even in programs with many
 * instructions. The check of a layout agrees with a comparison of every pair. */
#include <stdlib.h>

#include "backends/vnpu/program.h"
#include "support.h"

/* A program with only those members that the layout reads. Every instruction computes a value; some also have scratch. */
typedef struct made {
  clv_device device;
  clv_executable program;
  uint32_t count;
} made;

static void make_program(made *m, uint32_t count, uint32_t longest, uint64_t *seed) {
  memset(m, 0, sizeof *m);
  m->device.allocator = clv__allocator_default();
  m->device.spec.alignment_bytes = 64u << test_random(seed) % 3;
  m->count = count;
  clv_executable *p = &m->program;
  p->device = &m->device;
  p->node_count = p->value_count = count;
  p->instructions = calloc(count, sizeof *p->instructions);
  p->sizes = calloc(count, sizeof *p->sizes);
  p->locations = calloc(count, sizeof *p->locations);
  p->last_uses = calloc(count, sizeof *p->last_uses);
  p->outputs = calloc(count, sizeof *p->outputs);
  for (uint32_t n = 0; n < count; ++n) {
    p->outputs[n] = test_random(seed) % 20 == 0 ? CLV_NO_VALUE : n;
    p->instructions[n].node.output_count = 1;
    p->instructions[n].node.outputs = &p->outputs[n];
    if (test_random(seed) % 4 == 0) p->instructions[n].scratch_bytes = test_random(seed) % 3000;
    p->sizes[n] = test_random(seed) % 10 == 0 ? 0 : 1 + test_random(seed) % 2000;
    p->locations[n].kind = test_random(seed) % 15 == 0 ? CLV__VNPU_OUTPUT : CLV__VNPU_SCRATCH;
    uint32_t life = (uint32_t)(test_random(seed) % longest);
    p->last_uses[n] = n + life < count ? n + life : count - 1;
  }
}

static void finish_program(made *m) {
  free(m->program.instructions);
  free(m->program.sizes);
  free(m->program.locations);
  free(m->program.last_uses);
  free(m->program.outputs);
}

typedef struct room {
  uint64_t offset, end;
  uint32_t first, last;
} room;

static uint32_t list_rooms(const clv_executable *p, room *rooms) {
  uint32_t count = 0, alignment = p->device->spec.alignment_bytes;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    uint64_t own = clv__align_up(instruction->scratch_bytes, alignment), size = clv__align_up(p->sizes[n], alignment);
    if (p->outputs[n] != CLV_NO_VALUE && p->locations[n].kind == CLV__VNPU_SCRATCH && size > 0)
      rooms[count++] = (room){p->locations[n].offset, p->locations[n].offset + size, n, p->last_uses[n]};
    if (own > 0) rooms[count++] = (room){instruction->scratch_offset, instruction->scratch_offset + own, n, n};
  }
  return count;
}

/* Whether the layout is valid, found by comparing every pair of pieces. */
static bool is_right(const clv_executable *p) {
  room *rooms = calloc(2 * p->node_count + 1, sizeof *rooms);
  uint32_t count = list_rooms(p, rooms);
  bool right = true;
  for (uint32_t i = 0; i < count && right; ++i) {
    right = rooms[i].end <= p->scratch_bytes && rooms[i].offset % p->device->spec.alignment_bytes == 0;
    for (uint32_t k = 0; k < i && right; ++k) {
      bool meet = rooms[i].first <= rooms[k].last && rooms[k].first <= rooms[i].last;
      right = !meet || rooms[i].end <= rooms[k].offset || rooms[k].end <= rooms[i].offset;
    }
  }
  free(rooms);
  return right;
}

static void layouts_are_right_and_small(void **state) {
  (void)state;
  static const uint32_t counts[] = {1, 2, 7, 60, 700, 5000}, lives[] = {1, 4, 90, 100000};
  uint64_t seed = 1;
  for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
    for (size_t l = 0; l < sizeof lives / sizeof *lives; ++l) {
      made m;
      clv_error error = {0};
      make_program(&m, counts[c], lives[l], &seed);
      assert_ok(clv__vnpu_layout_make(&m.program, &error), error);
      assert_true(is_right(&m.program));
      assert_ok(clv__vnpu_layout_check(&m.program, &error), error);
      room *rooms = calloc(2 * counts[c] + 1, sizeof *rooms);
      uint32_t count = list_rooms(&m.program, rooms);
      uint64_t most = 0;
      for (uint32_t n = 0; n < counts[c]; ++n) {
        uint64_t alive = 0;
        for (uint32_t i = 0; i < count; ++i)
          alive += rooms[i].first <= n && n <= rooms[i].last ? rooms[i].end - rooms[i].offset : 0;
        if (alive > most) most = alive;
      }
      assert_true(m.program.scratch_bytes >= most && m.program.scratch_bytes <= most + most / 2);
      free(rooms);
      finish_program(&m);
    }
  }
}

/* Moves one piece of a valid layout, or shrinks the scratch. The check must fail if, and only if, two pieces that are live at
 * the same time overlap, or a piece exceeds the scratch or is not aligned. */
static void the_check_sees_every_overlap(void **state) {
  (void)state;
  uint64_t seed = 2;
  int refused = 0, taken = 0;
  for (int round = 0; round < (int)test_some(3000); ++round) {
    made m;
    clv_error error = {0};
    make_program(&m, 1 + (uint32_t)(test_random(&seed) % 150), 1 + (uint32_t)(test_random(&seed) % 30), &seed);
    clv_executable *p = &m.program;
    assert_ok(clv__vnpu_layout_make(p, &error), error);
    uint32_t n = (uint32_t)(test_random(&seed) % m.count);
    uint64_t *offset = test_random(&seed) % 2 == 0 ? &p->locations[n].offset : &p->instructions[n].scratch_offset;
    switch (test_random(&seed) % 4) {
      case 0:
        *offset += 64 * (test_random(&seed) % 50);
        break;
      case 1:
        *offset = 64 * (test_random(&seed) % (p->scratch_bytes / 64 + 1));
        break;
      case 2:
        *offset ^= UINT64_C(1) << (test_random(&seed) % 64);
        break;
      default:
        if (p->scratch_bytes > 0) p->scratch_bytes -= 64;
    }
    clv_status status = clv__vnpu_layout_check(p, &error);
    bool right = is_right(p);
    if (right != (status == CLV_OK))
      fail_msg("round %d: %s: %s", round, right ? "a valid layout was rejected" : "an invalid layout was accepted",
               error.message);
    if (!right) assert_int_equal(status, CLV_INVALID_MODEL);
    ++*(right ? &taken : &refused);
    finish_program(&m);
  }
  assert_true(refused > (int)test_some(300) && taken > (int)test_some(300));
}

static void sizes_beyond_memory_are_refused(void **state) {
  (void)state;
  uint64_t seed = 3;
  made m;
  clv_error error = {0};
  make_program(&m, 20, 20, &seed);
  for (uint32_t n = 0; n < 20; ++n) {
    m.program.outputs[n] = n;
    m.program.locations[n].kind = CLV__VNPU_SCRATCH;
    m.program.sizes[n] = UINT64_MAX / 5;
  }
  assert_int_not_equal(clv__vnpu_layout_make(&m.program, &error), CLV_OK);
  m.program.sizes[3] = UINT64_MAX - 5;
  assert_int_equal(clv__vnpu_layout_make(&m.program, &error), CLV_TOO_LARGE);
  assert_int_not_equal(clv__vnpu_layout_check(&m.program, &error), CLV_OK);
  finish_program(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_are_right_and_small),
      cmocka_unit_test(the_check_sees_every_overlap),
      cmocka_unit_test(sizes_beyond_memory_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
