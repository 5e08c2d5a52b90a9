/*
 * Tests of the C SDK and of its example without a host. Each case runs in a process of its own, as
 * each call of a plugin runs in an instance of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bindings/plugin.h"
#include "cases.h"
#include "wattle.h"

/* The exports of a plugin without tools, beside those of the example. */
#define wattle_exports exports_of_nodes
WATTLE_EXPORT_NODES({.name = "first", .doc = "a, b"}, {.name = "second"});
#undef wattle_exports

size_t allocated;

void *counted_calloc(size_t count, size_t size) {
    void *memory = malloc(count * size);
    CHECK(memory != NULL);
    allocated += count * size;
    return memset(memory, 0, count * size);
}

/* The host of the tests. */

static char last_log[256];
static char last_question[256];

/* Answer of `interrupt.ask`; NULL fails. */
static const char *answer;

void plugin_string_dup(plugin_string_t *ret, const char *text) {
    ret->len = strlen(text);
    ret->ptr = malloc(ret->len + 1);
    memcpy(ret->ptr, text, ret->len + 1);
}

void wattle_plugin_log_write(
    wattle_plugin_log_level_t *level,
    plugin_string_t *message,
    wattle_plugin_log_list_tuple2_string_json_t *fields
) {
    CHECK(fields->len == 0);
    snprintf(last_log, sizeof last_log, "%d %.*s", level->tag, (int)message->len, message->ptr);
}

bool wattle_plugin_interrupt_ask(
    wattle_plugin_interrupt_question_t *question,
    wattle_plugin_interrupt_json_t *ret,
    wattle_plugin_interrupt_failure_t *err
) {
    int length = (int)question->payload.len;
    snprintf(last_question, sizeof last_question, "%.*s", length, question->payload.ptr);
    if (answer != NULL) {
        plugin_string_dup(ret, answer);
        return true;
    }
    plugin_string_dup(&err->code, "denied");
    plugin_string_dup(&err->message, "no one is there");
    err->retryable = false;
    err->details.is_some = true;
    plugin_string_dup(&err->details.val, "{\"n\":1}");
    return false;
}

/* Number of parts of the text that the tool returns. */
static size_t parts = 2;

/* True if the tool exceeds its limit. */
static bool exceeds_limit;

/* A tool that returns a text in parts, and its arguments as data. */
bool wattle_plugin_tools_call(
    wattle_plugin_tools_request_t *request,
    wattle_plugin_tools_tool_output_t *ret,
    wattle_plugin_tools_failure_t *err
) {
    if (request->tool.len != strlen("calculator/add")) {
        plugin_string_dup(&err->code, "not-found");
        plugin_string_dup(&err->message, "there is no such tool");
        err->retryable = false;
        err->details.is_some = false;
        return false;
    }
    if (exceeds_limit) {
        plugin_string_dup(&err->code, WATTLE_LIMIT);
        plugin_string_dup(&err->message, "the tool exceeded its limit");
        err->retryable = false;
        err->details.is_some = true;
        plugin_string_dup(&err->details.val, "{\"limit\":\"cpu\"}");
        return false;
    }
    memset(ret, 0, sizeof *ret);
    ret->content.len = parts;
    ret->content.ptr = malloc(parts * sizeof *ret->content.ptr);
    for (size_t index = 0; index < parts; index += 1) {
        ret->content.ptr[index].tag = WATTLE_PLUGIN_TYPES_PART_TEXT;
        plugin_string_dup(&ret->content.ptr[index].val.text, index == 0 ? "one" : "two");
    }
    ret->structured.is_some = true;
    ret->structured.val = request->arguments;
    return true;
}

static char last_request[256];

