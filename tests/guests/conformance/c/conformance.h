/*
 * What the files of the conformance plugin share.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "bindings/plugin.h"
#include "wattle.h"

typedef wattle_plugin_types_failure_t failure_t;

/* Appends to the items of a JSON list or the fields of an object, without their brackets. */
const char *with_item(const char *items, const char *item);

/* Returns the text of a field of an object. */
const char *string_field(const char *object, const char *name);

/* Returns the number of words of a text. */
int count_of(const char *text);

/* Returns an argument of a call of the host, which does not take it over. */
plugin_string_t lend(const char *text);

/* Returns a text of the host. */
const char *text_of(plugin_string_t text);

/* Returns what a failure of a call says, as JSON. */
const char *code_and_message(const failure_t *failure);

/* Returns an extension field as JSON; NULL if there is none of the name. */
const char *extension(wattle_plugin_types_extra_t extra, const char *name);

/* The nodes that call the host. */
const char *read_settings(const wattle_context *context, const char *input);
const char *draw(const wattle_context *context, const char *input);
const char *delegate(const wattle_context *context, const char *input);
const char *whose(const wattle_context *context, const char *input);
const char *words(const wattle_context *context, const char *input);
const char *ask(const wattle_context *context, const char *input);
const char *stream(const wattle_context *context, const char *input);
const char *fetch(const wattle_context *context, const char *input);
const char *batch(const wattle_context *context, const char *input);
const char *book(const wattle_context *context, const char *input);
const char *remember(const wattle_context *context, const char *input);
const char *both(const wattle_context *context, const char *input);
const char *list_tools(const wattle_context *context, const char *input);
const char *buy(const wattle_context *context, const char *input);
const char *measure(const wattle_context *context, const char *input);

/* The handlers. */
wattle_response order(const wattle_request *request);
wattle_response urgency(const wattle_request *request);
wattle_response follow(const wattle_request *request);
wattle_response own_model(const wattle_request *request);

#endif
