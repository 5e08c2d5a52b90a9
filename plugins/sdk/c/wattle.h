/*
 * The C SDK for Wattle plugins: graph nodes, tools, reducers and HTTP endpoints. Inputs, outputs and
 * values of channels are JSON as text.
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

/* Types of `bindings/plugin.h`. */
struct wattle_plugin_llm_completion_t;
struct wattle_plugin_types_failure_t;

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
     * written, or NULL after `wattle_fail` or a call of the host that failed. After these the node
     * fails, whatever it returns, unless it calls `wattle_recover`.
     */
    const char *(*run)(const wattle_context *context, const char *input);
    /*
     * The channels that the node reads, in place of the properties of `input_schema`, and the one
     * with its conversation, as JSON:
     *
     *     {"channels":[{"channel":"messages"}],"conversation":{"channel":"messages"}}
     *
     * `{"config":KEY,"default":NAME}` in place of `{"channel":NAME}` is the channel that the
     * configuration of the node names under a key. The conversation is optional, and one of
     * `channels` with the same text. The input has only its current turn. NULL for a node whose
     * channels are those properties.
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

/* A reducer, for state channels that no built-in reducer fits. */
typedef struct wattle_reducer {
    /* Name of the reducer, unique in the plugin. */
    const char *name;
    /* Documentation of the reducer. */
    const char *doc;
    /*
     * Combines the value of a channel with the writes of one superstep, in their fixed order. All are
     * JSON. `current` is NULL before the first write. Returns the new value, or NULL after
     * `wattle_fail`. The result depends only on the arguments, and the only call of the host that
     * works is `wattle_log`.
     */
    const char *(*reduce)(const char *current, const char *const *updates, size_t count);
} wattle_reducer;

/* A parameter or a header field of a request. */
typedef struct wattle_pair {
    const char *name;
    const char *value;
} wattle_pair;

/*
 * An HTTP request. A request with a zero byte in a parameter or a header field gets status 400 and
 * does not reach the handler.
 */
typedef struct wattle_request {
    /* Method in upper case, such as `GET`. */
    const char *method;
    /* Path relative to the mount of the app. */
    const char *path;
    /* Pattern of the matching route, such as `/api/items/{id}`. */
    const char *route;
    /* Path parameters, percent-decoded. */
    const wattle_pair *params;
    size_t params_count;
    /* Query parameters in their order, percent-decoded. */
    const wattle_pair *query;
    size_t query_count;
    /* Header fields with names in lower case, without credentials for the API of the host. */
    const wattle_pair *headers;
    size_t headers_count;
    /* The body. It can contain zero bytes, and another one follows it. */
    const char *body;
    /* Length of the body, in bytes. */
    size_t body_length;
    /* Tenant of the request; NULL if it has none. */
    const char *tenant;
} wattle_request;

/* The format of a stream that the host sends. */
typedef enum wattle_stream_format {
    /* Server-sent events in the format of the host. */
    WATTLE_STREAM_SSE,
    /* The UI message stream of the AI SDK. */
    WATTLE_STREAM_AI_SDK,
    /* AG-UI. */
    WATTLE_STREAM_AG_UI,
} wattle_stream_format;

/* A hand-off: the host takes over the response and streams the events of a run. */
typedef struct wattle_hand_off {
    /* Id of the thread; NULL for a response without a hand-off. */
    const char *thread_id;
    /* Id of the run; NULL for the newest run of the thread. */
    const char *run_id;
    /* Format of the stream. */
    wattle_stream_format format;
    /* Name of a format that the app defines in a file, in place of `format`; NULL for none. */
    const char *custom_format;
    /* Sequence number after which the stream begins; 0 for the first event. */
    uint64_t after;
    /* True to cancel the run if its last client disconnects and none connects again in time. */
    bool cancels_on_disconnect;
    /* This time, in milliseconds, at most 600,000. */
    uint32_t grace_ms;
    /*
     * Names of the nodes whose model calls are shown, as a JSON array, in formats that show a
     * conversation; NULL for all.
     */
    const char *nodes;
} wattle_hand_off;

