//! Conversion of wasmtime's errors to `GuestError`, the error of a guest call.
//!
//! A stack overflow is a trap, not an exceeded limit: no setting changes the size of the stack, and
//! the cause is nearly always endless recursion.

use serde_json::{Map, Value, json};
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wattle_graph::definition::{ByteSize, HumanDuration};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;

use crate::engine::Abi;
use crate::guest_output::{Cause, GuestOutput, StandardStream};
use crate::host_state::HostState;
use crate::import_error::TrapReason;
use crate::load::text;
use crate::memory_meter::LimitedResource;

/// Message of wasmtime if a guest passes more than `lift_bytes` to the host. The type of the error
/// is private to wasmtime; a test checks this text.
pub(crate) const HOSTCALL_FUEL_MESSAGE: &str = "fuel allocated for hostcalls has been exhausted";

/// Maximum length of the message about a trap, in characters. The message may contain text of the
/// guest. Advice on the cause, or the last lines of the output, can follow it.
const MAX_MESSAGE_CHARS: usize = 600;

/// Maximum number of bytes of each output stream in the details of a failure.
const MAX_OUTPUT_BYTES: usize = 2 << 10;

/// Message for a guest that executes `unreachable`.
const UNREACHABLE_MESSAGE: &str = "it panicked, or reached code that is marked as unreachable";

/// Message for a guest whose stack overflows.
const STACK_OVERFLOW_MESSAGE: &str =
    "call stack exhausted: its calls nest too deep, most likely by endless recursion";

/// Words with which programs report that memory is exhausted, in lower case: programs in Python, in
/// JavaScript and Go, in other managed languages, in Lua, in C, in C++ and in Rust, and buffers in
/// JavaScript. The word "allocation" alone is not listed, because an app may allocate assets.
const MEMORY_WORDS: &[&str] = &[
    "memoryerror",
    "out of memory",
    "outofmemory",
    "not enough memory",
    "allocate memory",
    "bad_alloc",
    "memory allocation",
    "buffer allocation",
];

/// The called function, for messages. Most calls need no message, so this type has no texts of its
/// own.
#[derive(Clone, Copy)]
pub(crate) struct Callee<'a> {
    /// The plugin.
    pub(crate) plugin: &'a PluginName,
    /// The function.
    pub(crate) function: CalledFunction<'a>,
    /// The grants that set the limits, with the app and the plugin that they are for. `None` for a
    /// component that describes itself, whose limits are fixed.
    pub(crate) granted: Option<(&'a Grants, &'a AppName, &'a PluginName)>,
}

/// A function that the host calls.
#[derive(Clone, Copy)]
pub(crate) enum CalledFunction<'a> {
    /// A node.
    Node(&'a str),
    /// A tool.
    Tool(&'a str),
    /// A reducer.
    Reducer(&'a str),
    /// The web handler.
    WebHandler,
    /// The functions with which a component describes itself.
    Description,
}

impl Callee<'_> {
    /// Returns how to raise a limit; `None` if the limits are fixed.
    pub(crate) fn raise_limit(&self, limit: &str) -> Option<String> {
        self.granted.map(|(grants, app, plugin)| grants.raise_limit(app, plugin, limit))
    }
}

impl std::fmt::Display for CalledFunction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node `{name}`"),
            Self::Tool(name) => write!(f, "tool `{name}`"),
            Self::Reducer(name) => write!(f, "reducer `{name}`"),
            Self::WebHandler => f.write_str("the web handler"),
            Self::Description => f.write_str("the description"),
        }
    }
}

impl std::fmt::Display for Callee<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of plugin `{}`", self.function, self.plugin)
    }
}

