/*
 * Nodes that call the host for settings, pictures, other graphs and tenants.
 */
#include <string.h>

#include "bindings/plugin.h"
#include "conformance.h"
#include "wattle.h"

/* Returns a setting as JSON; NULL if it is not set. */
static const char *setting(const char *name) {
    plugin_string_t key = lend(name);
    plugin_string_t value;
    return wattle_plugin_settings_get(&key, &value) ? text_of(value) : NULL;
}

const char *read_settings(const wattle_context *context, const char *input) {
    (void)context;
    (void)input;
    const char *color = setting("color");
    if (color == NULL) {
        return wattle_fail(WATTLE_NOT_FOUND, "there is no setting `color`");
    }
    const char *language = setting("language");
    const char *missing = setting("shape") == NULL ? WATTLE_NOT_FOUND : "";
    plugin_string_t all;
    wattle_plugin_settings_all(&all);
    return wattle_format(
        "{\"color\":%s,\"language\":%s,\"missing\":%s,\"all\":%s}",
        color,
        language == NULL ? "\"en\"" : language,
        wattle_quote(missing),
        text_of(all)
    );
}

/* Returns bytes of a blob as text, all of them without a length; NULL after a failure. */
static const char *read_blob(plugin_string_t *blob, uint64_t *length, failure_t *failure) {
    plugin_list_u8_t bytes;
    if (!wattle_plugin_blob_get(blob, 0, length, &bytes, failure)) {
        return NULL;
    }
    return text_of((plugin_string_t){bytes.ptr, bytes.len});
}

const char *draw(const wattle_context *context, const char *input) {
    (void)context;
    wattle_plugin_llm_image_request_t request;
    memset(&request, 0, sizeof request);
    request.route = lend("chat");
    request.prompt = lend(string_field(input, "prompt"));
    request.count = 1;
    wattle_plugin_llm_list_generated_image_t images;
    failure_t failure;
    if (!wattle_plugin_llm_generate_images(&request, &images, &failure)) {
        return wattle_fail_like(&failure);
    }
    plugin_string_t blob = images.ptr[0].blob;
    uint64_t length = 5;
    wattle_plugin_blob_info_t info;
    const char *start = NULL;
    const char *text = NULL;
    plugin_string_t link;
    if (!wattle_plugin_blob_stat(&blob, &info, &failure) ||
        (start = read_blob(&blob, &length, &failure)) == NULL ||
        (text = read_blob(&blob, NULL, &failure)) == NULL ||
        !wattle_plugin_blob_link(&blob, &link, &failure)) {
        return wattle_fail_like(&failure);
    }
    const char *own = wattle_string(extension(images.ptr[0].extra, "link"));
    bool is_linked = own != NULL && strcmp(own, text_of(link)) == 0;
    const char *picture = wattle_format(
        "{\"media_type\":%s,\"size\":%llu,\"start\":%s,\"text\":%s}",
        wattle_quote(text_of(info.media_type)),
        (unsigned long long)info.size,
        wattle_quote(start),
        wattle_quote(text)
    );
    plugin_string_t none = lend("none");
    bool is_refused = !wattle_plugin_blob_stat(&none, &info, &failure);
    return wattle_format(
        "{\"picture\":%s,\"is_linked\":%s,\"refused\":%s}",
        picture,
        is_linked ? "true" : "false",
        wattle_quote(is_refused ? text_of(failure.code) : "")
    );
}

/* Runs a graph. Returns its state, or the code of its failure; NULL after a failure of a call. */
static const char *outcome(const char *graph, const char *input, failure_t *failure) {
    wattle_plugin_runs_start_request_t request;
    memset(&request, 0, sizeof request);
    request.graph = lend(graph);
    request.input = lend(input);
    wattle_plugin_runs_run_ref_t run;
    wattle_plugin_runs_ended_run_t ended;
    if (!wattle_plugin_runs_start(&request, &run, failure) ||
        !wattle_plugin_runs_wait(&run, &ended, failure)) {
        return NULL;
    }
    if (ended.outcome.tag == WATTLE_PLUGIN_RUNS_RUN_RESULT_FAILED) {
        const char *code = text_of(ended.outcome.val.failed.code);
        return wattle_format("{\"code\":%s}", wattle_quote(code));
    }
    return text_of(ended.state);
}

#define FAULT                                                                                      \
    "{\"code\":\"sold-out\",\"message\":\"there are no seats\",\"retryable\":false,"              \
    "\"details\":{\"seats\":0}}"

const char *delegate(const wattle_context *context, const char *input) {
    (void)context;
    const char *text = wattle_format("{\"text\":%s}", wattle_field(input, "text"));
    const char *requests[][2] = {{"words", text}, {"fail", FAULT}, {"approve", text}};
    failure_t failure;
    const char *outcomes = "";
    for (size_t index = 0; index < WATTLE_COUNT(requests); index += 1) {
        const char *item = outcome(requests[index][0], requests[index][1], &failure);
        if (item == NULL) {
            return wattle_fail_like(&failure);
        }
        outcomes = with_item(outcomes, item);
    }
    wattle_plugin_runs_thread_search_t search;
    memset(&search, 0, sizeof search);
    search.graph.is_some = true;
    search.graph.val = lend("words");
    search.limit = 50;
    wattle_plugin_runs_thread_page_t page;
    bool is_refused = !wattle_plugin_runs_threads(&search, &page, &failure);
    return wattle_format(
        "{\"outcomes\":[%s],\"refused\":%s}",
        outcomes,
        wattle_quote(is_refused ? text_of(failure.code) : "")
    );
}

const char *whose(const wattle_context *context, const char *input) {
    (void)input;
    plugin_string_t route = lend("chat");
    wattle_plugin_tenants_option_json_t config;
    failure_t failure;
    bool is_refused = !wattle_plugin_tenants_get_route(&route, &config, &failure);
    return wattle_format(
        "{\"tenant\":%s,\"refused\":%s}",
        wattle_quote(context->tenant == NULL ? "" : context->tenant),
        wattle_quote(is_refused ? text_of(failure.code) : "")
    );
}
