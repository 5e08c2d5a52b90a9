//! The threads of the benchmark's store: how many there are, and the fields by which requests find
//! them. All fields follow from the number of the thread.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, GraphName, IdError, RunId, ThreadId};
use wattle_run::ports::store::{ThreadCursor, ThreadStatus};
use wattle_suite::stored_threads::StoredThread;

/// Apps, each with its graphs. The host of the benchmark serves the first app only: a list shows the
/// threads of other apps as well.
const APPS: [(&str, [&str; 2]); 4] = [
    ("reference", ["agent", "subgraph"]),
    ("expense", ["report", "review"]),
    ("support", ["triage", "reply"]),
    ("travel", ["plan", "book"]),
];

/// Statuses with their frequencies. No thread is running, because the host would recover its run.
const STATUSES: [ThreadStatus; 10] = [
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Idle,
    ThreadStatus::Interrupted,
    ThreadStatus::Error,
    ThreadStatus::Error,
];

/// Codes of most failures.
const FAILURES: [&str; 4] = [code::UNAVAILABLE, code::TIMEOUT, code::RATE_LIMITED, code::INVALID];

/// The code of one in [`RARE`] threads.
pub(super) const RARE_FAILURE: &str = code::DIVERGENCE;

/// Number of threads to each one with the rare failure.
const RARE: u32 = 10_000;

/// Number of the first thread with the rare failure.
const FIRST_RARE: u32 = 250;

/// Cities in the metadata of threads.
const CITIES: [&str; 10] = [
    "Lisbon", "Oslo", "Vienna", "Prague", "Dublin", "Athens", "Helsinki", "Warsaw", "Madrid",
    "Shanghai",
];

/// Bytes of the result of a host call in a short run.
const SHORT_RESULT_BYTES: usize = 400;

/// Bytes of the result of a host call in the long run.
const LONG_RESULT_BYTES: usize = 3_000;

/// Number of tenants.
const TENANTS: u32 = 20;

/// Number of customers in the metadata of threads.
const CUSTOMERS: u32 = 1_000;

/// Time of the newest update: 2025-01-01, in milliseconds since 1970.
const NEWEST_MS: i64 = 1_735_689_600_000;

/// Time between the updates of two threads.
const STEP_MS: i64 = 60_000;

/// Maximum time from the creation of a thread to its last update.
const LONGEST_MS: u32 = 86_400_000;

/// The size of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of threads with a short run.
    pub(super) threads: u32,
    /// Number of host calls in the run of one more thread, which is the oldest one.
    pub(super) calls: u32,
}

impl Plan {
    /// Returns the number of the thread with the long run.
    pub(super) fn long_thread(self) -> u32 {
        self.threads
    }

    /// Returns the fields of all threads, newest update first.
    pub(super) fn fields(self) -> impl Iterator<Item = Fields> {
        (0..=self.threads).map(Fields::new)
    }

    /// Returns all threads as they are written.
    pub(super) fn stored(self) -> impl Iterator<Item = Result<StoredThread>> {
        self.fields().map(move |fields| self.stored_thread(fields))
    }

    fn stored_thread(self, fields: Fields) -> Result<StoredThread> {
        let is_long = fields.number == self.long_thread();
        let (calls, result_bytes) =
            if is_long { (self.calls, LONG_RESULT_BYTES) } else { (1, SHORT_RESULT_BYTES) };
        Ok(StoredThread { calls, result_bytes, ..fields.stored()? })
    }
}

/// The fields of a thread by which requests find it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Number of the thread. The thread with number 0 has the newest update.
    pub(super) number: u32,
    pub(super) app: &'static str,
    pub(super) graph: &'static str,
    pub(super) status: ThreadStatus,
    /// Code of the failure.
    pub(super) failure: Option<&'static str>,
    /// Number of the tenant.
    pub(super) tenant: u32,
    /// Number of the customer.
    pub(super) customer: u32,
    pub(super) city: &'static str,
    pub(super) created_ms: i64,
    pub(super) updated_ms: i64,
}

