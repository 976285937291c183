/* Draws a plan (diagram.h): one lane per device, partitions as boxes, transfers as arrows between the lanes. */
#ifndef CLEAVE_REPORT_PICTURE_SVG_H
#define CLEAVE_REPORT_PICTURE_SVG_H

#include "base/text.h"
#include "report/picture/diagram.h"

/* Appends a complete SVG document. Small plans show every node; large plans show one box per partition. For very many steps
 * the middle is omitted and counted. */
void clv__report_svg(const clv_plan *plan, clv__text *text);

/* For pages: appends the same picture as an element without head and colours, which the page provides. Boxes have the
 * attribute data-p (number of the partition), chips data-n (number of the node). Without `collapse`, draws all nodes; returns
 * false and appends nothing if there are too many. */
bool clv__svg_embed(const clv_plan *plan, bool collapse, clv__text *text);
/* Appends one partition's nodes as an element. */
void clv__svg_partition(clv__boxes *boxes, uint32_t partition, clv__text *text);
/* Appends rules for the classes of the pictures; with `dark`, the rules for a dark background. */
void clv__svg_colors(bool dark, clv__text *text);
void clv__svg_fonts(clv__text *text);

/* "resnet50.onnx on npu and cpu". */
void clv__plan_title(const clv_plan *plan, clv__text *text);

#endif
