//! `wattle serve`: runs the server.

use std::collections::BTreeSet;

use serde_json::json;
use wattle_api::document::app::endpoints;
use wattle_graph::id::AppName;
use wattle_run::text::Escaped;

use crate::args::ServeArgs;
use crate::config::{Config, DEFAULT_FILE};
use crate::error::Error;
use crate::exit::Exit;
use crate::load::{self, Change};
use crate::output::Output;
use crate::server::stop::StopSignal;
use crate::server::{RunningServer, STOP_LIMIT, Server, ServerOptions};

pub(super) async fn serve(
    mut config: Config,
    args: &ServeArgs,
    output: Output,
) -> Result<Exit, Error> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    let options = ServerOptions { watch: !args.no_watch, ..ServerOptions::default() };
    let server = Server::start(config, options).await?;
    // Install the signal handlers before the server is announced as ready: a client may stop the
    // server from then on.
    let stop = StopSignal::listen(server.config().server.stop_grace() + STOP_LIMIT)?;
    announce(&server, output);
    stop.wait().await;
    Output::note("stopping");
    server.shutdown().await;
    Ok(Exit::Ok)
}

/// Prints the address and the endpoints of the server. The JSON form is one line on stdout. A
/// program that starts the server waits for this line.
fn announce(server: &RunningServer, output: Output) {
    for warning in server.warnings() {
        Output::warning(&warning);
    }
    for change in &server.changes {
        match change {
            Change::App { notes, .. } | Change::Plugin { notes, .. } => {
                for note in notes {
                    Output::warning(note);
                }
            }
            Change::Unused(_) | Change::Unrequested(_) => {
                change.messages().iter().for_each(|(_, it)| Output::warning(it));
            }
            Change::Problem { path, message, .. } => {
                let path = Escaped(path.display());
                Output::error(&format!("`{path}` is not loaded: {message}"));
            }
            _ => {}
        }
    }
    if output.json {
        let apps: serde_json::Map<_, _> = server
            .app_addrs
            .iter()
            .map(|(name, addr)| (name.to_string(), json!(format!("http://{addr}"))))
            .collect();
        let studio = server.studio_url();
        let line = json!({ "address": server.url(), "apps": apps, "studio": studio });
        Output::line(&line.to_string());
        return;
    }
    Output::line(&format!("wattle listens on {}", server.url()));
    if let Some(url) = server.studio_url() {
        Output::line(&format!("  studio {url}"));
    }
    if server.config().file.is_none() {
        Output::line(&format!(
            "  there is no `{DEFAULT_FILE}` here; one that is made later is read at the next start"
        ));
    }
    for app in server.engine.catalog().apps() {
        Output::line(&format!("  app {} {}", app.name, app.version));
        for endpoint in endpoints(&app) {
            Output::line(&format!("    {:<6} {}", endpoint.method, endpoint.path));
        }
        if let Some(addr) = server.app_addrs.get(&app.name) {
            Output::line(&format!("    also at its documented paths on http://{addr}"));
        }
    }
    let loading = server.engine.catalog().loading_apps();
    for app in &loading {
        Output::line(&format!("  app {app} is still being loaded"));
    }
    let unloaded = unloaded_apps(server, &loading);
    for app in &unloaded {
        Output::line(&format!("  app {app} is not loaded, because of the problem above"));
    }
    let has_apps = !server.engine.catalog().apps().is_empty() || !loading.is_empty();
    // A folder whose manifest cannot be read is a problem, and its app has no known name.
    if !has_apps && unloaded.is_empty() && server.engine.catalog().problem_count() == 0 {
        Output::line(&format!(
            "  no apps yet: put an app folder into `{}`",
            server.config().plugins.display()
        ));
    }
}

/// Returns the names of the apps that are configured or have a folder, and are neither loaded nor
/// in `loading`.
fn unloaded_apps(server: &RunningServer, loading: &BTreeSet<AppName>) -> BTreeSet<String> {
    let config = server.config();
    let configured = config.apps.keys().map(ToString::to_string);
    let mut names: BTreeSet<String> = configured.chain(load::apps(config).into_keys()).collect();
    let loaded = server.engine.catalog().apps();
    for name in loaded.iter().map(|app| &app.name).chain(loading) {
        names.remove(name.as_str());
    }
    names
}
