/*
 * Nodes that call the host: log, events, models, HTTP, SQL, memory, blobs, tools, clock and random
 * numbers. They use the bindings, whose lists and texts the host and the plugin lend to each other.
 */
#include <string.h>

#include "bindings/plugin.h"
#include "conformance.h"
#include "wattle.h"

plugin_string_t lend(const char *text) {
    return (plugin_string_t){(uint8_t *)text, strlen(text)};
}

const char *text_of(plugin_string_t text) {
    return wattle_format("%.*s", (int)text.len, (const char *)text.ptr);
}

const char *code_and_message(const failure_t *failure) {
    const char *code = wattle_quote(text_of(failure->code));
    const char *message = wattle_quote(text_of(failure->message));
    return wattle_format("{\"code\":%s,\"message\":%s}", code, message);
}

const char *words(const wattle_context *context, const char *input) {
    (void)context;
    const char *words = wattle_format("%d", count_of(string_field(input, "text")));
    const char *updates = wattle_format("{\"words\":%s}", words);
    wattle_plugin_log_level_t level = {.tag = WATTLE_PLUGIN_LOG_LEVEL_INFO};
    plugin_string_t message = lend("counted");
    wattle_plugin_log_tuple2_string_json_t field = {lend("words"), lend(words)};
    wattle_plugin_log_list_tuple2_string_json_t fields = {&field, 1};
    wattle_plugin_log_write(&level, &message, &fields);
    failure_t failure;
    plugin_string_t data = lend(updates);
    if (!wattle_plugin_emit_custom(&message, &data, &failure)) {
        return wattle_fail_like(&failure);
    }
    double fraction = 0.5;
    if (!wattle_plugin_emit_progress(&message, &fraction, &failure)) {
        return wattle_fail_like(&failure);
    }
    return updates;
}

#define GUESS                                                                                      \
    "{\"type\":\"object\",\"properties\":{\"number\":{\"type\":\"integer\",\"description\":\"A number.\"}}," \
    "\"required\":[\"number\"]}"

static bool complete(
    const char *system, const char *user, bool is_document, wattle_plugin_llm_completion_t *completion
) {
    wattle_plugin_types_part_t parts[2];
    wattle_plugin_llm_message_t messages[2];
    memset(parts, 0, sizeof parts);
    memset(messages, 0, sizeof messages);
    const char *texts[] = {system, user};
    size_t length = 0;
    for (size_t index = 0; index < 2; index += 1) {
        if (texts[index] == NULL) {
            continue;
        }
        parts[index].tag = WATTLE_PLUGIN_TYPES_PART_TEXT;
        parts[index].val.text = lend(texts[index]);
        messages[length].role.tag =
            index == 0 ? WATTLE_PLUGIN_TYPES_ROLE_SYSTEM : WATTLE_PLUGIN_TYPES_ROLE_USER;
        messages[length].parts.ptr = &parts[index];
        messages[length].parts.len = 1;
        length += 1;
    }
    wattle_plugin_llm_request_t request;
    memset(&request, 0, sizeof request);
    request.route = lend("chat");
    request.messages.ptr = messages;
    request.messages.len = length;
    request.tool_choice.tag = WATTLE_PLUGIN_LLM_TOOL_CHOICE_AUTO;
    if (is_document) {
        request.response_schema.is_some = true;
        request.response_schema.val.name = lend("guess");
        request.response_schema.val.schema = lend(GUESS);
        request.temperature.is_some = true;
        request.max_output_tokens.is_some = true;
        request.max_output_tokens.val = 100;
    }
    failure_t failure;
    bool is_done = wattle_plugin_llm_complete(&request, completion, &failure);
    if (!is_done) {
        wattle_fail_like(&failure);
    }
    return is_done;
}

const char *ask(const wattle_context *context, const char *input) {
    (void)context;
    const char *question = string_field(input, "question");
    wattle_plugin_llm_completion_t text;
    wattle_plugin_llm_completion_t document;
    if (!complete("Answer in one word.", question, false, &text) ||
        !complete(NULL, question, true, &document)) {
        return NULL;
    }
    const char *answer = text_of(text.parts.ptr[0].val.text);
    const char *number = wattle_field(text_of(document.structured.val), "number");
    return wattle_format("{\"answer\":%s,\"number\":%s}", wattle_quote(answer), number);
}

const char *fetch(const wattle_context *context, const char *input) {
    (void)context;
    const wattle_pair headers[] = {{"x-mark", "a"}, {"content-type", "application/json"}};
    wattle_http_response response = wattle_http_send((wattle_http_request){
        .method = "POST",
        .url = wattle_format("%s?page=1%%202", string_field(input, "url")),
        .headers = headers,
        .headers_count = WATTLE_COUNT(headers),
        .body = "{\"n\":1}",
        .timeout_ms = 5000,
        .idempotency_key = "key",
    });
    if (response.status == 0) {
        return NULL;
    }
    const char *call = wattle_field(response.body, "call");
    return wattle_format("{\"status\":%d,\"call\":%s}", response.status, call);
}

