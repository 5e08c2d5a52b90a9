// A node that asks a question, and a tool. Records and functions are those of the canonical ABI for
// the interfaces of `wattle:plugin` in the world.

// For `memmem` and `vasprintf`.
#define _GNU_SOURCE

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text;
    size_t length;
} string;

typedef struct {
    const void *items;
    size_t length;
} list;

typedef struct {
    bool is_some;
    string value;
} optional_string;

typedef struct {
    string name, doc, input_schema, output_schema;
    list extra;
} node_info;

typedef struct {
    string node, graph, thread_id, run_id, task_id;
    uint32_t step, attempt, remaining_steps;
    optional_string tenant;
    string context;
    list extra;
    string input;
} run_parameters;

typedef struct {
    string channel, value;
    bool overwrite;
} update;

typedef struct {
    string code, message;
    bool retryable;
    optional_string details;
} failure;

typedef struct {
    bool is_error;
    union {
        struct {
            list updates, go_to, sends, extra;
        } outcome;
        failure failure;
    };
} run_result;

typedef struct {
    string name, description, arguments_schema;
    bool accepts_invalid;
    list extra;
} tool_info;

typedef struct {
    string tool, call_id;
    optional_string thread_id, task_id, tenant;
    list violations, extra;
    string arguments;
} call_parameters;

// The case `text` of a part. An image has the most fields.
typedef struct {
    uint8_t kind;
    string text;
    uint32_t rest[5];
} part;

typedef struct {
    bool is_error;
    union {
        struct {
            list content;
            optional_string structured;
            bool is_error;
            list updates, extra;
        } output;
        failure failure;
    };
} call_result;

typedef struct {
    bool is_error;
    union {
        string answer;
        failure failure;
    };
} ask_result;

__attribute__((import_module("wattle:plugin/interrupt@0.1.0"), import_name("ask"))) void
ask(const char *payload, size_t payload_length, bool has_schema, const char *schema,
    size_t schema_length, const void *extra, size_t extra_length, ask_result *result);

#define STRING(literal) ((string){literal, sizeof(literal) - 1})

#define TEXT "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"
#define DECISION "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\"}}}"
#define BOOLEAN "{\"type\":\"boolean\"}"

__attribute__((export_name("cabi_realloc"))) void *
cabi_realloc(void *old, size_t old_size, size_t alignment, size_t size) {
    (void)old_size, (void)alignment;
    void *memory = realloc(old, size);
    assert(memory != NULL || size == 0);
    return memory;
}

// Returns a formatted string. Its memory is never freed: an instance serves one call.
static string format(const char *template, ...) {
    va_list values;
    va_start(values, template);
    char *memory = NULL;
    int length = vasprintf(&memory, template, values);
    va_end(values);
    assert(length >= 0);
    return (string){memory, (size_t)length};
}

// Returns the field `text` of an object. The host writes no spaces, and the texts of the test have no
// escapes.
static string text_of(string json) {
    static const char field[] = "\"text\":\"";
    const char *first = memmem(json.text, json.length, field, sizeof(field) - 1);
    assert(first != NULL);
    first += sizeof(field) - 1;
    const char *last = memchr(first, '"', (size_t)(json.text + json.length - first));
    assert(last != NULL);
    return (string){first, (size_t)(last - first)};
}

__attribute__((export_name("wattle:plugin/node@0.1.0#describe"))) list *describe(void) {
    static node_info node = {STRING("approve"), STRING("Asks a person."), STRING(TEXT),
                             STRING(DECISION), {NULL, 0}};
    static list nodes = {&node, 1};
    return &nodes;
}

__attribute__((export_name("wattle:plugin/node@0.1.0#run"))) run_result *
run(const run_parameters *parameters) {
    static run_result result;
    static update decision;
    string text = text_of(parameters->input);
    printf("asking about %.*s\n", (int)text.length, text.text);
    // A reactor has no exit that would flush it.
    fflush(stdout);
    string payload = format("{\"ticket\":\"%.*s\"}", (int)text.length, text.text);
    ask_result asked;
    ask(payload.text, payload.length, true, BOOLEAN, sizeof(BOOLEAN) - 1, NULL, 0, &asked);
    if (asked.is_error) {
        result.is_error = true;
        result.failure = asked.failure;
        return &result;
    }
    bool is_yes = asked.answer.length == 4 && memcmp(asked.answer.text, "true", 4) == 0;
    decision = (update){STRING("decision"), is_yes ? STRING("\"call\"") : STRING("\"ignore\""), false};
    result.outcome.updates = (list){&decision, 1};
    return &result;
}

__attribute__((export_name("wattle:plugin/tool@0.1.0#list"))) list *list_tools(void) {
    static tool_info tool = {STRING("count_words"), STRING("Counts the words of a text."),
                             STRING(TEXT), false, {NULL, 0}};
    static list tools = {&tool, 1};
    return &tools;
}

__attribute__((export_name("wattle:plugin/tool@0.1.0#call"))) call_result *
call(const call_parameters *parameters) {
    static call_result result;
    static part content;
    string text = text_of(parameters->arguments);
    int words = 0;
    for (size_t i = 0; i < text.length; i++) {
        bool begins = i == 0 || isspace((unsigned char)text.text[i - 1]);
        words += begins && !isspace((unsigned char)text.text[i]);
    }
    assert(words > 0);
    string answer = format("{\"words\":%d}", words);
    content = (part){.kind = 0, .text = answer};
    result.output.content = (list){&content, 1};
    result.output.structured = (optional_string){true, answer};
    return &result;
}
