/* Every file operation of a process below one folder: counted, recorded, and one of them failed.

   Loaded with LD_PRELOAD, and told what to do through the functions at the end, by ctypes. A record
   is a line of fields divided by tabs (kind, path, second path, offset, length), then that many
   bytes of data and a newline. Paths must hold no tab and no newline.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 4096
#define REAL(name) ((__typeof__(&name))real(#name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static char *paths[MOST_FILES]; /* of the open files below the folder */
static long count, nth;
static int error_number, lasting, struck, record = -1;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int below(const char *path) {
    size_t length = strlen(folder);
    return length && path && !strncmp(path, folder, length) &&
           (path[length] == '/' || path[length] == 0);
}

static const char *path_of(int file) {
    return file >= 0 && file < MOST_FILES ? paths[file] : NULL;
}

/* Count an operation; true where it is to fail, with errno set. */
static int fails(const char *path) {
    int failed = 0;
    if (!below(path)) return 0;
    pthread_mutex_lock(&lock);
    count++;
    if (nth && (count == nth || (lasting && count > nth))) failed = struck = 1;
    pthread_mutex_unlock(&lock);
    if (failed) errno = error_number;
    return failed;
}

static void note(const char *kind, const char *path, const char *more, long offset,
                 const void *data, size_t length) {
    static ssize_t (*write_)(int, const void *, size_t);
    int before = errno;
    if (record < 0 || (path[0] && !below(path))) return;
    if (!write_) write_ = REAL(write);
    pthread_mutex_lock(&lock);
    char head[3 * PATH_MAX];
    int size = snprintf(head, sizeof head, "%s\t%s\t%s\t%ld\t%zu\n", kind, path, more, offset, length);
    if (write_(record, head, size) != size ||
        (length && write_(record, data, length) != (ssize_t)length) || write_(record, "\n", 1) != 1)
        abort();
    pthread_mutex_unlock(&lock);
    errno = before;
}

static int opened(int file, const char *path, int flags, int was_there) {
    if (file < 0 || file >= MOST_FILES) return file;
    free(paths[file]);
    paths[file] = below(path) ? strdup(path) : NULL;
    if (!paths[file]) return file;
    if ((flags & O_CREAT) && !was_there) note("create", path, "", 0, NULL, 0);
    else if (flags & O_TRUNC) note("truncate", path, "", 0, NULL, 0);
    return file;
}

static int there(const char *path) {
    struct stat state;
    return lstat(path, &state) == 0;
}

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        mode_t mode = va_arg(rest, mode_t);                               \
        va_end(rest);                                                     \
        if (!below(path)) return opened(REAL(name)(path, flags, mode), "", 0, 1); \
        int was_there = there(path);                                      \
        if (fails(path)) return -1;                                       \
        return opened(REAL(name)(path, flags, mode), path, flags, was_there); \
    }
OPEN(open)
OPEN(open64)

/* A path as it is from the root; `base` is a folder that is open. */
static const char *whole(int base, const char *path, char *room) {
    if (path[0] == '/' || !path_of(base)) return path;
    snprintf(room, PATH_MAX, "%s/%s", path_of(base), path);
    return room;
}

#define OPENAT(name)                                                      \
    int name(int base, const char *given, int flags, ...) {               \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        mode_t mode = va_arg(rest, mode_t);                               \
        va_end(rest);                                                     \
        char room[PATH_MAX];                                              \
        const char *path = whole(base, given, room);                      \
        if (!below(path)) return opened(REAL(name)(base, given, flags, mode), "", 0, 1); \
        int was_there = there(path);                                      \
        if (fails(path)) return -1;                                       \
        return opened(REAL(name)(base, given, flags, mode), path, flags, was_there); \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int file) {
    if (file >= 0 && file < MOST_FILES) {
        free(paths[file]);
        paths[file] = NULL;
    }
    return REAL(close)(file);
}

ssize_t write(int file, const void *data, size_t length) {
    const char *path = path_of(file);
    if (!path) return REAL(write)(file, data, length);
    if (fails(path)) return -1;
    long offset = fcntl(file, F_GETFL) & O_APPEND ? lseek(file, 0, SEEK_END) : lseek(file, 0, SEEK_CUR);
    ssize_t done = REAL(write)(file, data, length);
    if (done > 0) note("write", path, "", offset, data, done);
    return done;
}

#define PWRITE(name, type)                                                \
    ssize_t name(int file, const void *data, size_t length, type offset) { \
        const char *path = path_of(file);                                 \
        if (path && fails(path)) return -1;                               \
        ssize_t done = REAL(name)(file, data, length, offset);            \
        if (path && done > 0) note("write", path, "", offset, data, done); \
        return done;                                                      \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define SYNC(name)                                                        \
    int name(int file) {                                                  \
        const char *path = path_of(file);                                 \
        if (path && fails(path)) return -1;                               \
        int done = REAL(name)(file);                                      \
        if (path && !done) note("sync", path, "", 0, NULL, 0);            \
        return done;                                                      \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, type)                                              \
    int name(int file, type length) {                                     \
        const char *path = path_of(file);                                 \
        if (path && fails(path)) return -1;                               \
        int done = REAL(name)(file, length);                              \
        if (path && !done) note("truncate", path, "", length, NULL, 0);   \
        return done;                                                      \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    if (fails(to)) return -1;
    int done = REAL(rename)(from, to);
    if (!done) note("rename", from, to, 0, NULL, 0);
    return done;
}

#define ON_PATH(name, kind)                                               \
    int name(const char *path) {                                          \
        if (fails(path)) return -1;                                       \
        int done = REAL(name)(path);                                      \
        if (!done) note(kind, path, "", 0, NULL, 0);                      \
        return done;                                                      \
    }
ON_PATH(unlink, "unlink")
ON_PATH(rmdir, "rmdir")

int unlinkat(int base, const char *given, int flags) {
    char room[PATH_MAX];
    const char *path = whole(base, given, room);
    if (fails(path)) return -1;
    int done = REAL(unlinkat)(base, given, flags);
    if (!done) note(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path, "", 0, NULL, 0);
    return done;
}

int mkdir(const char *path, mode_t mode) {
    if (fails(path)) return -1;
    int done = REAL(mkdir)(path, mode);
    if (!done) note("mkdir", path, "", mode, NULL, 0);
    return done;
}

int chmod(const char *path, mode_t mode) {
    return fails(path) ? -1 : REAL(chmod)(path, mode);
}

int fchmod(int file, mode_t mode) {
    const char *path = path_of(file);
    return path && fails(path) ? -1 : REAL(fchmod)(file, mode);
}

/* What Python calls. */

void faults_watch(const char *path) {
    snprintf(folder, sizeof folder, "%s", path);
    count = nth = struck = 0;
}

void faults_fail(long number, int error, int for_good) {
    count = struck = 0;
    nth = number;
    error_number = error;
    lasting = for_good;
}

int faults_struck(void) { return struck; }

void faults_record(int file) { record = file; }

void faults_mark(const char *text) { note("mark", "", text, 0, NULL, 0); }
