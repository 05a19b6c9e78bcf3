/* flock as file systems without locks have it: for LD_PRELOAD. */
#include <errno.h>

int flock(int fd, int operation) {
  (void)fd;
  (void)operation;
  errno = ENOLCK;
  return -1;
}
