/*
 * The C SDK for Wattle plugins: the export `web` of a component for the table of its handlers, and
 * HTTP requests.
 */
#include <stdlib.h>
#include <string.h>

#include "bindings/plugin.h"
#include "internal.h"
#include "wattle.h"

/* Status of a request that no handler of C can read. */
#define BAD_REQUEST 400

/* Header fields that the handler of this call has added. */
static struct {
    wattle_pair *items;
    size_t count;
} added;

/* What a handler reads. */

static const char *find(const wattle_pair *pairs, size_t count, const char *name) {
    for (size_t index = 0; index < count; index += 1) {
        if (strcmp(pairs[index].name, name) == 0) {
            return pairs[index].value;
        }
    }
    return NULL;
}

const char *wattle_request_param(const wattle_request *request, const char *name) {
    return find(request->params, request->params_count, name);
}

const char *wattle_request_query(const wattle_request *request, const char *name) {
    return find(request->query, request->query_count, name);
}

const char *wattle_request_header(const wattle_request *request, const char *name) {
    return find(request->headers, request->headers_count, name);
}

/* What a handler returns. */

wattle_response wattle_respond(uint16_t status) { return (wattle_response){.status = status}; }

wattle_response wattle_respond_bytes(
    uint16_t status, const char *content_type, const char *bytes, size_t length
) {
    if (bytes == NULL) {
        return wattle_respond(0);
    }
    return (wattle_response){
        .status = status,
        .content_type = content_type,
        .body = bytes,
        .body_length = length,
    };
}

static wattle_response
respond_with(uint16_t status, const char *content_type, const char *text) {
    return wattle_respond_bytes(status, content_type, text, text == NULL ? 0 : strlen(text));
}

wattle_response wattle_respond_text(uint16_t status, const char *text) {
    return respond_with(status, "text/plain; charset=utf-8", text);
}

wattle_response wattle_respond_json(uint16_t status, const char *json) {
    return respond_with(status, "application/json", json);
}

wattle_response wattle_respond_blob(const char *blob) {
    return blob == NULL ? wattle_respond(0) : (wattle_response){.status = 200, .blob = blob};
}

wattle_response wattle_respond_hand_off(wattle_hand_off hand_off) {
    if (hand_off.thread_id == NULL) {
        return wattle_respond(0);
    }
    return (wattle_response){.status = 200, .hand_off = hand_off};
}

void wattle_add_header(const char *name, const char *value) {
    wattle_pair *items = realloc(added.items, (added.count + 1) * sizeof(wattle_pair));
    if (items == NULL) {
        abort();
    }
    items[added.count] = (wattle_pair){name, value};
    added.items = items;
    added.count += 1;
}

wattle_response wattle_refuse(uint16_t status, const char *code, const char *message) {
    wattle_fail(code, message);
    wattle_details(wattle_format("{\"http_status\":%d}", status));
    return wattle_respond(0);
}

/* The descriptions of endpoints. */

/* Returns the extension field `openapi` of a route. */
static const char *openapi(const wattle_handler *handler) {
    const char *operation = handler->operation;
    if (operation == NULL) {
        const char *doc = handler->doc == NULL ? "" : handler->doc;
        operation = wattle_format("{\"summary\":%s}", wattle_quote(doc));
    }
    const char *schemas = handler->schemas == NULL ? "{}" : handler->schemas;
    return wattle_format("{\"operation\":%s,\"schemas\":%s}", operation, schemas);
}

void exports_wattle_plugin_web_routes(exports_wattle_plugin_web_list_route_t *ret) {
    ret->len = wattle_exports.handlers_count;
    ret->ptr = wattle_allocate(ret->len, sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index += 1) {
        const wattle_handler *handler = &wattle_exports.handlers[index];
        plugin_string_dup(&ret->ptr[index].method, handler->method);
        plugin_string_dup(&ret->ptr[index].path, handler->path);
        wattle_add_extra(&ret->ptr[index].extra, "openapi", openapi(handler));
    }
}

/* Names with their values. */

static bool has_zero(plugin_string_t text) {
    return text.len > 0 && memchr(text.ptr, 0, text.len) != NULL;
}

/*
 * Reads names with their values. Returns false if one has a zero byte, at which a text of C would
 * end.
 */
