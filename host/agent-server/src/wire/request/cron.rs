//! Runs that come again: what clients ask for.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_api::body::objects::Objects;

use super::{Completion, Invalid, RunCreate, SortOrder};

/// Fields of a request that are not those of a run.
const OWN: &[&str] =
    &["schedule", "timezone", "end_time", "enabled", "on_run_completed", "thread_id", "cron_id"];

/// Runs that are to come again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronCreate {
    /// When, as five fields.
    #[schema(required = true, example = "0 9 * * 1-5")]
    pub schedule: String,
    /// In which zone; UTC without it.
    pub timezone: Option<String>,
    /// Not after that.
    pub end_time: Option<String>,
    /// Whether they come at all.
    pub enabled: Option<bool>,
    /// What happens at their ends to threads of their own.
    pub on_run_completed: Option<Completion>,
    /// What is asked for each time, as for a run.
    #[serde(flatten)]
    #[schema(value_type = RunCreate)]
    pub payload: Map<String, Value>,
}

impl CronCreate {
    /// What is asked for each time, without what is `null`.
    pub fn payload(&self) -> Map<String, Value> {
        payload(&self.payload)
    }
}

/// What is to change; what is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronPatch {
    /// When, as five fields.
    pub schedule: Option<String>,
    /// In which zone; `null` stands for UTC.
    #[serde(deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub timezone: Option<Option<String>>,
    /// Not after that; `null` takes the end away.
    #[serde(deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub end_time: Option<Option<String>>,
    /// Whether they come at all.
    pub enabled: Option<bool>,
    /// What happens at their ends to threads of their own.
    pub on_run_completed: Option<Completion>,
    /// Fields of the run.
    #[serde(flatten)]
    pub payload: Map<String, Value>,
}

impl CronPatch {
    /// Fields of the run that change.
    pub fn payload(&self) -> Map<String, Value> {
        payload(&self.payload)
    }
}

/// Whether a field is named, also with `null`.
#[expect(clippy::option_option, reason = "not named, named with `null`, named with a value")]
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn payload(fields: &Map<String, Value>) -> Map<String, Value> {
    let given = fields.iter().filter(|(name, value)| !value.is_null() && !OWN.contains(&&***name));
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The run that a payload asks for.
///
/// # Errors
///
/// [`Invalid`] if it asks for none.
pub fn run_of(payload: &Map<String, Value>) -> Result<RunCreate, Invalid> {
    let document = Value::Object(payload.clone());
    let read: Result<RunCreate, _> = serde_path_to_error::deserialize(Objects(document));
    let run = read.map_err(|error| {
        let (place, why) = (error.path().to_string(), error.inner().to_string());
        Invalid::Schema(format!("`{place}` of the request cannot be read: {why}"))
    })?;
    run.check()?;
    Ok(run)
}

/// Which are looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronSearch {
    /// Only of this assistant.
    pub assistant_id: Option<String>,
    /// Only on this thread.
    pub thread_id: Option<String>,
    /// Only those that come, or do not.
    pub enabled: Option<bool>,
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
    /// `cron_id`, `assistant_id`, `thread_id`, `created_at`, `updated_at`, `next_run_date` or
    /// `end_time`.
    #[schema(
        pattern = "^((cron|assistant|thread)_id|(created|updated)_at|next_run_date|end_time)$"
    )]
    pub sort_by: Option<String>,
    /// Which end comes first.
    pub sort_order: Option<SortOrder>,
    /// Only these fields of each.
    pub select: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::request::parse;

    #[test]
    fn what_is_of_the_run_is_its_payload() {
        let text = json!({
            "assistant_id": "a", "schedule": "* * * * *", "input": {}, "config": null,
            "enabled": false, "on_run_completed": "keep", "thread_id": "t",
        });
        let cron: CronCreate = parse(text.to_string().as_bytes()).unwrap();
        assert_eq!(
            cron.payload(),
            json!({ "assistant_id": "a", "input": {} }).as_object().unwrap().clone()
        );
        assert_eq!(cron.on_run_completed, Some(Completion::Keep));
        let run = run_of(&cron.payload()).unwrap();
        assert_eq!(run.assistant_id, "a");
    }

    #[test]
    fn a_change_tells_null_from_nothing() {
        let change: CronPatch = parse(br#"{"end_time": null}"#).unwrap();
        assert_eq!((change.end_time, change.timezone), (Some(None), None));
        let change: CronPatch = parse(br#"{"timezone": "UTC", "input": {"a": 1}}"#).unwrap();
        assert_eq!(change.timezone, Some(Some("UTC".to_owned())));
        assert_eq!(change.payload()["input"], json!({ "a": 1 }));
    }

    #[test]
    fn a_payload_that_is_no_run_says_where() {
        let payload = |value: Value| value.as_object().unwrap().clone();
        let odd = payload(json!({ "assistant_id": "a", "interrupt_before": 7 }));
        assert!(run_of(&odd).unwrap_err().to_string().contains("interrupt_before"));
        assert!(run_of(&payload(json!({ "input": {} }))).is_err());
    }
}
