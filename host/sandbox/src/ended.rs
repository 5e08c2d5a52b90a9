//! Conversion of wasmtime's errors to `Ended`, the error of a guest call.
//!
//! A stack overflow is a trap, not a limit: no setting changes it, and the cause is nearly always
//! endless recursion.

use serde_json::json;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::Ended;

use crate::guest::Guest;
use crate::halt::Trapped;
use crate::meter::{Meter, Refused};

/// Message of wasmtime if a guest passes more than `lift_bytes` to the host. The type of the error
/// is private to wasmtime; a test checks this text.
pub(crate) const LIFT_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// Maximum length of the message about a trap, in characters. The message may contain text of the
/// guest.
const MESSAGE_CHARS: usize = 600;

/// Message for a guest that executes `unreachable`.
const PANIC: &str = "it panicked, or reached code that is marked as unreachable";

/// The called function, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The plugin.
    pub(crate) plugin: &'a str,
    /// The function: "node `x`", "the web handler".
    pub(crate) what: &'a str,
    /// Whether a grant sets the limits. The limits of a description are fixed.
    pub(crate) granted: bool,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of plugin `{}`", self.what, self.plugin)
    }
}

/// Converts an error of wasmtime to the error of the call.
pub(crate) fn explain(
    error: wasmtime::Error,
    guest: &Guest,
    limits: &Limits,
    place: Place<'_>,
) -> Ended {
    let error = match error.downcast::<Trapped>() {
        Ok(trapped) => return explain_trapped(trapped, limits, place),
        Err(error) => error,
    };
    if let Some(refused) = guest.meter.refused() {
        return Ended::Limit(over_meter(&guest.meter, refused, place));
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Ended::Host(pool_exhausted(&error, place));
    }
    if error.chain().any(|cause| cause.to_string().contains(LIFT_EXHAUSTED)) {
        return Ended::Limit(over(place, "lift", limits.lift_bytes, "bytes passed to the host"));
    }
    Ended::Trap(trap(&error, place))
}

fn explain_trapped(trapped: Trapped, limits: &Limits, place: Place<'_>) -> Ended {
    match trapped {
        Trapped::Unwind(unwind) => Ended::Unwound(unwind),
        Trapped::OutOfTime => {
            Ended::Limit(over(place, "cpu", limits.cpu_ms, "milliseconds of CPU time"))
        }
        Trapped::Forbidden(function) => Ended::Trap(
            Failure::new(
                code::TRAP,
                format!(
                    "{place} called the import `{function}`, which descriptions and reducers must \
                     not call"
                ),
            )
            .with_details(json!({ "trap": "forbidden-import", "import": function })),
        ),
    }
}

/// Returns the failure for an exceeded limit. `unit` names the unit in the message.
pub(crate) fn over(place: Place<'_>, limit: &str, allowed: u64, unit: &str) -> Failure {
    let hint = match limit {
        _ if !place.granted => "; no setting raises this limit, so correct the plugin".to_owned(),
        "cpu" | "memory" | "output" => format!(
            "; raise `limits.{limit}` under `[grants.{}]` in wattle.toml if it needs more",
            place.plugin
        ),
        _ => String::new(),
    };
    Failure::new(code::LIMIT, format!("{place} exceeded its limit of {allowed} {unit}{hint}"))
        .with_details(json!({ "limit": limit, "allowed": allowed }))
}

fn over_meter(meter: &Meter, refused: Refused, place: Place<'_>) -> Failure {
    let (limit, unit) = match refused {
        Refused::Memory => ("memory", "bytes of memory"),
        Refused::Table => ("table", "table elements"),
    };
    over(place, limit, meter.allowed(refused), unit)
}

fn pool_exhausted(error: &wasmtime::Error, place: Place<'_>) -> Failure {
    Failure::new(
        code::UNAVAILABLE,
        format!("no room to run {place}: {error}; try again, or lower `runs` under `[limits]`"),
    )
    .retryable()
}

fn trap(error: &wasmtime::Error, place: Place<'_>) -> Failure {
    let (kind, text) = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => {
            (kind(Trap::UnreachableCodeReached), PANIC.to_owned())
        }
        Some(trap) => (kind(*trap), trap.to_string().replace("wasm trap: ", "")),
        None => ("error".to_owned(), error.root_cause().to_string()),
    };
    let frames = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
    let at = if frames.is_empty() { String::new() } else { format!(" in {}", frames.join(" < ")) };
    let message: String =
        format!("{place} trapped: {text}{at}").chars().take(MESSAGE_CHARS).collect();
    Failure::new(code::TRAP, message).with_details(json!({ "trap": kind, "frames": frames }))
}

fn kind(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "stack-overflow".to_owned(),
        Trap::UnreachableCodeReached => "unreachable".to_owned(),
        Trap::MemoryOutOfBounds => "memory-out-of-bounds".to_owned(),
        Trap::IntegerDivisionByZero => "division-by-zero".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Returns the innermost functions, by name if the guest contains names.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    };
    backtrace.frames().iter().map(name).collect()
}
