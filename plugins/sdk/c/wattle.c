/*
 * The C SDK for Wattle plugins: the exports of a component for the table of its nodes, tools and
 * reducers.
 *
 * Results are lists and texts from `malloc`, which the bindings free after the call.
 */
#include "wattle.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/plugin.h"
#include "internal.h"

/* The schema of an object without properties. */
#define EMPTY_OBJECT "{\"type\":\"object\",\"properties\":{}}"

/* A name with a JSON value. */
typedef struct named {
    const char *name;
    const char *value;
    bool overwrite;
} named;

/* A list that grows. */
typedef struct names {
    named *items;
    size_t count;
} names;

/* What the functions of the SDK have recorded in this call. */
static struct {
    struct wattle_failure failure;
    names targets;
    names sends;
    names overwrites;
    names updates;
} call;

static void add(names *list, const char *name, const char *value) {
    named *items = realloc(list->items, (list->count + 1) * sizeof(named));
    if (items == NULL) {
        abort();
    }
    items[list->count] = (named){name, value, false};
    list->items = items;
    list->count += 1;
}

/* What a plugin says. */

const char *wattle_fail(const char *code, const char *message) {
    call.failure = (struct wattle_failure){.code = code, .message = message};
    return NULL;
}

const char *wattle_fail_retryable(const char *code, const char *message) {
    wattle_fail(code, message);
    call.failure.retryable = true;
    return NULL;
}

void wattle_details(const char *details) { call.failure.details = details; }

const char *wattle_failure(void) { return call.failure.code; }

struct wattle_failure wattle_recover(void) {
    struct wattle_failure failure = call.failure;
    call.failure = (struct wattle_failure){.code = NULL};
    return failure;
}

void wattle_goto(const char *node) { add(&call.targets, node, NULL); }

void wattle_send(const char *node, const char *input) { add(&call.sends, node, input); }

void wattle_overwrite(const char *channel) { add(&call.overwrites, channel, NULL); }

void wattle_update(const char *channel, const char *value) { add(&call.updates, channel, value); }

wattle_output wattle_text(const char *text) { return (wattle_output){text, NULL, false}; }

wattle_output wattle_json(const char *json) { return (wattle_output){json, json, false}; }

wattle_output wattle_error(const char *text) { return (wattle_output){text, NULL, true}; }

/* Texts in both directions. */

const char *wattle_text_of(plugin_string_t text) {
    return wattle_copy((const char *)text.ptr, text.len);
}

const char *wattle_optional_text(plugin_option_string_t text) {
    return text.is_some ? wattle_text_of(text.val) : NULL;
}

static void set(plugin_string_t *to, const char *text) { plugin_string_dup(to, text); }

plugin_string_t wattle_lend(const char *text) {
    return (plugin_string_t){(uint8_t *)text, strlen(text)};
}

static const char *extra_field(wattle_plugin_types_extra_t fields, const char *name) {
    for (size_t index = 0; index < fields.len; index += 1) {
        if (strcmp(wattle_text_of(fields.ptr[index].f0), name) == 0) {
            return wattle_text_of(fields.ptr[index].f1);
        }
    }
    return NULL;
}

void wattle_add_extra(wattle_plugin_types_extra_t *to, const char *name, const char *value) {
    void *fields = realloc(to->ptr, (to->len + 1) * sizeof *to->ptr);
    if (fields == NULL) {
        abort();
    }
    to->ptr = fields;
    set(&to->ptr[to->len].f0, name);
    set(&to->ptr[to->len].f1, value);
    to->len += 1;
}

const char *wattle_fail_like(const wattle_plugin_types_failure_t *failure) {
    wattle_fail(wattle_text_of(failure->code), wattle_text_of(failure->message));
    call.failure.retryable = failure->retryable;
    call.failure.details = failure->details.is_some ? wattle_text_of(failure->details.val) : NULL;
    return NULL;
}

bool wattle_failed(wattle_plugin_types_failure_t *failure) {
    set(&failure->code, call.failure.code);
    set(&failure->message, call.failure.message);
    failure->retryable = call.failure.retryable;
    failure->details.is_some = call.failure.details != NULL;
    if (call.failure.details != NULL) {
        set(&failure->details.val, call.failure.details);
    }
    return false;
}

