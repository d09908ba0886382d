/* What a proxy in Lua looks at in each request, as it stands in the memory of NGINX. No part of the core; it stands here because LuaJIT
   takes no loop into the trace of a phase, and leaves a phase that begins one to its interpreter. */
#include <stddef.h>
#include <string.h>

#include "instance.h"

/* A text; without bytes where there is none. As in NGINX's ngx_http_lua_ffi_table_elt_t, which is two of them. */
typedef struct {
  int32_t length;
  const uint8_t *bytes;
} njk_text;

typedef struct {
  njk_text name, value;
} njk_header;

/* ngx_str_t, and behind it NGINX's hash of the text. */
typedef struct {
  size_t length;
  const char *bytes;
  uintptr_t hash;
} njk_variable_name;

/* ngx_http_variable_value_t: its first word has the length in its lower bits, and marks above. */
typedef struct {
  uint32_t length_and_marks;
  const uint8_t *bytes;
} njk_variable_value;

/* NGINX's ngx_http_get_variable. */
typedef njk_variable_value *njk_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);

#define LENGTH 0x0fffffffu
#define NOT_FOUND 0x40000000u

/* The places of headers with these names, which are compared byte by byte: -1 for none, -2 for more than one. */
PUBLIC void njk_find_headers(const njk_header *headers, int32_t count, const njk_text *names, int32_t *places, int32_t number) {
  for (int32_t n = 0; n < number; n++) {
    int32_t found = -1;
    for (int32_t i = 0; i < count && found != -2; i++) {
      const njk_text *name = &headers[i].name;
      if (name->length != names[n].length || memcmp(name->bytes, names[n].bytes, (size_t)name->length) != 0) continue;
      found = found == -1 ? i : -2;
    }
    places[n] = found;
  }
}

static njk_text value_of(njk_get_variable *get, void *request, const njk_variable_name *name) {
  const njk_variable_value *value = get(request, name, name->hash);
  if (!value || value->length_and_marks & NOT_FOUND) return (njk_text){0, NULL};
  return (njk_text){(int32_t)(value->length_and_marks & LENGTH), value->bytes};
}

/* The values of some variables of a request. */
PUBLIC void njk_find_variables(njk_get_variable *get, void *request, const njk_variable_name *names, njk_text *values, int32_t number) {
  for (int32_t i = 0; i < number; i++) values[i] = value_of(get, request, &names[i]);
}

static double digits(const uint8_t *text, size_t length, size_t *at) {
  double number = 0;
  for (; *at < length && text[*at] >= '0' && text[*at] <= '9'; ++*at) number = number * 10 + (text[*at] - '0');
  return number;
}

/* The number that a text begins with: digits, and a point with more of them. No sign, no exponent; 0 for none. */
PUBLIC double njk_decimal(const uint8_t *text, size_t length) {
  size_t at = 0;
  double whole = digits(text, length, &at);
  if (at == length || text[at] != '.') return whole;
  size_t point = ++at;
  double part = digits(text, length, &at), scale = 1;
  for (; point < at; point++) scale *= 10;
  return whole + part / scale;
}

/* The numbers that the values of some variables begin with, see njk_decimal. */
PUBLIC void njk_variable_numbers(njk_get_variable *get, void *request, const njk_variable_name *names, double *numbers, int32_t number) {
  for (int32_t i = 0; i < number; i++) {
    njk_text value = value_of(get, request, &names[i]);
    numbers[i] = njk_decimal(value.bytes, (size_t)value.length);
  }
}

/* The digits of eight bytes of which each is below 16, the lowest byte first. */
static uint64_t hex_of(uint64_t nibbles) {
  const uint64_t ones = 0x0101010101010101;
  /* 1 in each byte that is 10 or more, which is a letter: 'a' - '0' - 10 further on. */
  uint64_t letters = ((nibbles + 6 * ones) >> 4) & ones;
  return nibbles + '0' * ones + letters * ('a' - '0' - 10);
}

/* Halves of four bytes, the higher one first, each as a byte: the lowest one of the number is that of the first byte. */
static uint64_t halves_of(const uint8_t *bytes) {
  uint64_t spread = (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24;
  spread = (spread | spread << 16) & 0x0000ffff0000ffff;
  spread = (spread | spread << 8) & 0x00ff00ff00ff00ff;
  return (spread >> 4 & 0x000f000f000f000f) | (spread & 0x000f000f000f000f) << 8;
}

/* Writes bytes as two hex digits each, four at a time; `number` is a multiple of four. */
PUBLIC void njk_hex(char *text, const uint8_t *bytes, int32_t number) {
  for (int32_t i = 0; i < number; i += 4) {
    uint64_t digits = hex_of(halves_of(bytes + i));
    for (int32_t n = 0; n < 8; n++) text[2 * i + n] = (char)(digits >> (8 * n));
  }
}
