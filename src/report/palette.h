/* The colours of devices in pictures, by their order in the list. */
#ifndef CLEAVE_REPORT_PALETTE_H
#define CLEAVE_REPORT_PALETTE_H

#include <stdint.h>

typedef struct clv__colors {
  const char *lane;   /* behind everything */
  const char *fill;   /* of a box */
  const char *stroke; /* of a box, and of titles */
} clv__colors;

static inline const clv__colors *clv__palette(uint32_t device) {
  static const clv__colors colors[] = {
      {"#f3f7fd", "#dbe8fb", "#2f66b5"}, {"#f2f9f4", "#d9f0e0", "#2a8048"}, {"#fdf8ef", "#fbe9c8", "#a8690b"},
      {"#f8f4fd", "#e8dcf9", "#7044b8"}, {"#fdf3f5", "#fbd9e0", "#b63a5a"}, {"#f0f9f9", "#d2efee", "#1c7d78"},
  };
  return &colors[device % (sizeof colors / sizeof *colors)];
}

/* Host memory, where no device of the list works in it. */
static inline const clv__colors *clv__palette_host(void) {
  static const clv__colors grey = {"#f7f7f8", "#e9eaec", "#5b616b"};
  return &grey;
}

#endif
