/* Tests Einsum against a sum in f64 over all combinations of labels. */
#include "node_case.h"

typedef struct equation {
  const char *text, *terms[4]; /* labels of each input, with X or XY for an ellipsis of one or two axes */
  const char *output;
} equation;

static const equation equations[] = {
    {"ij,jk->ik", {"ij", "jk"}, "ik"},
    {"bhqd,bhkd->bhqk", {"bhqd", "bhkd"}, "bhqk"},
    {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}, "bhqk"},
    {"ij->ji", {"ij"}, "ji"},
    {"ii->i", {"ii"}, "i"},
    {"ii", {"ii"}, ""},
    {"ijk->ik", {"ijk"}, "ik"},
    {"ij,ij->", {"ij", "ij"}, ""},
    {"i,j->ji", {"i", "j"}, "ji"},
    {" i j , k j ", {"ij", "kj"}, "ik"},
    {"ba,Cb", {"ba", "Cb"}, "Ca"},
    {"ij,jk,kl->li", {"ij", "jk", "kl"}, "li"},
    {"abc,cd,da,e->be", {"abc", "cd", "da", "e"}, "be"},
    {"...ij,...jk->...ik", {"XYij", "Yjk"}, "XYik"},
    {"...ii->...i", {"Xii"}, "Xi"},
    {"i...,j...", {"iXY", "jXY"}, "XYij"},
    {"b...,bc->c...", {"bX", "bc"}, "cX"},
    {"iij,jkk->ik", {"iij", "jkk"}, "ik"},
    {"i,->i", {"i", ""}, "i"},
};

static void one_case(uint64_t *seed, const equation *e, clv_dtype dtype, int64_t largest) {
  int64_t sizes[128], index[128] = {0}, offsets[4];
  char labels[128];
  size_t label_count = 0;
  node_case *c = case_begin("Einsum", 12);
  case_string(c, "equation", e->text);
  for (int i = 0; i < 128; ++i) sizes[i] = random_in(seed, 1, largest);
  for (int t = 0; t < 4 && e->terms[t] != NULL; ++t) {
    int64_t dims[8];
    for (size_t i = 0; i < strlen(e->terms[t]); ++i) {
      char label = e->terms[t][i];
      dims[i] = sizes[(int)label];
      if (memchr(labels, label, label_count) == NULL) labels[label_count++] = label;
    }
    case_input(c, seed, dtype, (int32_t)strlen(e->terms[t]), dims);
  }
  case_run(c);
  assert_int_equal(c->outputs[0].rank, strlen(e->output));
  double *y = calloc(count_of(&c->outputs[0]) + 1, sizeof *y);
  for (bool more = true; more;) {
    double product = 1;
    for (uint32_t t = 0; t < c->input_count; ++t) {
      offsets[t] = 0;
      for (const char *l = e->terms[t]; *l != '\0'; ++l) offsets[t] = offsets[t] * sizes[(int)*l] + index[(int)*l];
      product *= clv__tensor_get(&c->inputs[t], (size_t)offsets[t]);
    }
    int64_t at = 0;
    for (const char *l = e->output; *l != '\0'; ++l) at = at * sizes[(int)*l] + index[(int)*l];
    y[at] += product;
    more = false;
    for (size_t i = 0; i < label_count && !more; ++i) {
      int label = labels[i];
      more = ++index[label] < sizes[label];
      if (!more) index[label] = 0;
    }
  }
  case_expect(c, 0, y);
  free(y);
  case_end(c);
}

static void test_equations(void **state) {
  (void)state;
  static const clv_dtype integers[] = {CLV_I32, CLV_I64, CLV_U64};
  uint64_t seed = 61;
  for (size_t i = 0; i < sizeof equations / sizeof *equations; ++i) {
    for (int n = 0; n < 12; ++n) {
      clv_dtype dtype = n % 4 == 3 ? integers[n / 4] : random_float_dtype(&seed);
      /* the tolerance is relative to the largest result, so dims are small, to keep results of similar size */
      one_case(&seed, &equations[i], dtype, 6);
    }
  }
}

static void test_bad_equations(void **state) {
  (void)state;
  static const char *const bad[] = {"ij,jk->iz", "ij->ij",    "ij,jk,kl->il", "i.j,jk->ik", "ij,jk-ik", "ij,jk->ii",
                                    "ij,j1->i",  "ijk,jk->i", "ij,jk->...ik", "ij,kk->ik",  ""};
  uint64_t seed = 62;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    node_case *c = case_begin("Einsum", 12);
    case_string(c, "equation", bad[i]);
    case_input(c, &seed, CLV_F32, 2, (int64_t[]){2, 3});
    case_input(c, &seed, CLV_F32, 2, (int64_t[]){3, 4});
    assert_int_not_equal(case_infer(c), CLV_OK);
    assert_int_not_equal(c->error.message[0], 0);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equations),
      cmocka_unit_test(test_bad_equations),
  };
  return RUN_BOTH_KERNELS(tests);
}
