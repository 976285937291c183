/* Declarations shared by the files that draw a picture: svg.c, svg_head.c and svg_box.c. */
#ifndef CLEAVE_REPORT_PICTURE_SVG_PARTS_H
#define CLEAVE_REPORT_PICTURE_SVG_PARTS_H

#include "base/text.h"
#include "report/picture/diagram.h"

enum { CLV__SVG_MARGIN = 28 };
#define CLV__SVG_SMALL 11.5 /* font size of most texts */
#define CLV__SVG_BOLD 1.1   /* width of bold text relative to normal text */

typedef struct clv__picture {
  const clv_plan *plan;
  clv__text *text;
  clv__diagram diagram;
} clv__picture;

/* Appends a text, shortened to at most `width` pixels. `style` is its CSS class, and `size` the font size of this class. */
void clv__svg_text(clv__text *text, double x, double y, const char *style, double size, double width, const char *content);
/* Call it after the content of `text` was appended to `into`. Frees `text`. If memory ran out for `text`, sets into->failed. */
void clv__svg_finish_text(clv__text *into, clv__text *text);
/* Appends a line through `points`, shifted by (dx, dy). Diagonal segments that lead down are drawn as curves, all others
 * straight, with rounded corners. */
void clv__svg_path(clv__text *text, const char *style, const double *points, uint32_t count, double dx, double dy, bool arrow);

/* svg_head.c: title, figures, legend. */
double clv__svg_head_height(const clv_plan *plan);
void clv__svg_head(clv__picture *picture, double width);
/* svg_box.c: a partition's box, and the nodes in it. */
void clv__svg_box(clv__picture *picture, const clv__item *item);
void clv__svg_content(const clv_plan *plan, const clv__box *box, double dx, double dy, clv__text *text);
/* Returns the left edge of an item's column. */
static inline double clv__svg_column_left(const clv__diagram *d, const clv__item *item) {
  return CLV__SVG_MARGIN + item->column * d->column_width;
}

#endif
