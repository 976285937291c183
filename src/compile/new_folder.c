/* Makes a folder appear atomically: it is built beside its target and replaces it at the end. An existing folder is replaced only
 * if all files in it are ours. */
#define _GNU_SOURCE /* renameat2, flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/temporaries.h"
#include "compile/folder.h"

#define MARK ".new-"
enum { ATTEMPTS = 100 }; /* how often a step is repeated if another process writes to the same target meanwhile */

/* ---- The files of a folder ---- */

static bool has_form(const char *name, size_t length, const char *begin, const char *end) {
  size_t from = strlen(begin), to = strlen(end);
  return length > from + to && memcmp(name, begin, from) == 0 && memcmp(name + length - to, end, to) == 0;
}

/* Returns whether the first `length` bytes of `name` are the name of a file that we write. */
static bool is_written(const char *name, size_t length) {
  static const char *const names[] = {CLV__FOLDER_LIST, CLV__FOLDER_PLAN, CLV__FOLDER_MODEL, CLV__FOLDER_WEIGHTS,
                                      CLV__FOLDER_PROFILE};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return true;
  }
  return has_form(name, length, "partition-", ".onnx") || has_form(name, length, "partition-", CLV__CACHE_SUFFIX) ||
         has_form(name, length, "npu-", ".json");
}

/* Returns whether `name` is a file that we write, or a temporary file for one, left by a killed process
 * (base/files/file_writer.h). */
static bool is_ours(const char *name) {
  const char *temporary = strstr(name, ".tmp-");
  return is_written(name, temporary != NULL ? (size_t)(temporary - name) : strlen(name));
}

static bool is_self_or_parent(const char *name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Removes our files from a folder, and the folder itself if nothing else is in it. */
static void remove_folder(const char *path) {
  DIR *listing = opendir(path);
  if (listing == NULL) return;
  for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
    if (is_ours(item->d_name)) (void)unlinkat(dirfd(listing), item->d_name, 0);
  }
  closedir(listing);
  (void)rmdir(path);
}

/* Returns whether the folder at the target is no longer the one that `listing` reads. */
static bool is_replaced(const clv__new_folder *made, DIR *listing) {
  struct stat listed, there;
  return fstat(dirfd(listing), &listed) == 0 && (stat(made->target, &there) != 0 || there.st_ino != listed.st_ino);
}

/* Checks that the folder at the target may be removed: it is empty, or has only our files, including a list. `is_stale`: another
 * process replaced it meanwhile, so the result means nothing. */
static clv_status check_listed(clv__new_folder *made, const char *directory, bool *is_stale, clv_error *error) {
  DIR *listing = opendir(made->target);
  *is_stale = false;
  if (listing == NULL) {
    *is_stale = errno == ENOENT;
    if (errno == ENOTDIR) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: not a directory: give another path", directory);
    return clv__error_set(error, CLV_IO_ERROR, "%s: cannot list the directory: %s", directory, strerror(errno));
  }
  clv_status status = CLV_OK;
  bool has_list = false, is_empty = true;
  for (const struct dirent *item; status == CLV_OK && (item = readdir(listing)) != NULL;) {
    if (is_self_or_parent(item->d_name)) continue;
    is_empty = false;
    has_list = has_list || strcmp(item->d_name, CLV__FOLDER_LIST) == 0;
    if (is_ours(item->d_name)) continue;
    status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "%s: contains '%.100s', which does not belong to a compiled model: give another directory", directory,
                            item->d_name);
  }
  *is_stale = is_replaced(made, listing);
  closedir(listing);
  made->replaces = !is_empty;
  if (status != CLV_OK || is_empty || has_list) return status;
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "%s: contains files but no '" CLV__FOLDER_LIST "', so it is not a compiled model: give another directory",
                        directory);
}

static clv_status check_contents(clv__new_folder *made, const char *directory, clv_error *error) {
  bool is_stale;
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    clv_status status = check_listed(made, directory, &is_stale, error);
    if (status == CLV_OK || !is_stale) return status;
  }
  return clv__error_set(error, CLV_IO_ERROR, "%s: other processes keep replacing it", directory);
}

/* ---- The new folder ---- */

/* The part of the path after its last slash. */
static char *last_part(char *path) {
  char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* Sets `made->target` to the path of `directory` with links resolved, so that a link itself is never replaced. */
static clv_status find_target(clv__new_folder *made, const char *directory, bool *is_there, clv_error *error) {
  char resolved[PATH_MAX];
  size_t length = strlen(directory);
  *is_there = realpath(directory, resolved) != NULL;
  if (!*is_there && errno != ENOENT)
    return clv__error_set(error, CLV_IO_ERROR, "%s: cannot write there: %s", directory, strerror(errno));
  if (*is_there) length = strlen(resolved);
  made->target = clv__allocate(made->allocator, length + 1);
  if (made->target == NULL) return clv__error_memory(error, length + 1);
  memcpy(made->target, *is_there ? resolved : directory, length + 1);
  while (length > 1 && made->target[length - 1] == '/') made->target[--length] = '\0';
  struct stat link;
  bool dangles = !*is_there && lstat(made->target, &link) == 0;
  const char *name = last_part(made->target);
  if (name[0] == '\0' || dangles || (!*is_there && is_self_or_parent(name)))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: cannot create a directory here: give another path", directory);
  return CLV_OK;
}

/* Removes unfinished folders that killed processes left beside the target: no process holds a lock on them. */
static void sweep(const clv__new_folder *made) {
  char *name = last_part(made->folder);
  size_t prefix = strlen(name) - 6; /* without the random letters of mkdtemp() */
  char saved = *name;
  *name = '\0';
  DIR *listing = opendir(made->folder[0] == '\0' ? "." : made->folder);
  *name = saved;
  if (listing == NULL) return;
  for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
    if (strlen(item->d_name) != prefix + 6 || memcmp(item->d_name, name, prefix) != 0) continue;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%.*s%s", (int)(name - made->folder), made->folder, item->d_name);
    if (length < 0 || (size_t)length >= sizeof path) continue;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) remove_folder(path);
    close(folder);
  }
  closedir(listing);
}

