/*
 * What the sources of the SDK share. Plugins do not include this file.
 */
#ifndef WATTLE_INTERNAL_H
#define WATTLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "bindings/plugin.h"

/*
 * Returns memory of zeros. A guest without memory cannot go on, and the host reports its limit.
 */
void *wattle_allocate(size_t count, size_t size);

/* Copies a piece of text. */
const char *wattle_copy(const char *start, size_t length);

/* A piece of a text, without a zero byte at its end. */
typedef struct wattle_piece {
    const char *start;
    size_t length;
} wattle_piece;

/* Returns the first character that is no blank. */
const char *wattle_skip_blank(const char *at);

/*
 * Finds the next field of an object, or the next item of an array if `name` is NULL, and moves behind
 * it. `at` is behind the bracket or behind the value before. The name is the JSON string with its
 * quotes. Returns false at the end. Nothing is copied, since memory is never freed.
 */
bool wattle_next(const char **at, wattle_piece *name, wattle_piece *value);

/* Copies a text of the host. */
const char *wattle_text_of(plugin_string_t text);

/* Copies a text of the host; NULL if there is none. */
const char *wattle_optional_text(plugin_option_string_t text);

/* Returns an argument of a call of the host, which does not take it over. */
plugin_string_t wattle_lend(const char *text);

/* Adds an extension field with a value as JSON. */
void wattle_add_extra(wattle_plugin_types_extra_t *to, const char *name, const char *value);

/* Converts the failure of this call for the host. Returns false. */
bool wattle_failed(wattle_plugin_types_failure_t *failure);

#endif
