/*
 * Nodes that get several results of a call of the host: pieces of a completion, batches, and tools.
 */
#include <string.h>

#include "bindings/plugin.h"
#include "conformance.h"
#include "wattle.h"

/* Returns a request with a message of a user. */
static wattle_plugin_llm_request_t prompt(const char *question) {
    static wattle_plugin_types_part_t part;
    static wattle_plugin_llm_message_t message;
    part.tag = WATTLE_PLUGIN_TYPES_PART_TEXT;
    part.val.text = lend(question);
    message.role.tag = WATTLE_PLUGIN_TYPES_ROLE_USER;
    message.parts.ptr = &part;
    message.parts.len = 1;
    wattle_plugin_llm_request_t request;
    memset(&request, 0, sizeof request);
    request.route = lend("chat");
    request.messages.ptr = &message;
    request.messages.len = 1;
    request.tool_choice.tag = WATTLE_PLUGIN_LLM_TOOL_CHOICE_AUTO;
    return request;
}

/* Returns a delta of a kind without a case of its own. */
static const char *other_piece(const char *event) {
    const char *kind = wattle_string(wattle_field(event, "kind"));
    return kind != NULL && strcmp(kind, "restart") == 0 ? wattle_quote(kind) : event;
}

static const char *piece(const wattle_plugin_llm_stream_event_t *event) {
    switch (event->tag) {
    case WATTLE_PLUGIN_LLM_STREAM_EVENT_TEXT:
        return wattle_format("{\"text\":%s}", wattle_quote(text_of(event->val.text)));
    case WATTLE_PLUGIN_LLM_STREAM_EVENT_REASONING:
        return wattle_format("{\"reasoning\":%s}", wattle_quote(text_of(event->val.reasoning)));
    case WATTLE_PLUGIN_LLM_STREAM_EVENT_TOOL_CALL_DELTA: {
        const plugin_tuple3_u32_option_string_string_t *call = &event->val.tool_call_delta;
        const char *name = call->f1.is_some ? wattle_quote(text_of(call->f1.val)) : "null";
        const char *arguments = wattle_quote(text_of(call->f2));
        return wattle_format("[%u,%s,%s]", (unsigned)call->f0, name, arguments);
    }
    default:
        return other_piece(text_of(event->val.other));
    }
}

/* Emits a piece of a completion. Returns the text of all pieces; NULL after a failure. */
static const char *emitted(
    const char *streamed, const wattle_plugin_llm_stream_event_t *event, failure_t *failure
) {
    const char *data = piece(event);
    plugin_string_t name = lend("piece");
    plugin_string_t value = lend(data);
    if (!wattle_plugin_emit_custom(&name, &value, failure)) {
        return NULL;
    }
    if (event->tag == WATTLE_PLUGIN_LLM_STREAM_EVENT_TEXT) {
        return wattle_format("%s%s", streamed, text_of(event->val.text));
    }
    return strcmp(data, "\"restart\"") == 0 ? "" : streamed;
}

const char *stream(const wattle_context *context, const char *input) {
    (void)context;
    wattle_plugin_llm_request_t request = prompt(string_field(input, "question"));
    wattle_plugin_llm_own_completion_stream_t events;
    failure_t failure;
    if (!wattle_plugin_llm_stream(&request, &events, &failure)) {
        return wattle_fail_like(&failure);
    }
    wattle_plugin_llm_borrow_completion_stream_t self =
        wattle_plugin_llm_borrow_completion_stream(events);
    const char *streamed = "";
    wattle_plugin_llm_list_stream_event_t ready;
    do {
        if (!wattle_plugin_llm_method_completion_stream_next(self, &ready, &failure)) {
            return wattle_fail_like(&failure);
        }
        for (size_t index = 0; index < ready.len; index += 1) {
            streamed = emitted(streamed, &ready.ptr[index], &failure);
            if (streamed == NULL) {
                return wattle_fail_like(&failure);
            }
        }
    } while (ready.len > 0);
    wattle_plugin_llm_completion_t completion;
    if (!wattle_plugin_llm_method_completion_stream_finish(self, &completion, &failure)) {
        return wattle_fail_like(&failure);
    }
    wattle_plugin_llm_completion_stream_drop_own(events);
    const char *answer = text_of(completion.parts.ptr[0].val.text);
    return wattle_format(
        "{\"streamed\":%s,\"answer\":%s}", wattle_quote(streamed), wattle_quote(answer)
    );
}