static void set_updates(wattle_plugin_types_update_t **ptr, size_t *len) {
    *ptr = wattle_allocate(call.updates.count, sizeof **ptr);
    *len = call.updates.count;
    for (size_t index = 0; index < call.updates.count; index += 1) {
        const named *update = &call.updates.items[index];
        set(&(*ptr)[index].channel, update->name);
        set(&(*ptr)[index].value, update->value);
        (*ptr)[index].overwrite = update->overwrite;
    }
}

/* Calls of the host. */

void wattle_log(wattle_level level, const char *message) {
    wattle_plugin_log_level_t raw = {.tag = WATTLE_PLUGIN_LOG_LEVEL_TRACE};
    switch (level) {
    case WATTLE_LOG_TRACE:
        break;
    case WATTLE_LOG_DEBUG:
        raw.tag = WATTLE_PLUGIN_LOG_LEVEL_DEBUG;
        break;
    case WATTLE_LOG_INFO:
        raw.tag = WATTLE_PLUGIN_LOG_LEVEL_INFO;
        break;
    case WATTLE_LOG_WARN:
        raw.tag = WATTLE_PLUGIN_LOG_LEVEL_WARN;
        break;
    case WATTLE_LOG_ERROR:
        raw.tag = WATTLE_PLUGIN_LOG_LEVEL_ERROR;
        break;
    }
    plugin_string_t text = wattle_lend(message);
    wattle_plugin_log_list_tuple2_string_json_t fields = {NULL, 0};
    wattle_plugin_log_write(&raw, &text, &fields);
}

const char *wattle_ask(const char *payload, const char *schema) {
    wattle_plugin_interrupt_question_t question = {.payload = wattle_lend(payload)};
    if (schema != NULL) {
        question.response_schema.is_some = true;
        question.response_schema.val = wattle_lend(schema);
    }
    plugin_string_t answer;
    wattle_plugin_types_failure_t failure;
    if (wattle_plugin_interrupt_ask(&question, &answer, &failure)) {
        return wattle_text_of(answer);
    }
    return wattle_fail_like(&failure);
}

const char *wattle_history(const wattle_context *context, size_t at, const char *append) {
    const char *channel = wattle_field(context->conversation, "channel");
    if (channel == NULL) {
        return wattle_fail(
            WATTLE_UNSUPPORTED,
            wattle_format(
                "node `%s` got no conversation from the host: the version of Wattle is too old for "
                "the plugin, or the node declares no conversation; update Wattle, or declare it in "
                "`reads`",
                context->node
            )
        );
    }
    const char *further = append == NULL ? "[]" : append;
    return wattle_format("{\"channel\":%s,\"at\":%zu,\"append\":%s}", channel, at, further);
}

/* Returns the parts of a kind, which is text or reasoning, with a separator between them. */
static const char *joined(
    const wattle_plugin_types_part_t *parts, size_t count, uint8_t kind, const char *separator
) {
    size_t gap = strlen(separator);
    size_t length = 0;
    for (size_t index = 0; index < count; index += 1) {
        if (parts[index].tag == kind) {
            length += parts[index].val.text.len + gap;
        }
    }
    char *text = wattle_allocate(length + 1, 1);
    char *to = text;
    bool is_first = true;
    for (size_t index = 0; index < count; index += 1) {
        if (parts[index].tag == kind) {
            /* Text and reasoning have one type, and so one place in the union. */
            plugin_string_t part = parts[index].val.text;
            size_t until_zero = strnlen((const char *)part.ptr, part.len);
            if (!is_first) {
                memcpy(to, separator, gap);
                to += gap;
            }
            memcpy(to, part.ptr, until_zero);
            to += until_zero;
            is_first = false;
        }
    }
    return text;
}

/*
 * Returns the tool calls of a completion as the items of a JSON array. They have the ids of
 * `call_ids`, or else those of the model.
 */
static const char *stored_calls(const wattle_plugin_llm_completion_t *completion) {
    const char *ids = extra_field(completion->extra, "call_ids");
    const char *items = "";
    size_t count = 0;
    for (size_t index = 0; index < completion->parts.len; index += 1) {
        if (completion->parts.ptr[index].tag == WATTLE_PLUGIN_TYPES_PART_TOOL_CALL) {
            const wattle_plugin_types_tool_call_t *request =
                &completion->parts.ptr[index].val.tool_call;
            const char *id = wattle_item(ids, count);
            items = wattle_format(
                "%s%s{\"id\":%s,\"name\":%s,\"arguments\":%s}",
                items,
                count == 0 ? "" : ",",
                id == NULL ? wattle_quote(wattle_text_of(request->id)) : id,
                wattle_quote(wattle_text_of(request->name)),
                wattle_text_of(request->arguments)
            );
            count += 1;
        }
    }
    return items;
}