/* The response of a handler, from `wattle_respond` and the functions after it. */
typedef struct wattle_response {
    /* Status code, such as 200; 0 is no response. */
    uint16_t status;
    /* Media type of the body; NULL for a response without this header field. */
    const char *content_type;
    /* The body; NULL for none. */
    const char *body;
    /* Length of the body, in bytes. */
    size_t body_length;
    /* Reference to a blob, whose bytes the host sends in place of `body`; NULL for none. */
    const char *blob;
    /* Stream that the host sends in place of `body` and `blob`. */
    wattle_hand_off hand_off;
} wattle_response;

/*
 * The handler of an HTTP endpoint. Its calls are not journaled: work that must survive a crash
 * belongs into a run that the handler starts.
 */
typedef struct wattle_handler {
    /* Method in upper case. */
    const char *method;
    /* Path with optional parameters, such as `/api/items/{id}`. */
    const char *path;
    /* What the endpoint does, in one line, for the OpenAPI document of the host. */
    const char *doc;
    /*
     * Description of the endpoint as JSON, an operation of OpenAPI 3.1, in place of `doc`; NULL for
     * none. The host adds parameters of the path that it does not describe.
     */
    const char *operation;
    /*
     * JSON Schemas by name as a JSON object, to which the operation refers as
     * `#/components/schemas/<name>`; NULL for none.
     */
    const char *schemas;
    /*
     * Handles a request. After `wattle_fail` or a call of the host that failed, the response is
     * ignored and the host responds with status 500.
     */
    wattle_response (*handle)(const wattle_request *request);
} wattle_handler;

/* The nodes, tools, reducers and handlers of a plugin. */
typedef struct wattle_plugin {
    const wattle_node *nodes;
    size_t nodes_count;
    const wattle_tool *tools;
    size_t tools_count;
    const wattle_reducer *reducers;
    size_t reducers_count;
    const wattle_handler *handlers;
    size_t handlers_count;
} wattle_plugin;

/* The number of elements of an array. */
#define WATTLE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The nodes, tools, reducers and handlers of this plugin. Its author defines them. */
extern const wattle_plugin wattle_exports;

/* Defines `wattle_exports` of a plugin with only nodes, from their initializers. */
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

/*
 * Makes the call fail like a call of the host, whose failure a function of `bindings/plugin.h` has
 * returned. Returns NULL, so that a node can return it.
 */
const char *wattle_fail_like(const struct wattle_plugin_types_failure_t *failure);

/* Sets the structured details of the failure, as JSON. */
void wattle_details(const char *details);

/* The failure of a call of the host, or one from `wattle_fail`. */
struct wattle_failure {
    /* A short stable identifier, such as `WATTLE_LIMIT`; NULL for no failure. */
    const char *code;
    /* The failed operation, the reason, and a hint. */
    const char *message;
    /* Structured details as JSON; NULL if there are none. */
    const char *details;
    /* True if the same call can succeed later. */
    bool retryable;
};

/*
 * Returns the code of the failure of this call; NULL if there is none. The call fails with it,
 * whatever the function of the plugin returns, unless `wattle_recover` takes it back.
 */
const char *wattle_failure(void);

/*
 * Takes the failure of this call back and returns it, after a call of the host that failed. The call
 * of the plugin continues without a failure.
 */
struct wattle_failure wattle_recover(void);

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

/* Returns the value of a path parameter; NULL if there is none of the name. */
const char *wattle_request_param(const wattle_request *request, const char *name);

/* Returns the first value of a query parameter; NULL if there is none of the name. */
const char *wattle_request_query(const wattle_request *request, const char *name);

/* Returns the first value of a header field, named in lower case; NULL if there is none. */
const char *wattle_request_header(const wattle_request *request, const char *name);

/* Returns a response without a body. */
wattle_response wattle_respond(uint16_t status);

/* Returns a response with a text; no response if the text is NULL. */
wattle_response wattle_respond_text(uint16_t status, const char *text);

/* Returns a response with JSON; no response if it is NULL. */
wattle_response wattle_respond_json(uint16_t status, const char *json);

/* Returns a response with a body of bytes; no response if they are NULL. */
wattle_response wattle_respond_bytes(
    uint16_t status, const char *content_type, const char *bytes, size_t length
);

