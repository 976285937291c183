/* The sections, in the order in which they run: X(name, what it checks). */
#ifndef CLEAVE_CHECK_SECTIONS_H
#define CLEAVE_CHECK_SECTIONS_H

#include "check/check.h"

#define CLV__CHECK_SECTIONS(X)                                                                              \
  X(life, "the backend's table, opening and closing, options, device information")                          \
  X(operators, "every supported node compiles and computes correctly; every rejection has a reason")        \
  X(boundaries, "values inside a fused group that other nodes read are written")                            \
  X(aliasing, "one buffer as two inputs, views as outputs, operands at offsets")                            \
  X(shapes, "instances of one executable with odd, single, empty and large sizes")                          \
  X(concurrency, "instances on streams of several threads; an instance enqueued again before it completes") \
  X(order, "events across streams, notifications, copies of any size and offset, reported failures")        \
  X(memory, "limits, alignment; only outputs are written, not inputs or adjacent memory")                   \
  X(executables, "saving and loading, here and on the reopened device; damaged files")                      \
  X(capture, "a capture computes the same as its executions, with other data and in other memory")          \
  X(resize, "an instance resized to other shapes: correct, or not supported and unchanged")                 \
  X(timing, "reported times of steps: each node exists and is named once; results do not change")           \
  X(errors, "invalid calls fail with a status and an error text")                                           \
  X(planning, "estimates, preferences and groups are valid for the planner")

#define CLV__CHECK_DECLARE(name, help) void clv__check_##name(clv__check *check);
CLV__CHECK_SECTIONS(CLV__CHECK_DECLARE)
#undef CLV__CHECK_DECLARE

#endif
