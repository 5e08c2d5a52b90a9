/*
 * What the sources of the SDK share. Plugins do not include this file.
 */
#ifndef WATTLE_INTERNAL_H
#define WATTLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns memory of zeros. A guest without memory cannot go on, and the host reports its limit.
 */
void *wattle_allocate(size_t count, size_t size);

/* Copies a piece of text. */
const char *wattle_copy(const char *start, size_t length);

/* Returns the first character that is no blank. */
const char *wattle_skip_blank(const char *at);

/*
 * Finds the next field of an object or item of an array, and moves behind it. `at` is behind the
 * bracket or behind the value before. Returns false at the end.
 */
bool wattle_next(const char **at, bool has_names, const char **name, const char **value);

#endif
