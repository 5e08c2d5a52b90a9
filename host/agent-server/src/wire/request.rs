//! The bodies of requests. Unknown fields are ignored, as on other Agent Servers. A request with an
//! invalid value is rejected before anything is changed.

mod assistant;
mod bounded_list;
mod command;
mod cron;
mod messages;
mod mode;
mod run;
mod search;
mod store;
mod thread;

use serde::de::DeserializeOwned;
use wattle_api::body::struct_from_map::StructFromMap;
use wattle_project::agent_server::mode::UnknownMode;
use wattle_project::agent_server::v2::SubscriptionError;
use wattle_run::json::bounded::{JsonBudget, JsonLimit};
use wattle_run::json::lenient;

pub use self::assistant::{
    AssistantCount, AssistantCreate, AssistantLatest, AssistantPatch, AssistantSearch,
    AssistantVersions, normalize_context,
};
pub use self::bounded_list::{at_most, at_most_opt};
pub use self::command::{Goto, RunCommand};
pub use self::cron::{CRON_ID, CronCreate, CronPatch, CronSearch, parse_run};
pub use self::mode::Modes;
pub use self::run::{
    CancelAction, CancelRuns, Config, IfNotExists, Multitask, NodeSelection, OnCompletion,
    OnDisconnect, RunCreate,
};
pub use self::search::{RunStatusFilter, SortOrder, ThreadCount, ThreadPrune, ThreadSearch};
pub use self::store::{
    Index, ItemKey, ItemPut, ItemSearch, NamespaceSearch, check_labels, split_labels,
};
pub use self::thread::{
    Before, HistoryRequest, IfExists, StateRequest, StateUpdate, Superstep, ThreadCreate,
    ThreadPatch, TtlInput, UpdateInput,
};

/// The reason why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request is malformed (status 422).
    #[error("{0}")]
    Unprocessable(String),
    /// The values cannot be combined (status 400).
    #[error("{0}")]
    BadRequest(String),
}

impl From<UnknownMode> for RequestError {
    fn from(unknown: UnknownMode) -> Self {
        Self::Unprocessable(unknown.to_string())
    }
}

impl From<SubscriptionError> for RequestError {
    fn from(error: SubscriptionError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<JsonLimit> for RequestError {
    fn from(exceeded: JsonLimit) -> Self {
        Self::Unprocessable(format!("the request cannot be read: {exceeded}"))
    }
}

/// Parses the body of a request within the default budget, see [`parse_within`].
///
/// # Errors
///
/// The errors of [`parse_within`].
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestError> {
    parse_within(body, &JsonBudget::default())
}

/// Parses the body of a request. An empty body is read as an empty object. Unpaired surrogates are
/// accepted, see [`lenient::parse_request`].
///
/// # Errors
///
/// [`RequestError::Unprocessable`], with the path of the invalid value, or with the limit of the
/// budget.
pub fn parse_within<T: DeserializeOwned>(
    body: &[u8],
    budget: &JsonBudget,
) -> Result<T, RequestError> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    lenient::parse_request(body, budget, |body| read(body, budget))
}

fn read<T: DeserializeOwned>(body: &[u8], budget: &JsonBudget) -> Result<T, RequestError> {
    let mut document = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(StructFromMap(budget.bound(&mut document)));
    let read = read.map_err(|error| {
        let path = error.path().to_string();
        let what = error.into_inner();
        RequestError::Unprocessable(match path.as_str() {
            _ if what.is_syntax() || what.is_eof() => format!("the request is not JSON: {what}"),
            "." => format!("the request cannot be read: {what}"),
            path => format!("`{path}` of the request cannot be read: {what}"),
        })
    })?;
    let rest = document.end();
    rest.map_err(|error| {
        RequestError::Unprocessable(format!("the request cannot be read: {error}"))
    })?;
    Ok(read)
}

#[cfg(test)]
mod tests;
