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

WATTLE_EXPORT_NODES({
    .name = "greet",
    .doc = "Greets a person.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}",
    .output_schema = "{\"type\":\"object\",\"properties\":{\"greeting\":{\"type\":\"string\"}},\"required\":[\"greeting\"]}",
    .run = greet,
});