/* A server that is granted only on the host `a.example`. */
bool wattle_plugin_http_send(
    wattle_plugin_http_request_t *request,
    wattle_plugin_http_response_t *ret,
    wattle_plugin_http_failure_t *err
) {
    const char *url = (const char *)request->url.ptr;
    if (strncmp(url, "https://a.example/", strlen("https://a.example/")) != 0) {
        plugin_string_dup(&err->code, "denied");
        plugin_string_dup(&err->message, "the host is not granted");
        err->retryable = false;
        err->details.is_some = false;
        return false;
    }
    bool has_body = request->body.tag == WATTLE_PLUGIN_HTTP_BODY_TEXT;
    snprintf(
        last_request,
        sizeof last_request,
        "%s %s %zu %s %u %s",
        request->method.ptr,
        url,
        request->headers.len,
        has_body ? (const char *)request->body.val.text.ptr : "-",
        request->timeout_ms.is_some ? (unsigned)request->timeout_ms.val : 0,
        request->idempotency_key.is_some ? (const char *)request->idempotency_key.val.ptr : "-"
    );
    memset(ret, 0, sizeof *ret);
    ret->status = 404;
    ret->headers.ptr = malloc(sizeof *ret->headers.ptr);
    ret->headers.len = 1;
    plugin_string_dup(&ret->headers.ptr[0].f0, "content-type");
    plugin_string_dup(&ret->headers.ptr[0].f1, "text/plain");
    ret->body = (plugin_list_u8_t){(uint8_t *)"no\0ne", 5};
    ret->url = request->url;
    return true;
}

static bool is(plugin_string_t text, const char *expected) {
    return text.len == strlen(expected) && memcmp(text.ptr, expected, text.len) == 0;
}

static plugin_string_t text(const char *of) {
    plugin_string_t made;
    plugin_string_dup(&made, of);
    return made;
}

static wattle_plugin_types_failure_t failure;

/* The extension fields of the context of a node. */
static wattle_plugin_types_extra_t fields;

/* Runs a node as the host does. */
static bool run(const char *node, const char *input, exports_wattle_plugin_node_outcome_t *outcome) {
    exports_wattle_plugin_node_task_context_t context = {
        .node = text(node),
        .graph = text("g"),
        .thread_id = text("t"),
        .run_id = text("r"),
        .task_id = text("k"),
        .context = text("null"),
        .extra = fields,
    };
    plugin_string_t document = text(input);
    return exports_wattle_plugin_node_run(&context, &document, outcome, &failure);
}

/* Calls a tool as the host does. */
static bool
call(const char *tool, const char *arguments, exports_wattle_plugin_tool_tool_output_t *output) {
    exports_wattle_plugin_tool_call_context_t context = {.tool = text(tool), .call_id = text("c")};
    plugin_string_t document = text(arguments);
    return exports_wattle_plugin_tool_call(&context, &document, output, &failure);
}

/* Calls a reducer as the host does. `update` is the only write. */
static bool
reduce(const char *reducer, const char *current, const char *update, const char **value) {
    plugin_string_t name = text(reducer);
    plugin_string_t before = text(current == NULL ? "" : current);
    plugin_string_t write = text(update);
    exports_wattle_plugin_reducer_list_json_t writes = {&write, 1};
    plugin_string_t *maybe_before = current == NULL ? NULL : &before;
    plugin_string_t after;
    if (!exports_wattle_plugin_reducer_reduce(&name, maybe_before, &writes, &after, &failure)) {
        return false;
    }
    *value = (const char *)after.ptr;
    return true;
}

/* Sends a request for the order 7 as the host does, with a query parameter unless it is NULL. */
static bool handle(
    const char *route,
    plugin_tuple2_string_string_t *query,
    exports_wattle_plugin_web_response_t *ret
) {
    plugin_tuple2_string_string_t id = {text("id"), text("7")};
    exports_wattle_plugin_web_request_t request = {
        .method = text("GET"),
        .path = text("/orders/7"),
        .route = text(route),
        .params = {&id, 1},
        .query = {query, query != NULL},
        .body = {(uint8_t *)"", 0},
    };
    return exports_wattle_plugin_web_handle(&request, ret, &failure);
}

/* Returns the body of bytes of a response. */
static plugin_string_t body(const exports_wattle_plugin_web_response_t *response) {
    CHECK(response->body.tag == EXPORTS_WATTLE_PLUGIN_WEB_BODY_BYTES);
    return (plugin_string_t){response->body.val.bytes.ptr, response->body.val.bytes.len};
}

