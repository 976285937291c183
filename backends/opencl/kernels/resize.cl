/* Resize, one axis at a time: x is [before, input, after], y is [before, output, after]. For each output position, tables give
 * the input positions that it reads, and their weights. If the first of these positions is -1, the output position lies outside
 * the input, and the result is the constant `outside`. Without X only `pick` is compiled, and T is an unsigned dtype of the
 * element's size. With X only `blend` is compiled, and T is the output's dtype. */

#ifndef X
KERNEL(pick)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const int *places, index_t count, index_t input, index_t output,
 index_t after, LONG outside) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t from = places[at / after % output];
  y[at] = from < 0 ? (STORAGE(T))outside : x[(at / after / output * input + from) * after + at % after];
}
#else
KERNEL(blend)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(X) * x, GLOBAL const int *places, GLOBAL const float *weights, index_t count,
 index_t input, index_t output, index_t after, int taps, float outside) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t o = at / after % output, first = at / after / output * input * after + at % after;
  float total = 0;
  for (int t = 0; t < taps; ++t) {
    const float weight = weights[o * taps + t];
    if (weight != 0 && places[o * taps] >= 0) total += weight * (float)LOAD(X, x, first + places[o * taps + t] * after);
  }
  if (places[o * taps] < 0) total = outside;
  STORE(T, y, at, total);
}
#endif
