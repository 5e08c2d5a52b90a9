//! The native API: `/api/v1`, one resource a file.

pub mod apps;
pub mod blobs;
pub mod events;
pub mod health;
pub mod metrics;
pub mod plugins;
pub mod problems;
pub mod runs;
pub mod scope;
pub mod tenants;
pub mod threads;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blob_link;
use crate::openapi;
use crate::state::ApiState;

/// All native endpoints with their descriptions.
pub fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::health))
        .routes(routes!(apps::list_apps))
        .routes(routes!(apps::get_app))
        .routes(routes!(apps::get_graph))
        .routes(routes!(plugins::list_plugins))
        .routes(routes!(plugins::get_plugin))
        .routes(routes!(problems::list_problems))
        .routes(routes!(threads::list_threads))
        .routes(routes!(threads::get_thread, threads::delete_thread))
        .routes(routes!(threads::get_state))
        .routes(routes!(threads::get_history))
        .routes(routes!(threads::get_trace))
        .routes(routes!(events::stream_events))
        .routes(routes!(runs::start_run))
        .routes(routes!(runs::resume_thread))
        .routes(routes!(runs::list_runs))
        .routes(routes!(runs::get_run))
        .routes(routes!(runs::wait_run))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(blobs::get_blob))
        .routes(routes!(blobs::get_thread_blob))
        .routes(routes!(blob_link::get_linked_blob))
        .routes(routes!(
            tenants::set_tenant_route,
            tenants::get_tenant_route,
            tenants::remove_tenant_route
        ))
}
