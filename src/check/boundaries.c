/* The section `boundaries` of the conformance kit (check.h): graphs whose nodes a backend is likely to fuse, with intermediate
 * values that are outputs too. The backend must write every output, however it fuses the nodes. */
#include <stdio.h>

#include "check/scene.h"
#include "check/sections.h"

enum { GRAPHS = 48 };

static void check_menu(clv__check *check, const clv__menu *menu, uint32_t count, uint32_t done, uint32_t of) {
  static const int64_t rows[] = {4, 8}, image[] = {1, 4, 6, 6};
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_scene scene;
    clv__check_job job = {0};
    char text[1024];
    uint64_t seed = check->seed * 7919u + i * 104729u + menu->dtype;
    clv__check_progress(check, done + i, of);
    uint32_t share = i % 4 == 0 ? 100 : 50;
    if (!clv__scene_draw(check, menu, 8 - i % 6, menu->is_image ? image : rows, NULL, true, share, seed, &scene)) continue;
    if (clv__scene_start(&scene, &job)) {
      clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), scene.what, "%s", text);
      clv__check_job_finish(&job);
    }
    clv__scene_finish(&scene);
  }
}

void clv__check_boundaries(clv__check *check) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16, CLV_F64, CLV_I32};
  const uint32_t kinds = sizeof dtypes / sizeof *dtypes,
                 of = 2 * (clv__check_thin(check, GRAPHS) + 4 * clv__check_thin(check, GRAPHS / 4));
  uint32_t done = 0;
  for (uint32_t d = 0; d < kinds; ++d) {
    const uint32_t count = clv__check_thin(check, dtypes[d] == CLV_F32 ? GRAPHS : GRAPHS / 4);
    for (uint32_t is_image = 0; is_image < 2; ++is_image) {
      clv__menu menu;
      if (clv__menu_read(check, dtypes[d], is_image != 0, &menu))
        check_menu(check, &menu, count, done, of);
      else
        clv__check_skip(check, clv_dtype_name(dtypes[d]),
                        "%s: the device supports none of the operators of the kit's random graphs", clv_dtype_name(dtypes[d]));
      done += count;
    }
  }
}
