/* Tests the cache directory with random contents: each file must be read back as it was written, or give an error with a
 * reason. */
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cache/cache_own.h"

enum { NO_LIMIT = 1 << 30 };

/* A key with a description and a payload, all generated from one number. */
typedef struct made {
  clv__cache_info info;
  uint32_t weights[4];
  uint8_t *payload;
  size_t payload_bytes;
} made;

static void make(made *m, uint64_t number, size_t payload_bytes) {
  uint64_t seed = number * 7919 + 1;
  *m = (made){.payload_bytes = payload_bytes, .payload = malloc(payload_bytes + 1)};
  for (size_t i = 0; i < sizeof m->info.key; ++i) ((uint8_t *)&m->info.key)[i] = (uint8_t)test_random(&seed);
  for (size_t i = 0; i < payload_bytes; ++i) m->payload[i] = (uint8_t)test_random(&seed);
  for (uint32_t i = 0; i < 4; ++i) m->weights[i] = (uint32_t)test_random(&seed);
  m->info.weights = m->weights;
  m->info.weight_count = (uint32_t)(number % 5);
  m->info.node_count = (uint32_t)number;
  snprintf(m->info.backend, sizeof m->info.backend, "backend%u", (unsigned)number);
  snprintf(m->info.version, sizeof m->info.version, "1.%u", (unsigned)number);
  snprintf(m->info.device, sizeof m->info.device, "npu");
  snprintf(m->info.operators, sizeof m->info.operators, "Conv x%u, Relu", (unsigned)number);
}

static void unmake(made *m) {
  free(m->payload);
}

/* Saves the payload in pieces, as backends do. */
static clv_status save(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  const made *m = self;
  (void)error;
  for (size_t at = 0; at < m->payload_bytes;) {
    size_t piece = m->payload_bytes - at < 10000 ? m->payload_bytes - at : 10000;
    CLV__TRY(write(cookie, m->payload + at, piece));
    at += piece;
  }
  return CLV_OK;
}

static clv__cache *open_cache(const char *path, uint64_t limit_bytes) {
  clv_error error = {0};
  clv__cache *cache;
  assert_ok(clv__cache_open(clv__allocator_default(), path, limit_bytes, true, &cache, &error), error);
  return cache;
}

static void put(clv__cache *cache, made *m) {
  clv_error error = {0};
  assert_ok(clv__cache_put(cache, &m->info, save, m, &error), error);
}

/* Gets a file from the cache. If the status is CLV_OK, checks that all of its content is as it was put. */
static clv_status get(clv__cache *cache, const made *m, clv_error *error) {
  clv__cached cached;
  clv_error own = {0};
  clv_status status = clv__cache_get(cache, &m->info.key, &cached, error != NULL ? error : &own);
  if (status != CLV_OK) {
    assert_null(cached.data);
    assert_true((error != NULL ? error : &own)->message[0] != '\0');
    return status;
  }
  assert_int_equal(cached.payload_bytes, m->payload_bytes);
  if (m->payload_bytes > 0) assert_memory_equal(cached.payload, m->payload, m->payload_bytes);
  assert_memory_equal(&cached.info.key, &m->info.key, sizeof m->info.key);
  assert_int_equal(cached.info.weight_count, m->info.weight_count);
  for (uint32_t i = 0; i < m->info.weight_count; ++i) assert_int_equal(cached.info.weights[i], m->weights[i]);
  assert_int_equal(cached.info.node_count, m->info.node_count);
  assert_string_equal(cached.info.backend, m->info.backend);
  assert_string_equal(cached.info.version, m->info.version);
  assert_string_equal(cached.info.device, m->info.device);
  assert_string_equal(cached.info.description, m->info.description);
  assert_string_equal(cached.info.operators, m->info.operators);
  clv__cached_finish(cache, &cached);
  return CLV_OK;
}

static void path_of(const folder *f, const made *m, char path[512]) {
  char name[CLV__CACHE_NAME_BYTES];
  clv__cache_name(&m->info.key, name);
  snprintf(path, 512, "%s/%s", f->path, name);
}

