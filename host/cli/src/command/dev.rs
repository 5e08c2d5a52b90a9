//! `wattle dev`: builds an app, serves it, and runs an input again after each change.

mod builder;
mod input;
mod session;

use std::time::Duration;

use crate::args::DevArgs;
use crate::command::app;
use crate::command::dev::builder::Builder;
use crate::command::dev::input::Source;
use crate::command::dev::session::Session;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::{Overrides, open_sandbox};
use crate::load::manifest::Manifest;
use crate::output::Output;
use crate::server::stop::StopSignal;
use crate::server::{STOP_LIMIT, Server, ServerOptions};

pub(super) async fn dev(mut config: Config, args: &DevArgs, output: Output) -> Result<Exit, Error> {
    let folder = app::folder(&config, args.app.app.as_deref())?;
    let manifest = Manifest::read(&folder).map_err(Error::Failed)?;
    let name = manifest.app.name;
    app::include(&mut config, &name, &folder);
    // The command uses a free port, so that the ports of `wattle serve` stay available.
    config.server.listen.set_port(0);
    if let Some(address) = &mut config.server.studio_listen {
        address.set_port(0);
    }
    let source = Source::new(&folder, args)?;
    let sandbox = open_sandbox(&config)?;
    let limit: Duration = config.server.stop_grace() + STOP_LIMIT;
    let mut stopped = Box::pin(StopSignal::listen(limit)?.wait());
    let mut builder = Builder::new(folder, sandbox.clone());
    tokio::select! {
        () = builder.build() => {}
        () = &mut stopped => return Ok(Exit::Ok),
    }
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    // The server does not watch files, because the command reloads them after each build.
    let options = ServerOptions { overrides, watch: false };
    let server = Server::start(config, options).await?;
    let work = async {
        let mut session = Session::begin(&server, name, builder, source, output).await?;
        session.work().await.map(drop)
    };
    let worked = tokio::select! {
        worked = work => worked,
        () = &mut stopped => Ok(()),
    };
    Output::note("stopping");
    server.shutdown().await;
    worked.map(|()| Exit::Ok)
}
