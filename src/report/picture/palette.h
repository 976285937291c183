/* The colours of devices in pictures, by their position in the device list. */
#ifndef CLEAVE_REPORT_PICTURE_PALETTE_H
#define CLEAVE_REPORT_PICTURE_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct clv__colors {
  const char *lane;   /* the background of a lane */
  const char *fill;   /* of a box */
  const char *chip;   /* of a node in a box */
  const char *stroke; /* of a box and of titles */
} clv__colors;

enum { CLV__PALETTE_SIZE = 6 };

/* Returns the colours with an index from clv__palette_index(): `dark` ones for a dark background. The last colours, with index
 * CLV__PALETTE_SIZE, are for host memory, which has a lane of its own if no device of the list works in it. */
static inline const clv__colors *clv__palette(uint32_t index, bool dark) {
  static const clv__colors light[] = {
      {"#f4f8fe", "#e3edfc", "#c5dafa", "#2f66b5"}, {"#f3faf5", "#e0f3e6", "#bfe5cb", "#2a8048"},
      {"#fdf8ef", "#fbeed3", "#f7dca4", "#a8690b"}, {"#f8f4fd", "#eee5fb", "#dac6f6", "#7044b8"},
      {"#fdf3f5", "#fce3e8", "#f8c3cf", "#b63a5a"}, {"#f0f9f9", "#daf1f0", "#b3e3e0", "#1c7d78"},
      {"#f7f7f8", "#ececef", "#dcdde1", "#5b616b"},
  };
  static const clv__colors night[] = {
      {"#131b28", "#1a283f", "#27406a", "#84b2f4"}, {"#121e18", "#173024", "#20503a", "#79cf97"},
      {"#201b12", "#33291a", "#5a4520", "#e5b668"}, {"#1b1626", "#2a2140", "#46356d", "#bda0ee"},
      {"#22151a", "#3a1f29", "#652f42", "#f093ab"}, {"#111e1e", "#153130", "#1d5250", "#6fcbc5"},
      {"#1a1b1e", "#26282c", "#3a3d43", "#a7adb8"},
  };
  return &(dark ? night : light)[index > CLV__PALETTE_SIZE ? 0 : index];
}
/* `device` is a position in the device list, or UINT32_MAX for host memory. */
static inline uint32_t clv__palette_index(uint32_t device) {
  return device == UINT32_MAX ? (uint32_t)CLV__PALETTE_SIZE : device % CLV__PALETTE_SIZE;
}

#endif
