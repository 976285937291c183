/* Shared by the writer of keys and the reader of differences. */
#ifndef CLEAVE_EXECUTE_CAPTURE_KEY_OWN_H
#define CLEAVE_EXECUTE_CAPTURE_KEY_OWN_H

/* Constants up to this size are parameters: their content may determine what is launched. */
enum { CLV__KEY_SMALL_BYTES = 256 };

/* Flags of a value. */
enum {
  CLV__KEY_INPUT = 1,    /* it enters a partition */
  CLV__KEY_OUTPUT = 2,   /* it leaves a partition */
  CLV__KEY_CONSTANT = 4, /* known before the graph runs */
  CLV__KEY_CONTENT = 8,  /* a small constant, followed by its content */
  CLV__KEY_CAPTURE = 16  /* in a body: it comes from outside the body */
};

#endif
