/* What the writer of keys and the reader of differences share. */
#ifndef CLEAVE_EXECUTE_CAPTURE_KEY_OWN_H
#define CLEAVE_EXECUTE_CAPTURE_KEY_OWN_H

/* Constants up to here are parameters: what they say may decide what is launched. */
enum { CLV__KEY_SMALL_BYTES = 256 };

/* Of a value. */
enum {
  CLV__KEY_INPUT = 1,    /* enters a partition */
  CLV__KEY_OUTPUT = 2,   /* leaves one */
  CLV__KEY_CONSTANT = 4, /* known before the graph runs */
  CLV__KEY_CONTENT = 8,  /* a small one, whose content follows */
  CLV__KEY_CAPTURE = 16  /* of a body: comes from around it */
};

#endif