static const char *json_of(const wattle_plugin_sql_value_t *value) {
    switch (value->tag) {
    case WATTLE_PLUGIN_SQL_VALUE_BOOLEAN:
        return value->val.boolean ? "true" : "false";
    case WATTLE_PLUGIN_SQL_VALUE_INTEGER:
        return wattle_format("%lld", (long long)value->val.integer);
    case WATTLE_PLUGIN_SQL_VALUE_REAL:
        return wattle_format("%.17g", value->val.real);
    case WATTLE_PLUGIN_SQL_VALUE_TEXT:
        return wattle_quote(text_of(value->val.text));
    default:
        return "null";
    }
}

static const char *rows_of(const wattle_plugin_sql_rows_t *rows) {
    const char *items = "";
    for (size_t row = 0; row < rows->rows.len; row += 1) {
        const char *fields = "";
        for (size_t column = 0; column < rows->columns.len; column += 1) {
            const char *name = wattle_quote(text_of(rows->columns.ptr[column].name));
            const char *value = json_of(&rows->rows.ptr[row].ptr[column]);
            fields = with_item(fields, wattle_format("%s:%s", name, value));
        }
        items = with_item(items, wattle_format("{%s}", fields));
    }
    return items;
}

const char *book(const wattle_context *context, const char *input) {
    (void)context;
    failure_t failure;
    wattle_plugin_sql_own_transaction_t transaction;
    plugin_string_t database = lend("shop");
    if (!wattle_plugin_sql_begin(&database, &transaction, &failure)) {
        return wattle_fail_like(&failure);
    }
    wattle_plugin_sql_borrow_transaction_t self = wattle_plugin_sql_borrow_transaction(transaction);
    plugin_string_t insert = lend(
        "INSERT INTO item (name, price, sold, note) VALUES ($1, $2, $3, $4) RETURNING id"
    );
    wattle_plugin_sql_value_t values[] = {
        {.tag = WATTLE_PLUGIN_SQL_VALUE_TEXT, .val.text = lend(string_field(input, "name"))},
        {.tag = WATTLE_PLUGIN_SQL_VALUE_REAL, .val.real = 2.5},
        {.tag = WATTLE_PLUGIN_SQL_VALUE_BOOLEAN, .val.boolean = true},
        {.tag = WATTLE_PLUGIN_SQL_VALUE_NULL},
    };
    wattle_plugin_sql_list_value_t parameters = {values, WATTLE_COUNT(values)};
    wattle_plugin_sql_executed_t executed;
    if (!wattle_plugin_sql_method_transaction_execute(
            self, &insert, &parameters, &executed, &failure
        )) {
        return wattle_fail_like(&failure);
    }
    plugin_string_t select = lend("SELECT id, name, price, sold, note FROM item WHERE id = $1");
    wattle_plugin_sql_list_value_t id = {executed.returned.rows.ptr[0].ptr, 1};
    wattle_plugin_sql_rows_t rows;
    if (!wattle_plugin_sql_method_transaction_query(self, &select, &id, &rows, &failure) ||
        !wattle_plugin_sql_method_transaction_commit(self, &failure)) {
        return wattle_fail_like(&failure);
    }
    wattle_plugin_sql_transaction_drop_own(transaction);
    return wattle_format("{\"rows\":[%s]}", rows_of(&rows));
}

/* Stores bytes and reads them. */
static const char *stored(const char *text, failure_t *failure) {
    plugin_list_u8_t bytes = {(uint8_t *)text, strlen(text)};
    plugin_string_t type = lend("text/plain");
    plugin_string_t blob;
    plugin_list_u8_t read;
    if (!wattle_plugin_blob_put(&bytes, &type, &blob, failure) ||
        !wattle_plugin_blob_get(&blob, 0, NULL, &read, failure)) {
        return NULL;
    }
    return text_of((plugin_string_t){read.ptr, read.len});
}