/* Returns the opaque data of the provider as JSON; NULL if there is none. */
static const char *provider_state(const wattle_plugin_llm_completion_t *completion) {
    for (size_t index = 0; index < completion->parts.len; index += 1) {
        if (completion->parts.ptr[index].tag == WATTLE_PLUGIN_TYPES_PART_OTHER) {
            const char *value = wattle_text_of(completion->parts.ptr[index].val.other);
            const char *type = wattle_string(wattle_field(value, "type"));
            if (type != NULL && strcmp(type, "provider_state") == 0) {
                return value;
            }
        }
    }
    return NULL;
}

const char *wattle_to_stored(const wattle_plugin_llm_completion_t *completion) {
    const wattle_plugin_types_part_t *parts = completion->parts.ptr;
    size_t count = completion->parts.len;
    const char *text = joined(parts, count, WATTLE_PLUGIN_TYPES_PART_TEXT, "");
    const char *message = wattle_format("\"role\":\"assistant\",\"content\":%s", wattle_quote(text));
    const char *id = extra_field(completion->extra, "id");
    if (wattle_string(id) != NULL) {
        message = wattle_format("\"id\":%s,%s", id, message);
    }
    const char *calls = stored_calls(completion);
    if (*calls != '\0') {
        message = wattle_format("%s,\"tool_calls\":[%s]", message, calls);
    }
    const char *reasoning = joined(parts, count, WATTLE_PLUGIN_TYPES_PART_REASONING, "");
    if (*reasoning != '\0') {
        message = wattle_format("%s,\"reasoning\":%s", message, wattle_quote(reasoning));
    }
    const char *state = provider_state(completion);
    if (state != NULL) {
        message = wattle_format("%s,\"provider_state\":%s", message, state);
    }
    return wattle_format("{%s}", message);
}

wattle_output wattle_call(const char *tool, const char *arguments) {
    wattle_plugin_tools_request_t request = {
        .tool = wattle_lend(tool),
        .call_id = wattle_lend(""),
        .arguments = wattle_lend(arguments),
    };
    wattle_plugin_tools_tool_output_t output;
    wattle_plugin_types_failure_t failure;
    if (!wattle_plugin_tools_call(&request, &output, &failure)) {
        wattle_fail_like(&failure);
        return (wattle_output){NULL, NULL, false};
    }
    const char *structured = NULL;
    if (output.structured.is_some) {
        structured = wattle_text_of(output.structured.val);
    }
    const wattle_plugin_types_part_t *parts = output.content.ptr;
    size_t count = output.content.len;
    const char *text = joined(parts, count, WATTLE_PLUGIN_TYPES_PART_TEXT, "\n");
    return (wattle_output){text, structured, output.is_error};
}

/* The export `node`. */

static const char *or_empty(const char *schema) { return schema == NULL ? EMPTY_OBJECT : schema; }

static const char *or_nothing(const char *text) { return text == NULL ? "" : text; }

void exports_wattle_plugin_node_describe(exports_wattle_plugin_node_list_node_info_t *ret) {
    ret->len = wattle_exports.nodes_count;
    ret->ptr = wattle_allocate(ret->len, sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index += 1) {
        const wattle_node *node = &wattle_exports.nodes[index];
        set(&ret->ptr[index].name, node->name);
        set(&ret->ptr[index].doc, or_nothing(node->doc));
        set(&ret->ptr[index].input_schema, or_empty(node->input_schema));
        set(&ret->ptr[index].output_schema, or_empty(node->output_schema));
        if (node->config_schema != NULL) {
            wattle_add_extra(&ret->ptr[index].extra, "config-schema", node->config_schema);
        }
        if (node->reads != NULL) {
            wattle_add_extra(&ret->ptr[index].extra, "reads", node->reads);
        }
    }
}

/* Splits the updates by channel. */
static bool read_updates(const char *updates) {
    const char *at = wattle_skip_blank(updates);
    wattle_piece name;
    wattle_piece value;
    if (*at != '{') {
        return false;
    }
    for (at += 1; wattle_next(&at, &name, &value);) {
        const char *channel = wattle_string(wattle_copy(name.start, name.length));
        if (channel == NULL) {
            return false;
        }
        add(&call.updates, channel, wattle_copy(value.start, value.length));
    }
    at = wattle_skip_blank(at);
    return *at == '}' && *wattle_skip_blank(at + 1) == '\0';
}

