//! The bodies of requests. Unknown fields are ignored, as on other Agent Servers. A request with an
//! invalid value is rejected before anything is changed.

mod assistant;
mod command;
mod cron;
mod mode;
mod run;
mod search;
mod several;
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
pub use self::command::{Command, Goto};
pub use self::cron::{CRON_ID, CronCreate, CronPatch, CronSearch, run_of};
pub use self::mode::Modes;
pub use self::run::{
    CancelAction, CancelRuns, Completion, Config, Disconnect, IfMissing, Multitask, Nodes,
    RunCreate,
};
pub use self::search::{RunStatusFilter, SortOrder, ThreadCount, ThreadPrune, ThreadSearch};
pub use self::several::{at_most, at_most_if_any};
pub use self::store::{
    Index, ItemPlace, ItemPut, ItemSearch, NamespaceSearch, check_labels, labels_of,
};
pub use self::thread::{
    Before, HistoryRequest, IfExists, StateRequest, StateUpdate, Superstep, ThreadCreate,
    ThreadPatch, TtlWish, UpdateInput,
};

/// The reason why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The request is malformed (status 422).
    #[error("{0}")]
    Schema(String),
    /// The values cannot be combined (status 400).
    #[error("{0}")]
    Value(String),
}

impl From<UnknownMode> for Invalid {
    fn from(unknown: UnknownMode) -> Self {
        Self::Schema(unknown.to_string())
    }
}

impl From<SubscriptionError> for Invalid {
    fn from(error: SubscriptionError) -> Self {
        Self::Value(error.to_string())
    }
}

impl From<JsonLimit> for Invalid {
    fn from(exceeded: JsonLimit) -> Self {
        Self::Schema(format!("the request cannot be read: {exceeded}"))
    }
}

/// Parses the body of a request within the default budget, see [`parse_within`].
///
/// # Errors
///
/// As for [`parse_within`].
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    parse_within(body, &JsonBudget::default())
}

/// Parses the body of a request. An empty body is read as an empty object. Unpaired surrogates are
/// accepted, see [`lenient::parse_request`].
///
/// # Errors
///
/// [`Invalid::Schema`], with the path of the invalid value, or with the limit of the budget.
pub fn parse_within<T: DeserializeOwned>(body: &[u8], budget: &JsonBudget) -> Result<T, Invalid> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    lenient::parse_request(body, budget, |body| read(body, budget))
}

fn read<T: DeserializeOwned>(body: &[u8], budget: &JsonBudget) -> Result<T, Invalid> {
    let mut document = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(StructFromMap(budget.bound(&mut document)));
    let read = read.map_err(|error| {
        let place = error.path().to_string();
        let what = error.into_inner();
        Invalid::Schema(match place.as_str() {
            _ if what.is_syntax() || what.is_eof() => format!("the request is not JSON: {what}"),
            "." => format!("the request cannot be read: {what}"),
            place => format!("`{place}` of the request cannot be read: {what}"),
        })
    })?;
    let rest = document.end();
    rest.map_err(|error| Invalid::Schema(format!("the request cannot be read: {error}")))?;
    Ok(read)
}

#[cfg(test)]
mod tests;
