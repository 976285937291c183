/* Each call of each backend slot fails once, in some small worlds: random models with devices (support/faults.h). Verification
 * finds a device that computes wrong values. */
#include "faults.h"

#include "execute/session.h"

/* ---- Each call ---- */

/* Plays one world again and again. In play k, call number k of the slot gets the fault `action`. Ends when the slot has fewer
 * than k calls. Returns the number of its calls. */
static uint64_t fail_each(uint64_t seed, bool no_fallback, interposer_slot slot, interposer_action action) {
  for (uint64_t at = 1;; ++at) {
    schedule s;
    schedule_draw(&s, seed, no_fallback);
    schedule_aim(&s, slot, action, at);
    if (!schedule_play(&s)) return at - 1;
  }
}

static bool must_fail(interposer_slot slot) {
  bool must = false;
  for (size_t i = 0; i < FAULT_SLOTS; ++i) must = must || fault_slots[i] == slot;
  return must;
}

/* Tries worlds until the slot was called in enough of them. Some slots are rarely called. */
static void each_call_of(interposer_slot slot, interposer_action action, bool no_fallback) {
  uint32_t wanted = test_some(12), worlds = 0;
  for (uint64_t seed = 200000; seed < 200000 + 8 * wanted && worlds < wanted; ++seed)
    worlds += fail_each(seed, no_fallback, slot, action) > 0;
  if (must_fail(slot) && worlds < wanted)
    fail_msg("%s was called in only %u worlds, expected %u", interposer_slot_name(slot), worlds, wanted);
}

static void each_call(bool no_fallback) {
  for (interposer_slot slot = 0; slot < INTERPOSER_SLOT_COUNT; ++slot) {
    if (!interposer_slot_fails(slot)) continue;
    each_call_of(slot, INTERPOSER_FAIL, no_fallback);
    if (interposer_slot_enqueues(slot)) each_call_of(slot, INTERPOSER_FAIL_LATER, no_fallback);
  }
  schedule_unwatch();
}

static void each_call_without_fallback(void **state) {
  (void)state;
  each_call(true);
}

static void each_call_with_fallback(void **state) {
  (void)state;
  each_call(false);
}

/* ---- Wrong values ---- */

static interposer_fate spoil_one(void *user_data, const interposer_call *call) {
  uint64_t *left = user_data;
  if (call->slot != INTERPOSER_execute || *left == 0 || --*left > 0) return (interposer_fate){0};
  return (interposer_fate){.action = INTERPOSER_CORRUPT};
}

/* Lets each partition of the device compute wrong values, one partition per verification, which must name it. Partitions
 * without outputs are left out. Returns the number of the others. */
static uint32_t spoil_each(world *w, clv_session *session, uint32_t device) {
  clv_error error = {0};
  uint64_t at = 0;
  uint32_t caught = 0;
  for (uint32_t p = 0; p < w->plan->partition_count; ++p) {
    clv__mismatch mismatch;
    if (w->plan->partitions[p].device != world_device(w, device) || w->plan->partitions[p].is_hosted) continue;
    ++at;
    if (w->plan->partitions[p].view->output_count == 0) continue; /* without outputs, nothing can be wrong */
    uint64_t left = at;
    interposer_set_hook(w->interposers[device], spoil_one, &left);
    assert_ok(clv__session_verify(session, w->inputs[0], w->input_count, NULL, &mismatch, &error), error);
    if (left != 0) world_complain(w, "partition %u was not run", p);
    if (mismatch.partition != p) world_complain(w, "partition %u is wrong, but verification names %u", p, mismatch.partition);
    ++caught;
  }
  interposer_set_hook(w->interposers[device], NULL, NULL);
  return caught;
}

static void nonsense_is_caught(void **state) {
  (void)state;
  uint32_t caught = 0;
  for (uint64_t seed = 300000; seed < 300000 + test_some(200); ++seed) {
    clv_error error = {0};
    schedule s;
    world w;
    schedule_watch(seed);
    schedule_draw(&s, seed, false);
    s.from = STAGE_COUNT;
    assert_true(world_open(&w, &s));
    clv_session *session = machine_session(w.plan);
    for (uint32_t k = 0; k < FAULTY_DEVICES; ++k) {
      if (w.interposers[k] != NULL) caught += spoil_each(&w, session, k);
    }
    assert_ok(world_run(&w, session, 0, &error), error);
    clv_session_destroy(session);
    world_close(&w);
    if (w.problem[0] != '\0') fail_msg("seed %llu: %s", (unsigned long long)seed, w.problem);
  }
  schedule_unwatch();
  assert_true(caught >= test_some(200));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nonsense_is_caught),
      cmocka_unit_test(each_call_without_fallback),
      cmocka_unit_test(each_call_with_fallback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
