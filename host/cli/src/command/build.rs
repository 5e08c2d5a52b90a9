//! `wattle build`: builds the components of an app.

use serde::Serialize;

use crate::args::BuildArgs;
use crate::build::{AppBuild, Component};
use crate::command::{app, format};
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_sandbox;
use crate::output::Output;
use crate::server::STOP_LIMIT;
use crate::server::stop::StopSignal;

/// The components that were built.
#[derive(Serialize)]
struct Report {
    components: Vec<Component>,
}

pub(super) async fn build(config: Config, args: &BuildArgs, output: Output) -> Result<Exit, Error> {
    let build = AppBuild::open(&app::folder(&config, args.app.app.as_deref())?)?;
    let sandbox = open_sandbox(&config)?;
    let stop = StopSignal::listen(STOP_LIMIT)?;
    let components = tokio::select! {
        built = build.build(sandbox.as_ref(), args.force) => built?,
        () = stop.wait() => return Ok(Exit::Stopped),
    };
    output.data(&Report { components }, |report| render_components(&report.components));
    Ok(Exit::Ok)
}

/// Describes components: their files, their sizes, and the names of their nodes, tools, reducers
/// and endpoints.
pub(super) fn render_components(components: &[Component]) -> String {
    let describe = |component: &Component| {
        let size = format::byte_size(usize::try_from(component.bytes).unwrap_or(usize::MAX));
        let same = if component.changed { "" } else { ", as before" };
        let mut lines = vec![format!("{}  {size}{same}", component.file.display())];
        for (what, names) in [
            ("nodes", &component.nodes),
            ("tools", &component.tools),
            ("reducers", &component.reducers),
            ("endpoints", &component.routes),
        ] {
            if !names.is_empty() {
                lines.push(format!("  {what:<10}{}", names.join(", ")));
            }
        }
        lines.join("\n")
    };
    components.iter().map(describe).collect::<Vec<_>>().join("\n")
}
