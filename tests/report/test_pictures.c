/* Tests the pictures of plans (layers, boxes, lanes and lines), the SVG documents, and the web page with its data. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "plan/compare.h"
#include "planned.h"
#include "report/label.h"
#include "report/page/html.h"
#include "report/page/html_data.h"
#include "report/picture/layers.h"
#include "report/picture/svg.h"
#include "report/steps.h"

/* ---- Layers ---- */

typedef struct random_layers {
  uint32_t node_count, edge_count, from[400], to[400];
  double widths[120];
} random_layers;

static void make_layers_input(random_layers *r, uint64_t *seed) {
  r->node_count = 1 + (uint32_t)(test_random(seed) % 120);
  r->edge_count = 0;
  uint32_t reach =
      1 + (uint32_t)(test_random(seed) % (test_random(seed) % 4 == 0 ? 119 : 8)); /* one graph in four may have long edges */
  for (uint32_t v = 0; v < r->node_count; ++v) {
    r->widths[v] = 20 + (double)(test_random(seed) % 160);
    uint32_t edges = v == 0 ? 0 : (uint32_t)(test_random(seed) % 4);
    for (uint32_t e = 0; e < edges && r->edge_count < 400; ++e) {
      uint32_t back = 1 + (uint32_t)(test_random(seed) % reach);
      r->from[r->edge_count] = back > v ? 0 : v - back;
      r->to[r->edge_count++] = v;
    }
  }
}

/* Edges lead down, bends are in the ranks between the ends of their edge, and nodes and bends of a rank do not overlap. */
static void test_layers(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int round = 0; round < 300; ++round) {
    random_layers r;
    make_layers_input(&r, &seed);
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__layers_input input = {r.node_count, r.edge_count, r.widths, r.from, r.to, 14};
    clv__layers layers;
    assert_true(clv__layers_make(&input, &arena, &layers));
    for (uint32_t e = 0; e < r.edge_count; ++e) {
      uint32_t span = layers.ranks[r.to[e]] - layers.ranks[r.from[e]],
               bends = layers.bend_offsets[e + 1] - layers.bend_offsets[e];
      assert_true(layers.ranks[r.to[e]] > layers.ranks[r.from[e]]);
      assert_true(bends == span - 1 || (bends == 0 && span > 20));
      for (uint32_t b = layers.bend_offsets[e]; b < layers.bend_offsets[e + 1]; ++b) {
        uint32_t rank = layers.ranks[r.from[e]] + 1 + b - layers.bend_offsets[e];
        for (uint32_t v = 0; v < r.node_count; ++v) { /* the edge does not pass through a node */
          if (layers.ranks[v] == rank) assert_true(fabs(layers.x[v] - layers.bends[b]) >= r.widths[v] / 2);
        }
      }
    }
    for (uint32_t v = 0; v < r.node_count; ++v) {
      assert_true(layers.ranks[v] < layers.rank_count);
      assert_true(layers.x[v] - r.widths[v] / 2 >= -1e-6 && layers.x[v] + r.widths[v] / 2 <= layers.width + 1e-6);
      for (uint32_t w = 0; w < v; ++w) {
        if (layers.ranks[v] != layers.ranks[w]) continue;
        assert_true(fabs(layers.x[v] - layers.x[w]) >= (r.widths[v] + r.widths[w]) / 2 + 14 - 1e-6);
      }
    }
    clv__arena_finish(&arena);
  }
}

/* A chain is straight, and a diamond symmetric. */
static void test_straight(void **state) {
  (void)state;
  const double widths[] = {40, 90, 40, 120, 60, 60, 50};
  const uint32_t from[] = {0, 1, 2, 3, 3, 4, 5}, to[] = {1, 2, 3, 4, 5, 6, 6};
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv__layers_input input = {7, 7, widths, from, to, 14};
  clv__layers layers;
  assert_true(clv__layers_make(&input, &arena, &layers));
  for (uint32_t v = 1; v < 4; ++v) assert_true(fabs(layers.x[v] - layers.x[0]) < 1);
  assert_true(fabs((layers.x[4] + layers.x[5]) / 2 - layers.x[3]) < 1 && fabs(layers.x[6] - layers.x[3]) < 1);
  clv__arena_finish(&arena);
}

/* ---- Diagrams ---- */

static bool apart(double a, double a_size, double b, double b_size) {
  return a + a_size <= b + 1e-6 || b + b_size <= a + 1e-6;
}