/// Converts an error of wasmtime to the error of the call.
pub(crate) fn from_wasmtime_error(
    error: wasmtime::Error,
    guest: &HostState,
    limits: &Limits,
    callee: Callee<'_>,
) -> GuestError {
    let error = match error.downcast::<TrapReason>() {
        Ok(trapped) => return from_trap_reason(trapped, limits, callee),
        Err(error) => error,
    };
    if let Some(denied) = guest.memory.denied() {
        let cause = guest.output.cause();
        // The runtime of a language may get memory for its message about the denial.
        if !denied.grew_since || cause.as_ref().is_some_and(|cause| is_about_memory(&cause.text)) {
            return memory_denied(denied.resource, guest, limits, callee, cause.as_ref());
        }
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return GuestError::Host(pool_exhausted(&error, callee));
    }
    // The host functions of `wattle:plugin` return a full table to the guest as a failure. This
    // error comes from a function of WASI, or from the table of tasks.
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return GuestError::Limit(too_many_instances(callee));
    }
    if error.chain().any(|cause| cause.to_string().contains(HOSTCALL_FUEL_MESSAGE)) {
        return GuestError::Limit(limit_exceeded(
            callee,
            "lift",
            limits.lift_bytes,
            &format!("{} passed to the host", ByteSize(limits.lift_bytes)),
        ));
    }
    GuestError::Trap(trap_failure(&error, &guest.output, callee))
}

/// Converts the failure that a guest returned to the error of the call.
///
/// If a guest was denied memory and returns a failure about memory, the call has exceeded the
/// limit, whatever code the failure has: Python returns a `MemoryError`. Any other failure keeps
/// its code, since the guest continued after the denial. Its details name the limit if the denied
/// resource has not grown since.
pub(crate) fn from_failure(
    failure: Failure,
    guest: &HostState,
    limits: &Limits,
    callee: Callee<'_>,
) -> GuestError {
    match guest.memory.denied() {
        Some(denied) if is_about_memory(&failure.code) || is_about_memory(&failure.message) => {
            let cause = Cause::from_fields(&failure.message, &[]);
            memory_denied(denied.resource, guest, limits, callee, Some(&cause))
        }
        Some(denied) if !denied.grew_since => {
            let allowed = guest.memory.allowed(denied.resource);
            GuestError::Failure(with_limit(failure, denied.resource, allowed))
        }
        _ => GuestError::Failure(failure),
    }
}

/// Returns true if a text has the words with which languages report that memory is exhausted. A
/// text about the long-term memory has none of these words.
fn is_about_memory(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    MEMORY_WORDS.iter().any(|words| text.contains(words))
}

/// Adds a limit to the details of a failure, unless the details already name a limit.
fn with_limit(mut failure: Failure, resource: LimitedResource, allowed: u64) -> Failure {
    let details = failure.details.get_or_insert_with(|| json!({}));
    if let Value::Object(details) = details
        && !details.contains_key("limit")
    {
        details.insert("limit".to_owned(), json!(resource.name()));
        details.insert("allowed".to_owned(), json!(allowed));
    }
    failure
}

fn from_trap_reason(trapped: TrapReason, limits: &Limits, callee: Callee<'_>) -> GuestError {
    match trapped {
        TrapReason::Unwind(unwind) => GuestError::Unwound(unwind),
        TrapReason::CpuLimit => GuestError::Limit(limit_exceeded(
            callee,
            "cpu",
            limits.cpu_ms,
            &format!("{} of CPU time", HumanDuration::from_ms(limits.cpu_ms)),
        )),
        TrapReason::RandomLimit(allowed) => {
            let amount = format!("{allowed} random bytes of WASI");
            GuestError::Limit(limit_exceeded(callee, "random", allowed, &amount))
        }
        TrapReason::NoGate(function) => GuestError::Trap(
            Failure::new(
                code::TRAP,
                format!(
                    "{callee} called the import `{function}`, which descriptions and reducers must \
                     not call"
                ),
            )
            .with_details(json!({ "trap": "forbidden-import", "import": function })),
        ),
        TrapReason::ExportOnly(function) => GuestError::Trap(
            Failure::new(
                code::TRAP,
                format!(
                    "{callee} called `{function}`, which only the host calls; call tools by `tools`"
                ),
            )
            .with_details(json!({ "trap": "forbidden-import", "import": function })),
        ),
    }
}

