/* Softmax (kind 0), LogSoftmax (kind 1) and Hardmax (kind 2; the kernel `wide` does not support it) of a tensor [outer, length,
 * inner]. A line has `length` elements that are `inner` apart. Defines: T, GROUP. */
typedef REAL(T) real;
#define LOWEST (-(real)INFINITY)

/* One work item per line, for lines whose elements are not contiguous. */
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

/* One work group per line of contiguous elements. */
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

#ifdef VECTORS /* for CPUs: f32 and f16 */
#define WIDTH 16
#if IS_f32(T)
#define LOAD_WIDE(p, i) vload16(0, (p) + (i))
#else
#define LOAD_WIDE(p, i) vload_half16(0, (p) + (i))
#endif

/* One work item per line of contiguous elements. */
KERNEL(wide)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t lines, index_t length, int kind POST_PARAMETERS) {
  const index_t line = GLOBAL_ID(0), first = line * length;
  if (line >= lines) return;
  float all[WIDTH], largest = LOAD(T, x, first), sum = 0;
  index_t i = 0;
  float16 most = (float16)(largest), total = (float16)(0);
  for (; i + WIDTH <= length; i += WIDTH) most = fmax(most, LOAD_WIDE(x, first + i));
  vstore16(most, 0, all);
  for (int j = 0; j < WIDTH; ++j) largest = all[j] > largest ? all[j] : largest;
  for (; i < length; ++i) largest = LOAD(T, x, first + i) > largest ? LOAD(T, x, first + i) : largest;
  for (i = 0; i + WIDTH <= length; i += WIDTH) total += exp(LOAD_WIDE(x, first + i) - largest);
  for (; i < length; ++i) sum += exp(LOAD(T, x, first + i) - largest);
  vstore16(total, 0, all);
  for (int j = 0; j < WIDTH; ++j) sum += all[j];
  const float shift = kind == 1 ? log(sum) : 0, scale = 1 / sum;
  for (i = 0; i < length; i += WIDTH) {
    const int count = length - i < WIDTH ? (int)(length - i) : WIDTH;
    for (int j = 0; j < WIDTH; ++j) all[j] = j < count ? LOAD(T, x, first + i + j) - largest : 0;
    const float16 below = vload16(0, all);
    vstore16(kind == 0 ? exp(below) * scale : below - shift, 0, all);
    for (int j = 0; j < count; ++j) {
      const index_t at = first + i + j;
      STORE(T, y, at, POST(all[j], at));
    }
  }
}
#endif
