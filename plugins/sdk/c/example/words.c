/*
 * A plugin with a node that counts words, a node that asks a person, a node that continues a
 * conversation, a node that calls a tool, a tool, a reducer, and HTTP endpoints.
 */
#include <ctype.h>
#include <string.h>

#include "wattle.h"

/* Counts the words of a text. */
static const char *count_words(const wattle_context *context, const char *input) {
    (void)context;
    const char *text = wattle_string(wattle_field(input, "text"));
    if (text == NULL) {
        return wattle_fail(WATTLE_INVALID, "the input of node `count_words` has no `text`");
    }
    size_t words = 0;
    for (bool in_word = false; *text != '\0'; text += 1) {
        bool is_letter = !isspace((unsigned char)*text);
        words += is_letter && !in_word;
        in_word = is_letter;
    }
    return wattle_format("{\"words\":%zu}", words);
}

/* Asks whether a text may be published. */
static const char *approve(const wattle_context *context, const char *input) {
    (void)context;
    const char *text = wattle_field(input, "text");
    if (text == NULL) {
        return wattle_fail(WATTLE_INVALID, "the input of node `approve` has no `text`");
    }
    const char *answer = wattle_ask(wattle_format("{\"ticket\":%s}", text), "{\"type\":\"boolean\"}");
    if (answer == NULL) {
        return NULL;
    }
    return wattle_format("{\"decision\":\"%s\"}", wattle_is_true(answer) ? "call" : "ignore");
}

/* Adds the history of a model request to its messages. */
static const char *refer(const wattle_context *context, const char *input) {
    (void)input;
    const char *now = "[{\"role\":\"user\",\"content\":\"Go on.\"}]";
    const char *history = wattle_history(context, 1, now);
    return history == NULL ? NULL : wattle_format("{\"history\":%s}", history);
}

/* Adds numbers with a tool of another plugin. A failure of the call does not fail the node. */
static const char *add(const wattle_context *context, const char *input) {
    (void)context;
    wattle_output output = wattle_call("calculator/add", input);
    if (output.text == NULL) {
        struct wattle_failure failure = wattle_recover();
        return wattle_format("{\"problem\":%s}", wattle_quote(failure.message));
    }
    return wattle_format("{\"sum\":%s}", wattle_quote(output.text));
}

/* Converts a temperature to Fahrenheit. */
static wattle_output fahrenheit(const wattle_tool_context *context, const char *arguments) {
    (void)context;
    double celsius;
    if (!wattle_number(wattle_field(arguments, "celsius"), &celsius)) {
        return wattle_error("`celsius` is not a number");
    }
    return wattle_text(wattle_format("%g F", celsius * 1.8 + 32));
}

/* Keeps the text with the longest JSON. */
static const char *longest(const char *current, const char *const *updates, size_t count) {
    const char *kept = current == NULL ? "\"\"" : current;
    for (size_t index = 0; index < count; index += 1) {
        if (wattle_string(updates[index]) == NULL) {
            return wattle_fail(WATTLE_INVALID, "an update of the reducer `longest` is no text");
        }
        if (strlen(updates[index]) > strlen(kept)) {
            kept = updates[index];
        }
    }
    return kept;
}

/* Returns an order. */
static wattle_response get_order(const wattle_request *request) {
    const char *language = wattle_request_query(request, "language");
    if (language == NULL) {
        return wattle_refuse(422, WATTLE_INVALID, "the parameter `language` is missing");
    }
    const char *id = wattle_quote(wattle_request_param(request, "id"));
    wattle_add_header("content-language", language);
    return wattle_respond_json(200, wattle_format("{\"id\":%s}", id));
}

/* Streams the newest run of the thread of an order. */
static wattle_response follow_order(const wattle_request *request) {
    return wattle_respond_hand_off((wattle_hand_off){
        .thread_id = wattle_request_param(request, "id"),
        .format = WATTLE_STREAM_AI_SDK,
        .cancels_on_disconnect = true,
        .grace_ms = 5000,
        .nodes = "[\"refer\"]",
    });
}

#define TEXT "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"

#define MESSAGES "{\"config\":\"messages\",\"default\":\"messages\"}"

static const wattle_node nodes[] = {
    {
        .name = "count_words",
        .doc = "Counts the words of a text.",
        .input_schema = TEXT,
        .output_schema = "{\"type\":\"object\",\"properties\":{\"words\":{\"type\":\"integer\"}},"
                         "\"required\":[\"words\"]}",
        .run = count_words,
    },
    {
        .name = "approve",
        .doc = "Asks whether a text may be published.",
        .input_schema = TEXT,
        .output_schema = "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\"}},"
                         "\"required\":[\"decision\"]}",
        .run = approve,
    },
    {
        .name = "refer",
        .doc = "Refers to the conversation.",
        .output_schema = "{\"type\":\"object\",\"properties\":{\"history\":{}}}",
        .config_schema = "{\"type\":\"object\",\"properties\":{\"messages\":{\"type\":\"string\"}}}",
        .run = refer,
        .reads = "{\"channels\":[" MESSAGES "],\"conversation\":" MESSAGES "}",
    },
    {
        .name = "add",
        .doc = "Adds numbers with a tool of another plugin.",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"},"
                        "\"b\":{\"type\":\"number\"}},\"required\":[\"a\",\"b\"]}",
        .output_schema = "{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"string\"},"
                         "\"problem\":{\"type\":\"string\"}}}",
        .run = add,
    },
};

static const wattle_tool tools[] = {
    {
        .name = "fahrenheit",
        .description = "Converts a temperature to Fahrenheit.",
        .arguments_schema = "{\"type\":\"object\",\"properties\":{\"celsius\":{\"type\":\"number\","
                            "\"description\":\"Degrees Celsius.\"}},\"required\":[\"celsius\"]}",
        .read_only = true,
        .call = fahrenheit,
    },
};

static const wattle_reducer reducers[] = {
    {.name = "longest", .doc = "Keeps the longest text.", .reduce = longest},
};

static const wattle_handler handlers[] = {
    {
        .method = "GET",
        .path = "/orders/{id}",
        .doc = "Returns an order.",
        .handle = get_order,
    },
    {
        .method = "GET",
        .path = "/orders/{id}/events",
        .operation = "{\"summary\":\"Streams an order.\",\"responses\":{}}",
        .schemas = "{\"Order\":{}}",
        .handle = follow_order,
    },
};

const wattle_plugin wattle_exports = {
    .nodes = nodes,
    .nodes_count = WATTLE_COUNT(nodes),
    .tools = tools,
    .tools_count = WATTLE_COUNT(tools),
    .reducers = reducers,
    .reducers_count = WATTLE_COUNT(reducers),
    .handlers = handlers,
    .handlers_count = WATTLE_COUNT(handlers),
};