/// Returns the failure for an exceeded limit. `amount` is the limit in the message, in the units of
/// the configuration.
pub(crate) fn limit_exceeded(
    callee: Callee<'_>,
    limit: &str,
    allowed: u64,
    amount: &str,
) -> Failure {
    let hint = match (callee.raise_limit(limit), limit) {
        (None, _) => "; no setting raises this limit, so correct the plugin".to_owned(),
        (Some(raise), "cpu" | "memory" | "output") => format!("; {raise} if it needs more"),
        _ => String::new(),
    };
    Failure::new(code::LIMIT, format!("{callee} exceeded its limit of {amount}{hint}"))
        .with_details(json!({ "limit": limit, "allowed": allowed }))
}

/// Returns the failure of a guest that holds too many resources of WASI or too many tasks.
fn too_many_instances(callee: Callee<'_>) -> Failure {
    let message = format!(
        "{callee} holds more resources of the host, or more tasks of the asynchronous ABI, than a \
         guest may hold; drop those that are no longer used"
    );
    Failure::new(code::LIMIT, message).with_details(json!({ "limit": "instances" }))
}

/// Returns the error of a guest that was denied a resource.
fn memory_denied(
    denied: LimitedResource,
    guest: &HostState,
    limits: &Limits,
    callee: Callee<'_>,
    cause: Option<&Cause>,
) -> GuestError {
    let allowed = guest.memory.allowed(denied);
    let explain = |failure| with_output(failure, &guest.output, cause);
    match denied {
        LimitedResource::GuestsMemory => {
            GuestError::Host(explain(guests_memory_exhausted(callee, allowed)))
        }
        LimitedResource::Memory => {
            GuestError::Limit(explain(memory_limit_exceeded(allowed, limits, callee)))
        }
        LimitedResource::Table => {
            let amount = format!("{allowed} table elements");
            let failure = limit_exceeded(callee, denied.name(), allowed, &amount);
            GuestError::Limit(explain(failure))
        }
    }
}

/// Adds the cause and the end of the output to the details of a failure.
fn with_output(mut failure: Failure, output: &GuestOutput, cause: Option<&Cause>) -> Failure {
    let Some(Value::Object(details)) = &mut failure.details else { return failure };
    if let Some(cause) = cause {
        details.insert("cause".to_owned(), json!(cause));
    }
    let streams = [StandardStream::Out, StandardStream::Err];
    let ends: Map<String, Value> = streams
        .into_iter()
        .map(|stream| (stream, text::sanitize(&output.end(stream, MAX_OUTPUT_BYTES), usize::MAX)))
        .filter(|(_, end)| !end.trim().is_empty())
        .map(|(stream, end)| (stream.name().to_owned(), Value::String(end)))
        .collect();
    if !ends.is_empty() {
        details.insert("output".to_owned(), Value::Object(ends));
    }
    failure
}

fn memory_limit_exceeded(allowed: u64, limits: &Limits, callee: Callee<'_>) -> Failure {
    if allowed == limits.memory_bytes {
        let amount = format!("{} of memory", ByteSize(allowed));
        return limit_exceeded(callee, "memory", allowed, &amount);
    }
    let message = format!(
        "{callee} needs more than {} of memory, the maximum for a guest of this host; raise \
         `limits.guests_memory` in wattle.toml if it needs more",
        ByteSize(allowed)
    );
    let details = json!({ "limit": "memory", "allowed": allowed });
    Failure::new(code::LIMIT, message).with_details(details)
}

/// Returns the failure of a guest that gets `bytes` bytes of texts. `allowed` is the number of
/// bytes that the texts of one guest can take.
pub(crate) fn texts_exceed_memory(callee: Callee<'_>, bytes: u64, allowed: u64) -> Failure {
    let message = format!(
        "the input of {callee} has {bytes} bytes, more than the {allowed} bytes of memory that \
         this host has for it; put large data into blobs, or raise `limits.guests_memory` in \
         wattle.toml"
    );
    Failure::new(code::LIMIT, message)
        .with_details(json!({ "limit": "memory", "allowed": allowed }))
}

