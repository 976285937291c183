/* See export.h. */
#include "gnn/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/shapes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "formats/onnx/onnx.h"
#include "graph/view.h"

/* The properties that distinguish the file of one block from the files of other blocks. */
typedef struct kind {
  uint32_t layer, first, last;
  bool is_static;
  uint64_t rows, edges;
} kind;

typedef struct exporting {
  const clv__stages *stages; /* by layer */
  const char *folder;
  bool inlines;
  const clv_allocator *allocator;
  kind *written;
  size_t count, capacity;
} exporting;

static void name_it(const clv__stages *stages, const kind *it, char name[160]) {
  int used = snprintf(name, 160, "layer%u_%s_to_%s", it->layer, clv__stage_name(stages->items[it->first]),
                      clv__stage_name(stages->items[it->last - 1]));
  if (it->is_static) used += snprintf(name + used, 160 - (size_t)used, "_n%" PRIu64 "_m%" PRIu64, it->rows, it->edges);
  snprintf(name + used, 160 - (size_t)used, ".onnx");
}

static clv_status write_graph(const exporting *x, const clv_graph *graph, const char *path, clv_error *error) {
  clv__shapes *shapes;
  clv_graph_view *view;
  clv__arena arena;
  void *data = NULL;
  size_t size_bytes;
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, 0, &shapes, error));
  clv__arena_init(&arena, x->allocator);
  clv_status status = clv__view_create_whole(graph, shapes->types, &arena, &view, error);
  if (status == CLV_OK)
    status = (x->inlines ? clv__onnx_write_standard : clv__onnx_write)(view, SIZE_MAX, x->allocator, &data, &size_bytes, error);
  if (status == CLV_OK) status = clv__file_write(path, data, size_bytes, error);
  clv__release(x->allocator, data);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  return status;
}

static clv_status write_it(exporting *x, const kind *it, clv_error *error) {
  const clv__stages *stages = &x->stages[it->layer];
  clv__block_form form = clv__block_form_open(false);
  clv__block block;
  char name[160];
  if (it->is_static) form = clv__block_form_fixed((clv__layer_sizes){it->rows, it->rows, it->edges});
  name_it(stages, it, name);
  char *path = clv__path_join(x->allocator, x->folder, name);
  if (path == NULL) return clv__error_memory(error, strlen(x->folder) + sizeof name);
  clv_status status = clv__block_make(x->allocator, stages, it->first, it->last, &form, &block, error);
  if (status == CLV_OK) status = write_graph(x, block.graph, path, error);
  clv__block_finish(&block);
  clv__release(x->allocator, path);
  return status;
}

static clv_status export_part(exporting *x, uint32_t layer, const clv__pep_block *block, const clv__pep_part *part,
                              clv_error *error) {
  kind it = {.layer = layer, .first = block->first, .last = block->last, .is_static = part->is_static};
  if (part->sizes.targets == 0) return CLV_OK;
  if (part->is_static) it.rows = part->padded.rows, it.edges = part->padded.edges;
  for (size_t i = 0; i < x->count; ++i) {
    const kind *o = &x->written[i];
    if (o->layer == it.layer && o->first == it.first && o->last == it.last && o->is_static == it.is_static &&
        o->rows == it.rows && o->edges == it.edges)
      return CLV_OK;
  }
  if (!clv__array_reserve(x->allocator, (void **)&x->written, &x->capacity, x->count + 1, sizeof it, x->count))
    return clv__error_memory(error, sizeof it);
  x->written[x->count++] = it;
  return write_it(x, &it, error);
}

clv_status clv__gnn_export(const clv_allocator *allocator, const clv__stages *stages, const clv__gnn_schedule *schedule,
                           const char *folder, bool inlines, uint32_t *count, clv_error *error) {
  exporting x = {.stages = stages, .folder = folder, .inlines = inlines, .allocator = allocator};
  clv_status status = CLV_OK;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return clv__error_set(error, CLV_IO_ERROR, "%s: cannot create the folder: %s", folder, strerror(errno));
  for (uint32_t l = 0; l < schedule->layer_count; ++l) {
    for (uint32_t p = 0; p < schedule->k; ++p) {
      const clv__pep *pep = schedule->layers[l][p].pep;
      for (uint32_t b = 0; b < pep->block_count; ++b) {
        for (uint32_t i = 0; i < pep->blocks[b].part_count && status == CLV_OK; ++i)
          status = export_part(&x, l, &pep->blocks[b], &pep->blocks[b].parts[i], error);
      }
    }
  }
  *count = (uint32_t)x.count;
  clv__release(x.allocator, x.written);
  return status;
}
