/*
 * The C SDK for Wattle plugins: graph nodes and tools whose inputs and outputs are JSON as text.
 *
 * Each call runs in an instance of its own, whose memory the host takes back. Texts of the SDK stay
 * valid until the end of the call, and nothing is freed.
 */
#ifndef WATTLE_H
#define WATTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The context in which a node runs. */
typedef struct wattle_context {
    /* Name of the node in the plugin. */
    const char *node;
    /* Name of the graph. */
    const char *graph;
    /* Id of the thread. */
    const char *thread_id;
    /* Id of the run. */
    const char *run_id;
    /* Id of the task. It does not change when the task is executed again. */
    const char *task_id;
    /* Number of the superstep in its thread, from 0. */
    uint32_t step;
    /* Number of the attempt, from 1. */
    uint32_t attempt;
    /* Number of supersteps that the recursion limit still permits. */
    uint32_t remaining_steps;
    /* Tenant of the thread; NULL if it has none. */
    const char *tenant;
    /* The run context as JSON; `null` if there is none. */
    const char *context;
    /* The configuration of the node as JSON: the table `with` of the node in the graph file, or `{}`. */
    const char *config;
    /* The failure that this node handles as JSON; NULL unless it runs as an error handler. */
    const char *error;
    /*
     * The conversation that `reads` of the node declares as JSON: the input has of the list in
     * `channel`, which has `length` messages, those from the position `from` on. NULL if the node
     * declares none, or if the host is too old for histories.
     */
    const char *conversation;
} wattle_context;

/* A graph node. Schemas are JSON Schemas; NULL stands for an object without properties. */
typedef struct wattle_node {
    /* Name of the node, unique in the plugin. */
    const char *name;
    /* Documentation of the node. */
    const char *doc;
    /* Schema of the input. Its properties are the state channels that the node reads. */
    const char *input_schema;
    /* Schema of the updates. Its properties are the state channels that the node may write. */
    const char *output_schema;
    /* Schema of the configuration; NULL for a node without one. */
    const char *config_schema;
    /*
     * Runs the node. Returns the updates as a JSON object with one field for each channel that is
     * written, or NULL after `wattle_fail` or a call of the host that failed.
     */
    const char *(*run)(const wattle_context *context, const char *input);
    /*
     * The channels that the node reads, in place of the properties of `input_schema`, and the one
     * with its conversation, as JSON: `{"channels":[CHANNEL],"conversation":CHANNEL}`, both optional.
     * A CHANNEL is `{"channel":NAME}`, or `{"config":KEY,"default":NAME}` for what the configuration
     * has under a key. Of the conversation, the input has only the current turn. NULL for a node
     * whose channels are those properties.
     */
    const char *reads;
} wattle_node;

/* The context in which a tool is called. */
typedef struct wattle_tool_context {
    /* Name of the tool in the plugin. */
    const char *tool;
    /* Id of the call, with which the caller matches the result. */
    const char *call_id;
    /* Id of the thread; NULL unless the call belongs to a run. */
    const char *thread_id;
    /* Id of the task; NULL unless the call belongs to a run. */
    const char *task_id;
    /* Tenant of the thread; NULL if it has none. */
    const char *tenant;
    /* The visible state of the caller as JSON, an object of channels. */
    const char *state;
    /* Number of violations of the arguments schema; 0 if the arguments are valid. */
    size_t violations;
} wattle_tool_context;

/* The output of a tool, from `wattle_text`, `wattle_json` or `wattle_error`. */
typedef struct wattle_output {
    /* Text for the model. */
    const char *text;
    /* Structured output for programs as JSON; NULL if there is none. */
    const char *structured;
    /* True if the text is an error message for the model. */
    bool is_error;
} wattle_output;

/* A tool. */
typedef struct wattle_tool {
    /* Name of the tool, unique in the plugin. */
    const char *name;
    /* Description for models. */
    const char *description;
    /* JSON Schema of the arguments; NULL stands for an object without properties. */
    const char *arguments_schema;
    /* True if a call has no effects. */
    bool read_only;
    /* True if a repeated call with the same arguments has no further effect. */
    bool idempotent;
    /* True if the host calls the tool with arguments that violate the schema. */
    bool accepts_invalid;
    /* Calls the tool. After `wattle_fail` or a call of the host that failed, the output is ignored. */
    wattle_output (*call)(const wattle_tool_context *context, const char *arguments);
} wattle_tool;

/* The nodes and tools of a plugin. */
typedef struct wattle_plugin {
    const wattle_node *nodes;
    size_t nodes_count;
    const wattle_tool *tools;
    size_t tools_count;
} wattle_plugin;

/* The number of elements of an array. */
#define WATTLE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The nodes and tools of this plugin. Its author defines them. */
extern const wattle_plugin wattle_exports;

/* Defines `wattle_exports` of a plugin without tools, from the initializers of its nodes. */
#define WATTLE_EXPORT_NODES(...)                                                                   \
    static const wattle_node wattle_nodes[] = {__VA_ARGS__};                                       \
    const wattle_plugin wattle_exports = {                                                         \
        .nodes = wattle_nodes,                                                                     \
        .nodes_count = WATTLE_COUNT(wattle_nodes),                                                 \
    }

/*
 * The manifest of the plugin: TOML text that requests the permissions that it needs, as a string
 * literal. Only a component has it. That of a component of an app has no effect: `[needs]` in
 * `app.toml` requests the permissions of the components.
 */
