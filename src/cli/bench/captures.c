/* Reports captures for `cleave bench`: how each partition was issued in the last run. */
#include "cli/bench/bench.h"
#include "cli/json.h"
#include "execute/capture/capture.h"

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