/* The entries of the table of the plugin are described. */
static void plugins_are_described(void) {
    exports_wattle_plugin_node_list_node_info_t nodes;
    exports_wattle_plugin_node_describe(&nodes);
    CHECK(nodes.len == 4);
    CHECK(is(nodes.ptr[0].name, "count_words"));
    CHECK(is(nodes.ptr[1].doc, "Asks whether a text may be published."));
    CHECK(nodes.ptr[0].extra.len == 0);
    exports_wattle_plugin_tool_list_tool_info_t tools;
    exports_wattle_plugin_tool_list(&tools);
    CHECK(tools.len == 1);
    CHECK(is(tools.ptr[0].name, "fahrenheit"));
    CHECK(is(tools.ptr[0].extra.ptr[0].f0, "hints"));
    CHECK(is(tools.ptr[0].extra.ptr[0].f1, "{\"read_only\":true,\"idempotent\":false}"));
    exports_wattle_plugin_reducer_list_reducer_info_t reducers;
    exports_wattle_plugin_reducer_reducers(&reducers);
    CHECK(reducers.len == 1 && reducers.ptr[0].extra.len == 0);
    CHECK(is(reducers.ptr[0].name, "longest"));
    CHECK(is(reducers.ptr[0].doc, "Keeps the longest text."));
}

static void endpoints_have_a_description(void) {
    exports_wattle_plugin_web_list_route_t routes;
    exports_wattle_plugin_web_routes(&routes);
    CHECK(routes.len == 2);
    CHECK(is(routes.ptr[0].method, "GET") && is(routes.ptr[0].path, "/orders/{id}"));
    CHECK(is(routes.ptr[0].extra.ptr[0].f0, "openapi"));
    CHECK(is(
        routes.ptr[0].extra.ptr[0].f1,
        "{\"operation\":{\"summary\":\"Returns an order.\"},\"schemas\":{}}"
    ));
    CHECK(is(
        routes.ptr[1].extra.ptr[0].f1,
        "{\"operation\":{\"summary\":\"Streams an order.\",\"responses\":{}},"
        "\"schemas\":{\"Order\":{}}}"
    ));
}

/* A node can have several extension fields. */
static void channels_of_nodes_are_described(void) {
    exports_wattle_plugin_node_list_node_info_t nodes;
    exports_wattle_plugin_node_describe(&nodes);
    CHECK(is(nodes.ptr[2].name, "refer") && nodes.ptr[2].extra.len == 2);
    CHECK(is(nodes.ptr[2].extra.ptr[0].f0, "config-schema"));
    CHECK(is(nodes.ptr[2].extra.ptr[1].f0, "reads"));
    const char *reads = (const char *)nodes.ptr[2].extra.ptr[1].f1.ptr;
    const char *conversation = wattle_field(reads, "conversation");
    CHECK(strcmp(conversation, "{\"config\":\"messages\",\"default\":\"messages\"}") == 0);
    CHECK(strcmp(wattle_item(wattle_field(reads, "channels"), 0), conversation) == 0);
}

static void nodes_are_exported_without_a_table(void) {
    CHECK(exports_of_nodes.nodes_count == 2 && exports_of_nodes.tools_count == 0);
    CHECK(strcmp(exports_of_nodes.nodes[0].doc, "a, b") == 0);
    CHECK(strcmp(exports_of_nodes.nodes[1].name, "second") == 0);
}

static void nodes_return_updates_by_channel(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    CHECK(run("count_words", "{\"text\": \" two\\u0020words\\n\"}", &outcome));
    CHECK(outcome.updates.len == 1);
    CHECK(is(outcome.updates.ptr[0].channel, "words"));
    CHECK(is(outcome.updates.ptr[0].value, "2"));
    CHECK(!outcome.updates.ptr[0].overwrite);
    CHECK(outcome.goto_.len == 0 && outcome.sends.len == 0 && outcome.extra.len == 0);
}

static void failures_reach_the_host(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    CHECK(!run("count_words", "{}", &outcome));
    CHECK(is(failure.code, "invalid"));
    CHECK(is(failure.message, "the input of node `count_words` has no `text`"));
    CHECK(!failure.retryable && !failure.details.is_some);
}

static void unknown_nodes_are_not_found(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    CHECK(!run("none", "{}", &outcome));
    CHECK(is(failure.code, "not-found"));
}

static void questions_are_answered(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    answer = "true";
    CHECK(run("approve", "{\"text\":\"a\"}", &outcome));
    CHECK(strcmp(last_question, "{\"ticket\":\"a\"}") == 0);
    CHECK(is(outcome.updates.ptr[0].value, "\"call\""));
}

static void failures_of_the_host_are_passed_on(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    CHECK(!run("approve", "{\"text\":\"a\"}", &outcome));
    CHECK(is(failure.code, "denied"));
    CHECK(is(failure.details.val, "{\"n\":1}"));
}