static bool mark_overwrites(void) {
    for (size_t index = 0; index < call.overwrites.count; index += 1) {
        const char *channel = call.overwrites.items[index].name;
        bool is_written = false;
        for (size_t update = 0; update < call.updates.count; update += 1) {
            if (strcmp(call.updates.items[update].name, channel) == 0) {
                call.updates.items[update].overwrite = true;
                is_written = true;
            }
        }
        if (!is_written) {
            wattle_fail(
                WATTLE_INTERNAL,
                wattle_format("overwrite channel `%s`: the updates do not write it", channel)
            );
            return false;
        }
    }
    return true;
}

/* Runs a node. Returns false after a failure. */
static bool run(const wattle_context *context, const char *input) {
    for (size_t index = 0; index < wattle_exports.nodes_count; index += 1) {
        const wattle_node *node = &wattle_exports.nodes[index];
        if (strcmp(node->name, context->node) != 0) {
            continue;
        }
        const char *updates = node->run(context, input);
        if (call.failure.code == NULL && (updates == NULL || !read_updates(updates))) {
            wattle_fail(
                WATTLE_INTERNAL,
                wattle_format("node `%s` returned no JSON object with its updates", node->name)
            );
        }
        return call.failure.code == NULL && mark_overwrites();
    }
    wattle_fail(WATTLE_NOT_FOUND, wattle_format("the plugin has no node `%s`", context->node));
    return false;
}

bool exports_wattle_plugin_node_run(
    exports_wattle_plugin_node_task_context_t *context,
    plugin_string_t *input,
    exports_wattle_plugin_node_outcome_t *ret,
    wattle_plugin_types_failure_t *err
) {
    const char *config = extra_field(context->extra, "config");
    const char *error = extra_field(context->extra, "error");
    bool has_config = config != NULL && strcmp(config, "null") != 0;
    wattle_context known = {
        .node = wattle_text_of(context->node),
        .graph = wattle_text_of(context->graph),
        .thread_id = wattle_text_of(context->thread_id),
        .run_id = wattle_text_of(context->run_id),
        .task_id = wattle_text_of(context->task_id),
        .step = context->step,
        .attempt = context->attempt,
        .remaining_steps = context->remaining_steps,
        .tenant = wattle_optional_text(context->tenant),
        .context = wattle_text_of(context->context),
        .config = has_config ? config : "{}",
        .error = error != NULL && strcmp(error, "null") != 0 ? error : NULL,
        .conversation = extra_field(context->extra, "conversation"),
    };
    if (!run(&known, wattle_text_of(*input))) {
        return wattle_failed(err);
    }
    set_updates(&ret->updates.ptr, &ret->updates.len);
    ret->goto_.len = call.targets.count;
    ret->goto_.ptr = wattle_allocate(ret->goto_.len, sizeof *ret->goto_.ptr);
    for (size_t index = 0; index < call.targets.count; index += 1) {
        set(&ret->goto_.ptr[index], call.targets.items[index].name);
    }
    ret->sends.len = call.sends.count;
    ret->sends.ptr = wattle_allocate(ret->sends.len, sizeof *ret->sends.ptr);
    for (size_t index = 0; index < call.sends.count; index += 1) {
        set(&ret->sends.ptr[index].node, call.sends.items[index].name);
        set(&ret->sends.ptr[index].input, call.sends.items[index].value);
    }
    ret->extra = (wattle_plugin_types_extra_t){NULL, 0};
    return true;
}

/* The export `tool`. */

static const char *hints(const wattle_tool *tool) {
    return wattle_format(
        "{\"read_only\":%s,\"idempotent\":%s}",
        tool->read_only ? "true" : "false",
        tool->idempotent ? "true" : "false"
    );
}

void exports_wattle_plugin_tool_list(exports_wattle_plugin_tool_list_tool_info_t *ret) {
    ret->len = wattle_exports.tools_count;
    ret->ptr = wattle_allocate(ret->len, sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index += 1) {
        const wattle_tool *tool = &wattle_exports.tools[index];
        set(&ret->ptr[index].name, tool->name);
        set(&ret->ptr[index].description, or_nothing(tool->description));
        set(&ret->ptr[index].arguments_schema, or_empty(tool->arguments_schema));
        ret->ptr[index].accepts_invalid = tool->accepts_invalid;
        if (tool->read_only || tool->idempotent) {
            wattle_add_extra(&ret->ptr[index].extra, "hints", hints(tool));
        }
    }
}

