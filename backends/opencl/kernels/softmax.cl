/* Softmax (0), LogSoftmax (1) and Hardmax (2) of lines of `length` elements, `inner` apart, of a tensor [outer, length, inner].
 * Defines: T, GROUP. */
typedef REAL(T) real;
#define LOWEST (-(real)INFINITY)

/* One item a line: lines side by side. */
KERNEL(columns)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t lines, index_t length, index_t inner, int kind POST_PARAMETERS) {
  const index_t line = GLOBAL_ID(0);
  if (line >= lines) return;
  const index_t first = line / inner * length * inner + line % inner;
  real largest = LOAD(T, x, first), sum = 0;
  index_t where = 0;
  for (index_t i = 1; i < length; ++i) {
    const real value = LOAD(T, x, first + i * inner);
    if (value > largest) largest = value, where = i;
  }
  if (kind != 2) {
    for (index_t i = 0; i < length; ++i) sum += exp(LOAD(T, x, first + i * inner) - largest);
  }
  const real shift = kind == 1 ? log(sum) : 0, scale = kind == 0 ? 1 / sum : 0;
  for (index_t i = 0; i < length; ++i) {
    const index_t at = first + i * inner;
    const real below = LOAD(T, x, at) - largest;
    const real value = kind == 0 ? exp(below) * scale : kind == 1 ? below - shift : i == where ? 1 : 0;
    STORE(T, y, at, POST(value, at));
  }
}

/* One group a line of contiguous elements. */
KERNEL_SIZED(rows, GROUP, 1, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t length, int kind POST_PARAMETERS) {
  LOCAL_ARRAY(real, lanes, GROUP);
  LOCAL_ARRAY(index_t, places, GROUP);
  const index_t first = GROUP_ID(0) * length, lane = LOCAL_ID(0);
  real largest = LOWEST;
  index_t where = length;
  for (index_t i = lane; i < length; i += GROUP) {
    const real value = LOAD(T, x, first + i);
    if (value > largest || where == length) largest = value, where = i;
  }
  lanes[lane] = largest;
  places[lane] = where;
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) {
      const real other = lanes[lane + half_count];
      const index_t place = places[lane + half_count];
      if (place < length && (other > lanes[lane] || (other == lanes[lane] && place < places[lane]) || other != other)) {
        lanes[lane] = other;
        places[lane] = place;
      }
    }
    BARRIER();
  }
  largest = lanes[0];
  where = places[0];
  BARRIER();
  real sum = 0;
  if (kind != 2) {
    for (index_t i = lane; i < length; i += GROUP) sum += exp(LOAD(T, x, first + i) - largest);
  }
  lanes[lane] = sum;
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) lanes[lane] += lanes[lane + half_count];
    BARRIER();
  }
  sum = lanes[0];
  const real shift = kind == 1 ? log(sum) : 0, scale = kind == 0 ? 1 / sum : 0;
  for (index_t i = lane; i < length; i += GROUP) {
    const index_t at = first + i;
    const real below = LOAD(T, x, at) - largest;
    const real value = kind == 0 ? exp(below) * scale : kind == 1 ? below - shift : i == where ? 1 : 0;
    STORE(T, y, at, POST(value, at));
  }
}
