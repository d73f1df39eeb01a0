/* Faults at the system calls by which a process writes under one folder; preloaded by `shim.py`.

   Every write, truncation, sync, rename and removal of a file under the folder is counted. At the call whose number
   was armed the process is killed before it, or in the middle of a write; or that call and every later one of its
   class fails: writes as on a full disk, syncs as on a broken one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT = 0, KILL = 1, TORN = 2, FULL = 3, SYNC = 4 };
enum { WRITES = 1, SYNCS = 2, OTHER = 4 };

static char folder[4096];
static int mode;
static long at;
static atomic_long seen;
static atomic_long failed;

void faults_arm(const char *path, int new_mode, long number) {
    mode = new_mode;
    at = number;
    atomic_store(&seen, 0);
    atomic_store(&failed, 0);
    strncpy(folder, path, sizeof folder - 1);
}

long faults_seen(void) { return atomic_load(&seen); }
long faults_failed(void) { return atomic_load(&failed); }

static int ours(int descriptor) {
    char link[64], target[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return 0;
    target[length] = 0;
    return strncmp(target, folder, strlen(folder)) == 0;
}

/* Nonzero where this call is to fail; does not return where the process is to die before it. */
static int strikes(int class) {
    int counted = mode == FULL ? WRITES : mode == SYNC ? SYNCS : WRITES | SYNCS | OTHER;
    if (!(class & counted)) return 0;
    long number = atomic_fetch_add(&seen, 1) + 1;
    if (mode == COUNT || number < at) return 0;
    if (mode == KILL || (mode == TORN && class != WRITES)) kill(getpid(), SIGKILL);
    atomic_fetch_add(&failed, 1);
    errno = mode == FULL ? ENOSPC : EIO;
    return 1;
}

#define NEXT(name, ...) ((typeof(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)
#define WRITE(name, size, ...)                                              \
    do {                                                                    \
        if (ours(descriptor) && strikes(WRITES)) {                          \
            if (mode == TORN) {                                             \
                size /= 2;                                                  \
                NEXT(name, __VA_ARGS__);                                    \
                kill(getpid(), SIGKILL);                                    \
            }                                                               \
            return -1;                                                      \
        }                                                                   \
        return NEXT(name, __VA_ARGS__);                                     \
    } while (0)

ssize_t write(int descriptor, const void *data, size_t size) { WRITE(write, size, descriptor, data, size); }
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t place) {
    WRITE(pwrite, size, descriptor, data, size, place);
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t place) {
    WRITE(pwrite64, size, descriptor, data, size, place);
}
int fsync(int descriptor) { return ours(descriptor) && strikes(SYNCS) ? -1 : NEXT(fsync, descriptor); }
int fdatasync(int descriptor) { return ours(descriptor) && strikes(SYNCS) ? -1 : NEXT(fdatasync, descriptor); }
int ftruncate(int descriptor, off_t size) {
    return ours(descriptor) && strikes(OTHER) ? -1 : NEXT(ftruncate, descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) {
    return ours(descriptor) && strikes(OTHER) ? -1 : NEXT(ftruncate64, descriptor, size);
}
static int under(const char *path) { return folder[0] && strncmp(path, folder, strlen(folder)) == 0; }
int unlink(const char *path) { return under(path) && strikes(OTHER) ? -1 : NEXT(unlink, path); }
int rename(const char *from, const char *to) { return under(to) && strikes(OTHER) ? -1 : NEXT(rename, from, to); }
