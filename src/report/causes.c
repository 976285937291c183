/* See causes.h. */
#include "report/causes.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A cause that ends in `#` here ends in a number in plans. */
static const struct {
  const char *cause, *meaning;
} meanings[] = {
    {"const", "its outputs are computed at plan time"},
    {"usr", "fixed by the user"},
    {"view", "moves no data, so it stays where its source is, or where its result is read"},
    {"file", "set by the plan file"},
    {"first", "the first device of --devices supports it"},
    {"supported", "the first device of --devices that supports it"},
    {"only", "the only device that can run it"},
    {"single", "all nodes are on one device"},
    {"cut", "least predicted time, counting nodes, transfers and fusion"},
    {"back", "moved back: with launch costs, a partition boundary here costs more than it gains"},
    {"load", "moved so that devices work at the same time"},
    {"lost", "its device was removed"},
    {"memory", "the better device has too little memory"},
    {"claim", "its device claimed it as part of a group"},
    {"run", "part of a run of consecutive nodes that its device supports"},
    {"rest", "no other device takes it"},
    {"ready", "it was ready when it was its device's turn"},
    {"1.dst", "its result is assigned to that device's memory"},
    {"1.inp", "it reads graph inputs, which live there"},
    {"1.wgt#", "a weight that it reads lives there"},
    {"1.off", "its weight lives in host memory, but the device prefers to run the node"},
    {"2a.down", "follows the previous node, to a device other than the host"},
    {"2b.up", "joins the next node, on a device other than the host"},
    {"2c.down", "follows the previous node"},
    {"2d.up", "joins the next node"},
    {"3.best", "most of its inputs are there"},
    {"3.upg", "moved to a device of higher priority with the same memory"},
    {"4.vsrc", "moves no data, so it stays where its source is"},
    {"4.cur", "no rule placed it, so it stays in the surrounding partition"},
    {"5.cur", "a view at the start of a partition joins that partition"},
};

static bool is_meant(const char *pattern, const char *cause) {
  size_t length = strcspn(pattern, "#");
  if (strncmp(pattern, cause, length) != 0) return false;
  return pattern[length] == '#' ? strspn(cause + length, "0123456789") == strlen(cause + length) : cause[length] == '\0';
}

const char *clv__cause_meaning(const char *cause) {
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; ++i) {
    if (is_meant(meanings[i].cause, cause)) return meanings[i].meaning;
  }
  return NULL;
}
