/* Fits text into the boxes of a picture: estimates its width and shortens it. */
#ifndef CLEAVE_REPORT_PICTURE_FIT_H
#define CLEAVE_REPORT_PICTURE_FIT_H

#include "base/text.h"

/* Returns the approximate width of a text in pixels, in the widest font of the pictures. `size` is the font size in pixels. */
double clv__fit_width(const char *content, double size);
/* Appends `content`. If it is wider than `width` pixels, "…" replaces its middle. */
void clv__fit_append(clv__text *text, const char *content, double size, double width);

#endif
