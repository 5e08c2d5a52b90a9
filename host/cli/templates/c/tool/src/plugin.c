/* A plugin with a tool. */
#include <ctype.h>

#include "wattle.h"

/* Counts the words of a text. */
static wattle_output count_words(const wattle_tool_context *context, const char *arguments) {
    (void)context;
    const char *text = wattle_string(wattle_field(arguments, "text"));
    if (text == NULL) {
        return wattle_error("`text` is not a text");
    }
    size_t words = 0;
    for (bool in_word = false; *text != '\0'; text += 1) {
        bool is_letter = !isspace((unsigned char)*text);
        words += is_letter && !in_word;
        in_word = is_letter;
    }
    return wattle_json(wattle_format("{\"words\":%zu}", words));
}

/* Calls the tool as an agent does. */
static const char *call(const wattle_context *context, const char *input) {
    (void)context;
    return wattle_call("{{name}}/count_words", input).structured;
}

#define OBJECT(field, type)                                                                        \
    "{\"type\":\"object\",\"properties\":{\"" field "\":{\"type\":\"" type "\"}},\"required\":[\"" field "\"]}"

static const wattle_node nodes[] = {{
    .name = "call",
    .doc = "Calls the tool as an agent does.",
    .input_schema = OBJECT("text", "string"),
    .output_schema = OBJECT("words", "integer"),
    .run = call,
}};

static const wattle_tool tools[] = {{
    .name = "count_words",
    .description = "Counts the words of a text.",
    .arguments_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"description\":\"The text.\"}},\"required\":[\"text\"]}",
    .read_only = true,
    .call = count_words,
}};

const wattle_plugin wattle_exports = {
    .nodes = nodes,
    .nodes_count = WATTLE_COUNT(nodes),
    .tools = tools,
    .tools_count = WATTLE_COUNT(tools),
};