static bool
read_pairs(plugin_list_tuple2_string_string_t from, const wattle_pair **to, size_t *count) {
    wattle_pair *pairs = wattle_allocate(from.len, sizeof *pairs);
    for (size_t index = 0; index < from.len; index += 1) {
        plugin_string_t name = from.ptr[index].f0;
        plugin_string_t value = from.ptr[index].f1;
        if (has_zero(name) || has_zero(value)) {
            return false;
        }
        pairs[index] = (wattle_pair){wattle_text_of(name), wattle_text_of(value)};
    }
    *to = pairs;
    *count = from.len;
    return true;
}

/* HTTP requests. */

wattle_http_response wattle_http_send(wattle_http_request request) {
    plugin_tuple2_string_string_t *headers =
        wattle_allocate(request.headers_count, sizeof *headers);
    for (size_t index = 0; index < request.headers_count; index += 1) {
        headers[index].f0 = wattle_lend(request.headers[index].name);
        headers[index].f1 = wattle_lend(request.headers[index].value);
    }
    wattle_plugin_http_request_t raw = {
        .method = wattle_lend(request.method == NULL ? "GET" : request.method),
        .url = wattle_lend(request.url),
        .headers = {headers, request.headers_count},
        .body.tag = WATTLE_PLUGIN_HTTP_BODY_EMPTY,
        .timeout_ms = {request.timeout_ms > 0, request.timeout_ms},
    };
    if (request.body != NULL) {
        raw.body.tag = WATTLE_PLUGIN_HTTP_BODY_TEXT;
        raw.body.val.text = wattle_lend(request.body);
    }
    if (request.idempotency_key != NULL) {
        raw.idempotency_key.is_some = true;
        raw.idempotency_key.val = wattle_lend(request.idempotency_key);
    }
    wattle_plugin_http_response_t response;
    wattle_plugin_http_failure_t failure;
    if (!wattle_plugin_http_send(&raw, &response, &failure)) {
        wattle_fail_like(&failure);
        return (wattle_http_response){.status = 0};
    }
    wattle_http_response known = {
        .status = response.status,
        .body = wattle_copy((const char *)response.body.ptr, response.body.len),
        .body_length = response.body.len,
        .url = wattle_text_of(response.url),
    };
    if (!read_pairs(response.headers, &known.headers, &known.headers_count)) {
        wattle_fail(WATTLE_INVALID, "a header field of the response has a zero byte");
        return (wattle_http_response){.status = 0};
    }
    return known;
}

const char *wattle_http_header(const wattle_http_response *response, const char *name) {
    return find(response->headers, response->headers_count, name);
}

/* Requests of the host. */

static bool read_request(const exports_wattle_plugin_web_request_t *from, wattle_request *to) {
    *to = (wattle_request){
        .method = wattle_text_of(from->method),
        .path = wattle_text_of(from->path),
        .route = wattle_text_of(from->route),
        .body = wattle_copy((const char *)from->body.ptr, from->body.len),
        .body_length = from->body.len,
        .tenant = wattle_optional_text(from->tenant),
    };
    return read_pairs(from->params, &to->params, &to->params_count)
           && read_pairs(from->query, &to->query, &to->query_count)
           && read_pairs(from->headers, &to->headers, &to->headers_count);
}

/* Handles a request with the handler for its method and route. */
static wattle_response handle(const wattle_request *request) {
    for (size_t index = 0; index < wattle_exports.handlers_count; index += 1) {
        const wattle_handler *handler = &wattle_exports.handlers[index];
        if (strcmp(handler->method, request->method) != 0
            || strcmp(handler->path, request->route) != 0) {
            continue;
        }
        wattle_response response = handler->handle(request);
        if (response.status == 0 && wattle_failure() == NULL) {
            const char *message = "the handler of `%s %s` returned no response";
            wattle_fail(WATTLE_INTERNAL, wattle_format(message, handler->method, handler->path));
        }
        return response;
    }
    wattle_fail(
        WATTLE_NOT_FOUND,
        wattle_format("the plugin has no endpoint `%s %s`", request->method, request->route)
    );
    return wattle_respond(0);
}

/* Responses for the host. */

