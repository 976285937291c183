/* The temporary files and folders of this process, so that a program that must end at once leaves none behind. */
#ifndef CLEAVE_BASE_FILES_TEMPORARIES_H
#define CLEAVE_BASE_FILES_TEMPORARIES_H

/* Removes the file or folder `path`. */
typedef void (*clv__temporary_fn)(const char *path);

/* Creating a temporary: call begin, create it, and call end, with no return in between. clv__temporaries_remove() on another
 * thread waits for end, and no temporary is made once it began. */
void clv__temporary_begin(void);
/* Ends what clv__temporary_begin() began. `path` is the new temporary, which the caller keeps until clv__temporary_forget();
 * NULL: none was made. If there are very many temporaries at one time, some are not listed. */
void clv__temporary_end(const char *path, clv__temporary_fn remove);
/* Takes the path, by address, off the list: it was moved to its place or removed. Does nothing if it is not listed. */
void clv__temporary_forget(const char *path);

/* Removes all that are listed. From then on, no thread of the process can make another one: they wait forever. So the process
 * must end now. May be called on any thread that is not creating one, but not in a signal handler. */
void clv__temporaries_remove(void);

#endif
