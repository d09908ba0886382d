/* Deciding a request in one call, for hosts whose calls into C are cheap and whose looks into memory are not: LuaJIT checks the type of
   everything that it reads. Offsets are those of core-wasm/ABI.md, "Words of a context" and "Peer sets and rings". */
#include <string.h>

#include "instance.h"

/* Beside the statuses of the core: a request that goes on to a peer as it came, and nothing else is to be known of. */
#define PLAIN 100

/* Offsets in a context. */
enum {
  ACTION = 32,
  ROUTE = 40,
  SHARD = 44,
  PEERS = 52,
  PEER = 56,
  TEXT = 60,
  TEXT_LENGTH = 64,
  SETTINGS_LENGTH = 80,
  ORIGIN = 84,
  POSITION = 100,
  NOW = 544,
  MARKS = 548,
};
/* Offsets in a peer set. */
enum { SIZE = 16, FLAGS = 22 };

enum { OK = 0, PROXY = 1, ORIGIN_ROUTE = 1, STICKY = 8 };

/* Who was chosen: addresses of shard and peer set, indexes of route and peer, and what stands for the peer. */
typedef struct {
  uint32_t shard, route, peers, peer, position, token;
} njk_plain;

/* Absent in libraries of other modules, which only tests make. */
__attribute__((weak, visibility("hidden"))) int32_t
njk_route(njk_instance *instance, uint32_t context, uint32_t host, uint32_t target, uint32_t flags, uint32_t random);

static uint32_t word(const njk_instance *instance, uint32_t address) {
  return instance->words[address / 4];
}

/* Writes a request to the input buffer at `input`, which has room for it, and asks the core: answers its status, or PLAIN and fills
   `plain` in. `now` in milliseconds. */
PUBLIC int32_t njk_decide(njk_instance *instance, uint32_t context, uint32_t input, const uint8_t *host, uint32_t host_length,
                          const uint8_t *target, uint32_t target_length, uint32_t flags, uint32_t random, uint32_t now,
                          njk_plain *plain) {
  uint8_t *bytes = instance->bytes;
  /* Without a host there may be no address either. */
  if (host_length > 0) memcpy(bytes + input, host, host_length);
  memcpy(bytes + input + ((host_length + 3) & ~3u), target, target_length);
  instance->words[(context + NOW) / 4] = now;
  int32_t status = njk_route(instance, context, host_length, target_length, flags, random);
  if (status != OK || word(instance, context + ACTION) != PROXY || word(instance, context + ORIGIN) != ORIGIN_ROUTE) return status;
  if (word(instance, context + MARKS) != 0 || word(instance, context + SETTINGS_LENGTH) != 0) return status;
  if (word(instance, context + TEXT_LENGTH) != target_length) return status;
  bytes = instance->bytes;
  if (memcmp(bytes + word(instance, context + TEXT), target, target_length) != 0) return status;
  uint32_t peers = word(instance, context + PEERS), peer = word(instance, context + PEER);
  if (bytes[peers + FLAGS] & STICKY) return status;
  plain->shard = word(instance, context + SHARD);
  plain->route = word(instance, context + ROUTE);
  plain->peers = peers;
  plain->peer = peer;
  plain->position = word(instance, context + POSITION);
  /* Tokens stand behind the image. */
  plain->token = word(instance, peers + ((word(instance, peers + SIZE) + 3) & ~3u) + peer * 4);
  return plain->shard != 0 ? PLAIN : status;
}
