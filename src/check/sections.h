/* The sections, in the order in which they run: X(name, what it checks). */
#ifndef CLEAVE_CHECK_SECTIONS_H
#define CLEAVE_CHECK_SECTIONS_H

#include "check/check.h"

#define CLV__CHECK_SECTIONS(X)                                                                     \
  X(life, "the table, opening and closing, options, what a device says of itself")                 \
  X(operators, "every node it says yes to compiles and is right; every no has a reason")           \
  X(boundaries, "values inside a fused group that are read elsewhere are written")                 \
  X(aliasing, "one buffer as two inputs, views as outputs, operands at offsets")                   \
  X(shapes, "one executable, instances of odd, single, empty and large sizes")                     \
  X(concurrency, "instances on streams of several threads; one enqueued again before it is over")  \
  X(order, "events across streams, notices, copies of any size and place, failures that are told") \
  X(memory, "limits, alignment; inputs are not written, outputs are, nothing beside them")         \
  X(executables, "saved and loaded again, here and on the device opened anew; damaged files")      \
  X(capture, "a capture does what its executions would, with other data and in other memory")      \
  X(resize, "an instance for other shapes: right, or not supported and as it was")                 \
  X(timing, "what steps take: of nodes that are there, once each, and results as without it")      \
  X(errors, "what cannot be done is refused with a status and a text")                             \
  X(planning, "estimates, wishes and groups that the planner can use")

#define CLV__CHECK_DECLARE(name, help) void clv__check_##name(clv__check *check);
CLV__CHECK_SECTIONS(CLV__CHECK_DECLARE)
#undef CLV__CHECK_DECLARE

#endif