static void failures_of_the_host_can_be_handled(void) {
    CHECK(wattle_ask("1", NULL) == NULL);
    CHECK(strcmp(wattle_failure(), "denied") == 0);
    struct wattle_failure denied = wattle_recover();
    CHECK(strcmp(denied.code, "denied") == 0 && strcmp(denied.message, "no one is there") == 0);
    CHECK(strcmp(denied.details, "{\"n\":1}") == 0 && !denied.retryable);
    CHECK(wattle_failure() == NULL && wattle_recover().code == NULL);
}

/* A tool that misbehaves ends without ending its caller. */
static void nodes_continue_after_a_call_that_failed(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    exceeds_limit = true;
    CHECK(run("add", "{\"a\":1,\"b\":2}", &outcome));
    CHECK(outcome.updates.len == 1 && is(outcome.updates.ptr[0].channel, "problem"));
    CHECK(is(outcome.updates.ptr[0].value, "\"the tool exceeded its limit\""));
}

static void nodes_refer_to_their_conversation(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    wattle_plugin_types_tuple2_string_json_t conversation = {
        .f0 = text("conversation"),
        .f1 = text("{\"channel\":\"talk\",\"from\":5,\"length\":7}"),
    };
    fields.ptr = &conversation;
    fields.len = 1;
    CHECK(run("refer", "{}", &outcome));
    CHECK(is(
        outcome.updates.ptr[0].value,
        "{\"channel\":\"talk\",\"at\":1,\"append\":[{\"role\":\"user\",\"content\":\"Go on.\"}]}"
    ));
    wattle_context context = {.conversation = "{\"channel\":\"talk\"}"};
    const char *history = "{\"channel\":\"talk\",\"at\":0,\"append\":[]}";
    CHECK(strcmp(wattle_history(&context, 0, NULL), history) == 0);
}

/* Clients recognize the message whose deltas they received by its id. */
static void completions_become_messages_with_their_id(void) {
    wattle_plugin_types_part_t parts[] = {
        {.tag = WATTLE_PLUGIN_TYPES_PART_REASONING, .val.reasoning = text("hm")},
        {.tag = WATTLE_PLUGIN_TYPES_PART_TEXT, .val.text = text("s")},
        {.tag = WATTLE_PLUGIN_TYPES_PART_TEXT, .val.text = text("o")},
        {
            .tag = WATTLE_PLUGIN_TYPES_PART_TOOL_CALL,
            .val.tool_call = {
                .id = text("c"), .name = text("add"), .arguments = text("{\"a\":1}"),
            },
        },
        {.tag = WATTLE_PLUGIN_TYPES_PART_OTHER, .val.other = text("\"audio\"")},
        {.tag = WATTLE_PLUGIN_TYPES_PART_OTHER, .val.other = text("{\"type\":\"provider_state\"}")},
    };
    wattle_plugin_types_tuple2_string_json_t extra[] = {
        {text("attempts"), text("[]")},
        {text("id"), text("\"m\"")},
        {text("call_ids"), text("[\"c-2\"]")},
    };
    wattle_plugin_llm_completion_t completion = {
        .parts = {parts, WATTLE_COUNT(parts)},
        .extra = {extra, WATTLE_COUNT(extra)},
    };
    const char *stored = "{\"id\":\"m\",\"role\":\"assistant\",\"content\":\"so\","
                         "\"tool_calls\":[{\"id\":\"c-2\",\"name\":\"add\",\"arguments\":{\"a\":1}}],"
                         "\"reasoning\":\"hm\",\"provider_state\":{\"type\":\"provider_state\"}}";
    CHECK(strcmp(wattle_to_stored(&completion), stored) == 0);
    completion.extra.len = 2;
    CHECK(strstr(wattle_to_stored(&completion), "[{\"id\":\"c\",") != NULL);
    completion.parts = (wattle_plugin_llm_list_part_t){&parts[1], 1};
    completion.extra.len = 1;
    stored = "{\"role\":\"assistant\",\"content\":\"s\"}";
    CHECK(strcmp(wattle_to_stored(&completion), stored) == 0);
}

static void histories_need_a_conversation(void) {
    exports_wattle_plugin_node_outcome_t outcome;
    CHECK(!run("refer", "{}", &outcome));
    CHECK(is(failure.code, "unsupported"));
    CHECK(strstr((const char *)failure.message.ptr, "update Wattle") != NULL);
}

