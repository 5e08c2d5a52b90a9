//! The measured requests of the studio, with the number of items in their responses.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use wattle_run::limit::SEARCH_RECORDS;
use wattle_run::ports::store::ThreadStatus;
use wattle_suite::load::Client;
use wattle_suite::stored_threads::{events_of_run, seq_of_result};

use super::plan::{
    Fields, Plan, RARE_FAILURE, cursor_after, run_id, tenant_name, thread_id, updated_ms,
};

/// Number of threads on a page.
const PAGE_THREADS: usize = 100;

/// Maximum number of events on a page of the log.
const PAGE_EVENTS: u64 = 500;

/// Number of threads that a search by an Agent Server client returns.
const FOUND_THREADS: usize = 10;

/// The tenant whose threads are listed. It has an interrupted thread of the app `support` among the
/// newest 300, so that a small store has matches as well.
const TENANT: u32 = 6;

/// The customer whose threads are searched. It has a failed thread among the newest 300.
const CUSTOMER: u32 = 275;

/// Numbers of the threads that were updated within the time of a list.
const UPDATED: std::ops::Range<u32> = 50..1_050;

/// A measured request.
pub(super) struct Case {
    /// Description of the request.
    pub(super) name: String,
    request: Request,
    /// The number of items that the response must have; `None` if it depends on the store.
    items: Option<u64>,
}

enum Request {
    /// One `GET`.
    Get(String),
    /// A `GET` for each page, until the last one. The path has a query.
    AllPages(String),
    /// One `POST`.
    Post(&'static str, Value),
}

/// The responses of a case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Time from the requests to the last bytes of their responses.
    pub(super) took: Duration,
    /// Bytes of all bodies.
    pub(super) bytes: usize,
    /// Number of listed or counted items.
    pub(super) items: u64,
}

impl Case {
    fn get(name: impl Into<String>, path: String, items: impl Into<Option<u64>>) -> Self {
        Self { name: name.into(), request: Request::Get(path), items: items.into() }
    }

    /// Sends the request and reads its response.
    ///
    /// # Errors
    ///
    /// If the request fails, or the response has another number of items.
    pub(super) async fn send(&self, client: &Client) -> Result<Sample> {
        let sample = self.request.send(client).await;
        let sample = sample.with_context(|| format!("request `{}`", self.name))?;
        ensure!(
            self.items.is_none_or(|items| items == sample.items),
            "the response to `{}` has {} items in place of {:?}",
            self.name,
            sample.items,
            self.items
        );
        Ok(sample)
    }
}

impl Request {
    async fn send(&self, client: &Client) -> Result<Sample> {
        let mut sample = Sample::default();
        match self {
            Self::Get(path) => {
                sample.read(client.request(Method::GET, path)).await?;
            }
            Self::Post(path, body) => {
                sample.read(client.request(Method::POST, path).json(body)).await?;
            }
            Self::AllPages(first) => {
                let mut path = Some(first.clone());
                while let Some(at) = path {
                    let page = sample.read(client.request(Method::GET, &at)).await?;
                    path = next_page(&page).map(|next| format!("{first}&{next}"));
                }
            }
        }
        Ok(sample)
    }
}

impl Sample {
    /// Adds the response to a request. Returns its document.
    async fn read(&mut self, request: RequestBuilder) -> Result<Value> {
        let began = Instant::now();
        let response = request.send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        self.took += began.elapsed();
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        let document: Value = serde_json::from_slice(&body)?;
        self.bytes += body.len();
        self.items += count_items(&document);
        Ok(document)
    }
}

/// Returns the number of items of a list, or the total of a count.
fn count_items(document: &Value) -> u64 {
    let items = document.as_array().or_else(|| document["items"].as_array());
    items.map_or_else(|| document["total"].as_u64().unwrap_or_default(), |items| items.len() as u64)
}

/// Returns the parameter of the next page, or `None` after the last one.
fn next_page(page: &Value) -> Option<String> {
    if let Some(cursor) = page["next_cursor"].as_str() {
        return Some(format!("cursor={cursor}"));
    }
    page["next_after"].as_u64().map(|after| format!("after={after}"))
}

