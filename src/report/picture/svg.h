/* A plan as a picture (diagram.h): a lane a device, partitions as boxes, transfers as arrows between the lanes. */
#ifndef CLEAVE_REPORT_PICTURE_SVG_H
#define CLEAVE_REPORT_PICTURE_SVG_H

#include "base/text.h"
#include "report/picture/diagram.h"

/* Appends a whole SVG document. Small plans show every node; large ones a box a partition; of very many steps the middle is left
 * out and counted. */
void clv__report_svg(const clv_plan *plan, clv__text *text);

/* For pages: the same picture, without its head and colours (the page has both), as an element. Boxes have data-p (partition),
 * chips data-n (node). Not `collapse`: a picture of all nodes; false, and nothing is appended, where there are too many. */
bool clv__svg_embed(const clv_plan *plan, bool collapse, clv__text *text);
/* One partition's nodes, as an element. */
void clv__svg_partition(clv__boxes *boxes, uint32_t partition, clv__text *text);
/* Rules for the classes of the pictures; `dark` alone makes those of a dark background. */
void clv__svg_colors(bool dark, clv__text *text);
void clv__svg_fonts(clv__text *text);

/* "resnet50.onnx on npu and cpu". */
void clv__plan_title(const clv_plan *plan, clv__text *text);

#endif