static void tools_return_text(void) {
    exports_wattle_plugin_tool_tool_output_t output;
    CHECK(call("fahrenheit", "{\"celsius\": 36.6}", &output));
    CHECK(output.content.len == 1);
    CHECK(output.content.ptr[0].tag == WATTLE_PLUGIN_TYPES_PART_TEXT);
    CHECK(is(output.content.ptr[0].val.text, "97.88 F"));
    CHECK(!output.is_error && !output.structured.is_some);
}

static void tools_return_errors_for_the_model(void) {
    exports_wattle_plugin_tool_tool_output_t output;
    CHECK(call("fahrenheit", "{\"celsius\": \"x\"}", &output));
    CHECK(output.is_error);
}

static void reducers_combine_values(void) {
    const char *value;
    CHECK(reduce("longest", NULL, "\"ab\"", &value) && strcmp(value, "\"ab\"") == 0);
    CHECK(reduce("longest", "\"abc\"", "\"ab\"", &value) && strcmp(value, "\"abc\"") == 0);
    CHECK(!reduce("longest", NULL, "7", &value) && is(failure.code, "invalid"));
}

static void unknown_reducers_and_endpoints_are_not_found(void) {
    const char *value;
    CHECK(!reduce("shortest", NULL, "1", &value) && is(failure.code, "not-found"));
    wattle_recover();
    exports_wattle_plugin_web_response_t response;
    CHECK(!handle("/orders", NULL, &response) && is(failure.code, "not-found"));
}

static void handlers_read_requests(void) {
    plugin_tuple2_string_string_t query = {text("language"), text("de")};
    exports_wattle_plugin_web_response_t response;
    CHECK(handle("/orders/{id}", &query, &response));
    CHECK(response.status == 200 && is(body(&response), "{\"id\":\"7\"}"));
    CHECK(response.headers.len == 2);
    CHECK(is(response.headers.ptr[0].f0, "content-type"));
    CHECK(is(response.headers.ptr[0].f1, "application/json"));
    CHECK(is(response.headers.ptr[1].f0, "content-language"));
    CHECK(is(response.headers.ptr[1].f1, "de"));
}

static void failures_with_a_status_become_documents(void) {
    exports_wattle_plugin_web_response_t response;
    CHECK(handle("/orders/{id}", NULL, &response));
    CHECK(response.status == 422 && response.headers.len == 1);
    CHECK(is(response.headers.ptr[0].f1, "application/problem+json"));
    CHECK(is(
        body(&response),
        "{\"status\":422,\"code\":\"invalid\","
        "\"detail\":\"the parameter `language` is missing\",\"details\":{\"http_status\":422}}"
    ));
}

/* A text of C would end at the zero byte, and the handler would see another value. */
static void parameters_with_a_zero_byte_are_refused(void) {
    plugin_tuple2_string_string_t query = {text("language"), {(uint8_t *)"d\0e", 3}};
    exports_wattle_plugin_web_response_t response;
    CHECK(handle("/orders/{id}", &query, &response));
    CHECK(response.status == 400);
    CHECK(strstr((const char *)failure.message.ptr, "zero byte") != NULL);
}

/* A handler without its value must not respond with status 200. */
static void responses_need_their_value(void) {
    CHECK(wattle_respond_json(200, NULL).status == 0);
    CHECK(wattle_respond_bytes(200, "image/png", NULL, 0).status == 0);
    CHECK(wattle_respond_blob(NULL).status == 0);
    CHECK(wattle_respond_hand_off((wattle_hand_off){.after = 1}).status == 0);
}

static void handlers_hand_off_streams(void) {
    exports_wattle_plugin_web_response_t response;
    CHECK(handle("/orders/{id}/events", NULL, &response));
    CHECK(response.status == 200 && response.headers.len == 0);
    CHECK(response.body.tag == EXPORTS_WATTLE_PLUGIN_WEB_BODY_HAND_OFF);
    const exports_wattle_plugin_web_hand_off_t *hand_off = &response.body.val.hand_off;
    CHECK(is(hand_off->thread_id, "7") && !hand_off->run_id.is_some && !hand_off->after.is_some);
    CHECK(hand_off->format.tag == EXPORTS_WATTLE_PLUGIN_WEB_STREAM_FORMAT_AI_SDK);
    CHECK(hand_off->extra.len == 3);
    CHECK(is(hand_off->extra.ptr[0].f1, "\"cancel\"") && is(hand_off->extra.ptr[1].f1, "5000"));
    CHECK(is(hand_off->extra.ptr[2].f0, "nodes") && is(hand_off->extra.ptr[2].f1, "[\"refer\"]"));
}

