/* Finds a framework's library and opens it: see framework.h. */
#define _GNU_SOURCE /* strverscmp */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "framework.h"

enum { PATH_BYTES = 4096 };

/* One search: where the library was found, and the loader's last message. */
typedef struct attempt {
  const clv__library_search *search;
  int flags;
  void *handle;
  char found[PATH_BYTES]; /* the last file that was tried; "": none was found */
  char problem[600];      /* why the last file could not be opened */
} attempt;

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool open_at(attempt *a, const char *path) {
  snprintf(a->found, sizeof a->found, "%s", path);
  dlerror();
  a->handle = dlopen(path, a->flags);
  if (a->handle != NULL) return true;
  const char *why = dlerror();
  snprintf(a->problem, sizeof a->problem, "%s", why != NULL ? why : "the dynamic loader rejected the library");
  return false;
}

/* Appends a path with its pattern characters escaped. */
static bool append_escaped(char *pattern, size_t pattern_bytes, const char *path) {
  size_t at = strlen(pattern);
  for (; *path != '\0'; ++path) {
    if (strchr("*?[]\\", *path) != NULL && at + 1 < pattern_bytes) pattern[at++] = '\\';
    if (at + 1 >= pattern_bytes) return false;
    pattern[at++] = *path;
  }
  pattern[at] = '\0';
  return true;
}

static int newest_first(const void *a, const void *b) {
  return strverscmp(*(char *const *)b, *(char *const *)a);
}

/* Tries the files that match `pattern`, which may contain `*`, until one opens. The newest version comes first. */
static bool open_matching(attempt *a, const char *pattern) {
  glob_t found = {0};
  if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
    globfree(&found);
    return false;
  }
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
  bool opened = false;
  for (size_t i = 0; i < found.gl_pathc && !opened; ++i) {
    if (!is_folder(found.gl_pathv[i])) opened = open_at(a, found.gl_pathv[i]);
  }
  globfree(&found);
  return opened;
}

/* Tries each of the library's file names in all folders that match one path: `folder` (unless it is NULL), directly followed by
 * `pattern` and, unless `subfolder` is "", by "/" and `subfolder`. A `*` is a wildcard in `pattern`, but an ordinary character
 * in `folder`. */
static bool open_below(attempt *a, const char *folder, const char *pattern, const char *subfolder) {
  for (const char *const *name = a->search->names; *name != NULL; ++name) {
    char whole[PATH_BYTES] = "";
    if (folder != NULL && !append_escaped(whole, sizeof whole, folder)) return false;
    size_t used = strlen(whole);
    int written =
        snprintf(whole + used, sizeof whole - used, "%s%s%s/%s", pattern, subfolder[0] != '\0' ? "/" : "", subfolder, *name);
    if (written < 0 || (size_t)written >= sizeof whole - used) continue;
    if (open_matching(a, whole)) return true;
  }
  return false;
}

static bool open_in_subfolders(attempt *a, const char *folder, const char *pattern) {
  for (const char *const *subfolder = a->search->subfolders; subfolder != NULL && *subfolder != NULL; ++subfolder) {
    if (open_below(a, folder, pattern, *subfolder)) return true;
  }
  return false;
}

/* Opens the library that the environment variable names: a file, or a folder that contains it. Searches nowhere else. */
static clv_status open_said(attempt *a, clv_error *error) {
  const clv__library_search *search = a->search;
  const char *said = search->variable;
  if (strchr(said, '/') == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: %s=%s is not a path: write ./%s for a file in the current folder",
                          search->what, search->variable_name, said, said);
  }
  bool folder = is_folder(said);
  bool opened = folder ? open_below(a, said, "", "") || open_in_subfolders(a, said, "") : open_at(a, said);
  if (opened) return CLV_OK;
  if (a->found[0] == '\0') {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: %s=%s does not contain %s", search->what, search->variable_name, said,
                          search->names[0]);
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: %s=%s: %s", search->what, search->variable_name, said, a->problem);
}

/* First searches by name through the loader, which does not search the current directory unless it is configured to. Then
 * searches the standard system folders for file names with a version, which the loader finds only through a symbolic link. */
static bool open_by_loader(attempt *a) {
  for (const char *const *name = a->search->names; *name != NULL; ++name) {
    char plain[256];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(*name, "*"), *name);
    if ((a->handle = dlopen(plain, a->flags)) != NULL) {
      snprintf(a->found, sizeof a->found, "%s", plain);
      return true;
    }
  }
  static const char *const folders[] = {"/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    if (open_below(a, NULL, folders[i], "")) return true;
  }
  return false;
}

static bool open_in_wheels(attempt *a) {
  const char *environment = clv__environment_get(CLV__VARIABLE_VIRTUAL_ENV);
  const char *home = clv__environment_get(CLV__VARIABLE_HOME);
  const struct {
    const char *folder, *pattern;
  } places[] = {
      {environment, "/lib*/python3*/site-packages"},  {home, "/.local/lib*/python3*/site-packages"},
      {"", "/usr/local/lib*/python3*/dist-packages"}, {"", "/usr/local/lib*/python3*/site-packages"},
      {"", "/usr/lib*/python3*/dist-packages"},       {"", "/usr/lib*/python3*/site-packages"},
  };
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    const char *folder = places[i].folder;
    if (folder == NULL || (folder[0] != '\0' && folder[0] != '/')) continue; /* never relative to the current directory */
    if (open_in_subfolders(a, folder, places[i].pattern)) return true;
  }
  return false;
}

clv_status clv__library_open(const clv__library_search *search, int flags, void **handle, char *path, size_t path_bytes,
                             clv_error *error) {
  *handle = NULL;
  attempt a = {.search = search, .flags = flags};
  if (search->variable != NULL && search->variable[0] != '\0') {
    CLV__TRY(open_said(&a, error));
  } else if (!open_by_loader(&a) && !open_in_wheels(&a)) {
    if (a.found[0] != '\0') return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: %s", search->what, a.problem);
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "%s was not found: the loader can open no %s, and none is in site-packages (of VIRTUAL_ENV, the user or the "
        "system); install it, or set %s to its path",
        search->what, search->names[0], search->variable_name);
  }
  if (path != NULL) snprintf(path, path_bytes, "%s", a.found);
  *handle = a.handle;
  return CLV_OK;
}