/* Returns a failure with a status as a document; no response for another failure. */
static wattle_response problem(const wattle_plugin_types_failure_t *failure) {
    const char *details = failure->details.is_some ? wattle_text_of(failure->details.val) : NULL;
    double status;
    if (!wattle_number(wattle_field(details, "http_status"), &status)
        || !(status >= 1 && status <= UINT16_MAX)) {
        return wattle_respond(0);
    }
    const char *document = wattle_format(
        "{\"status\":%d,\"code\":%s,\"detail\":%s,\"details\":%s}",
        (int)status,
        wattle_quote(wattle_text_of(failure->code)),
        wattle_quote(wattle_text_of(failure->message)),
        details
    );
    return respond_with((uint16_t)status, "application/problem+json", document);
}

static void set_headers(plugin_list_tuple2_string_string_t *to, const char *content_type) {
    size_t at = 0;
    to->len = added.count + (content_type != NULL);
    to->ptr = wattle_allocate(to->len, sizeof *to->ptr);
    if (content_type != NULL) {
        plugin_string_dup(&to->ptr[at].f0, "content-type");
        plugin_string_dup(&to->ptr[at].f1, content_type);
        at += 1;
    }
    for (size_t index = 0; index < added.count; index += 1) {
        plugin_string_dup(&to->ptr[at].f0, added.items[index].name);
        plugin_string_dup(&to->ptr[at].f1, added.items[index].value);
        at += 1;
    }
}

static void set_format(
    exports_wattle_plugin_web_stream_format_t *to, const wattle_hand_off *hand_off
) {
    if (hand_off->custom_format != NULL) {
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_STREAM_FORMAT_CUSTOM;
        plugin_string_dup(&to->val.custom, hand_off->custom_format);
        return;
    }
    switch (hand_off->format) {
    case WATTLE_STREAM_SSE:
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_STREAM_FORMAT_SSE;
        break;
    case WATTLE_STREAM_AI_SDK:
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_STREAM_FORMAT_AI_SDK;
        break;
    case WATTLE_STREAM_AG_UI:
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_STREAM_FORMAT_AG_UI;
        break;
    }
}

static void
set_hand_off(exports_wattle_plugin_web_hand_off_t *to, const wattle_hand_off *hand_off) {
    *to = (exports_wattle_plugin_web_hand_off_t){.run_id.is_some = hand_off->run_id != NULL};
    plugin_string_dup(&to->thread_id, hand_off->thread_id);
    if (hand_off->run_id != NULL) {
        plugin_string_dup(&to->run_id.val, hand_off->run_id);
    }
    set_format(&to->format, hand_off);
    to->after.is_some = hand_off->after > 0;
    to->after.val = hand_off->after;
    if (hand_off->cancels_on_disconnect) {
        wattle_add_extra(&to->extra, "on_disconnect", "\"cancel\"");
        const char *grace_ms = wattle_format("%lu", (unsigned long)hand_off->grace_ms);
        wattle_add_extra(&to->extra, "grace_ms", grace_ms);
    }
    if (hand_off->nodes != NULL) {
        wattle_add_extra(&to->extra, "nodes", hand_off->nodes);
    }
}

static void set_body(exports_wattle_plugin_web_body_t *to, const wattle_response *response) {
    if (response->hand_off.thread_id != NULL) {
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_BODY_HAND_OFF;
        set_hand_off(&to->val.hand_off, &response->hand_off);
    } else if (response->blob != NULL) {
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_BODY_BLOB;
        plugin_string_dup(&to->val.blob, response->blob);
    } else if (response->body != NULL) {
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_BODY_BYTES;
        to->val.bytes.len = response->body_length;
        to->val.bytes.ptr = wattle_allocate(response->body_length, 1);
        memcpy(to->val.bytes.ptr, response->body, response->body_length);
    } else {
        to->tag = EXPORTS_WATTLE_PLUGIN_WEB_BODY_EMPTY;
    }
}

bool exports_wattle_plugin_web_handle(
    exports_wattle_plugin_web_request_t *request,
    exports_wattle_plugin_web_response_t *ret,
    wattle_plugin_types_failure_t *err
) {
    wattle_request known;
    wattle_response response = wattle_respond(0);
    if (read_request(request, &known)) {
        response = handle(&known);
    } else {
        wattle_refuse(BAD_REQUEST, WATTLE_INVALID, "a parameter or a header has a zero byte");
    }
    if (wattle_failure() != NULL) {
        wattle_failed(err);
        added.count = 0;
        response = problem(err);
        if (response.status == 0) {
            return false;
        }
    }
    ret->status = response.status;
    set_headers(&ret->headers, response.content_type);
    set_body(&ret->body, &response);
    return true;
}