static const char *answers(const char *question) {
    wattle_plugin_types_tuple2_string_json_t candidate = {lend("candidate"), lend("\"first\"")};
    wattle_plugin_llm_request_t requests[] = {prompt(question), prompt(question)};
    requests[0].extra.ptr = &candidate;
    requests[0].extra.len = 1;
    wattle_plugin_llm_list_request_t list = {requests, WATTLE_COUNT(requests)};
    wattle_plugin_llm_list_result_completion_failure_t results;
    wattle_plugin_llm_complete_all(&list, &results);
    const char *items = "";
    for (size_t index = 0; index < results.len; index += 1) {
        if (results.ptr[index].is_err) {
            items = with_item(items, code_and_message(&results.ptr[index].val.err));
        } else {
            const char *text = text_of(results.ptr[index].val.ok.parts.ptr[0].val.text);
            items = with_item(items, wattle_format("{\"output\":%s}", wattle_quote(text)));
        }
    }
    return items;
}

static const char *responses(const char *url) {
    wattle_plugin_http_request_t requests[2];
    memset(requests, 0, sizeof requests);
    for (size_t index = 0; index < WATTLE_COUNT(requests); index += 1) {
        requests[index].method = lend("POST");
        requests[index].url = lend(url);
        requests[index].body.tag = WATTLE_PLUGIN_HTTP_BODY_EMPTY;
    }
    requests[0].body.tag = WATTLE_PLUGIN_HTTP_BODY_BLOB;
    requests[0].body.val.blob = lend("none");
    wattle_plugin_http_list_request_t list = {requests, WATTLE_COUNT(requests)};
    wattle_plugin_http_list_result_response_failure_t results;
    wattle_plugin_http_send_all(&list, &results);
    const char *items = "";
    for (size_t index = 0; index < results.len; index += 1) {
        if (results.ptr[index].is_err) {
            items = with_item(items, code_and_message(&results.ptr[index].val.err));
        } else {
            plugin_list_u8_t bytes = results.ptr[index].val.ok.body;
            const char *body = text_of((plugin_string_t){bytes.ptr, bytes.len});
            items = with_item(items, wattle_format("{\"output\":%s}", body));
        }
    }
    return items;
}

const char *batch(const wattle_context *context, const char *input) {
    (void)context;
    return wattle_format(
        "{\"answers\":[%s],\"responses\":[%s]}",
        answers(string_field(input, "question")),
        responses(string_field(input, "url"))
    );
}

const char *extension(wattle_plugin_types_extra_t extra, const char *name) {
    for (size_t index = 0; index < extra.len; index += 1) {
        if (strcmp(text_of(extra.ptr[index].f0), name) == 0) {
            return text_of(extra.ptr[index].f1);
        }
    }
    return NULL;
}

static const char *description(const wattle_plugin_tools_tool_info_t *info) {
    const char *reference = extension(info->extra, "reference");
    bool is_read_only = wattle_is_true(wattle_field(extension(info->extra, "hints"), "read_only"));
    return wattle_format(
        "{\"name\":%s,\"description\":%s,\"arguments_schema\":%s,\"accepts_invalid\":%s,"
        "\"read_only\":%s,\"reference\":%s}",
        wattle_quote(text_of(info->name)),
        wattle_quote(text_of(info->description)),
        text_of(info->arguments_schema),
        info->accepts_invalid ? "true" : "false",
        is_read_only ? "true" : "false",
        reference == NULL ? "null" : reference
    );
}

const char *list_tools(const wattle_context *context, const char *input) {
    (void)context;
    (void)input;
    wattle_plugin_tools_list_tool_info_t tools;
    failure_t failure;
    if (!wattle_plugin_tools_list(&tools, &failure)) {
        return wattle_fail_like(&failure);
    }
    const char *items = "";
    for (size_t index = 0; index < tools.len; index += 1) {
        items = with_item(items, description(&tools.ptr[index]));
    }
    return wattle_format("{\"tools\":[%s]}", items);
}