/// Returns the failure of a guest for which the memory of all guests does not suffice now. `total`
/// is the size of that memory in bytes.
pub(crate) fn guests_memory_exhausted(callee: Callee<'_>, total: u64) -> Failure {
    let message = format!(
        "no memory for {callee}: its share of the {} for all guests is in use; try again, run \
         fewer tasks at once, or raise `limits.guests_memory` in wattle.toml",
        ByteSize(total)
    );
    let details = json!({ "limit": "guests_memory", "allowed": total });
    Failure::new(code::UNAVAILABLE, message).retryable().with_details(details)
}

/// Returns the failure of a guest that finds no place in the engine for its ABI now. `total` is the
/// number of places of the engine.
pub(crate) fn places_exhausted(callee: Callee<'_>, abi: Abi, total: u64) -> Failure {
    let (limit, guests, advice) = match abi {
        Abi::Synchronous => ("guests", "guests", "or run fewer tasks at once"),
        Abi::Asynchronous => (
            "async_guests",
            "guests with the asynchronous ABI",
            "run fewer tasks at once, or build the plugin without this ABI",
        ),
    };
    let message = format!(
        "no room to run {callee}: its share of the {total} places for {guests} is in use; try \
         again, {advice}"
    );
    let details = json!({ "limit": limit, "allowed": total });
    Failure::new(code::UNAVAILABLE, message).retryable().with_details(details)
}

fn pool_exhausted(error: &wasmtime::Error, callee: Callee<'_>) -> Failure {
    Failure::new(
        code::UNAVAILABLE,
        format!("no room to run {callee}: {error}; try again, or lower `runs` under `[limits]`"),
    )
    .retryable()
}

fn trap_failure(error: &wasmtime::Error, output: &GuestOutput, callee: Callee<'_>) -> Failure {
    // A panic or an exception ends in `unreachable` or in `wasi:cli/exit`, so the output of the
    // guest has the cause. Any other trap, such as a stack overflow, has nothing to do with an
    // error that the guest wrote before.
    let (kind, text, may_have_said) = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => {
            (trap_kind(Trap::UnreachableCodeReached), UNREACHABLE_MESSAGE.to_owned(), true)
        }
        Some(Trap::StackOverflow) => {
            (trap_kind(Trap::StackOverflow), STACK_OVERFLOW_MESSAGE.to_owned(), false)
        }
        Some(trap) => (trap_kind(*trap), trap.to_string().replace("wasm trap: ", ""), false),
        None => ("error".to_owned(), error.root_cause().to_string(), true),
    };
    let cause = if may_have_said { output.cause() } else { None };
    let backtrace = error.downcast_ref::<WasmBacktrace>();
    let frames = backtrace.map(frame_names).unwrap_or_default();
    let what = match &cause {
        Some(cause) => cause.to_string(),
        None if backtrace.is_some_and(has_names) => format!("{text} in {}", frames.join(" < ")),
        // The details have the indexes. Without a name, they tell a person nothing.
        None => text,
    };
    let mut message: String =
        format!("{callee} trapped: {what}").chars().take(MAX_MESSAGE_CHARS).collect();
    let more = match &cause {
        Some(cause) => cause.advice().map(str::to_owned),
        // The error can be in a form that the host does not know.
        None if may_have_said => {
            output.last_lines().map(|lines| format!("its output ends with `{lines}`"))
        }
        None => None,
    };
    if let Some(more) = more {
        message.push_str("; ");
        message.push_str(&more);
    }
    let failure =
        Failure::new(code::TRAP, message).with_details(json!({ "trap": kind, "frames": frames }));
    with_output(failure, output, cause.as_ref())
}

fn trap_kind(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "stack-overflow".to_owned(),
        Trap::UnreachableCodeReached => "unreachable".to_owned(),
        Trap::MemoryOutOfBounds => "memory-out-of-bounds".to_owned(),
        Trap::IntegerDivisionByZero => "division-by-zero".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Returns true if the component contains the name of an innermost function.
fn has_names(backtrace: &WasmBacktrace) -> bool {
    backtrace.frames().iter().any(|frame| frame.func_name().is_some())
}

/// Returns the innermost functions of a backtrace: their names, or their indexes if the component
/// contains no names.
fn frame_names(backtrace: &WasmBacktrace) -> Vec<String> {
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    };
    backtrace.frames().iter().map(name).collect()
}
