/* An instance of the core as hosts know it, and the C beside it: what wasm2c made of the module stands behind these fields. */
#ifndef NJK_INSTANCE_H
#define NJK_INSTANCE_H

#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))
/* No status, and no address: memory never reaches so far. */
#define NJK_TRAPPED (-128)

typedef struct {
  /* The memory. The address is right after every call, and may be another one then. */
  union {
    uint8_t *bytes;
    uint32_t *words;
  };
  /* 0, or the number of the trap that ended the instance. */
  int32_t trap;
} njk_instance;

#endif