impl Fields {
    /// Returns the fields of a thread.
    fn new(number: u32) -> Self {
        let (app, graphs) = choose(number, Field::App, &APPS);
        let is_rare = number % RARE == FIRST_RARE;
        let usual = choose(number, Field::Status, &STATUSES);
        let status = if is_rare { ThreadStatus::Error } else { usual };
        let code = if is_rare { RARE_FAILURE } else { choose(number, Field::Failure, &FAILURES) };
        let updated_ms = updated_ms(number);
        Self {
            number,
            app,
            graph: choose(number, Field::Graph, &graphs),
            status,
            failure: (status == ThreadStatus::Error).then_some(code),
            tenant: below(TENANTS, number, Field::Tenant),
            customer: below(CUSTOMERS, number, Field::Customer),
            city: choose(number, Field::City, &CITIES),
            created_ms: updated_ms - i64::from(below(LONGEST_MS, number, Field::Created)),
            updated_ms,
        }
    }

    fn stored(self) -> Result<StoredThread, IdError> {
        let Self { number, tenant, .. } = self;
        let graph = (AppName::new(self.app)?, GraphName::new(self.graph)?);
        Ok(StoredThread {
            status: self.status,
            failure: self.failure,
            tenant: Some(tenant_name(tenant)),
            context: json!({ "locale": "en", "user": format!("user-{tenant}") }),
            metadata: self.metadata(),
            incarnation: Some(RunId::new(uuid(number, Field::Incarnation))?),
            created_ms: self.created_ms,
            seed: number,
            ..StoredThread::new(thread_id(number)?, run_id(number)?, graph, self.updated_ms)
        })
    }

    fn metadata(self) -> BTreeMap<String, Value> {
        let Self { number, graph, customer, city, .. } = self;
        let fields = [
            ("graph_id", json!(graph)),
            ("assistant_id", json!(uuid(number, Field::Assistant))),
            ("customer_id", json!(customer)),
            ("customer", json!({ "name": format!("Customer {customer}"), "city": city })),
            ("title", json!(format!("Order {number} arrived late and one part is missing"))),
            ("tags", json!(["orders", "mail"])),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// Returns the time of the last update of a thread, in milliseconds since 1970.
pub(super) fn updated_ms(number: u32) -> i64 {
    NEWEST_MS - STEP_MS * i64::from(number)
}

/// Returns the name of a tenant.
pub(super) fn tenant_name(number: u32) -> String {
    format!("tenant-{number:02}")
}

/// Returns the id of a thread.
pub(super) fn thread_id(number: u32) -> Result<ThreadId, IdError> {
    ThreadId::new(uuid(number, Field::Thread))
}

/// Returns the id of the run of a thread.
pub(super) fn run_id(number: u32) -> Result<RunId, IdError> {
    RunId::new(uuid(number, Field::Run))
}

/// Returns the cursor of a list after a thread.
pub(super) fn cursor_after(number: u32) -> Result<String, IdError> {
    let cursor = ThreadCursor { updated_ms: updated_ms(number), thread: thread_id(number)? };
    Ok(cursor.to_string())
}

/// A field with pseudorandom values. The order of ids differs from that of updates, as in a real
/// store.
#[derive(Clone, Copy, Debug)]
enum Field {
    App,
    Graph,
    Status,
    Failure,
    Tenant,
    Customer,
    City,
    Created,
    Thread,
    Run,
    Assistant,
    Incarnation,
}

/// Maximum number of fields of a thread.
const FIELDS: u64 = 16;

/// Returns the pseudorandom UUID of a field of a thread.
fn uuid(number: u32, field: Field) -> String {
    let high = random(number, field);
    let low = mix(high);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

fn choose<T: Copy>(number: u32, field: Field, values: &[T]) -> T {
    values[below(values.len() as u32, number, field) as usize]
}

/// Returns a pseudorandom number below a limit.
fn below(limit: u32, number: u32, field: Field) -> u32 {
    (random(number, field) % u64::from(limit)) as u32
}

fn random(number: u32, field: Field) -> u64 {
    mix(u64::from(number) * FIELDS + field as u64)
}

/// Mixes the bits of a number (SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
