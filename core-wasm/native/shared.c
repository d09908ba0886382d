/* A page that a program and all processes that it starts share: a worker sees in it, without a lock, whether anything has changed. */
#include <stddef.h>
#include <sys/mman.h>

#include "instance.h"

#define PAGE 4096

/* The page: all zero at first, and the same in every call, so also for a master that reads its configuration anew. A null pointer where the
   system has none to give. */
PUBLIC double *njk_shared_page(void) {
  static double *page;
  if (!page) {
    void *made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made != MAP_FAILED) page = made;
  }
  return page;
}