/* Checks that chips are inside their box and do not overlap, and that wires begin and end at chips. */
static void check_box(const clv__box *box) {
  for (uint32_t i = 0; i < box->chip_count; ++i) {
    const clv__chip *chip = &box->chips[i];
    double left = chip->x - chip->width / 2;
    assert_true(left >= 0 && left + chip->width <= box->width && chip->y >= 0 && chip->y + CLV__CHIP_HEIGHT <= box->height);
    for (uint32_t k = 0; k < i; ++k) {
      const clv__chip *other = &box->chips[k];
      assert_true(apart(left, chip->width, other->x - other->width / 2, other->width) ||
                  apart(chip->y, CLV__CHIP_HEIGHT, other->y, CLV__CHIP_HEIGHT));
    }
  }
  for (uint32_t i = 0; i < box->wire_count; ++i) {
    const clv__wire *wire = &box->wires[i];
    const double *last = &wire->points[2 * (wire->point_count - 1)];
    const clv__chip *from = &box->chips[wire->from], *to = &box->chips[wire->to];
    assert_true(fabs(wire->points[0] - from->x) < 0.01 && fabs(wire->points[1] - from->y - CLV__CHIP_HEIGHT) < 0.01);
    assert_true(fabs(last[0] - to->x) < 0.01 && fabs(last[1] - to->y) < 0.01);
  }
}

/* Checks, within each column, that the boxes of a lane do not overlap, that transfers between the same lanes keep a distance, and
 * that no transfer crosses a box. */
static void check_places(const clv__diagram *d) {
  for (uint32_t i = 0; i < d->item_count; ++i) {
    const clv__item *a = &d->items[i];
    assert_true(a->column < d->column_count && a->y >= d->top && a->y + a->height <= d->height);
    if (a->box != NULL) check_box(a->box);
    for (uint32_t k = 0; k < i; ++k) {
      const clv__item *b = &d->items[k];
      if (a->column != b->column || a->kind == CLV__ITEM_GAP || b->kind == CLV__ITEM_GAP) continue;
      uint32_t a_low = a->from < a->to ? a->from : a->to, a_high = a->from + a->to - a_low;
      uint32_t b_low = b->from < b->to ? b->from : b->to, b_high = b->from + b->to - b_low;
      bool a_box = clv__item_is_box(a), b_box = clv__item_is_box(b);
      if (a_box && b_box && a->from == b->from) assert_true(apart(a->y, a->height, b->y, b->height));
      if (!a_box && !b_box && a_low < b_high && b_low < a_high) assert_true(fabs(a->y - b->y) >= 12); /* room for the label */
      if (a_box != b_box) {
        const clv__item *box = a_box ? a : b, *line = a_box ? b : a;
        uint32_t low = a_box ? b_low : a_low, high = a_box ? b_high : a_high;
        if (box->from > low && box->from < high) assert_true(line->y <= box->y || line->y >= box->y + box->height);
      }
    }
  }
}

/* Checks that an item is below the items of its column that it depends on. A box may begin above a transfer that enters it. */
static void check_order(const clv__diagram *d) {
  for (uint32_t i = 0; i < d->item_count; ++i) {
    for (uint32_t e = d->source_offsets[i]; e < d->source_offsets[i + 1]; ++e) {
      const clv__item *source = &d->items[d->sources[e]], *item = &d->items[i];
      assert_true(d->sources[e] < i);
      assert_int_equal(source->to, item->from);
      if (source->column != item->column) continue;
      if (clv__item_is_box(source) && clv__item_is_box(item)) assert_true(item->y >= source->y + source->height);
      if (!clv__item_is_box(source) && clv__item_is_box(item)) assert_true(item->y + item->height >= source->y);
      if (!clv__item_is_box(item)) assert_true(item->y > source->y);
    }
  }
}

static void check_lines(const clv__diagram *d) {
  for (uint32_t i = 0; i < d->line_count; ++i) {
    const clv__line *line = &d->lines[i];
    assert_true(line->point_count >= 2);
    for (uint32_t k = 0; k < line->point_count; ++k) {
      double x = line->points[2 * k], y = line->points[2 * k + 1];
      assert_true(x >= 0 && x <= d->width && y >= d->top && y <= d->height);
      if (k == 0) continue;
      assert_true(fabs(x - line->points[2 * k - 2]) < 0.01 ||
                  fabs(y - line->points[2 * k - 1]) < 0.01); /* horizontal or vertical */
      assert_true(y >= line->points[2 * k - 1] - 0.01);      /* never upwards */
    }
  }
}