const char *remember(const wattle_context *context, const char *input) {
    (void)context;
    failure_t failure;
    plugin_string_t names[] = {lend("users"), lend("7")};
    wattle_plugin_memory_namespace_t namespace = {names, WATTLE_COUNT(names)};
    wattle_plugin_memory_namespace_t prefix = {names, 1};
    plugin_string_t key = lend("fact");
    plugin_string_t value = lend(wattle_format("{\"text\":%s}", wattle_field(input, "fact")));
    wattle_plugin_memory_option_item_t read;
    wattle_plugin_memory_list_item_t searched;
    wattle_plugin_memory_list_namespace_t listed;
    wattle_plugin_memory_search_request_t request;
    memset(&request, 0, sizeof request);
    request.prefix = prefix;
    request.query.is_some = true;
    request.query.val = lend("tea");
    request.limit = 20;
    const char *bytes = NULL;
    if (!wattle_plugin_memory_put(&namespace, &key, &value, NULL, &failure) ||
        !wattle_plugin_memory_get(&namespace, &key, &read, &failure) ||
        !wattle_plugin_memory_search(&request, &searched, &failure) ||
        !wattle_plugin_memory_list_namespaces(&prefix, NULL, 10, 0, &listed, &failure) ||
        (bytes = stored(string_field(input, "fact"), &failure)) == NULL) {
        return wattle_fail_like(&failure);
    }
    const char *found = read.is_some ? text_of(read.val.value) : "";
    for (size_t index = 0; index < searched.len; index += 1) {
        found = with_item(found, text_of(searched.ptr[index].value));
    }
    const char *namespaces = "";
    for (size_t index = 0; index < listed.len; index += 1) {
        const char *parts = "";
        for (size_t part = 0; part < listed.ptr[index].len; part += 1) {
            parts = with_item(parts, wattle_quote(text_of(listed.ptr[index].ptr[part])));
        }
        namespaces = with_item(namespaces, wattle_format("[%s]", parts));
    }
    names[0] = lend("others");
    value = lend("{}");
    bool is_refused = !wattle_plugin_memory_put(&prefix, &key, &value, NULL, &failure);
    return wattle_format(
        "{\"found\":[%s],\"namespaces\":[%s],\"bytes\":%s,\"refused\":\"%s\"}",
        found,
        namespaces,
        wattle_quote(bytes),
        is_refused ? text_of(failure.code) : ""
    );
}

static wattle_plugin_tools_request_t
tool_call(const char *tool, const char *arguments, const char *call_id) {
    wattle_plugin_tools_request_t request;
    memset(&request, 0, sizeof request);
    request.tool = lend(tool);
    request.call_id = lend(call_id);
    request.arguments = lend(arguments);
    return request;
}

const char *both(const wattle_context *context, const char *input) {
    (void)context;
    const char *text = wattle_format("{\"text\":%s}", wattle_field(input, "text"));
    wattle_plugin_tools_request_t calls[] = {
        tool_call("count_words", text, "a"),
        tool_call("count_words", "{}", "b"),
        tool_call("count_letters", "{}", "c"),
    };
    wattle_plugin_tools_list_request_t list = {calls, WATTLE_COUNT(calls)};
    wattle_plugin_tools_list_result_tool_output_failure_t results;
    wattle_plugin_tools_call_all(&list, &results);
    const char *items = "";
    for (size_t index = 0; index < results.len; index += 1) {
        if (results.ptr[index].is_err) {
            items = with_item(items, code_and_message(&results.ptr[index].val.err));
        } else {
            const wattle_plugin_tool_option_json_t *output = &results.ptr[index].val.ok.structured;
            const char *value = output->is_some ? text_of(output->val) : "null";
            items = with_item(items, wattle_format("{\"output\":%s}", value));
        }
    }
    return wattle_format("{\"results\":[%s]}", items);
}

const char *buy(const wattle_context *context, const char *input) {
    (void)context;
    const char *arguments = wattle_format("{\"amount\":%s}", wattle_field(input, "amount"));
    wattle_plugin_tools_request_t call = tool_call("pay", arguments, "p");
    wattle_plugin_tools_tool_output_t output;
    failure_t failure;
    if (!wattle_plugin_tools_call(&call, &output, &failure)) {
        return wattle_fail_like(&failure);
    }
    const char *text = text_of(output.content.ptr[0].val.text);
    return wattle_format("{\"receipt\":%s}", wattle_quote(text));
}

const char *measure(const wattle_context *context, const char *input) {
    (void)context;
    (void)input;
    int64_t now = wattle_plugin_clock_now();
    plugin_string_t zone = lend("Asia/Shanghai");
    wattle_plugin_clock_zoned_t zoned;
    failure_t failure;
    if (!wattle_plugin_clock_to_zone(now, &zone, &zoned, &failure)) {
        return wattle_fail_like(&failure);
    }
    const wattle_plugin_clock_civil_t *civil = &zoned.civil;
    plugin_list_u8_t random;
    wattle_plugin_random_bytes(8, &random);
    const char *bytes = "";
    for (size_t index = 0; index < random.len; index += 1) {
        bytes = wattle_format("%s%02x", bytes, random.ptr[index]);
    }
    const char *question = wattle_format(
        "{\"now\":%lld,\"date\":\"%04d-%02d-%02d\",\"bytes\":\"%s\"}",
        (long long)now,
        civil->year,
        civil->month,
        civil->day,
        bytes
    );
    const char *answer = wattle_ask(question, "{\"type\":\"string\"}");
    if (answer == NULL) {
        return NULL;
    }
    bool is_same = strcmp(wattle_string(answer), bytes) == 0;
    plugin_string_t name = lend("color");
    plugin_string_t color;
    if (!wattle_plugin_settings_get(&name, &color)) {
        return wattle_fail(WATTLE_NOT_FOUND, "there is no setting `color`");
    }
    return wattle_format(
        "{\"same\":%s,\"color\":%s}", is_same ? "true" : "false", text_of(color)
    );
}
