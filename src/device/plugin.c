/* Plugins: shared libraries with one backend each. They are loaded by path, by the name of a device, or all at once from the
 * plugin folders. backends.c checks their tables. */
#define _GNU_SOURCE /* dladdr */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "device/backends.h"
#include "device/device.h"

#define PREFIX "cleave_"
#define SUFFIX ".so"

/* ---- One file ---- */

/* Returns dlerror()'s message without the file name, which the error already contains. */
static const char *loader_words(const char *path) {
  const char *words = dlerror();
  size_t length = strlen(path);
  if (words == NULL) return "no reason given by the loader";
  return strncmp(words, path, length) == 0 && strncmp(words + length, ": ", 2) == 0 ? words + length + 2 : words;
}

static clv_status open_file(clv_context *context, const char *path, const char *name, clv__plugin *plugin,
                            const clv_backend **backend, clv_error *error) {
  plugin->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin->handle == NULL) return clv__error_set(error, CLV_NOT_SUPPORTED, "it cannot be loaded: %s", loader_words(path));
  void *symbol = dlsym(plugin->handle, "clv_backend_query");
  if (symbol == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "not a plugin: it has no symbol 'clv_backend_query'");
  }
  clv_backend_query_fn query;
  memcpy(&query, &symbol, sizeof query);
  return clv__backends_add(context, query, NULL, name, plugin, backend, error);
}

/* Loads the plugin at `path`, or finds its backend if the same file is loaded already. The caller holds the lock of the
 * context's backends. */
static clv_status load(clv_context *context, const char *path, const char *name, const clv_backend **backend, clv_error *error) {
  clv__backends *backends = clv__context_backends(context);
  const clv_allocator *allocator = clv__context_allocator(context);
  struct stat file;
  if (stat(path, &file) != 0) return clv__error_set(error, CLV_NOT_FOUND, "%s", strerror(errno));
  if (!S_ISREG(file.st_mode)) return clv__error_set(error, CLV_INVALID_ARGUMENT, "not a file");
  if ((file.st_mode & S_IWOTH) != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "not loaded, because any user can write to it (chmod o-w)");
  }
  for (uint32_t i = 0; i < backends->count; ++i) {
    const clv__plugin *other = &backends->items[i].plugin;
    if (other->handle == NULL || other->device != file.st_dev || other->inode != file.st_ino) continue;
    *backend = &backends->items[i].table;
    return CLV_OK;
  }
  size_t length = strlen(path);
  clv__plugin plugin = {.device = file.st_dev, .inode = file.st_ino, .path = clv__allocate(allocator, length + 1)};
  if (plugin.path == NULL) return clv__error_memory(error, length + 1);
  memcpy(plugin.path, path, length + 1);
  clv_status status = open_file(context, path, name, &plugin, backend, error);
  if (status == CLV_OK) return CLV_OK;
  if (plugin.handle != NULL) dlclose(plugin.handle);
  clv__release(allocator, plugin.path);
  return status;
}

clv_status clv__context_load_plugin(clv_context *context, const char *path, const char *name, const clv_backend **backend,
                                    clv_error *error) {
  *backend = NULL;
  if (strchr(path, '/') == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "plugin '%s': plugins in the current directory need a path: write ./%s",
                          path, path);
  }
  clv__backends *backends = clv__context_backends(context);
  pthread_mutex_lock(&backends->lock);
  clv_status status = load(context, path, name, backend, error);
  pthread_mutex_unlock(&backends->lock);
  if (status != CLV_OK) return clv__error_prefix(error, status, "plugin %s", path);
  clv__context_log(context, 3, "plugin %s: backend '%s', version %s", path, (*backend)->name, (*backend)->version);
  return CLV_OK;
}