#ifdef __wasm__
#define WATTLE_MANIFEST(text)                                                                      \
    __asm__(".section \".custom_section.wattle:manifest\",\"\",@\n.ascii " #text "\n.text\n")
#else
#define WATTLE_MANIFEST(text) _Static_assert(sizeof(text) > 0, "the manifest is text")
#endif

/* Codes of failures that the host uses. A plugin can also use its own codes. */
#define WATTLE_DENIED "denied"
#define WATTLE_UNSUPPORTED "unsupported"
#define WATTLE_INVALID "invalid"
#define WATTLE_LIMIT "limit"
#define WATTLE_TIMEOUT "timeout"
#define WATTLE_UNAVAILABLE "unavailable"
#define WATTLE_RATE_LIMITED "rate-limited"
#define WATTLE_NOT_FOUND "not-found"
#define WATTLE_CONFLICT "conflict"
#define WATTLE_EXPIRED "expired"
#define WATTLE_BUSY "busy"
#define WATTLE_CANCELLED "cancelled"
#define WATTLE_INTERNAL "internal"

/* Makes the call fail. Returns NULL, so that a node can return it. */
const char *wattle_fail(const char *code, const char *message);

/* Like `wattle_fail`, for a failure after which the same call can succeed later. */
const char *wattle_fail_retryable(const char *code, const char *message);

/* Sets the structured details of the failure, as JSON. */
void wattle_details(const char *details);

/* Returns the code of the failure of this call; NULL if there is none. */
const char *wattle_failure(void);

/* Takes the failure of this call back, after a call of the host that may fail. */
void wattle_recover(void);

/* Target for `wattle_goto` that ends this branch of the graph. */
#define WATTLE_END "END"

/* Selects a node to run next, instead of the nodes to which the edges lead. */
void wattle_goto(const char *node);

/* Runs a node in the next superstep with its own input, as JSON, instead of the state. */
void wattle_send(const char *node, const char *input);

/* Makes the update of a channel an overwrite, which replaces the value without the reducer. */
void wattle_overwrite(const char *channel);

/* Writes to a channel of the graph that called this tool. The value is JSON. */
void wattle_update(const char *channel, const char *value);

/* Returns an output with a text. */
wattle_output wattle_text(const char *text);

/* Returns an output with JSON: structured output for programs, and the same as text for the model. */
wattle_output wattle_json(const char *json);

/* Returns an error message for the model, which can react to it. */
wattle_output wattle_error(const char *text);

/* The severity of a log message. */
typedef enum wattle_level {
    WATTLE_LOG_TRACE,
    WATTLE_LOG_DEBUG,
    WATTLE_LOG_INFO,
    WATTLE_LOG_WARN,
    WATTLE_LOG_ERROR,
} wattle_level;

/* Writes a message for the operator. */
void wattle_log(wattle_level level, const char *message);

/*
 * Raises an interrupt: asks a person, and returns the answer as JSON. Until the answer arrives, the
 * run is interrupted, and code after the call runs once. Payload and schema are JSON; NULL as the
 * schema accepts any answer. Returns NULL if the call failed.
 */
const char *wattle_ask(const char *payload, const char *schema);

/*
 * Calls a tool by its name or its reference, such as `calculator/add`. The arguments are JSON. The
 * text of the output is that of all text parts, with a line break between them. The output has no
 * text if the call failed, and an error of the tool as `is_error`.
 */
wattle_output wattle_call(const char *tool, const char *arguments);

/*
 * Returns the history of a model request, for the field `history` in `extra` of
 * `wattle_plugin_llm_request_t`: the host adds the messages of the conversation of the node before
 * the message at the position `at` of the request. `append` is a JSON array of messages in the
 * format of the state that follow the conversation; NULL for none. Returns NULL if the node has no
 * conversation, and the call fails.
 */
const char *wattle_history(const wattle_context *context, size_t at, const char *append);

/* Returns text like `printf`. */
__attribute__((format(printf, 1, 2))) const char *wattle_format(const char *format, ...);

/*
 * Returns the text of a field of a JSON object; NULL if it has no such field. Fields whose names
 * contain a zero byte or half of a character are passed over.
 */
const char *wattle_field(const char *object, const char *name);

/*
 * Returns the text of an item of a JSON array; NULL if it has no such item. The search begins at the
 * first item, so `wattle_next_item` is for reading all of them.
 */
const char *wattle_item(const char *array, size_t index);

/*
 * Returns the text of the next item of a JSON array; NULL behind the last one. `at` is the array at
 * first, where NULL has no items, and moves behind the item:
 *
 *     const char *at = wattle_field(input, "words");
 *     for (const char *word; (word = wattle_next_item(&at)) != NULL;) {
 *         ...
 *     }
 */
const char *wattle_next_item(const char **at);

/* Decodes a JSON string; NULL if the value is no string or NULL, or contains a zero byte. */
const char *wattle_string(const char *value);

/* Reads a JSON number. Returns false if the value is no number or NULL. */
bool wattle_number(const char *value, double *number);

/* Returns true if a value is the JSON value `true`. */
bool wattle_is_true(const char *value);

/* Returns a text as a JSON string. The text must be UTF-8. */
const char *wattle_quote(const char *text);

#ifdef __cplusplus
}
#endif

#endif
