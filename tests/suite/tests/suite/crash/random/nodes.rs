//! The node of random graphs, whose outcome is a pure function of its configuration and its input.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::ports::sandbox::NodeCall;
use wattle_suite::native::{Answer, NativePlugin};
use wattle_suite::scripted::get;

/// Numbers are small, so that sums of many remain exact.
const MODULUS: u64 = 1_000;

/// Number of tasks after which no loop starts another round. The graphs have the same condition.
pub(super) const TURNS: u64 = 25;

/// Returns a hash of a text (FNV-1a).
fn digest(text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the answer to an interrupt.
pub(super) fn answer(payload: &Value) -> Value {
    json!(digest(&payload.to_string()) % MODULUS)
}

/// Returns the plugin with the node `act`.
pub(super) fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1").node("act", act)
}

async fn act(call: NodeCall, gate: Arc<Gate>) -> Answer {
    let config = &call.config;
    let name = config["name"].as_str().unwrap_or_default();
    let seen = digest(&format!("{name} {} {}", call.input.to_value(), call.error.is_some()));
    request(&gate, &call, name, "begin").await?;
    let mut said = Value::Null;
    if config["asks"] == true {
        let payload = json!({ "name": name, "seen": seen % MODULUS });
        said = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        request(&gate, &call, name, "answered").await?;
    }
    if config["fails"] == "always" || (config["fails"] == "once" && call.attempt == 1) {
        return Err(Failure::new(code::UNAVAILABLE, name).retryable().into());
    }
    request(&gate, &call, name, "end").await?;
    let trail = format!("{name} {} {said}", seen % MODULUS);
    let own = if config["nested"] == true { "own_" } else { "" };
    let mut outcome = json!({
        "trail": trail, (format!("{own}total")): seen % MODULUS, (format!("{own}turns")): 1,
    });
    // The task of a send sees only the input of the send, and sends no further tasks.
    if call.input.get("turns").as_u64().is_some_and(|turns| turns < TURNS) {
        let targets = config["sends"].as_array().into_iter().flatten();
        let sends = targets.enumerate().map(
            |(place, node)| json!({ "node": node, "input": { "trail": [place, seen % MODULUS] } }),
        );
        outcome["$send"] = sends.collect();
    }
    Ok(outcome)
}

/// Makes an effect with a key that distinguishes a repetition from a second effect.
async fn request(
    gate: &Gate,
    call: &NodeCall,
    name: &str,
    place: &str,
) -> Result<(), wattle_run::gate::unwind::CallError> {
    let request = HttpRequest {
        method: "POST".into(),
        idempotency_key: Some(format!("{}:{place}", call.task)),
        ..get(&format!("https://example.com/{name}/{place}"))
    };
    gate.call(request).await.map(drop)
}
