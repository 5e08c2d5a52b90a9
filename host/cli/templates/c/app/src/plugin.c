/* The plugin of the app. */
#include "wattle.h"

/* Greets a person. */
static const char *greet(const wattle_context *context, const char *input) {
    (void)context;
    const char *name = wattle_string(wattle_field(input, "name"));
    if (name == NULL) {
        return wattle_fail(WATTLE_INVALID, "the input of node `greet` has no `name`");
    }
    return wattle_format("{\"greeting\":%s}", wattle_quote(wattle_format("Hello, %s!", name)));
}

/* Asks a person whether the greeting may be sent. The run is interrupted until the answer arrives. */
static const char *approve(const wattle_context *context, const char *input) {
    (void)context;
    const char *greeting = wattle_field(input, "greeting");
    if (greeting == NULL) {
        return wattle_fail(WATTLE_INVALID, "the input of node `approve` has no `greeting`");
    }
    const char *question = wattle_format("{\"greeting\":%s}", greeting);
    const char *answer = wattle_ask(question, "{\"type\":\"boolean\"}");
    return answer == NULL ? NULL : wattle_format("{\"approved\":%s}", answer);
}

#define OBJECT(field, type)                                                                        \
    "{\"type\":\"object\",\"properties\":{\"" field "\":{\"type\":\"" type "\"}},\"required\":[\"" field "\"]}"

WATTLE_EXPORT_NODES(
    {
        .name = "greet",
        .doc = "Greets a person.",
        .input_schema = OBJECT("name", "string"),
        .output_schema = OBJECT("greeting", "string"),
        .run = greet,
    },
    {
        .name = "approve",
        .doc = "Asks a person whether the greeting may be sent.",
        .input_schema = OBJECT("greeting", "string"),
        .output_schema = OBJECT("approved", "boolean"),
        .run = approve,
    }
);