/// Returns the measured requests to a host on the store of a plan.
pub(super) fn cases(plan: Plan) -> Result<Vec<Case>> {
    let threads: Vec<Fields> = plan.fields().collect();
    let mut cases = pages(threads.len())?;
    cases.extend(CONDITIONS.iter().map(|condition| condition.list(&threads)));
    cases.push(all_pages_of_a_search());
    let path = "/api/v1/thread-counts".to_owned();
    cases.push(Case::get("counts", path, threads.len() as u64));
    cases.extend(CONDITIONS.iter().map(|condition| condition.count(&threads)));
    cases.extend(runs(&threads));
    cases.extend(log(plan)?);
    cases.extend(agent_server(&threads));
    Ok(cases)
}

/// Returns the path of a page of threads.
fn list_path(query: &str) -> String {
    format!("/api/v1/threads?limit={PAGE_THREADS}{query}")
}

/// Returns the path of the page after a number of threads, which must not be zero.
fn path_after(skipped: usize) -> Result<String> {
    let last = u32::try_from(skipped)?.saturating_sub(1);
    Ok(list_path(&format!("&cursor={}", cursor_after(last)?)))
}

/// Returns the requests for pages of all threads.
fn pages(threads: usize) -> Result<Vec<Case>> {
    let on_page = |skipped: usize| threads.saturating_sub(skipped).min(PAGE_THREADS) as u64;
    let (second, far) = (PAGE_THREADS, threads / 10 * 9);
    let by_offset = list_path(&format!("&offset={far}"));
    Ok(vec![
        Case::get("threads: first page", list_path(""), on_page(0)),
        Case::get("threads: second page", path_after(second)?, on_page(second)),
        Case::get("threads: page after nine tenths", path_after(far)?, on_page(far)),
        Case::get("threads: the same page by offset", by_offset, on_page(far)),
    ])
}

/// A condition on threads.
struct Condition {
    name: &'static str,
    /// Returns the parameters of the condition.
    query: fn() -> String,
    /// Returns whether a thread fulfills the condition.
    matches: fn(&Fields) -> bool,
    /// True if the condition compares texts or metadata, so that a request examines at most
    /// [`SEARCH_RECORDS`] threads.
    reads_contents: bool,
}

/// The conditions of lists and counts.
const CONDITIONS: [Condition; 9] = [
    Condition {
        name: "status",
        query: || "&status=error".to_owned(),
        matches: |thread| thread.status == ThreadStatus::Error,
        reads_contents: false,
    },
    Condition {
        name: "app",
        query: || "&app=support".to_owned(),
        matches: |thread| thread.app == "support",
        reads_contents: false,
    },
    Condition {
        name: "tenant",
        query: || format!("&tenant={}", tenant_name(TENANT)),
        matches: |thread| thread.tenant == TENANT,
        reads_contents: false,
    },
    Condition {
        name: "app, tenant and status",
        query: || format!("&app=support&status=interrupted&tenant={}", tenant_name(TENANT)),
        matches: |thread| {
            thread.app == "support"
                && thread.status == ThreadStatus::Interrupted
                && thread.tenant == TENANT
        },
        reads_contents: false,
    },
    Condition {
        name: "rare failure",
        query: || format!("&failure={RARE_FAILURE}"),
        matches: |thread| thread.failure == Some(RARE_FAILURE),
        reads_contents: false,
    },
    Condition {
        name: "text, one thread in ten",
        query: || "&text=lisbon".to_owned(),
        matches: |thread| thread.city == "Lisbon",
        reads_contents: true,
    },
    Condition {
        name: "text, no thread",
        query: || format!("&{ABSENT_TEXT}"),
        matches: |_| false,
        reads_contents: true,
    },
    Condition {
        name: "metadata, one thread in 1,000",
        // The percent-encoded JSON object `{"customer_id": 275}`.
        query: || format!("&metadata=%7B%22customer_id%22%3A{CUSTOMER}%7D"),
        matches: |thread| thread.customer == CUSTOMER,
        reads_contents: true,
    },
    Condition {
        name: "time of update, 1,000 threads",
        query: || {
            let (from, to) = (updated_ms(UPDATED.end - 1), updated_ms(UPDATED.start));
            format!("&updated_from_ms={from}&updated_to_ms={to}")
        },
        matches: |thread| UPDATED.contains(&thread.number),
        reads_contents: false,
    },
];

/// A text that no thread has, as a parameter.
const ABSENT_TEXT: &str = "text=no-such-text";