/*
 * Returns a response with a blob and status 200; no response if the blob is NULL. The host sends the
 * blob with its media type.
 */
wattle_response wattle_respond_blob(const char *blob);

/* Returns a response with a hand-off and status 200; no response if the thread is NULL. */
wattle_response wattle_respond_hand_off(wattle_hand_off hand_off);

/* Adds a header field to the response. A failure drops it. */
void wattle_add_header(const char *name, const char *value);

/*
 * Makes the handler fail with a status: the response is the failure as an
 * `application/problem+json` document. `details` of the failure contain the status as
 * `http_status`, and `wattle_details` replaces them. Returns no response, so that a handler can
 * return it.
 */
wattle_response wattle_refuse(uint16_t status, const char *code, const char *message);

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
 * schema accepts any answer. Returns NULL if the call failed; the caller then fails as well, unless
 * it takes the failure back.
 */
const char *wattle_ask(const char *payload, const char *schema);

/*
 * Calls a tool by its name or its reference, such as `calculator/add`. The arguments are JSON. The
 * text of the output is that of all text parts, with a line break between them. An error of the tool
 * is an output with `is_error`.
 *
 * The output has no text if the call failed: the tool is not granted, its arguments are invalid, it
 * trapped, or it exceeded a limit. The caller then fails as well, unless it takes the failure back:
 *
 *     wattle_output output = wattle_call("calculator/add", arguments);
 *     if (output.text == NULL) {
 *         struct wattle_failure failure = wattle_recover();
 *         output = wattle_error(failure.message);
 *     }
 */
wattle_output wattle_call(const char *tool, const char *arguments);

/* An HTTP request of the plugin. */
typedef struct wattle_http_request {
    /* Method in upper case; NULL for `GET`. */
    const char *method;
    /* Absolute address, with `https` or `http`. */
    const char *url;
    /* Header fields. */
    const wattle_pair *headers;
    size_t headers_count;
    /* The body as text; NULL for none. */
    const char *body;
    /* Maximum time of the whole exchange, in milliseconds; 0 for that of the host. */
    uint32_t timeout_ms;
    /* Value of `Idempotency-Key`, with which a repeated request is safe; NULL for none. */
    const char *idempotency_key;
} wattle_http_request;

/* The response to a request of the plugin. */
typedef struct wattle_http_response {
    /* Status code, such as 200; 0 is no response. */
    uint16_t status;
    /* Header fields with names in lower case. */
    const wattle_pair *headers;
    size_t headers_count;
    /* The body. It can contain zero bytes, and another one follows it. */
    const char *body;
    /* Length of the body, in bytes. */
    size_t body_length;
    /* Address after redirects. */
    const char *url;
} wattle_http_response;

/*
 * Sends a request to a host that the operator granted. The host of Wattle replaces
 * `{{secret:NAME}}` in a header value, the query or the body. A response with any status is a
 * response. The status is 0 if there is none; the caller then fails as well, unless it takes the
 * failure back. Bodies of bytes and of blobs, and several requests at once, are those of
 * `wattle_plugin_http_send` and `wattle_plugin_http_send_all`.
 */
wattle_http_response wattle_http_send(wattle_http_request request);

/* Returns the first value of a header field, named in lower case; NULL if there is none. */
const char *wattle_http_header(const wattle_http_response *response, const char *name);

/*
 * Returns the history of a model request, for the field `history` in `extra` of
 * `wattle_plugin_llm_request_t`: the host adds the messages of the conversation of the node before
 * the message at the position `at` of the request. `append` is a JSON array of messages in the
 * format of the state that follow the conversation; NULL for none. Returns NULL if the node has no
 * conversation, and the call fails.
 */
const char *wattle_history(const wattle_context *context, size_t at, const char *append);

/*
 * Converts a completion of `wattle_plugin_llm_complete` to a message in the format of the reducer
 * `messages`, as JSON. It contains the id, by which clients recognize the message whose deltas they
 * received, and the opaque data of the provider, which some models require with a tool call. Tool
 * calls have the ids of `call_ids` in `extra`, which no earlier call has, or else those of the model.
 */
const char *wattle_to_stored(const struct wattle_plugin_llm_completion_t *completion);

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