/* Checks that every step is shown once or, if it is in the omitted middle, counted there. */
static void check_complete(const clv__diagram *d) {
  uint64_t steps = 0, boxes = 0;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    if (d->items[i].kind != CLV__ITEM_SHARED) steps += d->items[i].count;
    boxes += clv__item_is_box(&d->items[i]);
    if (d->items[i].box == NULL) continue;
    const clv__partition *partition = &d->plan->partitions[d->items[i].index];
    uint32_t nodes = 0;
    for (uint32_t c = 0; c < d->items[i].box->chip_count; ++c) nodes += d->items[i].box->chips[c].kind == CLV__CHIP_NODE;
    assert_int_equal(nodes, partition->node_count);
  }
  assert_int_equal(steps, d->plan->step_count);
  assert_true(boxes <= d->plan->partition_count);
}

/* Makes a plan for two to four devices, of which some share a memory, with nodes on random devices. */
static planned plan_anywhere(clv_graph *graph, uint64_t *seed) {
  static const char *const specs[] = {"{\"name\": \"a\", \"operators\": \"all\", \"memory_space\": \"both\"}",
                                      "{\"name\": \"b\", \"operators\": \"all\"}",
                                      "{\"name\": \"c\", \"operators\": \"all\", \"memory_space\": \"both\"}",
                                      "{\"name\": \"d\", \"operators\": \"all\", \"memory_space\": \"host\"}"};
  static const char *const lists[] = {"a,cpu",   "a,b",     "cpu,a,b",   "a,b,cpu", "a,c,cpu",
                                      "a,d,cpu", "a,b,c,d", "a,b,c,cpu", "d,cpu"};
  planned p = {.graph = graph};
  clv_error error = {0};
  const char *list = lists[test_random(seed) % (sizeof lists / sizeof *lists)], *given[4];
  char paths[4][64];
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  for (uint32_t i = 0; i < 4; ++i) {
    if (strchr(list, 'a' + (int)i) == NULL) continue;
    if (i == 0 && strcmp(list, "d,cpu") == 0) continue;
    snprintf(paths[i], sizeof paths[i], "picture-spec-%d-%u.json", (int)getpid(), i);
    FILE *file = fopen(paths[i], "w");
    assert_non_null(file);
    fputs(specs[i], file);
    fclose(file);
    given[devices.npu_spec_count++] = paths[i];
  }
  devices.list = list;
  devices.npu_specs = given;
  assert_ok(clv_context_create(NULL, &p.context, &error), error);
  assert_ok(clv_devices_open(p.context, &devices, &p.devices, &error), error);
  for (uint32_t i = 0; i < devices.npu_spec_count; ++i) remove(given[i]);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.split = test_random(seed) % 2 == 0 ? "linear" : "fewest";
  clv_assignment *pins = clv__allocate(clv__allocator_default(), (graph->node_count + 1) * sizeof *pins);
  uint64_t stay = 1 + test_random(seed) % 12;
  uint32_t device = 0;
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    if (test_random(seed) % stay == 0) device = (uint32_t)(test_random(seed) % p.devices->count);
    pins[options.pin_count++] = (clv_assignment){graph->nodes[n].name, p.devices->items[device].name};
  }
  options.pins = pins;
  assert_ok(clv_plan_make(graph, p.devices, &options, &p.plan, &error), error);
  clv__release(clv__allocator_default(), pins);
  return p;
}

static void test_diagrams(void **state) {
  (void)state;
  uint64_t seed = 11;
  uint32_t seen[3] = {0};
  for (uint32_t round = 0; round < 60; ++round) {
    uint32_t nodes = round < 40 ? 1 + (uint32_t)(test_random(&seed) % 160) : 300 + (uint32_t)(test_random(&seed) % 1500);
    planned p = plan_anywhere(test_random_graph(clv__allocator_default(), test_random(&seed), nodes), &seed);
    for (int collapse = 0; collapse < 2; ++collapse) {
      clv__arena arena;
      clv__arena_init(&arena, clv__allocator_default());
      clv__diagram d;
      assert_true(clv__diagram_make(p.plan, collapse == 1, 100, &arena, &d));
      assert_true(collapse == 0 || d.form != CLV__FORM_NODES);
      ++seen[d.form];
      check_places(&d);
      check_order(&d);
      check_lines(&d);
      check_complete(&d);
      clv__arena_finish(&arena);
    }
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    clv__report_svg(p.plan, &text);
    assert_false(text.failed);
    assert_well_formed(text.data);
    clv__text_finish(&text);
    finish(&p);
  }
  for (int form = 0; form < 3; ++form) assert_true(seen[form] > 3);
}

/* ---- Documents ---- */