static uint8_t *read_all(const char *path, size_t *size_bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size_bytes = (size_t)ftell(file);
  rewind(file);
  uint8_t *data = malloc(*size_bytes + 1);
  assert_int_equal(fread(data, 1, *size_bytes, file), *size_bytes);
  fclose(file);
  return data;
}

static void write_all(const char *path, const void *data, size_t size_bytes) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(file >= 0);
  assert_int_equal(write(file, data, size_bytes), (ssize_t)size_bytes);
  close(file);
}

/* ---- Valid files ---- */

static void round_trips(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 4095, 9999, 10000, 10001, 3000000};
  folder f;
  folder_make(&f);
  char inner[256];
  snprintf(inner, sizeof inner, "%s/made/on the way", f.path); /* neither folder exists */
  clv__cache *cache = open_cache(inner, NO_LIMIT);
  struct stat info;
  assert_int_equal(stat(inner, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    made m;
    make(&m, i, sizes[i]);
    assert_int_equal(get(cache, &m, NULL), CLV_NOT_FOUND);
    put(cache, &m);
    assert_int_equal(get(cache, &m, NULL), CLV_OK);
    put(cache, &m); /* replaces the file */
    assert_int_equal(get(cache, &m, NULL), CLV_OK);
    unmake(&m);
  }
  clv__cache_close(cache);
  folder_count count = folder_look(inner);
  assert_int_equal(count.whole, sizeof sizes / sizeof *sizes);
  assert_int_equal(count.damaged + count.unfinished, 0);
  char path[600];
  snprintf(path, sizeof path, "%s/%s", inner, count.name);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  folder_remove(f.path);
}