/* Calls a tool. Returns false after a failure. */
static bool
call_tool(const wattle_tool_context *context, const char *arguments, wattle_output *output) {
    for (size_t index = 0; index < wattle_exports.tools_count; index += 1) {
        const wattle_tool *tool = &wattle_exports.tools[index];
        if (strcmp(tool->name, context->tool) != 0) {
            continue;
        }
        *output = tool->call(context, arguments);
        if (call.failure.code == NULL && output->text == NULL) {
            wattle_fail(WATTLE_INTERNAL, wattle_format("tool `%s` returned no text", tool->name));
        }
        return call.failure.code == NULL;
    }
    wattle_fail(WATTLE_NOT_FOUND, wattle_format("the plugin has no tool `%s`", context->tool));
    return false;
}

bool exports_wattle_plugin_tool_call(
    exports_wattle_plugin_tool_call_context_t *context,
    plugin_string_t *arguments,
    exports_wattle_plugin_tool_tool_output_t *ret,
    wattle_plugin_types_failure_t *err
) {
    const char *state = extra_field(context->extra, "state");
    wattle_tool_context known = {
        .tool = wattle_text_of(context->tool),
        .call_id = wattle_text_of(context->call_id),
        .thread_id = wattle_optional_text(context->thread_id),
        .task_id = wattle_optional_text(context->task_id),
        .tenant = wattle_optional_text(context->tenant),
        .state = state == NULL ? "{}" : state,
        .violations = context->violations.len,
    };
    wattle_output output;
    if (!call_tool(&known, wattle_text_of(*arguments), &output)) {
        return wattle_failed(err);
    }
    ret->content.len = 1;
    ret->content.ptr = wattle_allocate(1, sizeof *ret->content.ptr);
    ret->content.ptr[0].tag = WATTLE_PLUGIN_TYPES_PART_TEXT;
    set(&ret->content.ptr[0].val.text, output.text);
    ret->structured.is_some = output.structured != NULL;
    if (output.structured != NULL) {
        set(&ret->structured.val, output.structured);
    }
    ret->is_error = output.is_error;
    set_updates(&ret->updates.ptr, &ret->updates.len);
    ret->extra = (wattle_plugin_types_extra_t){NULL, 0};
    return true;
}

/* The export `reducer`. */

void exports_wattle_plugin_reducer_reducers(
    exports_wattle_plugin_reducer_list_reducer_info_t *ret
) {
    ret->len = wattle_exports.reducers_count;
    ret->ptr = wattle_allocate(ret->len, sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index += 1) {
        const wattle_reducer *reducer = &wattle_exports.reducers[index];
        set(&ret->ptr[index].name, reducer->name);
        set(&ret->ptr[index].doc, or_nothing(reducer->doc));
    }
}

/* Calls a reducer. Returns NULL after a failure. */
static const char *
reduce(const char *name, const char *current, const char *const *updates, size_t count) {
    for (size_t index = 0; index < wattle_exports.reducers_count; index += 1) {
        const wattle_reducer *reducer = &wattle_exports.reducers[index];
        if (strcmp(reducer->name, name) != 0) {
            continue;
        }
        const char *value = reducer->reduce(current, updates, count);
        if (call.failure.code == NULL && value == NULL) {
            wattle_fail(
                WATTLE_INTERNAL, wattle_format("reducer `%s` returned no value", reducer->name)
            );
        }
        return call.failure.code == NULL ? value : NULL;
    }
    return wattle_fail(WATTLE_NOT_FOUND, wattle_format("the plugin has no reducer `%s`", name));
}

bool exports_wattle_plugin_reducer_reduce(
    plugin_string_t *reducer,
    plugin_string_t *maybe_current,
    exports_wattle_plugin_reducer_list_json_t *updates,
    plugin_string_t *ret,
    wattle_plugin_types_failure_t *err
) {
    const char *current = maybe_current == NULL ? NULL : wattle_text_of(*maybe_current);
    const char **texts = wattle_allocate(updates->len, sizeof *texts);
    for (size_t index = 0; index < updates->len; index += 1) {
        texts[index] = wattle_text_of(updates->ptr[index]);
    }
    const char *value = reduce(wattle_text_of(*reducer), current, texts, updates->len);
    if (value == NULL) {
        return wattle_failed(err);
    }
    set(ret, value);
    return true;
}