static void test_svg(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; ++kind) {
    clv_graph *graph = kind == 0   ? test_seven_nodes(clv__allocator_default())
                       : kind == 1 ? odd_graph()
                                   : test_random_graph(clv__allocator_default(), 3, kind == 2 ? 60 : 2000);
    planned p = make_plan(graph, true);
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    clv__report_svg(p.plan, &text);
    assert_false(text.failed);
    assert_well_formed(text.data);
    assert_null(strstr(text.data, "<script"));
    assert_non_null(strstr(text.data, ">lower bound<"));
    assert_int_equal(count_of(text.data, "@media (prefers-color-scheme: dark)"), 1);
    assert_int_equal(count_of(text.data, ".paper {"), 2);
    if (kind < 3) assert_int_equal(count_of(text.data, "class=\"part\""), p.plan->partition_count);
    if (kind < 2) assert_int_equal(count_of(text.data, "class=\"node\""), p.graph->node_count);
    if (kind == 3) assert_int_equal(count_of(text.data, " more steps "), 1);
    assert_true(text.size_bytes < 800000);
    clv__text_finish(&text);
    finish(&p);
  }
}

/* The label of a transfer has the name, the size and the time of the value. */
static void test_transfer_label(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  clv__text text, expected;
  clv__text_init(&text, clv__allocator_default());
  clv__report_svg(p.plan, &text);
  for (uint32_t t = 0; t < p.plan->transfer_count; ++t) {
    const clv__transfer *transfer = &p.plan->transfers[t];
    char size[CLV__LABEL_BYTES], time[CLV__LABEL_BYTES];
    clv__text_init(&expected, clv__allocator_default());
    clv__text_append(&expected, ">%s · %s · %s<", p.graph->values[transfer->value].name,
                     clv__label_size(transfer->size_bytes, size), clv__label_time(p.plan->price.copy_ns[t], time));
    assert_non_null(strstr(text.data, expected.data));
    clv__text_finish(&expected);
  }
  assert_true(p.plan->transfer_count > 2);
  clv__text_finish(&text);
  finish(&p);
}

static const json_t *cell(const json_t *row, size_t index) {
  const json_t *found = json_array_get(row, index);
  assert_non_null(found);
  return found;
}

/* The groups for folding have every node that runs once, and if there are several partitions, also one group per partition. */
static void check_foldings(const json_t *foldings, const clv_plan *plan) {
  uint32_t running = 0, large = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    running += plan->partitions[p].node_count;
    large += plan->partitions[p].node_count > 1;
  }
  assert_int_equal(json_array_size(foldings), plan->partition_count > 1 ? 2 : 1);
  for (size_t f = 0; f < json_array_size(foldings); ++f) {
    const json_t *order = json_object_get(json_array_get(foldings, f), "order");
    const json_t *groups = json_object_get(json_array_get(foldings, f), "groups");
    bool *seen = calloc(plan->graph->node_count + 1, sizeof *seen);
    assert_non_null(seen);
    assert_int_equal(json_array_size(order), running);
    for (uint32_t i = 0; i < running; ++i) {
      size_t node = (size_t)json_integer_value(cell(order, i));
      assert_true(node < plan->graph->node_count && !seen[node] && plan->placement.devices[node] != CLV__NO_ID);
      seen[node] = true;
    }
    uint32_t parts = 0;
    for (size_t g = 0; g < json_array_size(groups); ++g) {
      const json_t *group = json_array_get(groups, g);
      assert_int_equal(json_array_size(group), 6);
      if (json_integer_value(cell(group, 3)) != 0) continue;
      const clv__partition *partition = &plan->partitions[json_integer_value(cell(group, 4))];
      json_int_t first = json_integer_value(cell(group, 1)), end = json_integer_value(cell(group, 2));
      ++parts;
      assert_int_equal(end - first, partition->node_count);
      for (json_int_t i = first; i < end; ++i) {
        bool found = false;
        for (uint32_t k = 0; k < partition->node_count; ++k) {
          found = found || partition->nodes[k] == json_integer_value(cell(order, (size_t)i));
        }
        assert_true(found);
      }
    }
    assert_int_equal(parts, f == 1 ? large : 0);
    free(seen);
  }
}