impl Condition {
    /// Returns the request for the first page of matching threads.
    fn list(&self, threads: &[Fields]) -> Case {
        let examined = if self.reads_contents { SEARCH_RECORDS } else { usize::MAX };
        let found = threads.iter().take(examined).filter(|thread| (self.matches)(thread));
        let items = found.take(PAGE_THREADS).count() as u64;
        Case::get(format!("threads: {}", self.name), list_path(&(self.query)()), items)
    }

    /// Returns the request for the number of matching threads.
    fn count(&self, threads: &[Fields]) -> Case {
        let found = threads.iter().filter(|thread| (self.matches)(thread)).count() as u64;
        // The store decides in which order it examines threads for a count.
        let is_complete = !self.reads_contents || threads.len() <= SEARCH_RECORDS;
        let query = (self.query)();
        let path = format!("/api/v1/thread-counts?{}", query.trim_start_matches('&'));
        Case::get(format!("counts: {}", self.name), path, is_complete.then_some(found))
    }
}

/// Returns the request for a text that no thread has, with the requests that continue it until all
/// threads are examined.
fn all_pages_of_a_search() -> Case {
    Case {
        name: "threads: text, no thread, to the end".to_owned(),
        request: Request::AllPages(list_path(&format!("&{ABSENT_TEXT}"))),
        items: Some(0),
    }
}

/// Returns the requests for the first page of the runs of all threads, and for their number. Each
/// thread has one run.
fn runs(threads: &[Fields]) -> [Case; 5] {
    let path = format!("/api/v1/runs?limit={PAGE_THREADS}");
    let on_page = |runs: usize| runs.min(PAGE_THREADS) as u64;
    let of_tenant = threads.iter().filter(|thread| thread.tenant == TENANT).count();
    let tenant = format!("{path}&tenant={}", tenant_name(TENANT));
    let counts = "/api/v1/run-counts".to_owned();
    let counts_of_tenant = format!("{counts}?tenant={}", tenant_name(TENANT));
    let absent = format!("{path}&{ABSENT_TEXT}");
    [
        Case::get("runs: first page", path, on_page(threads.len())),
        Case::get("runs: tenant", tenant, on_page(of_tenant)),
        Case::get("runs: text, no run", absent, on_page(0)),
        Case::get("run counts", counts, threads.len() as u64),
        Case::get("run counts: tenant", counts_of_tenant, of_tenant as u64),
    ]
}

/// Returns the requests for the log of the long run.
fn log(plan: Plan) -> Result<Vec<Case>> {
    let (thread, run) = (thread_id(plan.long_thread())?, run_id(plan.long_thread())?);
    let path = |query: &str| format!("/api/v1/threads/{thread}/log?{query}");
    let all = events_of_run(plan.calls);
    let middle = all / 2;
    let outlines = path(&format!("outline=true&run={run}&limit={PAGE_EVENTS}"));
    let later = format!("{outlines}&after={middle}");
    let before_result = seq_of_result(plan.calls / 2) - 1;
    let result = path(&format!("limit=1&after={before_result}"));
    let in_full = path(&format!("run={run}&limit={PAGE_EVENTS}"));
    let first = all.min(PAGE_EVENTS);
    Ok(vec![
        Case::get("log: first page of outlines", outlines.clone(), first),
        Case::get("log: page of outlines in the middle", later, (all - middle).min(PAGE_EVENTS)),
        Case {
            name: "log: outlines, all pages".to_owned(),
            request: Request::AllPages(outlines),
            items: Some(all),
        },
        Case::get("log: first page of events in full", in_full, first),
        Case::get("log: one event in full", result, 1),
    ])
}

/// Returns the searches by a client of the Agent Server.
fn agent_server(threads: &[Fields]) -> [Case; 2] {
    let matching =
        |thread: &&Fields| thread.status == ThreadStatus::Error && thread.customer == CUSTOMER;
    let search = |name: &str, body: Value, found: usize| Case {
        name: format!("agent server: {name}"),
        request: Request::Post("/threads/search", body),
        items: Some(found.min(FOUND_THREADS) as u64),
    };
    let selected = json!({ "limit": FOUND_THREADS, "status": "error", "metadata": { "customer_id": CUSTOMER } });
    [
        search("newest threads", json!({ "limit": FOUND_THREADS }), threads.len()),
        search("status and metadata", selected, threads.iter().filter(matching).count()),
    ]
}
