/* The sections, in the order in which they run: X(name, what it checks). */
#ifndef CLEAVE_CHECK_SECTIONS_H
#define CLEAVE_CHECK_SECTIONS_H

#include "check/check.h"

#define CLV__CHECK_SECTIONS(X)                                                                              \
  X(life, "the backend's function table, opening and closing, options, device information")                 \
  X(operators, "every supported node compiles and computes correctly; every rejection has a reason")        \
  X(boundaries, "values that other nodes read are written, even if computed inside a fused group")          \
  X(aliasing, "one buffer as two inputs, views as outputs, operands at offsets in one buffer")              \
  X(shapes, "instances of one executable with sizes of 0 and 1, odd sizes and large sizes")                 \
  X(concurrency, "instances on streams of several threads; an instance enqueued again before it completes") \
  X(order, "events across streams, notifications, copies of any size and offset, reported failures")        \
  X(stop, "a stopped stream skips work or completes it, says which, and is usable again")                   \
  X(memory, "limits, alignment; only outputs are written, not inputs or adjacent memory")                   \
  X(executables, "saving, and loading before and after the device is reopened; damaged files")              \
  X(capture, "a replayed capture computes the same as direct execution, with other data and memory")        \
  X(resize, "an instance resized to other shapes computes correctly, or rejects them and is unchanged")     \
  X(timing, "timed steps name existing nodes, and each node once; timing does not change results")          \
  X(errors, "invalid calls fail with a status and an error text")                                           \
  X(planning, "estimates, preferences and node groups for the planner are valid")

#define CLV__CHECK_DECLARE(name, help) void clv__check_##name(clv__check *check);
CLV__CHECK_SECTIONS(CLV__CHECK_DECLARE)
#undef CLV__CHECK_DECLARE

#endif
