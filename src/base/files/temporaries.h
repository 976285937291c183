/* The temporary files and folders of this process, so that a program that must end at once leaves none behind. */
#ifndef CLEAVE_BASE_FILES_TEMPORARIES_H
#define CLEAVE_BASE_FILES_TEMPORARIES_H

/* Removes the file or folder `path`. */
typedef void (*clv__temporary_fn)(const char *path);

/* To create a temporary file or folder, call clv__temporary_begin(), create it, and call clv__temporary_end(), on every path. In
 * between, clv__temporaries_remove() on another thread waits. After clv__temporaries_remove() has begun, clv__temporary_begin()
 * waits forever. */
void clv__temporary_begin(void);
/* Ends what clv__temporary_begin() began, and lists `path`, the new temporary; NULL: none was made. The list keeps the pointer,
 * so the caller must keep the string until clv__temporary_forget(). The list has room for 256 temporaries; further ones
 * are not listed, so clv__temporaries_remove() does not remove them. */
void clv__temporary_end(const char *path, clv__temporary_fn remove);
/* Takes a temporary off the list after it was renamed or removed. `path` must be the same pointer as for clv__temporary_end().
 * Does nothing if it is not listed. */
void clv__temporary_forget(const char *path);

/* Removes all listed temporaries. From then on, every thread that wants to create another one waits forever, so the process must
 * end now. May be called on any thread that is not between begin and end, but not in a signal handler. */
void clv__temporaries_remove(void);

#endif