static void nearest_tells(void **state) {
  (void)state;
  static const char *const words[CLV__KEY_PARTS] = {"no executable with this graph structure", "shapes", "weights", "device",
                                                    "options"};
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  make(&m, 1, 100);
  put(cache, &m);
  for (uint32_t part = 0; part < CLV__KEY_PARTS; ++part) {
    clv_error error = {0};
    m.info.key.parts[part].bytes[31] ^= 1;
    if (part == CLV__KEY_STRUCTURE) m.info.key.parts[part].bytes[0] ^= 1;
    assert_int_equal(get(cache, &m, &error), CLV_NOT_FOUND);
    if (strstr(error.message, words[part]) == NULL)
      fail_msg("the error message '%s' does not name the part that differs, '%s'", error.message, words[part]);
    for (uint32_t other = 0; other < CLV__KEY_PARTS; ++other) {
      if (other != part && strstr(error.message, words[other]) != NULL)
        fail_msg("the error message '%s' names '%s', which does not differ", error.message, words[other]);
    }
    m.info.key.parts[part].bytes[31] ^= 1;
    if (part == CLV__KEY_STRUCTURE) m.info.key.parts[part].bytes[0] ^= 1;
  }
  assert_int_equal(get(cache, &m, NULL), CLV_OK);
  unmake(&m);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* ---- Invalid files ---- */

static void flipped_bits(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  char path[512];
  size_t size_bytes;
  uint64_t seed = 11;
  make(&m, 4, 5000);
  put(cache, &m);
  path_of(&f, &m, path);
  uint8_t *data = read_all(path, &size_bytes);
  for (size_t i = 0; i < 700; ++i) {
    size_t at = i < 300 ? i : test_random(&seed) % size_bytes; /* the first 300 bytes, then random ones */
    uint8_t bit = (uint8_t)(1u << test_random(&seed) % 8);
    data[at] ^= bit;
    write_all(path, data, size_bytes);
    data[at] ^= bit;
    clv_error error = {0};
    clv_status status = get(cache, &m, &error);
    if (status == CLV_OK) fail_msg("byte %zu was changed, but the file was accepted", at);
    if (status == CLV_NOT_SUPPORTED) { /* the version was changed: a file of another version is not removed */
      assert_true(at >= 8 && at < 12);
      assert_int_equal(access(path, F_OK), 0);
    } else {
      assert_int_equal(status, CLV_INVALID_MODEL);
      assert_true(access(path, F_OK) != 0);
      assert_non_null(strstr(error.message, "removed"));
    }
  }
  write_all(path, data, size_bytes);
  assert_int_equal(get(cache, &m, NULL), CLV_OK);
  free(data);
  unmake(&m);
  clv__cache_close(cache);
  folder_remove(f.path);
}

static void truncated_and_longer(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  char path[512];
  size_t size_bytes;
  make(&m, 3, 2000);
  put(cache, &m);
  path_of(&f, &m, path);
  uint8_t *data = read_all(path, &size_bytes);
  for (size_t length = 0; length < size_bytes; length += length < 400 ? 1 : 37) {
    write_all(path, data, length);
    folder_count count = folder_look(f.path);
    assert_int_equal(count.damaged, 1);
    assert_int_equal(get(cache, &m, NULL), CLV_INVALID_MODEL);
    assert_true(access(path, F_OK) != 0);
  }
  write_all(path, data, size_bytes + 1);
  assert_int_equal(get(cache, &m, NULL), CLV_INVALID_MODEL);
  free(data);
  unmake(&m);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* A valid file under the name of another key must be rejected: it would give the payload of the other key. */
static void renamed(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made a, b;
  char from[512], to[512];
  make(&a, 1, 100);
  make(&b, 2, 100);
  put(cache, &a);
  put(cache, &b);
  path_of(&f, &a, from);
  path_of(&f, &b, to);
  assert_int_equal(rename(from, to), 0);
  assert_int_equal(folder_look(f.path).damaged, 1);
  assert_int_equal(get(cache, &b, NULL), CLV_INVALID_MODEL);
  assert_int_equal(get(cache, &b, NULL), CLV_NOT_FOUND);
  assert_int_equal(get(cache, &a, NULL), CLV_NOT_FOUND);
  unmake(&a);
  unmake(&b);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* Tests forged files: a byte of the header is changed, and the stored hash is recomputed to match. They may be accepted or
 * rejected, but must do no harm. */
static void honest_looking(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  uint64_t seed = 5;
  for (int i = 0; i < 500; ++i) {
    made m;
    char path[512];
    clv__text text;
    make(&m, 4, 64);
    clv__text_init(&text, clv__allocator_default());
    clv__cache_header_write(&m.info, m.payload, m.payload_bytes, &text);
    clv__text_append_bytes(&text, m.payload, m.payload_bytes);
    assert_false(text.failed);
    uint8_t *data = (uint8_t *)text.data;
    size_t header = (size_t)data[12] | (size_t)data[13] << 8;
    size_t at = 216 + test_random(&seed) % (header - 216); /* a byte of the counts, the weights, the texts or their lengths */
    data[at] = (uint8_t)test_random(&seed);
    clv__hash content; /* the hash as described in cache/file.h */
    clv__hasher hasher;
    clv__hash_bytes(data + header, text.size_bytes - header, &content);
    clv__hasher_init(&hasher);
    clv__hasher_update(&hasher, data, 24);
    clv__hasher_update(&hasher, data + 56, header - 56);
    clv__hasher_update(&hasher, content.bytes, sizeof content.bytes);
    clv__hasher_finish(&hasher, (clv__hash *)(data + 24));
    clv__cached cached;
    put(cache, &m); /* creates the shard folder */
    path_of(&f, &m, path);
    write_all(path, data, text.size_bytes);
    if (clv__cache_get(cache, &m.info.key, &cached, NULL) == CLV_OK) { /* if it is accepted, its payload must be intact */
      assert_int_equal(cached.payload_bytes, m.payload_bytes);
      assert_memory_equal(cached.payload, m.payload, m.payload_bytes);
      assert_true(cached.info.weight_count <= 4);
      clv__cached_finish(cache, &cached);
    }
    clv__text_finish(&text);
    unmake(&m);
  }
  clv__cache_close(cache);
  folder_remove(f.path);
}

static void links(void **state) {
  (void)state;
  folder f, elsewhere;
  folder_make(&f);
  folder_make(&elsewhere);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  char path[512], target[512], shard[512], moved[512];
  clv_error error = {0};
  make(&m, 3, 500);
  put(cache, &m);
  path_of(&f, &m, path);
  /* The file is a symbolic link to a valid file elsewhere. */
  snprintf(target, sizeof target, "%s/whole", elsewhere.path);
  assert_int_equal(rename(path, target), 0);
  assert_int_equal(symlink(target, path), 0);
  assert_int_equal(get(cache, &m, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "symbolic link"));
  assert_int_equal(access(target, F_OK), 0);
  put(cache, &m); /* replaces the link, but not its target */
  assert_int_equal(get(cache, &m, NULL), CLV_OK);
  struct stat info;
  assert_true(lstat(path, &info) == 0 && S_ISREG(info.st_mode));
  assert_int_equal(access(target, F_OK), 0);
  /* The shard folder is a link: nothing is read, written or removed through it. */
  snprintf(shard, sizeof shard, "%.*s", (int)(strlen(f.path) + 3), path);
  snprintf(moved, sizeof moved, "%s/shard", elsewhere.path);
  assert_int_equal(rename(shard, moved), 0);
  assert_int_equal(symlink(moved, shard), 0);
  error = (clv_error){0};
  assert_int_equal(get(cache, &m, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "symbolic link"));
  error = (clv_error){0};
  assert_int_equal(clv__cache_put(cache, &m.info, save, &m, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "symbolic link"));
  clv__cache_pruned pruned;
  assert_ok(clv__cache_prune(cache, 0, 0, &pruned, &error), error);
  assert_int_equal(pruned.removed, 0);
  folder_count count = folder_look(f.path);
  assert_int_equal(count.whole, 0);
  assert_int_equal(count.damaged, 1);
  assert_non_null(strstr(count.problem, "symbolic link"));
  assert_true(snprintf(target, sizeof target, "%s/%s", moved, path + strlen(shard) + 1) < (int)sizeof target);
  assert_int_equal(access(target, F_OK), 0);
  clv__cache_close(cache);
  unmake(&m);
  folder_remove(f.path);
  folder_remove(elsewhere.path);
}

static void foreign(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  char path[512];
  clv_error error = {0};
  make(&m, 3, 500);
  put(cache, &m);
  path_of(&f, &m, path);
  assert_int_equal(chmod(path, 0622), 0);
  assert_int_equal(get(cache, &m, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "other users can write"));
  assert_int_equal(chmod(path, 0600), 0);
  assert_int_equal(get(cache, &m, NULL), CLV_OK);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0); /* opening a FIFO must not block */
  error = (clv_error){0};
  assert_int_equal(get(cache, &m, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "regular"));
  put(cache, &m);
  if (geteuid() != 0) {
    print_message("skipped: files of other users can only be made by root\n");
  } else {
    assert_int_equal(chown(path, 4242, 4242), 0);
    error = (clv_error){0};
    assert_int_equal(get(cache, &m, &error), CLV_IO_ERROR);
    assert_non_null(strstr(error.message, "belongs to user 4242"));
    put(cache, &m);
    assert_int_equal(get(cache, &m, NULL), CLV_OK);
    clv__cache *other;
    assert_int_equal(chown(f.path, 4242, 4242), 0);
    error = (clv_error){0};
    assert_int_equal(clv__cache_open(clv__allocator_default(), f.path, NO_LIMIT, true, &other, &error), CLV_IO_ERROR);
    assert_non_null(strstr(error.message, "belongs to user 4242"));
  }
  clv__cache_close(cache);
  unmake(&m);
  folder_remove(f.path);
}

/* ---- Where nothing can be written ---- */

static void no_directory(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  char path[256];
  clv__cache *cache;
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/file", f.path);
  write_all(path, "x", 1);
  snprintf(path, sizeof path, "%s/file/cache", f.path);
  assert_int_equal(clv__cache_open(clv__allocator_default(), path, NO_LIMIT, true, &cache, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, path));
  assert_int_equal(clv__cache_open(clv__allocator_default(), "", NO_LIMIT, true, &cache, &error), CLV_NOT_FOUND);
  snprintf(path, sizeof path, "%s/none", f.path);
  assert_int_equal(clv__cache_open(clv__allocator_default(), path, NO_LIMIT, false, &cache, &error), CLV_NOT_FOUND);
  assert_true(access(path, F_OK) != 0);
  folder_remove(f.path);
}

static void read_only(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (!folder_without_rights(&f)) _exit(FOLDER_SKIPPED);
    made a, b;
    clv_error into = {0}, over = {0};
    clv__cache *cache = open_cache(f.path, NO_LIMIT), *again;
    make(&a, 1, 100);
    make(&b, 2, 100);
    put(cache, &a);
    folder_rights(&f, 0500);
    bool right = get(cache, &a, NULL) == CLV_OK && clv__cache_put(cache, &b.info, save, &b, &into) == CLV_IO_ERROR &&
                 strstr(into.message, "cannot create the cache folder: Permission denied") != NULL &&
                 clv__cache_put(cache, &a.info, save, &a, &over) == CLV_IO_ERROR &&
                 strstr(over.message, "cannot write the file: Permission denied") != NULL &&
                 get(cache, &b, NULL) == CLV_NOT_FOUND;
    right = right && clv__cache_open(clv__allocator_default(), f.path, NO_LIMIT, true, &again, NULL) == CLV_OK &&
            get(again, &a, NULL) == CLV_OK;
    folder_rights(&f, 0700);
    _exit(right ? 0 : 1);
  }
  folder_wait(child);
  folder_count count = folder_look(f.path);
  assert_int_equal(count.damaged + count.unfinished, 0);
  folder_remove(f.path);
}

/* Tests a full disk, simulated with a limit on the size of files. The limit applies to a whole process, so the test uses a
 * child. */
static void disk_full(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {20000, 20000};
    made small, large;
    clv_error error = {0};
    clv__cache *cache = open_cache(f.path, NO_LIMIT);
    make(&small, 1, 5000);
    make(&large, 2, 100000);
    bool right = setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                 clv__cache_put(cache, &large.info, save, &large, &error) == CLV_IO_ERROR &&
                 strstr(error.message, "cannot write the file") != NULL && get(cache, &large, NULL) == CLV_NOT_FOUND &&
                 clv__cache_put(cache, &small.info, save, &small, &error) == CLV_OK && get(cache, &small, NULL) == CLV_OK;
    _exit(right ? 0 : 1);
  }
  folder_wait(child);
  folder_count count = folder_look(f.path);
  assert_int_equal(count.whole, 1);
  assert_int_equal(count.damaged + count.unfinished, 0);
  folder_remove(f.path);
}