static void tools_of_others_are_called(void) {
    wattle_output output = wattle_call("calculator/add", "{\"a\":1}");
    CHECK(strcmp(output.text, "one\ntwo") == 0);
    CHECK(strcmp(output.structured, "{\"a\":1}") == 0);
    CHECK(!output.is_error && wattle_failure() == NULL);
    CHECK(wattle_call("none", "{}").text == NULL);
    CHECK(strcmp(wattle_failure(), "not-found") == 0);
}

static void requests_are_sent(void) {
    wattle_http_response response = wattle_http_send((wattle_http_request){
        .url = "https://a.example/1",
    });
    CHECK(strcmp(last_request, "GET https://a.example/1 0 - 0 -") == 0);
    CHECK(response.status == 404 && wattle_failure() == NULL);
    CHECK(response.body_length == 5 && memcmp(response.body, "no\0ne", 6) == 0);
    CHECK(strcmp(wattle_http_header(&response, "content-type"), "text/plain") == 0);
    CHECK(wattle_http_header(&response, "etag") == NULL);
    wattle_pair headers[] = {{"x-mark", "a"}};
    wattle_http_send((wattle_http_request){
        .method = "POST",
        .url = "https://a.example/2",
        .headers = headers,
        .headers_count = WATTLE_COUNT(headers),
        .body = "{}",
        .timeout_ms = 5000,
        .idempotency_key = "key",
    });
    CHECK(strcmp(last_request, "POST https://a.example/2 1 {} 5000 key") == 0);
    CHECK(wattle_http_send((wattle_http_request){.url = "https://b.example/"}).status == 0);
    CHECK(strcmp(wattle_failure(), WATTLE_DENIED) == 0);
}

static void many_parts_of_a_text_take_linear_memory(void) {
    parts = 2000;
    allocated = 0;
    size_t length = strlen(wattle_call("calculator/add", "{}").text);
    CHECK(length == 4 * parts - 1 && allocated <= 4 * length);
}

static void messages_have_levels(void) {
    wattle_log(WATTLE_LOG_WARN, "slow");
    CHECK(strcmp(last_log, "3 slow") == 0);
}

#define CASE(name)                                                                                 \
    { #name, name }

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(plugins_are_described),
    CASE(endpoints_have_a_description),
    CASE(channels_of_nodes_are_described),
    CASE(nodes_are_exported_without_a_table),
    CASE(nodes_return_updates_by_channel),
    CASE(failures_reach_the_host),
    CASE(unknown_nodes_are_not_found),
    CASE(questions_are_answered),
    CASE(failures_of_the_host_are_passed_on),
    CASE(failures_of_the_host_can_be_handled),
    CASE(nodes_continue_after_a_call_that_failed),
    CASE(nodes_refer_to_their_conversation),
    CASE(completions_become_messages_with_their_id),
    CASE(histories_need_a_conversation),
    CASE(tools_return_text),
    CASE(tools_return_errors_for_the_model),
    CASE(reducers_combine_values),
    CASE(unknown_reducers_and_endpoints_are_not_found),
    CASE(handlers_read_requests),
    CASE(failures_with_a_status_become_documents),
    CASE(parameters_with_a_zero_byte_are_refused),
    CASE(responses_need_their_value),
    CASE(handlers_hand_off_streams),
    CASE(tools_of_others_are_called),
    CASE(requests_are_sent),
    CASE(many_parts_of_a_text_take_linear_memory),
    CASE(messages_have_levels),
    CASE(values_of_json_are_read),
    CASE(names_with_a_zero_byte_are_passed_over),
    CASE(arrays_are_read_item_by_item),
    CASE(long_lists_take_linear_memory),
    CASE(broken_json_is_refused),
};

int main(void) {
    size_t failed = 0;
    for (size_t index = 0; index < WATTLE_COUNT(cases); index += 1) {
        pid_t child = fork();
        if (child == 0) {
            cases[index].run();
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0) {
            fprintf(stderr, "%s failed\n", cases[index].name);
            failed += 1;
        }
    }
    printf("%zu passed, %zu failed\n", WATTLE_COUNT(cases) - failed, failed);
    return failed == 0 ? 0 : 1;
}
