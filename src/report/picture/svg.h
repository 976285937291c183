/* Draws a plan as SVG: one lane per device, partitions as boxes, transfers as arrows between the lanes. diagram.h computes the
 * layout. */
#ifndef CLEAVE_REPORT_PICTURE_SVG_H
#define CLEAVE_REPORT_PICTURE_SVG_H

#include "base/text.h"
#include "report/picture/diagram.h"

/* Appends a complete SVG document, in light or dark colours as the viewer prefers. Small plans show every node, large plans one
 * box per partition. In very long plans, the middle is replaced by the number of omitted steps. */
void clv__report_svg(const clv_plan *plan, clv__text *text);

/* Appends the picture as an element for a web page, without head and colours, which the page provides. Boxes have the attribute
 * data-p (number of the partition), chips data-n (number of the node). Without `collapse`, draws all nodes or, if there are too
 * many, returns false and appends nothing. Also returns false if memory runs out, which sets text->failed. */
bool clv__svg_embed(const clv_plan *plan, bool collapse, clv__text *text);
/* Append CSS rules for the pictures: their colours, on a light or a dark background, and their fonts. */
void clv__svg_colors(bool dark, clv__text *text);
void clv__svg_fonts(clv__text *text);

/* Appends a title such as "resnet50.onnx on npu and cpu". */
void clv__plan_title(const clv_plan *plan, clv__text *text);

#endif