clv_status clv_context_load_plugin(clv_context *context, const char *path, clv_error *error) {
  const clv_backend *backend;
  if (context == NULL || path == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and path must not be NULL");
  return clv__context_load_plugin(context, path, NULL, &backend, error);
}

/* ---- The installation's folder ---- */

static bool same_file(const char *a, const char *b) {
  struct stat first, second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* The plugin folder next to the library, or next to the program's libraries if the library is linked into the program. A
 * relocated installation thus finds its own folder. NULL: there is none. */
static char *find_own_home(const clv_allocator *allocator) {
  char file[PATH_MAX];
  Dl_info about;
  if (dladdr((const void *)clv_context_load_plugin, &about) == 0 || about.dli_fname == NULL) return NULL;
  bool is_program = strchr(about.dli_fname, '/') == NULL || same_file(about.dli_fname, "/proc/self/exe");
  if (realpath(is_program ? "/proc/self/exe" : about.dli_fname, file) == NULL) return NULL;
  char *home = clv__path_beside(allocator, file, is_program ? CLEAVE_BIN_TO_LIB "/cleave/plugins" : "cleave/plugins");
  struct stat folder;
  if (home != NULL && (stat(home, &folder) != 0 || !S_ISDIR(folder.st_mode))) {
    clv__release(allocator, home);
    home = NULL;
  }
  return home;
}

/* ---- Folders ---- */

typedef struct folders {
  clv_context *context;
  clv__arena arena;
  uint32_t count;
  size_t capacity;
  const char **paths;
  clv__left_out_fn left_out;
  void *cookie;
} folders;

/* Adds a folder. Skips a missing one silently, and reports one that must not be used to `left_out`. */
static clv_status add_folder(folders *f, const char *path, size_t length, clv_error *error) {
  const char *folder = clv__arena_string(&f->arena, path, length);
  struct stat about;
  if (folder == NULL ||
      !clv__array_reserve(f->arena.allocator, (void **)&f->paths, &f->capacity, f->count + 1, sizeof *f->paths, f->count)) {
    return clv__error_memory(error, length);
  }
  if (folder[0] != '/') {
    f->left_out(f->cookie, folder, "the path of a plugin folder must start with '/'");
  } else if (stat(folder, &about) == 0 && S_ISDIR(about.st_mode)) {
    if ((about.st_mode & S_IWOTH) != 0)
      f->left_out(f->cookie, folder, "its plugins are not loaded, because any user can write to this folder (chmod o-w)");
    else
      f->paths[f->count++] = folder;
  }
  return CLV_OK;
}

static void finish_folders(folders *f) {
  clv__release(f->arena.allocator, (void *)f->paths);
  clv__arena_finish(&f->arena);
}

/* Lists the folders to search. Call finish_folders() even after a failure. */
static clv_status list_folders(folders *f, clv_error *error) {
  const clv__settings *settings = clv__context_settings(f->context);
  const clv_allocator *allocator = clv__context_allocator(f->context);
  clv__arena_init(&f->arena, allocator);
  for (const char *at = settings->plugin_path; at != NULL && *at != '\0';) {
    size_t length = strcspn(at, ":");
    if (length > 0) CLV__TRY(add_folder(f, at, length, error));
    at += length + (at[length] == ':');
  }
  if (!settings->has_plugin_home) return CLV_OK;
  char *own = find_own_home(allocator);
  const char *home = own != NULL ? own : CLEAVE_PLUGIN_HOME;
  clv_status status = add_folder(f, home, strlen(home), error);
  clv__release(allocator, own);
  return status;
}

/* ---- Finding a plugin by the name of a device ---- */

enum { FILE_BYTES = 96 };

static void log_left_out(void *cookie, const char *name, const char *reason) {
  clv__context_log(cookie, 1, "%s is not available: %s", name, reason);
}

/* Loads the first existing cleave_<name>.so; CLV_NOT_FOUND without a message if there is none. */
static clv_status load_named(const folders *f, const char *device_name, size_t length, clv_error *error) {
  char name[64], file[FILE_BYTES];
  if (length == 0 || length >= sizeof name) return CLV_NOT_FOUND;
  for (size_t i = 0; i < length; ++i) {
    char c = device_name[i];
    if (!isalnum((unsigned char)c) && c != '_' && c != '-') return CLV_NOT_FOUND;
  }
  snprintf(name, sizeof name, "%.*s", (int)length, device_name);
  snprintf(file, sizeof file, PREFIX "%s" SUFFIX, name);
  for (uint32_t i = 0; i < f->count; ++i) {
    char *path = clv__path_join(f->arena.allocator, f->paths[i], file);
    if (path == NULL) return clv__error_memory(error, sizeof file);
    struct stat about;
    bool is_there = stat(path, &about) == 0;
    const clv_backend *backend;
    clv_status status = is_there ? clv__context_load_plugin(f->context, path, name, &backend, error) : CLV_OK;
    clv__release(f->arena.allocator, path);
    if (is_there) return status;
  }
  return CLV_NOT_FOUND;
}

clv_status clv__plugin_find(clv_context *context, const char *device_name, clv_error *error) {
  folders f = {.context = context, .left_out = log_left_out, .cookie = context};
  clv__error_clear(error);
  clv_status status = list_folders(&f, error);
  size_t colon = strcspn(device_name, ":"), digits = colon;
  while (digits > 0 && isdigit((unsigned char)device_name[digits - 1])) --digits;
  if (status == CLV_OK) status = load_named(&f, device_name, colon, error);
  if (status == CLV_NOT_FOUND && digits < colon) status = load_named(&f, device_name, digits, error);
  finish_folders(&f);
  return status;
}

/* ---- All ---- */

static int is_plugin(const struct dirent *entry) {
  size_t length = strlen(entry->d_name), ends = strlen(PREFIX) + strlen(SUFFIX);
  return length > ends && length < FILE_BYTES && strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
         strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) == 0;
}

/* Whether an earlier plugin folder has a file of this name. Only the file in the first such folder is loaded. */
static bool is_hidden(const folders *f, uint32_t folder, const char *file) {
  for (uint32_t i = 0; i < folder; ++i) {
    char path[PATH_MAX];
    struct stat about;
    int length = snprintf(path, sizeof path, "%s/%s", f->paths[i], file);
    if (length > 0 && (size_t)length < sizeof path && stat(path, &about) == 0) return true;
  }
  return false;
}

static void load_folder(const folders *f, uint32_t folder) {
  struct dirent **entries = NULL;
  int count = scandir(f->paths[folder], &entries, is_plugin, alphasort);
  for (int i = 0; i < count; ++i) {
    const char *file = entries[i]->d_name;
    char name[FILE_BYTES], path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", f->paths[folder], file);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(PREFIX) - strlen(SUFFIX)), file + strlen(PREFIX));
    if (length > 0 && (size_t)length < sizeof path && !is_hidden(f, folder, file)) {
      const clv_backend *backend;
      clv_error problem = {0};
      if (clv__context_load_plugin(f->context, path, name, &backend, &problem) != CLV_OK) {
        f->left_out(f->cookie, name, problem.message);
      }
    }
    free(entries[i]);
  }
  free(entries);
}

clv_status clv__plugin_load_all(clv_context *context, clv__left_out_fn left_out, void *cookie, clv_error *error) {
  folders f = {.context = context, .left_out = left_out, .cookie = cookie};
  clv_status status = list_folders(&f, error);
  for (uint32_t i = 0; status == CLV_OK && i < f.count; ++i) load_folder(&f, i);
  finish_folders(&f);
  return status;
}