static clv_status save_fails(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  CLV__TRY(write(cookie, self, 100));
  return clv__error_set(error, CLV_DEVICE_ERROR, "the driver is gone");
}

static void cannot_be_saved(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, 50000);
  made m;
  clv_error error = {0};
  make(&m, 1, 60000);
  assert_int_equal(clv__cache_put(cache, &m.info, save_fails, m.payload, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "the driver is gone"));
  error = (clv_error){0};
  assert_int_equal(clv__cache_put(cache, &m.info, save, &m, &error), CLV_TOO_LARGE);
  assert_non_null(strstr(error.message, "50000"));
  folder_count count = folder_look(f.path);
  assert_int_equal(count.whole + count.damaged + count.unfinished, 0);
  unmake(&m);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* Lets each allocation fail in turn. Nothing may leak, and no damaged file may remain. */
static void no_memory(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  bool done = false;
  for (size_t fail_at = 1; !done; ++fail_at) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    made m;
    make(&m, 3, 3000);
    clv__cache *cache;
    clv__cached cached;
    done = true;
    clv_status status = clv__cache_open(&counting.allocator, f.path, NO_LIMIT, true, &cache, NULL);
    if (status == CLV_OK) {
      if (clv__cache_put(cache, &m.info, save, &m, NULL) != CLV_OK) done = false;
      if (clv__cache_get(cache, &m.info.key, &cached, NULL) == CLV_OK)
        clv__cached_finish(cache, &cached);
      else
        done = false;
      clv__cache_pruned pruned;
      if (clv__cache_prune(cache, NO_LIMIT, 0, &pruned, NULL) != CLV_OK) done = false;
      clv__cache_close(cache);
    } else {
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
      done = false;
    }
    if (counting.calls < fail_at) done = true;
    assert_int_equal(counting.live, 0);
    unmake(&m);
    assert_true(fail_at < 1000);
  }
  assert_int_equal(folder_look(f.path).damaged, 0);
  folder_remove(f.path);
}

