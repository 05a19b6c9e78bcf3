/* A disk that is slow, or that fails, for LD_PRELOAD. Counts calls of write, fsync, rename or mkdir on paths that hold a text:
 *   KF_DISK_PATH      the text, as "checkpoints/"
 *   KF_DISK_CALL      write, fsync, rename or mkdir, or several: write,fsync
 *   KF_DISK_DELAY_MS  how long each of them takes longer; 0.5 is half of one
 *   KF_DISK_FAIL_AT   the first of them that fails, from 1; unset: none
 *   KF_DISK_FAILURES  how many fail from there on; unset: 1
 *   KF_DISK_ERRNO     with what: 5 is EIO, 28 ENOSPC */
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier): what glibc asks for
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char* name, long fallback) {
  const char* const text = getenv(name);
  return text != NULL ? atol(text) : fallback;
}

/* Whether this call has to fail; waits where it is slow. */
static int meets(const char* call, const char* path) {
  const char* const wanted = getenv("KF_DISK_CALL");
  const char* const part = getenv("KF_DISK_PATH");
  if (wanted == NULL || part == NULL || strstr(wanted, call) == NULL || strstr(path, part) == NULL) {
    return 0;
  }
  const char* const given = getenv("KF_DISK_DELAY_MS");
  const long delay = given != NULL ? (long)(atof(given) * 1e6) : 0;
  const struct timespec pause = {delay / 1000000000, delay % 1000000000};
  if (delay > 0) {
    nanosleep(&pause, NULL);
  }
  const long at = number("KF_DISK_FAIL_AT", 0), now = atomic_fetch_add(&calls, 1) + 1;
  if (at == 0 || now < at || now >= at + number("KF_DISK_FAILURES", 1)) {
    return 0;
  }
  errno = (int)number("KF_DISK_ERRNO", EIO);
  return 1;
}

static int meets_file(const char* call, int fd) {
  char link[64], path[PATH_MAX] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && meets(call, path);
}

ssize_t write(int fd, const void* data, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (real == NULL) {
    real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  }
  return meets_file("write", fd) ? -1 : real(fd, data, size);
}

int fsync(int fd) {
  static int (*real)(int);
  if (real == NULL) {
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  }
  return meets_file("fsync", fd) ? -1 : real(fd);
}

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (real == NULL) {
    real = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  }
  return meets("rename", to) ? -1 : real(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static int (*real)(const char*, mode_t);
  if (real == NULL) {
    real = (int (*)(const char*, mode_t))dlsym(RTLD_NEXT, "mkdir");
  }
  return meets("mkdir", path) ? -1 : real(path, mode);
}
