/* See causes.h. */
#include "report/causes.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A cause that ends in `#` here ends in a number in plans. */
static const struct {
  const char *cause, *meaning;
} meanings[] = {
    {"const", "its outputs are known when planning"},
    {"usr", "fixed by the user"},
    {"view", "moves no data: it stays where its source is, or where it is read"},
    {"file", "as the plan file says"},
    {"first", "the first device of the list supports it"},
    {"supported", "the first device of the list that supports it"},
    {"only", "the only device that can run it"},
    {"single", "everything on one device"},
    {"cut", "the least time of nodes, transfers and fusion puts it there"},
    {"back", "given back: the boundary that the least time would draw here costs more, launches counted, than it gains"},
    {"load", "moved, so that devices work at the same time"},
    {"lost", "its device was taken out"},
    {"memory", "a device that would be better has too little memory"},
    {"claim", "its device claimed it, in a group of its own choice"},
    {"run", "part of a run of nodes that its device takes"},
    {"rest", "no delegate takes it"},
    {"ready", "its turn came when its device ran all it could"},
    {"1.dst", "its result lives there already"},
    {"1.inp", "it reads inputs of the graph"},
    {"1.wgt#", "a weight that it reads lives there"},
    {"1.off", "its weight lives in host memory, and the device wants the node all the same"},
    {"2a.down", "follows the node before it, to a device"},
    {"2b.up", "joins the node after it, on a device"},
    {"2c.down", "follows the node before it"},
    {"2d.up", "joins the node after it"},
    {"3.best", "most of what it reads is there"},
    {"3.upg", "raised to a device of higher priority with the same memory"},
    {"4.vsrc", "moves no data: it stays where its source is"},
    {"4.cur", "nothing placed it: it stays with the part it is in"},
    {"5.cur", "a view at the begin of a part: it joins it"},
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