/* ---- The limit ---- */

static void set_used(const char *path, time_t seconds_ago) {
  struct timespec now, times[2];
  clock_gettime(CLOCK_REALTIME, &now);
  times[0] = times[1] = (struct timespec){now.tv_sec - seconds_ago, now.tv_nsec};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void pruning(void **state) {
  (void)state;
  enum { COUNT = 10, BYTES = 10000 };
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made some[COUNT];
  char path[512];
  for (int i = 0; i < COUNT; ++i) {
    make(&some[i], (uint64_t)i, BYTES);
    put(cache, &some[i]);
    path_of(&f, &some[i], path);
    set_used(path, 1000 - 10 * i); /* number 0 was used longest ago */
  }
  assert_int_equal(get(cache, &some[0], NULL), CLV_OK); /* makes number 0 the most recently used */
  clv__cache_pruned pruned;
  clv_error error = {0};
  assert_ok(clv__cache_prune(cache, 4 * (BYTES + 400), 0, &pruned, &error), error);
  assert_int_equal(pruned.kept, 4);
  assert_int_equal(pruned.removed, 6);
  assert_true(pruned.kept_bytes <= 4 * (BYTES + 400) && pruned.kept_bytes > 4 * BYTES);
  for (int i = 0; i < COUNT; ++i) {
    bool stays = i == 0 || i >= COUNT - 3;
    assert_int_equal(get(cache, &some[i], NULL), stays ? CLV_OK : CLV_NOT_FOUND);
  }
  path_of(&f, &some[9], path);
  set_used(path, 7200);
  assert_ok(clv__cache_prune(cache, NO_LIMIT, 3600, &pruned, &error), error);
  assert_int_equal(pruned.removed, 1);
  assert_int_equal(get(cache, &some[9], NULL), CLV_NOT_FOUND);
  clv__cache_close(cache);
  /* clv__cache_put() keeps the cache within its limit and does not remove the file that it just wrote. */
  cache = open_cache(f.path, 3 * (BYTES + 400));
  for (int i = 0; i < COUNT; ++i) {
    put(cache, &some[i]);
    assert_int_equal(get(cache, &some[i], NULL), CLV_OK);
    assert_true(folder_look(f.path).whole <= 3);
  }
  assert_ok(clv__cache_prune(cache, 0, 0, &pruned, &error), error);
  assert_int_equal(folder_look(f.path).whole, 0);
  for (int i = 0; i < COUNT; ++i) unmake(&some[i]);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* Pruning removes files that killed processes left behind. It keeps files that a process is still writing, and files that are not
 * the cache's. */
static void unfinished(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv__cache *cache = open_cache(f.path, NO_LIMIT);
  made m;
  char path[512], left[600], strange[600];
  make(&m, 1, 100);
  put(cache, &m);
  path_of(&f, &m, path);
  *strrchr(path, '/') = '\0';
  snprintf(left, sizeof left, "%s/.new-1-2-3", path);
  snprintf(strange, sizeof strange, "%s/README", path);
  write_all(left, "half", 4);
  write_all(strange, "mine", 4);
  assert_int_equal(get(cache, &m, NULL), CLV_OK);
  clv__cache_pruned pruned;
  clv_error error = {0};
  assert_ok(clv__cache_prune(cache, 0, 0, &pruned, &error), error);
  assert_int_equal(access(left, F_OK), 0); /* too new to be sure that its writer was killed */
  assert_int_equal(access(strange, F_OK), 0);
  assert_int_equal(get(cache, &m, NULL), CLV_NOT_FOUND);
  set_used(left, 100);
  int writer = open(left, O_RDONLY);
  assert_int_equal(flock(writer, LOCK_EX | LOCK_NB), 0);
  assert_ok(clv__cache_prune(cache, 0, 0, &pruned, &error), error);
  assert_int_equal(access(left, F_OK), 0); /* a writer holds a lock on it */
  close(writer);
  assert_ok(clv__cache_prune(cache, NO_LIMIT, 0, &pruned, &error), error);
  assert_true(access(left, F_OK) != 0);
  assert_int_equal(pruned.removed, 1);
  unmake(&m);
  clv__cache_close(cache);
  folder_remove(f.path);
}

/* ---- Several processes ---- */

enum { KEYS = 12 };

/* Puts, gets and sometimes prunes at random, until `operations` are done (0: until the process is killed). A get must return the
 * right content or nothing. */
static int work(const char *path, uint64_t seed, uint32_t operations) {
  clv__cache *cache;
  if (clv__cache_open(clv__allocator_default(), path, 400000, true, &cache, NULL) != CLV_OK) return 2;
  for (uint32_t i = 0; operations == 0 || i < operations; ++i) {
    made m;
    uint64_t number = test_random(&seed) % KEYS;
    make(&m, number, 1000 + 7000 * number);
    clv__cached cached;
    clv__cache_pruned pruned;
    clv_error error = {0};
    switch (test_random(&seed) % 8) {
      case 0:
        if (clv__cache_prune(cache, test_random(&seed) % 400000, 0, &pruned, &error) != CLV_OK) return 3;
        break;
      case 1:
      case 2:
      case 3:
        if (clv__cache_put(cache, &m.info, save, &m, &error) != CLV_OK) return 4;
        break;
      default: {
        clv_status status = clv__cache_get(cache, &m.info.key, &cached, &error);
        if (status != CLV_OK && status != CLV_NOT_FOUND) return 5;
        if (status != CLV_OK) break;
        if (cached.payload_bytes != m.payload_bytes || memcmp(cached.payload, m.payload, m.payload_bytes) != 0) return 6;
        clv__cached_finish(cache, &cached);
      }
    }
    unmake(&m);
  }
  clv__cache_close(cache);
  return 0;
}

static void racing(void **state) {
  (void)state;
  enum { PROCESSES = 4 };
  folder f;
  folder_make(&f);
  pid_t children[PROCESSES];
  fflush(NULL);
  for (int i = 0; i < PROCESSES; ++i) {
    children[i] = fork();
    if (children[i] == 0) _exit(work(f.path, (uint64_t)i + 1, 400));
  }
  for (int i = 0; i < PROCESSES; ++i) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail_msg("process %d ended with wait status %#x, expected 0", i, (unsigned)status);
  }
  folder_count count = folder_look(f.path);
  assert_int_equal(count.damaged + count.unfinished, 0);
  folder_remove(f.path);
}

static void killed(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  uint64_t seed = 99;
  uint32_t left = 0;
  for (int round = 0; round < 100; ++round) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(work(f.path, (uint64_t)round, 0));
    usleep((useconds_t)(300 + test_random(&seed) % 6000));
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status))
      fail_msg("round %d: the process ended with wait status %#x before it was killed", round, (unsigned)status);
    folder_count count = folder_look(f.path);
    if (count.damaged > 0) fail_msg("round %d: the file %s is damaged: %s", round, count.name, count.problem);
    left = count.unfinished;
    clv__cache *cache = open_cache(f.path, NO_LIMIT);
    made m;
    make(&m, test_random(&seed) % KEYS, 1000);
    clv__cached cached;
    clv_status got = clv__cache_get(cache, &m.info.key, &cached, NULL);
    assert_true(got == CLV_OK || got == CLV_NOT_FOUND);
    if (got == CLV_OK) clv__cached_finish(cache, &cached);
    unmake(&m);
    clv__cache_close(cache);
  }
  print_message("%u unfinished files are left\n", left);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trips),  cmocka_unit_test(nearest_tells),
      cmocka_unit_test(flipped_bits), cmocka_unit_test(truncated_and_longer),
      cmocka_unit_test(renamed),      cmocka_unit_test(honest_looking),
      cmocka_unit_test(links),        cmocka_unit_test(foreign),
      cmocka_unit_test(no_directory), cmocka_unit_test(read_only),
      cmocka_unit_test(disk_full),    cmocka_unit_test(cannot_be_saved),
      cmocka_unit_test(no_memory),    cmocka_unit_test(pruning),
      cmocka_unit_test(unfinished),   cmocka_unit_test(racing),
      cmocka_unit_test(killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
