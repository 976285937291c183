/* Writes the CSS rules for the colours and fonts of the pictures. See svg.h. */
#include <string.h>

#include "report/picture/palette.h"
#include "report/picture/svg.h"

void clv__svg_fonts(clv__text *text) {
  clv__text_append(text,
                   "svg text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; }\n"
                   ".title { font-size: 20px; font-weight: 600; }\n"
                   ".tile { font-size: 16px; font-weight: 600; }\n"
                   ".sub { font-size: 12px; }\n"
                   ".lane-name { font-size: 15px; font-weight: 600; }\n"
                   ".name { font-size: 13px; font-weight: 600; }\n"
                   ".small, .right, .label { font-size: 11.5px; }\n"
                   ".op { font-size: 11.5px; font-weight: 600; }\n"
                   ".chip-name, .mark { font-size: 10.5px; }\n"
                   ".right { text-anchor: end; }\n"
                   ".label, .middle, .chip-text { text-anchor: middle; }\n"
                   ".middle { font-size: 13px; }\n"
                   ".wire, .edge { fill: none; stroke-linejoin: round; }\n"
                   ".wire { stroke-width: 1.5; }\n"
                   ".edge { stroke-width: 1.1; }\n"
                   ".own { stroke-dasharray: 5 4; }\n"
                   ".shared { stroke-dasharray: 1.5 3; }\n"
                   ".box { stroke-width: 1.2; }\n"
                   ".chip { stroke-width: 0.8; }\n"
                   ".pill { fill: none; stroke-width: 0.8; stroke-dasharray: 3 2.5; }\n");
}

void clv__svg_colors(bool dark, clv__text *text) {
  const char *paper = dark ? "#0f1115" : "#ffffff", *ink = dark ? "#e8eaee" : "#23272e", *soft = dark ? "#a3a9b4" : "#5b616b";
  clv__text_append(text,
                   ".paper { fill: %s; }\n"
                   "svg text { fill: %s; }\n"
                   "svg .sub, svg .mark, svg .chip-name, svg .right, svg .middle { fill: %s; }\n"
                   ".wire, .edge { stroke: %s; }\n"
                   ".tip, .dot { fill: %s; }\n"
                   ".rule { stroke: %s; }\n",
                   paper, ink, soft, soft, soft, dark ? "#2c3038" : "#e3e5e9");
  for (uint32_t i = 0; i <= CLV__PALETTE_SIZE; ++i) {
    const clv__colors *c = clv__palette(i, dark);
    clv__text_append(text,
                     ".lane.d%u { fill: %s; }\n.box.d%u { fill: %s; stroke: %s; }\n.chip.d%u { fill: %s; stroke: %s; }\n"
                     ".pill.d%u { stroke: %s; }\nsvg .ink.d%u, .bar.d%u { fill: %s; }\n",
                     i, c->lane, i, c->fill, c->stroke, i, c->chip, c->stroke, i, c->stroke, i, i, c->stroke);
  }
}
