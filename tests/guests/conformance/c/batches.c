/*
 * Nodes that get several results of a call of the host: batches, and tools.
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

/* Returns an extension field of a tool as JSON; NULL if it has none of the name. */
static const char *extension(const wattle_plugin_tools_tool_info_t *info, const char *name) {
    for (size_t index = 0; index < info->extra.len; index += 1) {
        if (strcmp(text_of(info->extra.ptr[index].f0), name) == 0) {
            return text_of(info->extra.ptr[index].f1);
        }
    }
    return NULL;
}

static const char *description(const wattle_plugin_tools_tool_info_t *info) {
    const char *reference = extension(info, "reference");
    bool is_read_only = wattle_is_true(wattle_field(extension(info, "hints"), "read_only"));
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
        return fail_like(&failure);
    }
    const char *items = "";
    for (size_t index = 0; index < tools.len; index += 1) {
        items = with_item(items, description(&tools.ptr[index]));
    }
    return wattle_format("{\"tools\":[%s]}", items);
}