/* The page's data equals the plan. Names survive unchanged, whatever characters they contain. */
static void test_page_data(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    clv_graph *graph = kind == 0   ? test_seven_nodes(clv__allocator_default())
                       : kind == 1 ? odd_graph()
                                   : test_random_graph(clv__allocator_default(), 5, 300);
    planned p = make_plan(graph, true);
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    clv__html_data(p.plan, &text);
    assert_false(text.failed);
    assert_null(strchr(text.data, '<'));
    json_error_t wrong;
    json_t *root = json_loads(text.data, 0, &wrong);
    if (root == NULL) fail_msg("the embedded JSON is invalid in line %d: %s", wrong.line, wrong.text);
    const json_t *nodes = json_object_get(root, "nodes"), *texts = json_object_get(root, "texts");
    const json_t *partitions = json_object_get(root, "partitions"), *transfers = json_object_get(root, "transfers");
    assert_int_equal(json_array_size(nodes), graph->node_count);
    assert_int_equal(json_array_size(json_object_get(root, "values")), graph->value_count);
    assert_int_equal(json_array_size(partitions), p.plan->partition_count);
    assert_int_equal(json_array_size(transfers), p.plan->transfer_count);
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      const json_t *node = json_array_get(nodes, n);
      assert_string_equal(json_string_value(cell(node, 0)), graph->nodes[n].name);
      assert_int_equal(json_integer_value(cell(node, 2)), p.plan->placement.devices[n]);
      size_t cause = (size_t)json_integer_value(cell(node, 3));
      assert_string_equal(json_string_value(json_array_get(texts, cause)), p.plan->placement.causes[n]);
      uint32_t other = 1 - p.plan->placement.devices[n];
      int64_t delta_ns;
      assert_true(clv__plan_move_price(p.plan, n, other, &delta_ns));
      assert_int_equal(json_integer_value(cell(cell(node, 10), other)), delta_ns);
      assert_true(json_is_null(cell(cell(node, 10), 1 - other)));
    }
    check_foldings(json_object_get(root, "foldings"), p.plan);
    uint64_t end_ns = 0;
    for (uint32_t s = 0; s < p.plan->step_count; ++s) { /* the steps follow each other without a gap */
      const clv__step *step = &p.plan->steps[s];
      const json_t *row = json_array_get(step->is_transfer ? transfers : partitions, step->index);
      assert_int_equal(json_integer_value(cell(row, step->is_transfer ? 6 : 3)), end_ns);
      end_ns += (uint64_t)json_integer_value(cell(row, step->is_transfer ? 4 : 1));
    }
    assert_int_equal(end_ns, p.plan->price.serial_ns);
    json_decref(root);
    clv__text_finish(&text);
    finish(&p);
  }
}

/* No name can end the HTML element that contains it, and the page loads nothing from elsewhere. */
static void test_page(void **state) {
  (void)state;
  planned p = make_plan(odd_graph(), true);
  clv__arena arena;
  clv__comparison *rows;
  uint32_t count;
  clv_error error = {0};
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__plan_compare(p.plan, NULL, &arena, &rows, &count, &error), error);
  for (int with_rows = 0; with_rows < 2; ++with_rows) {
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    clv__report_html(p.plan, with_rows ? rows : NULL, with_rows ? count : 0, &text);
    assert_false(text.failed);
    assert_int_equal(count_of(text.data, "<script"), 2);
    assert_int_equal(count_of(text.data, "</script>"), 2);
    assert_int_equal(count_of(text.data, "</html>"), 1);
    assert_int_equal(count_of(text.data, "<tr class=\"this\">") > 0, with_rows);
    assert_null(strstr(text.data, "<link"));
    assert_null(strstr(text.data, "src="));
    assert_int_equal(count_of(text.data, "http"),
                     count_of(text.data, "http://www.w3.org/2000/svg") + count_of(text.data, "http-equiv"));
    clv__text_finish(&text);
  }
  clv__arena_finish(&arena);
  finish(&p);
}

static void report_page(const clv_plan *plan, clv__text *text) {
  clv__report_html(plan, NULL, 0, text);
}

/* Makes every allocation fail once. The text must then be marked as failed, and all memory must be released. */
static void test_out_of_memory(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  check_out_of_memory(&p, clv__report_svg);
  check_out_of_memory(&p, report_page);
  finish(&p);
}

/* A plan with four times the nodes gives less than six times the text, so the output does not grow quadratically. */
static void test_growth(void **state) {
  (void)state;
  size_t sizes[2];
  for (int i = 0; i < 2; ++i) {
    planned p = make_plan(test_random_graph(clv__allocator_default(), 3, i == 0 ? 4000 : 16000), true);
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    clv__report_html(p.plan, NULL, 0, &text);
    assert_false(text.failed);
    sizes[i] = text.size_bytes;
    clv__text_finish(&text);
    finish(&p);
  }
  assert_true(sizes[1] < 6 * sizes[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layers), cmocka_unit_test(test_straight),       cmocka_unit_test(test_diagrams),
      cmocka_unit_test(test_svg),    cmocka_unit_test(test_transfer_label), cmocka_unit_test(test_page_data),
      cmocka_unit_test(test_page),   cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_growth),
  };
  return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
