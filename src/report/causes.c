/* See causes.h. */
#include "report/causes.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *cause, *meaning;
} meanings[] = {
    {"const", "its outputs are known when planning"},
    {"usr", "fixed by the user"},
    {"view", "moves no data: it stays where its source is"},
    {"first", "the first device of the list supports it"},
    {"supported", "the first device of the list that supports it"},
    {"memory", "an earlier device has too little memory"},
    {"file", "as the plan file says"},
    {"1.dst", "its result lives there already"},
    {"1.inp", "it reads inputs of the graph"},
    {"1.wgt0", "its weight lives there"},
    {"1.off", "its weight lives in host memory, and the device wants the node all the same"},
    {"2.down", "follows the node before it"},
    {"2.up", "joins the node after it"},
    {"3.best", "most of what it reads is there"},
    {"3.upg", "raised to a device of higher priority with the same memory"},
    {"4.vsrc", "moves no data: it stays where its source is"},
    {"4.cur", "its source has no place yet: it stays with the part it is in"},
};

const char *clv__cause_meaning(const char *cause) {
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; ++i) {
    if (strcmp(meanings[i].cause, cause) == 0) return meanings[i].meaning;
  }
  return NULL;
}