/* Creates the folder and locks it. CLV_NOT_FOUND: another process swept it away in between. */
static clv_status create(clv__new_folder *made, const char *directory, clv_error *error) {
  struct stat locked, there;
  memcpy(made->folder + strlen(made->folder) - 6, "XXXXXX", 6);
  clv__temporary_begin();
  bool is_made = mkdtemp(made->folder) != NULL;
  int code = errno;
  clv__temporary_end(is_made ? made->folder : NULL, remove_folder);
  if (!is_made) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot create: %s", directory, strerror(code));
  made->lock = open(made->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (made->lock >= 0 && flock(made->lock, LOCK_EX | LOCK_NB) == 0 && fstat(made->lock, &locked) == 0 &&
      stat(made->folder, &there) == 0 && locked.st_ino == there.st_ino)
    return CLV_OK;
  if (made->lock >= 0) close(made->lock);
  made->lock = -1;
  clv__temporary_forget(made->folder);
  return clv__error_set(error, CLV_NOT_FOUND, "%s: cannot create: another process removed it", directory);
}

clv_status clv__new_folder_begin(const clv_allocator *allocator, const char *directory, clv__new_folder *made, clv_error *error) {
  *made = (clv__new_folder){.allocator = allocator, .lock = -1};
  bool is_there;
  CLV__TRY(find_target(made, directory, &is_there, error));
  if (is_there) CLV__TRY(check_contents(made, directory, error));
  const char *name = last_part(made->target);
  size_t length = strlen(made->target) + sizeof "." MARK "XXXXXX";
  made->folder = clv__allocate(allocator, length);
  if (made->folder == NULL) return clv__error_memory(error, length);
  snprintf(made->folder, length, "%.*s.%s" MARK "XXXXXX", (int)(name - made->target), made->target, name);
  sweep(made);
  clv_status status = CLV_NOT_FOUND;
  for (int attempt = 0; status == CLV_NOT_FOUND && attempt < ATTEMPTS; ++attempt) status = create(made, directory, error);
  if (status == CLV_OK) return status;
  clv__release(allocator, made->folder);
  made->folder = NULL;
  return status;
}

clv_status clv__folder_check(const clv_allocator *allocator, const char *directory, clv_error *error) {
  clv__new_folder made;
  clv_status status = clv__new_folder_begin(allocator, directory, &made, error);
  clv__new_folder_end(&made);
  return status;
}

/* Exchanges the new folder and the target. If the system cannot do this in one step, renames the old folder first, so for a
 * moment the target does not exist. */
static int exchange(const clv__new_folder *made) {
  if (renameat2(AT_FDCWD, made->folder, AT_FDCWD, made->target, RENAME_EXCHANGE) == 0) return 0;
  if (errno != ENOSYS && errno != EINVAL) return -1;
  char aside[PATH_MAX];
  int length = snprintf(aside, sizeof aside, "%s-", made->folder);
  if (length < 0 || (size_t)length >= sizeof aside || rename(made->target, aside) != 0) return -1;
  if (rename(made->folder, made->target) == 0) return rename(aside, made->folder);
  int code = errno;
  (void)rename(aside, made->target);
  errno = code;
  return -1;
}

/* Moves the new folder to the target, once. Returns 0, or an error code: ENOENT and ENOTEMPTY if another process made or removed
 * the target meanwhile. */
static int try_to_move(const clv__new_folder *made) {
  int result = made->replaces ? exchange(made) : rename(made->folder, made->target);
  return result == 0 ? 0 : errno == EEXIST ? ENOTEMPTY : errno;
}

clv_status clv__new_folder_commit(clv__new_folder *made, clv_error *error) {
  mode_t mask = umask(0);
  umask(mask);
  int code = chmod(made->folder, 0777 & ~mask) == 0 ? try_to_move(made) : errno;
  for (int attempt = 0; (code == ENOTEMPTY || (code == ENOENT && made->replaces)) && attempt < ATTEMPTS; ++attempt) {
    made->replaces = false;
    if (code == ENOTEMPTY) CLV__TRY(check_contents(made, made->target, error));
    code = try_to_move(made);
  }
  if (code != 0)
    return clv__error_set(error, CLV_IO_ERROR, "%s: cannot move the new directory to this path: %s", made->target,
                          strerror(code));
  if (made->replaces) remove_folder(made->folder); /* it now has the old contents */
  clv__temporary_forget(made->folder);
  clv__release(made->allocator, made->folder);
  made->folder = NULL;
  return CLV_OK;
}

void clv__new_folder_end(clv__new_folder *made) {
  if (made->folder != NULL) remove_folder(made->folder);
  if (made->folder != NULL) clv__temporary_forget(made->folder);
  if (made->lock >= 0) close(made->lock);
  clv__release(made->allocator, made->folder);
  clv__release(made->allocator, made->target);
  *made = (clv__new_folder){.lock = -1};
}

clv_status clv_compiled_check(const char *directory, clv_error *error) {
  if (directory == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "directory must not be NULL");
  return clv__folder_check(clv__allocator_default(), directory, error);
}
