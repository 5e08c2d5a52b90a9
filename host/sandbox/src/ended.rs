//! Why a guest call has no outcome: from wasmtime's error and the guest's accounts to `Ended`.
//!
//! Running out of call stack is a trap, not a limit: no operator's setting moves it, and the cause
//! is nearly always recursion without end.

use serde_json::json;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::Ended;

use crate::guest::Guest;
use crate::halt::Trapped;
use crate::meter::{Meter, Refused};

/// What wasmtime says when a guest hands over more than `lift_bytes`. The error's type is private
/// to wasmtime; a test holds this text to it.
pub(crate) const LIFT_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// Longest message about a trap, which may carry text of the guest's.
const MESSAGE_CHARS: usize = 600;

/// What WebAssembly calls reaching `unreachable`.
const PANIC: &str = "it panicked, or reached code that it holds to be unreachable";

/// What was called, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The plugin.
    pub(crate) plugin: &'a str,
    /// What of it: "node `x`", "the web handler".
    pub(crate) what: &'a str,
    /// Whether a grant sets its limits; the host's own hold for a description.
    pub(crate) granted: bool,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of plugin `{}`", self.what, self.plugin)
    }
}

/// Why a call ended with an error of wasmtime.
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
        return Ended::Limit(over(place, "lift", limits.lift_bytes, "bytes handed to the host"));
    }
    Ended::Trap(trap(&error, place))
}

fn explain_trapped(trapped: Trapped, limits: &Limits, place: Place<'_>) -> Ended {
    match trapped {
        Trapped::Unwind(unwind) => Ended::Unwound(unwind),
        Trapped::OutOfTime => {
            Ended::Limit(over(place, "cpu", limits.cpu_ms, "milliseconds of computing"))
        }
        Trapped::Forbidden(function) => Ended::Trap(
            Failure::new(
                code::TRAP,
                format!("{place} used the import `{function}`, which it must not use here"),
            )
            .with_details(json!({ "trap": "forbidden-import", "import": function })),
        ),
    }
}

/// A limit was passed; `unit` names it for people.
pub(crate) fn over(place: Place<'_>, limit: &str, allowed: u64, unit: &str) -> Failure {
    let hint = match limit {
        _ if !place.granted => "; nothing sets this limit, so correct the plugin".to_owned(),
        "cpu" | "memory" | "output" => format!(
            "; raise `limits.{limit}` under `[grants.{}]` in wattle.toml if it needs more",
            place.plugin
        ),
        _ => String::new(),
    };
    Failure::new(code::LIMIT, format!("{place} went over its limit of {allowed} {unit}{hint}"))
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

/// The innermost functions, by name where the guest kept its names.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    };
    backtrace.frames().iter().map(name).collect()
}
