/*
 * What the files of the conformance plugin share.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "wattle.h"

/* Appends to the items of a JSON list or the fields of an object, without their brackets. */
const char *with_item(const char *items, const char *item);

/* Returns the text of a field of an object. */
const char *string_field(const char *object, const char *name);

/* Returns the number of words of a text. */
int count_of(const char *text);

/* The nodes that call the host. */
const char *words(const wattle_context *context, const char *input);
const char *ask(const wattle_context *context, const char *input);
const char *fetch(const wattle_context *context, const char *input);
const char *book(const wattle_context *context, const char *input);
const char *remember(const wattle_context *context, const char *input);
const char *both(const wattle_context *context, const char *input);
const char *buy(const wattle_context *context, const char *input);
const char *measure(const wattle_context *context, const char *input);

#endif
