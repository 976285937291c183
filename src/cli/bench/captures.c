/* Reports captures for `cleave bench`: how each partition was issued in the last run, and the devices' counters. */
#include "cli/bench/bench.h"
#include "cli/json.h"
#include "execute/capture/capture.h"
#include "report/label.h"

static const char *state_word(clv__issue issue) {
  static const char *const words[] = {"none", "eager", "captured", "replayed"};
  return words[issue];
}

/* Finds how the partition was issued. Returns false if this is unknown, for example because the session removed a device and now
 * runs another plan. */
static bool issue_of(const bench *b, uint32_t partition, clv__issue_info *info) {
  if (clv__session_plan(b->session) != b->job.plan) return false;
  clv__session_issue(b->session, partition, info);
  return info->issue != CLV__ISSUE_NONE;
}

json_t *bench_issue_json(const bench *b, uint32_t partition) {
  clv__issue_info info;
  if (!issue_of(b, partition, &info)) return json_null();
  json_t *object = json_object();
  json_object_set_new(object, "state", json_string(state_word(info.issue)));
  if (info.issue == CLV__ISSUE_EAGER) json_object_set_new(object, "reason", json_string(info.why));
  return object;
}

void bench_issue_text(const bench *b, uint32_t partition, clv__text *text) {
  clv__issue_info info;
  if (!issue_of(b, partition, &info)) return;
  clv__text_append(text, "%s", state_word(info.issue));
  if (info.issue == CLV__ISSUE_EAGER) clv__text_append(text, ": %s", info.why);
}

/* Returns whether the host time that replays save is known. A synchronous device executes its kernels in the caller's thread, so
 * the time to issue them cannot be separated from the time to execute them. */
static bool knows_saved(const bench *b, uint32_t device) {
  return !b->job.devices->items[device].info.is_synchronous;
}

json_t *bench_captures_json(const bench *b) {
  json_t *object = json_object();
  for (uint32_t d = 0; d < b->job.devices->count; ++d) {
    clv__capture_counters c;
    if (!clv__session_captures(b->session, d, &c)) continue;
    const struct {
      const char *name;
      uint64_t value;
    } numbers[] = {{"hits", c.hits},         {"misses", c.misses},   {"captures", c.captures},     {"evictions", c.evictions},
                   {"failures", c.failures}, {"patches", c.patches}, {"recaptures", c.recaptures}, {"entries", c.entries},
                   {"bytes", c.bytes}};
    json_t *device = json_object();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
      json_object_set_new(device, numbers[i].name, json_integer((json_int_t)numbers[i].value));
    }
    json_object_set_new(device, "saved_ms", knows_saved(b, d) ? cli_json_real((double)c.saved_ns / 1e6) : json_null());
    json_object_set_new(object, b->job.devices->items[d].name, device);
  }
  return object;
}

void bench_write_captures(const bench *b, clv__text *text) {
  for (uint32_t d = 0; d < b->job.devices->count; ++d) {
    clv__capture_counters c;
    char size[CLV__LABEL_BYTES];
    if (!clv__session_captures(b->session, d, &c) || c.captures + c.failures == 0) continue;
    clv__text_append(text, "captures on %s: %llu made, %llu kept (%s), launched in %llu of %llu runs",
                     b->job.devices->items[d].name, (unsigned long long)c.captures, (unsigned long long)c.entries,
                     clv__label_size(c.bytes, size), (unsigned long long)(c.hits + c.captures),
                     (unsigned long long)(c.hits + c.misses));
    if (c.failures > 0) clv__text_append(text, ", %llu failed", (unsigned long long)c.failures);
    if (knows_saved(b, d)) clv__text_append(text, "; %.3f ms of host time saved", (double)c.saved_ns / 1e6);
    clv__text_append(text, "\n");
  }
}
