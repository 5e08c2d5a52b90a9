//! `wattle hosts`: lists the hosts that share the store.

use wattle_api::document::host::HostDocument;

use crate::client::{Client, Preload};
use crate::command::format;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table};

pub(super) async fn list(config: Config, output: Output) -> Result<Exit, Error> {
    let client = Client::open(config, Preload::Store).await?;
    let hosts = client.get::<Vec<HostDocument>>("/api/v1/hosts").await;
    client.close().await;
    output.data(&hosts?, |hosts| render(hosts));
    Ok(Exit::Ok)
}

fn render(hosts: &[HostDocument]) -> String {
    if hosts.is_empty() {
        return "no host is running".into();
    }
    let mut table =
        Table::new(&["host", "version", "status", "runs", "at most", "started", "heartbeat"]);
    for host in hosts {
        table.row([
            host.host.clone(),
            host.version.clone(),
            format::serde_name(&host.status),
            host.runs.to_string(),
            host.max_runs.to_string(),
            format::local_time(host.started_ms),
            match host.silent_ms {
                0 => "now".to_owned(),
                ms => format!("{} ago", format::duration(ms.saturating_mul(1_000))),
            },
        ]);
    }
    table.render()
}
