/*
 * Web handlers: one that runs a graph, one that can fail, one that hands a stream off, and one that
 * calls the host for routes of the tenant.
 */
#include <string.h>

#include "bindings/plugin.h"
#include "conformance.h"
#include "wattle.h"

/* Makes the handler fail like a call of the host. */
static wattle_response respond_like(const failure_t *failure) {
    wattle_fail_like(failure);
    return wattle_respond(0);
}

/* Returns the number of words that a graph counts; NULL after a failure of a call. */
static const char *counted(const char *text, plugin_string_t *thread_id, failure_t *failure) {
    wattle_plugin_runs_start_request_t request;
    memset(&request, 0, sizeof request);
    request.graph = lend("words");
    request.input = lend(wattle_format("{\"text\":%s}", text));
    wattle_plugin_runs_run_ref_t run;
    wattle_plugin_runs_ended_run_t ended;
    if (!wattle_plugin_runs_start(&request, &run, failure)) {
        return NULL;
    }
    *thread_id = lend(text_of(run.thread_id));
    if (!wattle_plugin_runs_wait(&run, &ended, failure)) {
        return NULL;
    }
    return wattle_field(text_of(ended.state), "words");
}

/* Returns the metadata of the threads with a shop; NULL after a failure of a call. */
static const char *orders_of(const char *metadata, failure_t *failure) {
    wattle_plugin_runs_thread_search_t search;
    memset(&search, 0, sizeof search);
    search.graph.is_some = true;
    search.graph.val = lend("words");
    search.metadata.is_some = true;
    search.metadata.val = lend(metadata);
    search.limit = 50;
    wattle_plugin_runs_thread_page_t page;
    if (!wattle_plugin_runs_threads(&search, &page, failure)) {
        return NULL;
    }
    const char *orders = "";
    for (size_t index = 0; index < page.threads.len; index += 1) {
        orders = with_item(orders, text_of(page.threads.ptr[index].metadata));
    }
    return orders;
}

wattle_response order(const wattle_request *request) {
    const char *text = wattle_field(request->body, "text");
    const char *shop = wattle_quote(wattle_request_param(request, "shop"));
    const char *noted = wattle_format("{\"shop\":%s}", shop);
    plugin_string_t metadata = lend(noted);
    plugin_string_t thread_id;
    wattle_plugin_runs_extra_t extra = {NULL, 0};
    failure_t failure;
    const char *words = NULL;
    const char *orders = NULL;
    if ((words = counted(text, &thread_id, &failure)) == NULL
        || !wattle_plugin_runs_update_thread(&thread_id, &metadata, &extra, &failure)
        || (orders = orders_of(noted, &failure)) == NULL) {
        return respond_like(&failure);
    }
    wattle_add_header("x-mark", "a");
    return wattle_respond_json(
        201, wattle_format("{\"orders\":[%s],\"shop\":%s,\"words\":%s}", orders, shop, words)
    );
}

wattle_response urgency(const wattle_request *request) {
    const char *urgent = wattle_request_query(request, "urgent");
    if (urgent == NULL) {
        return wattle_refuse(422, WATTLE_INVALID, "`urgent` is missing");
    }
    const char *shop = wattle_request_param(request, "shop");
    return wattle_respond_text(200, wattle_format("%s: %s", shop, urgent));
}

wattle_response follow(const wattle_request *request) {
    const char *thread_id = wattle_request_param(request, "shop");
    return wattle_respond_hand_off((wattle_hand_off){.thread_id = thread_id});
}

/* Returns a configuration as JSON. */
static const char *json_of(const wattle_plugin_tenants_option_json_t *config) {
    return config->is_some ? text_of(config->val) : "null";
}

wattle_response own_model(const wattle_request *request) {
    plugin_string_t route = lend(wattle_request_param(request, "route"));
    plugin_string_t config = lend(request->body);
    wattle_plugin_tenants_option_json_t own;
    wattle_plugin_tenants_option_json_t removed;
    failure_t failure;
    if (!wattle_plugin_tenants_set_route(&route, &config, &failure)
        || !wattle_plugin_tenants_get_route(&route, &own, &failure)
        || !wattle_plugin_tenants_remove_route(&route, &failure)
        || !wattle_plugin_tenants_get_route(&route, &removed, &failure)) {
        return respond_like(&failure);
    }
    const char *tenant = request->tenant == NULL ? "null" : wattle_quote(request->tenant);
    return wattle_respond_json(
        200,
        wattle_format(
            "{\"own\":%s,\"removed\":%s,\"tenant\":%s}", json_of(&own), json_of(&removed), tenant
        )
    );
}
