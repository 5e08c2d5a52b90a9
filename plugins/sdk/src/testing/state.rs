//! Script and recorded calls of a fake host, and the fake host of the current thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::interrupt::Question;
use crate::memory::Item;
use crate::runs::{EndedRun, Resume, RunRef, Start, Thread};
use crate::testing::record::{Logged, SqlAnswer, Statement};
use crate::tool::{ToolInfo, ToolOutput};
use crate::tools::Call;
use crate::{http, llm};

/// 2026-01-01T00:00:00Z. A test that sets no time gets a plausible date.
const DEFAULT_NOW_MS: i64 = 1_767_225_600_000;

/// A script. It is shared, so that the state is not borrowed while the script runs. The script can
/// therefore use the SDK itself.
pub(super) type Script<A, R> = Rc<RefCell<dyn FnMut(&A) -> Result<R, Failure>>>;

/// Scripted images: media types and bytes.
pub(super) type Pictures = Vec<(String, Vec<u8>)>;

/// A stored blob: media type and bytes.
pub(super) type Blob = (String, Vec<u8>);

/// A document of the memory.
pub(super) struct MemoryEntry {
    pub(super) item: Item,
    pub(super) expires_ms: Option<i64>,
    /// Sliding expiry: lifetime after a read, in milliseconds.
    pub(super) refresh_ms: Option<u64>,
}

pub(super) struct State {
    pub(super) llm: Option<Script<llm::Request, llm::Completion>>,
    pub(super) images: Option<Script<llm::ImageRequest, Pictures>>,
    pub(super) http: Option<Script<http::Request, http::Response>>,
    pub(super) sql: Option<Script<Statement, SqlAnswer>>,
    pub(super) tools: Vec<(ToolInfo, Script<Value, ToolOutput>)>,
    pub(super) routes: BTreeMap<String, llm::RouteInfo>,
    pub(super) tenant_routes: BTreeMap<String, Value>,
    pub(super) run_ends: Option<Script<RunRef, EndedRun>>,
    pub(super) resume: Option<Script<Resume, ()>>,
    pub(super) start: Option<Script<Start, ()>>,
    pub(super) dialect: String,
    pub(super) now_ms: i64,
    pub(super) monotonic_ns: u64,
    /// Names of time zones and their offsets in seconds. The last one is the operator's time zone.
    pub(super) zones: Vec<(String, i32)>,
    pub(super) random: u64,
    pub(super) answers: VecDeque<Value>,
    pub(super) settings: Map<String, Value>,
    pub(super) blobs: BTreeMap<String, Blob>,
    pub(super) memory: BTreeMap<(Vec<String>, String), MemoryEntry>,
    pub(super) threads: BTreeMap<String, Thread>,
    pub(super) events: Vec<(String, Value)>,
    pub(super) notes: Notes,
}

/// The recorded calls.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) llm: Vec<llm::Request>,
    pub(super) images: Vec<llm::ImageRequest>,
    pub(super) tools: Vec<Call>,
    /// Names and configurations of the routes that were set for the tenant.
    pub(super) routes: Vec<(String, Value)>,
    pub(super) http: Vec<http::Request>,
    pub(super) statements: Vec<Statement>,
    pub(super) questions: Vec<Question>,
    pub(super) emitted: Vec<(String, Value)>,
    pub(super) progress: Vec<(String, Option<f64>)>,
    pub(super) logged: Vec<Logged>,
    pub(super) started: Vec<Start>,
    pub(super) resumed: Vec<Resume>,
    pub(super) cancelled: Vec<RunRef>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            llm: None,
            images: None,
            http: None,
            sql: None,
            tools: Vec::new(),
            routes: BTreeMap::new(),
            tenant_routes: BTreeMap::new(),
            run_ends: None,
            resume: None,
            start: None,
            dialect: "sqlite".to_owned(),
            now_ms: DEFAULT_NOW_MS,
            monotonic_ns: 0,
            zones: vec![("UTC".to_owned(), 0)],
            random: 0,
            answers: VecDeque::new(),
            settings: Map::new(),
            blobs: BTreeMap::new(),
            memory: BTreeMap::new(),
            threads: BTreeMap::new(),
            events: Vec::new(),
            notes: Notes::default(),
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("State").field("notes", &self.notes).finish_non_exhaustive()
    }
}

pub(super) type Shared = Rc<RefCell<State>>;

thread_local! {
    static CURRENT: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// Makes a fake host the current one of the thread, until the guard is dropped.
pub(super) fn enter(state: Shared) -> Entered {
    Entered { outer: CURRENT.with(|current| current.replace(Some(state))) }
}

/// Restores the previous fake host of the thread when it is dropped, also during a panic.
pub(super) struct Entered {
    outer: Option<Shared>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| current.replace(self.outer.take()));
    }
}

/// Returns the fake host of the current thread.
pub(super) fn current() -> Result<Shared, Failure> {
    CURRENT
        .with(|current| current.borrow().clone())
        .ok_or_else(|| Failure::unsupported("a test has no host; wrap the call in `FakeHost::run`"))
}

/// Accesses the state of the current thread's fake host.
pub(super) fn with<R>(work: impl FnOnce(&mut State) -> R) -> Result<R, Failure> {
    let state = current()?;
    let mut state = state.borrow_mut();
    Ok(work(&mut state))
}

/// Runs a script. Without a script, fails with `unsupported` and the name of the method that sets
/// the script.
pub(super) fn play<A, R>(
    script: impl FnOnce(&State) -> Option<Script<A, R>>,
    call: &A,
    method: &str,
) -> Result<R, Failure> {
    let script = with(|state| script(state))?.ok_or_else(|| {
        Failure::unsupported(format!("the fake host has no script; set one with `{method}`"))
    })?;
    let mut script = script.borrow_mut();
    script(call)
}
