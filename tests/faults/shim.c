/* Makes the N-th call that writes below a directory fail, end half done, or be the process's last.
 *
 * Preloaded (LD_PRELOAD) by tests/faults.rs. The environment says what happens:
 *
 *   SHIM_UNDER   the directory; calls on other files pass and are not counted
 *   SHIM_AT      which call, from 1 on
 *   SHIM_MODE    once: it fails; stays: it and all later ones fail; short: half of the bytes are written, later writes fail;
 *                kill: the process is killed instead of it; killed: right after it
 *   SHIM_ERRNO   the error
 *   SHIM_REPORT  a file that is told what was done: without it the call was never reached
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { PASS, FAIL, HALF, KILL_BEFORE, KILL_AFTER };

static atomic_long calls;

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

static int is_under(const char *path) {
    const char *under = getenv("SHIM_UNDER");
    return under && path && strncmp(path, under, strlen(under)) == 0;
}

static void report(const char *call, const char *path, long count) {
    const char *name = getenv("SHIM_REPORT");
    char line[512];
    int saved = errno;
    FILE *file;
    if (!name) return;
    snprintf(line, sizeof line, "%ld %s %s\n", count, call, path + strlen(getenv("SHIM_UNDER")));
    file = fopen(name, "a"); /* not below SHIM_UNDER */
    if (file) {
        fputs(line, file);
        fclose(file);
    }
    errno = saved;
}

/* What becomes of this call; `writes` when it can be done by half. */
static enum action decide(const char *call, const char *path, int writes) {
    const char *mode = getenv("SHIM_MODE");
    long count, at = number("SHIM_AT");
    if (!mode || at == 0 || !is_under(path)) return PASS;
    count = atomic_fetch_add(&calls, 1) + 1;
    if (count < at) return PASS;
    if (count > at) {
        int goes_on = (strcmp(mode, "stays") == 0 && strcmp(call, "mmap") != 0) || (strcmp(mode, "short") == 0 && writes);
        if (!goes_on) return PASS;
        errno = (int)number("SHIM_ERRNO");
        return FAIL;
    }
    report(call, path, count);
    if (strcmp(mode, "kill") == 0) return KILL_BEFORE;
    if (strcmp(mode, "killed") == 0) return KILL_AFTER;
    if (strcmp(mode, "short") == 0 && writes) return HALF;
    errno = (int)number("SHIM_ERRNO");
    return FAIL;
}

static enum action decide_fd(const char *call, int fd, int writes) {
    char link[64], path[4096];
    ssize_t length;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length < 0) return PASS;
    path[length] = 0;
    return decide(call, path, writes);
}

#define END() kill(getpid(), SIGKILL)
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call that is done or fails. */
#define WHOLE(decision, failed, call)                                                                                     \
    do {                                                                                                                  \
        enum action action = decision;                                                                                    \
        if (action == FAIL) return failed;                                                                                \
        if (action == KILL_BEFORE) END();                                                                                 \
        __typeof__(call) result = call;                                                                                   \
        if (action == KILL_AFTER) END();                                                                                  \
        return result;                                                                                                    \
    } while (0)

/* A call that writes `size` bytes, or half of them. */
#define SIZED(decision, size, call)                                                                                       \
    do {                                                                                                                  \
        enum action action = decision;                                                                                    \
        if (action == FAIL) return -1;                                                                                    \
        if (action == KILL_BEFORE) END();                                                                                 \
        if (action == HALF) size /= 2;                                                                                    \
        ssize_t result = call;                                                                                            \
        if (action == KILL_AFTER) END();                                                                                  \
        return result;                                                                                                    \
    } while (0)

ssize_t write(int fd, const void *bytes, size_t size) {
    SIZED(decide_fd("write", fd, 1), size, REAL(write)(fd, bytes, size));
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    SIZED(decide_fd("pwrite", fd, 1), size, REAL(pwrite)(fd, bytes, size, at));
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    SIZED(decide_fd("pwrite", fd, 1), size, REAL(pwrite64)(fd, bytes, size, at));
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    int half = count > 1 ? count : 0; /* half of the parts */
    SIZED(decide_fd("pwritev", fd, half > 0), count, REAL(pwritev)(fd, parts, count, at));
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    int half = count > 1 ? count : 0;
    SIZED(decide_fd("pwritev", fd, half > 0), count, REAL(pwritev64)(fd, parts, count, at));
}
int ftruncate(int fd, off_t size) { WHOLE(decide_fd("ftruncate", fd, 0), -1, REAL(ftruncate)(fd, size)); }
int ftruncate64(int fd, off64_t size) { WHOLE(decide_fd("ftruncate", fd, 0), -1, REAL(ftruncate64)(fd, size)); }
/* This one returns its error. */
int posix_fallocate(int fd, off_t at, off_t size) {
    WHOLE(decide_fd("posix_fallocate", fd, 0), errno, REAL(posix_fallocate)(fd, at, size));
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    WHOLE(decide_fd("posix_fallocate", fd, 0), errno, REAL(posix_fallocate64)(fd, at, size));
}
int fsync(int fd) { WHOLE(decide_fd("fsync", fd, 0), -1, REAL(fsync)(fd)); }
int fdatasync(int fd) { WHOLE(decide_fd("fdatasync", fd, 0), -1, REAL(fdatasync)(fd)); }
int msync(void *address, size_t size, int flags) {
    WHOLE(decide("msync", getenv("SHIM_UNDER"), 0), -1, REAL(msync)(address, size, flags));
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t at) {
    WHOLE(fd < 0 ? PASS : decide_fd("mmap", fd, 0), MAP_FAILED, REAL(mmap)(address, size, protection, flags, fd, at));
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t at) {
    WHOLE(fd < 0 ? PASS : decide_fd("mmap", fd, 0), MAP_FAILED, REAL(mmap64)(address, size, protection, flags, fd, at));
}
int mkdir(const char *path, mode_t mode) { WHOLE(decide("mkdir", path, 0), -1, REAL(mkdir)(path, mode)); }
int rename(const char *from, const char *to) { WHOLE(decide("rename", to, 0), -1, REAL(rename)(from, to)); }
int unlink(const char *path) { WHOLE(decide("unlink", path, 0), -1, REAL(unlink)(path)); }

static int open_with(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    int makes = (flags & O_CREAT) && access(path, F_OK) != 0;
    WHOLE(makes ? decide("open", path, 0) : PASS, -1, real(path, flags, mode));
}
int open(const char *path, int flags, ...) {
    va_list rest;
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open_with(REAL(open), path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open_with(REAL(open64), path, flags, mode);
}
