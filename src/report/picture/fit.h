/* Text that must fit into a box of a picture: how wide it will be, and what of it fits. */
#ifndef CLEAVE_REPORT_PICTURE_FIT_H
#define CLEAVE_REPORT_PICTURE_FIT_H

#include "base/text.h"

/* About as wide as the widest font that the pictures name draws it, in pixels; `size` is the font's. */
double clv__fit_width(const char *content, double size);
/* Appends `content`; the middle of what is wider than `width` pixels becomes "…". */
void clv__fit_append(clv__text *text, const char *content, double size, double width);

#endif
