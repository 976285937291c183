/* See product.h. Measured on PoCL (one core with AVX-512), on 512x1024x1024: `panels` reaches 95 GFLOP/s, `tiles` 5, and CLBlast,
 * as tuned for an unknown device, 8. So this backend does not use CLBlast. */
#include "product.h"

#include "list.h"

#define WIDTH 16       /* columns per work item of `panels` and `lanes` */
#define PANEL_ROWS 128 /* maximum rows per work item of `panels` */
#define FEW_ROWS 3     /* with at most this many rows, building a panel does not pay */
#define TILE 64

/* The number of rows per work item: PANEL_ROWS, halved while there are fewer than four work items per core, but at least 16. */
static int64_t rows_each(const clv__opencl_lowering *l, const clv__opencl_product *p, int64_t blocks) {
  const int64_t wanted = 4 * (int64_t)clv__opencl_lowering_traits(l)->compute_units;
  int64_t each = PANEL_ROWS;
  while (each > 16 && p->batches * blocks * clv__opencl_divide_up(p->rows, each) < wanted) each /= 2;
  return each;
}

/* Divides the columns into vectors of WIDTH and returns the number of vectors. In a convolution no vector spans two rows of the
 * output, unless this would leave more than `most_waste` percent of the vector elements unused. */
static int64_t cut_columns(const clv__opencl_product *p, clv__opencl_product_launch *launch, int64_t most_waste) {
  const int64_t per_row = p->is_convolution ? clv__opencl_divide_up(p->row, WIDTH) : 0, width = per_row * WIDTH;
  launch->has_per_row = p->is_convolution;
  launch->per_row = per_row > 0 && (width - p->row) * 100 <= width * most_waste ? per_row : 0;
  return launch->per_row > 0 ? p->columns / p->row * per_row : clv__opencl_divide_up(p->columns, WIDTH);
}

/* Chooses among the vector kernels, for CPUs. */
static void choose_wide(const clv__opencl_lowering *l, const clv__opencl_product *p, clv__opencl_product_launch *launch) {
  if (p->both_along_depth && (p->rows <= FEW_ROWS || p->columns <= FEW_ROWS)) {
    launch->kernel = "dots_wide";
  } else if (p->rows <= FEW_ROWS) {
    launch->kernel = "lanes";
    launch->global[0] = cut_columns(p, launch, 60);
  } else {
    launch->kernel = "panels";
    launch->global[0] = cut_columns(p, launch, 15);
    launch->has_rows_each = true;
    launch->rows_each = rows_each(l, p, launch->global[0]);
    launch->global[1] = clv__opencl_divide_up(p->rows, launch->rows_each);
  }
  launch->vectors = launch->has_local = true; /* each work item is a group by itself, because it has enough work */
  launch->local[0] = launch->local[1] = launch->local[2] = 1;
}

clv__opencl_product_launch clv__opencl_product_choose(const clv__opencl_lowering *l, const clv__opencl_product *p) {
  const clv__opencl_traits *traits = clv__opencl_lowering_traits(l);
  const bool is_float = (CLV__DTYPE_BIT(p->dtype) & CLV__DTYPES_FLOAT) != 0;
  const bool few = p->rows <= FEW_ROWS || (!p->is_convolution && p->columns <= FEW_ROWS);
  clv__opencl_product_launch launch = {.kernel = "single", .global = {p->columns, p->rows, p->batches}};
  if (clv__opencl_is_wide(l, p->dtype)) {
    choose_wide(l, p, &launch);
  } else if (p->both_along_depth && few && is_float) {
    launch.kernel = "dots";
    launch.local[0] = clv__opencl_group(l);
    launch.local[1] = launch.local[2] = 1;
    launch.global[0] = p->columns * launch.local[0];
    launch.has_local = true;
  } else if (is_float && p->dtype != CLV_F64 && traits->max_group >= 256 && p->rows >= 16 && p->columns >= 16) {
    launch.kernel = "tiles";
    launch.local[0] = launch.local[1] = 16;
    launch.local[2] = 1;
    launch.global[0] = clv__opencl_divide_up(p->columns, TILE) * 16;
    launch.global[1] = clv__opencl_divide_up(p->rows, TILE) * 16;
    launch.has_local = true;
  }
  return launch;
}

void clv__opencl_product_begin(clv__opencl_lowering *l, const clv__opencl_product *product,
                               const clv__opencl_product_launch *launch) {
  clv__opencl_launch(l, "product", launch->kernel);
  clv__opencl_define_dtype(l, "T", product->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  if (product->is_convolution) clv__opencl_define(l, "CONVOLUTION", "1");
  if (launch->vectors) clv__opencl_define(l, "PANELS", "1");
  if (product->weights_scattered) clv__opencl_define(l, "WEIGHTS_SCATTERED", "1");
  if (launch->has_per_row) clv__opencl_pass_index(l, launch->per_row);
  if (launch->has_rows_each) clv__opencl_pass_index(l, launch->rows_each);
}

clv_status clv__opencl_product_end(clv__opencl_lowering *l, const clv__opencl_product_launch *launch) {
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue(l, 3, launch->global, launch->has_local ? launch->local : NULL);
}
