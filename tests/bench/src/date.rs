//! Latency of the tool `parseDateExpression` within a run: the guest, its clock calls and its
//! journal, without a model. Its specification requires less than a millisecond.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use wattle_suite::server::{Setup, TestServer};

use crate::{median, print_line};

/// The name of the tool.
const TOOL: &str = "parseDateExpression";

/// Number of calls before the measurement, which compile code and fill caches.
const WARM_UP: usize = 20;

/// Number of measured calls.
const CALLS: usize = 300;

/// Returns the names and arguments of the calls.
fn questions() -> [(&'static str, Value); 3] {
    [
        ("yesterday", json!({"type": "relative", "offset": -1, "unit": "day"})),
        ("today", json!({"type": "relative", "offset": 0, "unit": "day"})),
        ("2 January", json!({"type": "absolute", "month": 1, "day": 2})),
    ]
}

/// Measures the calls and prints a table.
///
/// # Errors
///
/// If a run does not call the tool exactly once.
pub(crate) fn table() -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Setup::expense().await.start().await;
        print_line("date         calls   median us   p99 us   slowest us");
        for (name, input) in questions() {
            for _ in 0..WARM_UP {
                call(&server, &input).await?;
            }
            let mut took = Vec::with_capacity(CALLS);
            for _ in 0..CALLS {
                took.push(call(&server, &input).await?);
            }
            let middle = median(&mut took);
            let of = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or_default();
            let slowest = took.last().copied().unwrap_or_default();
            print_line(&format!(
                "{name:<12} {CALLS:>5} {middle:>11.0} {:>8.0} {slowest:>12.0}",
                of(99)
            ));
        }
        Ok(())
    })
}

/// Returns the duration of one call in microseconds, from the event log of its run.
async fn call(server: &TestServer, input: &Value) -> Result<f64> {
    let reply = server.tell(&format!("call {TOOL} {input}")).await;
    let events = server.events(&reply.thread).await;
    let called = events
        .iter()
        .filter(|it| it.event == "called" && it.data["function"] == "tools.call")
        .filter_map(|it| it.data["duration_us"].as_f64());
    let took: Vec<f64> = called.collect();
    ensure!(took.len() == 1, "the tool was called {} times", took.len());
    Ok(took[0])
}
