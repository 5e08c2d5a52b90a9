//! The native API: `/api/v1`, one resource per file.

pub mod access;
pub mod ag_ui;
pub mod apps;
pub mod blobs;
pub mod cache;
mod client_call;
pub mod client_jobs;
pub mod events;
pub mod export;
pub mod health;
pub mod hosts;
pub mod interrupts;
pub mod keys;
pub mod list_scope;
pub mod load_problems;
pub mod log;
pub mod maintenance;
pub mod memory;
pub mod metrics;
pub mod models;
pub mod nodes;
pub mod open_calls;
pub mod plugin_install;
pub mod plugins;
pub mod queue;
pub mod ready;
pub mod request_principal;
pub mod run_list;
pub mod runs;
pub mod statistics;
pub mod store;
pub mod store_sizes;
pub mod tenant_routes;
pub mod tenant_scope;
pub mod thread_filter;
pub mod thread_list;
pub mod threads;
pub mod time_travel;
pub mod tools;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blob_link;
use crate::openapi;
use crate::state::ApiState;

/// Returns the router of all native endpoints, with their OpenAPI descriptions.
pub fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::health))
        .routes(routes!(ready::ready))
        .routes(routes!(access::get_access))
        .routes(routes!(hosts::list_hosts))
        .routes(routes!(models::list_models))
        .routes(routes!(statistics::get_statistics))
        .routes(routes!(queue::list_queue))
        .routes(routes!(client_jobs::list_webhooks))
        .routes(routes!(client_jobs::list_crons))
        .routes(routes!(apps::list_apps))
        .routes(routes!(apps::get_app))
        .routes(routes!(apps::get_graph))
        .routes(routes!(apps::list_graph_versions))
        .routes(routes!(tools::list_tools))
        .routes(routes!(tools::call_tool))
        .routes(routes!(nodes::call_node))
        .routes(routes!(plugins::list_plugins))
        .routes(routes!(
            plugins::get_plugin,
            plugin_install::install_plugin,
            plugin_install::remove_plugin
        ))
        .routes(routes!(plugin_install::check_plugin))
        .routes(routes!(tools::call_plugin_tool))
        .routes(routes!(nodes::call_plugin_node))
        .routes(routes!(load_problems::list_problems))
        .routes(routes!(keys::create_key, keys::list_keys))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(keys::list_key_names))
        .routes(routes!(thread_list::list_threads))
        .routes(routes!(thread_list::count_threads))
        .routes(routes!(interrupts::list_interrupts))
        .routes(routes!(interrupts::count_interrupts))
        .routes(routes!(threads::get_thread, threads::delete_thread))
        .routes(routes!(threads::get_state))
        .routes(routes!(time_travel::get_history))
        .routes(routes!(time_travel::get_checkpoint))
        .routes(routes!(time_travel::edit_thread))
        .routes(routes!(time_travel::fork_thread))
        .routes(routes!(threads::get_trace))
        .routes(routes!(events::stream_events))
        .routes(routes!(log::get_log))
        .routes(routes!(runs::start_run))
        .routes(routes!(ag_ui::run_ag_ui))
        .routes(routes!(runs::resume_thread))
        .routes(routes!(runs::list_runs))
        .routes(routes!(run_list::list_all_runs))
        .routes(routes!(run_list::count_runs))
        .routes(routes!(runs::get_run))
        .routes(routes!(runs::wait_run))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(runs::drain_run))
        .routes(routes!(threads::retry_thread))
        .routes(routes!(cache::clear_cache))
        .routes(routes!(open_calls::list_open_calls))
        .routes(routes!(open_calls::settle_call))
        .routes(routes!(maintenance::migrate_thread))
        .routes(routes!(maintenance::copy_thread))
        .routes(routes!(maintenance::prune_thread))
        .routes(routes!(runs::delete_run))
        .routes(routes!(maintenance::verify_thread))
        .routes(routes!(export::export_thread))
        .routes(routes!(export::export_test))
        .routes(routes!(store::compact_store))
        .routes(routes!(store::verify_store))
        .routes(routes!(store::back_up_store))
        .routes(routes!(store_sizes::get_store_sizes))
        .routes(routes!(blobs::get_blob))
        .routes(routes!(blobs::get_thread_blob))
        .routes(routes!(blob_link::get_linked_blob))
        .routes(routes!(
            memory::get_memory_item,
            memory::put_memory_item,
            memory::delete_memory_item
        ))
        .routes(routes!(memory::search_memory))
        .routes(routes!(memory::list_memory_namespaces, memory::clear_memory))
        .routes(routes!(
            tenant_routes::set_tenant_route,
            tenant_routes::get_tenant_route,
            tenant_routes::remove_tenant_route
        ))
}
