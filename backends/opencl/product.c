/* See product.h. Measured on PoCL (one core with AVX-512): `panels` reaches 95 GFLOP/s on 512x1024x1024, `tiles` 5, and CLBlast,
 * as tuned for an unknown device, 8; so there is no CLBlast here. */
#include "product.h"

#include "list.h"

#define WIDTH 16       /* columns of an item of `panels` and `lanes` */
#define PANEL_ROWS 128 /* most rows of an item of `panels` */
#define FEW_ROWS 3     /* up to which a panel does not repay its making */
#define TILE 64

static int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* As many rows an item as leave every core some items; whole blocks of 8. */
static int64_t rows_each(const clv__opencl_lowering *l, const clv__opencl_product *p) {
  const int64_t wanted = 4 * (int64_t)clv__opencl_lowering_traits(l)->compute_units;
  int64_t each = PANEL_ROWS;
  while (each > 16 && p->batches * divide_up(p->columns, WIDTH) * divide_up(p->rows, each) < wanted) each /= 2;
  return each;
}

clv__opencl_product_launch clv__opencl_product_choose(const clv__opencl_lowering *l, const clv__opencl_product *p) {
  const clv__opencl_traits *traits = clv__opencl_lowering_traits(l);
  const bool wide = traits->is_cpu && (p->dtype == CLV_F32 || p->dtype == CLV_F16);
  const bool tiled =
      !traits->is_cpu && p->dtype != CLV_F64 && (CLV__DTYPE_BIT(p->dtype) & CLV__DTYPES_FLOAT) != 0 && traits->max_group >= 256;
  const bool few = p->rows <= FEW_ROWS || (!p->is_convolution && p->columns <= FEW_ROWS);
  clv__opencl_product_launch launch = {.kernel = "single", .vectors = wide, .global = {p->columns, p->rows, p->batches}};
  if (p->both_along_depth && few && wide) {
    launch.kernel = "dots_wide";
  } else if (p->both_along_depth && few && (CLV__DTYPE_BIT(p->dtype) & CLV__DTYPES_FLOAT) != 0) {
    const int64_t group = clv__opencl_group(l);
    launch.kernel = "dots";
    launch.global[0] = p->columns * group;
    launch.local[0] = group;
    launch.has_local = true;
  } else if (wide && p->rows <= FEW_ROWS) {
    launch.kernel = "lanes";
    launch.global[0] = divide_up(p->columns, WIDTH);
  } else if (wide) {
    launch.kernel = "panels";
    launch.rows_each = rows_each(l, p);
    launch.global[0] = divide_up(p->columns, WIDTH);
    launch.global[1] = divide_up(p->rows, launch.rows_each);
  } else if (tiled && p->rows >= 16 && p->columns >= 16) {
    launch.kernel = "tiles";
    launch.global[0] = divide_up(p->columns, TILE) * 16;
    launch.global[1] = divide_up(p->rows, TILE) * 16;
    launch.local[0] = launch.local[1] = 16;
    launch.has_local = true;
  }
  if (launch.has_local) {
    if (launch.local[1] == 0) launch.local[1] = 1;
    launch.local[2] = 1;
  } else if (wide) { /* items that are long enough to be a group each */
    launch.local[0] = launch.local[1] = launch.local[2] = 1;
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
  if (launch->rows_each != 0) clv__opencl_pass_index(l, launch->rows_each);
}

clv_status clv__opencl_product_end(clv__opencl_lowering *l, const clv__opencl_product_launch *launch) {
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue(l, 3, launch->global, launch->has_local ? launch->local : NULL);
}
