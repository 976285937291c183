/* See page.h. Writes the totals, which need no script. page/model.js makes the picture and the explanations. */
#include "report/model/page.h"

#include <stdio.h>

#include "report/label.h"
#include "report/model/data.h"
#include "report/page/html_data.h"
#include "report/page/page.h"

static void append_header(const clv__model *model, clv__text *text) {
  char label[CLV__LABEL_BYTES], number[CLV__LABEL_BYTES], value[3 * CLV__LABEL_BYTES];
  clv__text_append(text, "<header>\n<h1>");
  clv__label_xml(text, model->title);
  clv__text_append(text, "</h1>\n<p class=\"soft\" id=\"about\"></p>\n<dl class=\"tiles\">\n");
  clv__html_tile(text, "nodes", clv__label_grouped(model->graph->node_count, label));
  clv__html_tile(text, "parameters", clv__label_grouped(model->parameter_count, label));
  clv__html_tile(text, "size of the weights", clv__label_size(model->parameter_bytes, label));
  clv__label_count(model->total_flops, number);
  snprintf(value, sizeof value, "%s%s", model->flops_complete ? "" : "≥ ", number);
  if (!model->flops_complete && model->total_flops <= 0) snprintf(value, sizeof value, "depends on sizes");
  clv__html_tile(text, "FLOP per run", value);
  clv__text_append(text, "</dl>\n</header>\n");
}

static void append_body(clv__text *text) {
  clv__text_append(
      text,
      "<main>\n<div>\n<section aria-label=\"graph\">\n"
      "<div class=\"bar-of-tools\"><h2 id=\"shown\">Graph</h2>\n"
      "<button type=\"button\" id=\"back\" hidden>← outer graph</button>\n"
      "<span class=\"colors\" id=\"colors\" role=\"group\" aria-label=\"colour nodes by device\"></span>\n"
      "<button type=\"button\" id=\"farther\" aria-label=\"zoom out\">−</button>\n"
      "<button type=\"button\" id=\"fit\">fit</button>\n"
      "<button type=\"button\" id=\"closer\" aria-label=\"zoom in\">+</button></div>\n"
      "<p class=\"soft\" id=\"legend\"></p>\n"
      "<div class=\"frame\"><div class=\"picture\" tabindex=\"0\" role=\"application\" aria-label=\"graph; arrow keys follow the "
      "edges\"></div><svg class=\"map\" aria-hidden=\"true\" preserveAspectRatio=\"none\"></svg></div>\n"
      "<p class=\"soft\">Click a node or an edge. Keys: <kbd>↑</kbd> <kbd>↓</kbd> follow the edges of the chosen node, "
      "<kbd>←</kbd> <kbd>→</kbd> go to the nodes beside it; <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom; <kbd>/</kbd> "
      "searches.</p>\n</section>\n"
      "<section aria-label=\"operators\"><div class=\"bar-of-tools\"><h2>Operators</h2></div><div class=\"wide\" "
      "id=\"operators\"></div></section>\n"
      "<section aria-label=\"refusals\" id=\"refusals\" hidden><div class=\"bar-of-tools\"><h2>What the devices cannot "
      "run</h2></div><div class=\"wide\"></div></section>\n"
      "</div>\n<aside>\n"
      "<div class=\"search\" role=\"search\"><input id=\"search\" type=\"search\" placeholder=\"Find a node or a value\" "
      "aria-label=\"find a node or a value\" role=\"combobox\" aria-expanded=\"false\" aria-controls=\"results\" "
      "autocomplete=\"off\" spellcheck=\"false\">\n"
      "<ul class=\"results\" id=\"results\" role=\"listbox\" hidden></ul></div>\n"
      "<div class=\"details\" aria-live=\"polite\"></div>\n</aside>\n</main>\n");
}

clv_status clv__report_model(const clv__model *model, clv__text *text, clv_error *error) {
  clv__html_head(model->title, clv__page_model_style, text);
  append_header(model, text);
  append_body(text);
  clv__text_append(text, "<script type=\"application/json\" id=\"model\">");
  CLV__TRY(clv__model_data(model, text, error));
  clv__text_append(text, "</script>\n<script>\n%s%s</script>\n</body>\n</html>\n", clv__page_write_script,
                   clv__page_model_script);
  return text->failed ? clv__error_memory(error, text->size_bytes) : CLV_OK;
}
