//! LiteLLM between the host and two services. `cargo xtask peers` installs it and runs this test.

use std::path::Path;

use tokio::process::Command;
use wattle_graph::llm::Usage;
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::needs::clients::{self, PEERS};
use wattle_kit::process::Program;
use wattle_kit::standin::{Config, Server};

use crate::gateway::check;
use crate::support::KEY;

/// Starts the proxy in front of the services, and returns its address. Dropping the program stops
/// it.
async fn litellm(services: &str) -> Result<(Program, String), LeftOut> {
    let python = clients::python(PEERS, "python")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/peers/gateway.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).env("GATEWAY_KEY", KEY).env("NO_PROXY", "*");
    command.env("UPSTREAM_OPENAI", format!("{services}/v1")).env("UPSTREAM_ANTHROPIC", services);
    let mut program = Program::start(command).unwrap();
    let address = program.uvicorn_address().await.unwrap();
    Ok((program, address))
}

#[tokio::test]
async fn completions_and_tool_calls_pass_litellm_in_every_format() {
    let services = Server::start(Config::default()).await.unwrap();
    let (_proxy, address) = need!(litellm(&services.base_url).await);
    let is_told = |usage: &Usage| usage.input_tokens > Some(0) && usage.output_tokens > Some(0);
    for model in ["of-openai", "of-anthropic"] {
        check(&address, model, is_told).await;
    }
}
