//! Requests about crons.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_api::body::struct_from_map::StructFromMap;

use super::{OnCompletion, RequestError, RunCreate, SortOrder};

/// Name of the field that contains the id of a cron. In the run request of the cron, it is a key of
/// `config.configurable`; in its runs, a key of `metadata`.
pub const CRON_ID: &str = "cron_id";

/// Fields of a cron request that are not part of the run request.
const CRON_FIELDS: &[&str] =
    &["schedule", "timezone", "end_time", "enabled", "on_run_completed", "thread_id", CRON_ID];

/// A new cron.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronCreate {
    /// Schedule with five fields, as in `crontab`.
    #[schema(required = true, example = "0 9 * * 1-5")]
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Berlin`. The default is UTC.
    pub timezone: Option<String>,
    /// Time after which no run is created.
    pub end_time: Option<String>,
    /// Whether runs are created. The default is `true`.
    pub enabled: Option<bool>,
    /// What happens to the thread of a stateless run after the run has ended.
    pub on_run_completed: Option<OnCompletion>,
    /// Run request from which each run is created.
    #[serde(flatten)]
    #[schema(value_type = RunCreate)]
    pub payload: Map<String, Value>,
}

impl CronCreate {
    /// Returns the run request of the cron, without `null` values.
    pub fn payload(&self) -> Map<String, Value> {
        payload(&self.payload)
    }
}

/// A change of a cron. Missing fields keep their values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronPatch {
    /// Schedule with five fields, as in `crontab`.
    pub schedule: Option<String>,
    /// Time zone of the schedule. `null` selects UTC.
    #[serde(deserialize_with = "double_option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub timezone: Option<Option<String>>,
    /// Time after which no run is created. `null` removes it.
    #[serde(deserialize_with = "double_option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub end_time: Option<Option<String>>,
    /// Whether runs are created.
    pub enabled: Option<bool>,
    /// What happens to the thread of a stateless run after the run has ended.
    pub on_run_completed: Option<OnCompletion>,
    /// Changed fields of the run request.
    #[serde(flatten)]
    pub payload: Map<String, Value>,
}

impl CronPatch {
    /// Returns the changed fields of the run request.
    pub fn payload(&self) -> Map<String, Value> {
        payload(&self.payload)
    }
}

/// Deserializes a present field, so that `null` differs from a missing field.
#[expect(clippy::option_option, reason = "missing, `null`, or a value")]
fn double_option<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn payload(fields: &Map<String, Value>) -> Map<String, Value> {
    let given =
        fields.iter().filter(|(name, value)| !value.is_null() && !CRON_FIELDS.contains(&&***name));
    let mut given: Map<String, Value> =
        given.map(|(name, value)| (name.clone(), value.clone())).collect();
    // Clients send back the settings that they have read, with the id of the cron. The id is not
    // part of the run context.
    let config = given.get_mut("config").and_then(Value::as_object_mut);
    let configurable = config.and_then(|config| config.get_mut("configurable"));
    if let Some(Value::Object(configurable)) = configurable {
        configurable.remove(CRON_ID);
    }
    given
}

/// Parses the payload of a cron as a run request.
///
/// # Errors
///
/// [`RequestError`] if the payload is not a run request.
pub fn parse_run(payload: &Map<String, Value>) -> Result<RunCreate, RequestError> {
    let document = Value::Object(payload.clone());
    let read: Result<RunCreate, _> = serde_path_to_error::deserialize(StructFromMap(document));
    let run = read.map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner().to_string());
        RequestError::Unprocessable(format!("`{path}` of the request cannot be read: {why}"))
    })?;
    run.check()?;
    Ok(run)
}

/// A search for crons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CronSearch {
    /// Only crons of this assistant.
    pub assistant_id: Option<String>,
    /// Only crons on this thread.
    pub thread_id: Option<String>,
    /// Only enabled or only disabled crons.
    pub enabled: Option<bool>,
    /// Metadata that a cron must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Maximum number of crons. The default is 10.
    #[schema(minimum = 1)]
    pub limit: Option<usize>,
    /// Number of crons to skip.
    pub offset: Option<usize>,
    /// Field to sort by: `cron_id`, `assistant_id`, `thread_id`, `created_at` (the default),
    /// `updated_at`, `next_run_date` or `end_time`.
    #[schema(
        pattern = "^((cron|assistant|thread)_id|(created|updated)_at|next_run_date|end_time)$"
    )]
    pub sort_by: Option<String>,
    /// Sort order. The default is `desc`.
    pub sort_order: Option<SortOrder>,
    /// Fields to return of each cron.
    pub select: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::request::parse;

    #[test]
    fn payload_has_only_fields_of_the_run_request() {
        let text = json!({
            "assistant_id": "a", "schedule": "* * * * *", "input": {}, "config": null,
            "enabled": false, "on_run_completed": "keep", "thread_id": "t",
        });
        let cron: CronCreate = parse(text.to_string().as_bytes()).unwrap();
        assert_eq!(
            cron.payload(),
            json!({ "assistant_id": "a", "input": {} }).as_object().unwrap().clone()
        );
        assert_eq!(cron.on_run_completed, Some(OnCompletion::Keep));
        let run = parse_run(&cron.payload()).unwrap();
        assert_eq!(run.assistant_id, "a");
    }

    #[test]
    fn cron_id_is_not_part_of_the_run_context() {
        let text = json!({
            "assistant_id": "a", "context": { "user": "u" },
            "config": { "configurable": { "cron_id": "c" }, "tags": ["t"] },
        });
        let change: CronPatch = parse(text.to_string().as_bytes()).unwrap();
        assert_eq!(change.payload()["config"], json!({ "configurable": {}, "tags": ["t"] }));
        assert_eq!(parse_run(&change.payload()).unwrap().run_context(), json!({ "user": "u" }));
    }

    #[test]
    fn patch_distinguishes_null_from_missing() {
        let change: CronPatch = parse(br#"{"end_time": null}"#).unwrap();
        assert_eq!((change.end_time, change.timezone), (Some(None), None));
        let change: CronPatch = parse(br#"{"timezone": "UTC", "input": {"a": 1}}"#).unwrap();
        assert_eq!(change.timezone, Some(Some("UTC".to_owned())));
        assert_eq!(change.payload()["input"], json!({ "a": 1 }));
    }

    #[test]
    fn error_of_an_invalid_payload_names_the_field() {
        let payload = |value: Value| value.as_object().unwrap().clone();
        let odd = payload(json!({ "assistant_id": "a", "interrupt_before": 7 }));
        assert!(parse_run(&odd).unwrap_err().to_string().contains("interrupt_before"));
        assert!(parse_run(&payload(json!({ "input": {} }))).is_err());
    }
}
