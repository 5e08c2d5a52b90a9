//! The app's settings with their defaults, and the current time in the time zone of a setting.

use std::collections::BTreeMap;

use wattle_plugin::clock::{ZoneSetting, Zoned};
use wattle_plugin::prelude::{Failure, settings};

/// Default confidence below which a message counts as chat.
const THRESHOLD: f64 = 0.7;

/// Default number of user messages of a session in a request to the model.
const HISTORY_MESSAGES: u32 = 4;

/// Default model of a request that names none.
const MODEL_INTENT: &str = "qwen-plus";

/// Default number of rows that are kept. State and events contain them, so they take space.
const RESULT_ROWS: usize = 1_000;

/// Default time in hours for which a CSV file can be downloaded.
const RETENTION_HOURS: u32 = 72;

/// Default schema of the business tables on PostgreSQL.
const BUSINESS_SCHEMA: &str = "public";

/// Default admin of a request that names none.
const DEFAULT_ADMIN: i64 = 1;

/// Time zone of the current date and of stored times.
const ZONE: ZoneSetting = ZoneSetting::new("time_zone");

pub(crate) fn threshold() -> Result<f64, Failure> {
    Ok(settings::get("threshold")?.unwrap_or(THRESHOLD))
}

pub(crate) fn history_messages() -> Result<u32, Failure> {
    Ok(settings::get("history_messages")?.unwrap_or(HISTORY_MESSAGES))
}

pub(crate) fn result_rows() -> Result<usize, Failure> {
    Ok(settings::get::<usize>("result_rows")?.unwrap_or(RESULT_ROWS).max(1))
}

pub(crate) fn retention_hours() -> Result<u32, Failure> {
    Ok(settings::get("download_retention_hours")?.unwrap_or(RETENTION_HOURS))
}

pub(crate) fn formula_guard() -> Result<bool, Failure> {
    Ok(settings::get("csv_formula_guard")?.unwrap_or(true))
}

pub(crate) fn default_admin() -> Result<i64, Failure> {
    Ok(settings::get("default_admin_id")?.unwrap_or(DEFAULT_ADMIN))
}

pub(crate) fn business_schema() -> Result<String, Failure> {
    settings::text_or("business_schema", BUSINESS_SCHEMA)
}

/// Returns the current time in the app's time zone.
pub(crate) fn now() -> Result<Zoned, Failure> {
    ZONE.now()
}

/// Returns the tables that questions may be about; if empty, all granted tables.
pub(crate) fn business_tables() -> Result<Vec<String>, Failure> {
    Ok(settings::get("business_tables")?.unwrap_or_default())
}

/// Returns the example questions for a page.
pub(crate) fn suggestions() -> Result<Vec<String>, Failure> {
    Ok(settings::get("suggestions")?.unwrap_or_default())
}

/// Returns the name of the model for requests that name none.
pub(crate) fn default_model() -> Result<String, Failure> {
    settings::text_or("llm_model_intent", MODEL_INTENT)
}

/// Returns the name of the model that writes SQL. The setting takes precedence over the model of
/// the request.
pub(crate) fn sql_model(state_model: &str) -> Result<String, Failure> {
    settings::text_or("llm_model_sql_generation", state_model)
}

/// Returns the models that a request may name, with their routes.
pub(crate) fn models() -> Result<BTreeMap<String, String>, Failure> {
    Ok(settings::get("models")?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{BUSINESS_SCHEMA, MODEL_INTENT, business_schema, default_model, now, sql_model};
    use crate::testing::host;

    #[test]
    fn setting_selects_the_model_for_sql() {
        let host = host().setting("llm_model_sql_generation", json!("qwen3-coder-plus"));
        assert_eq!(host.run(|| sql_model("other")).unwrap(), "qwen3-coder-plus");
        let host = host_without();
        assert_eq!(host.run(|| sql_model("other")).unwrap(), "other");
    }

    #[test]
    fn blank_settings_have_their_defaults() {
        let host = host().setting("business_schema", "").setting("llm_model_intent", " ");
        assert_eq!(host.run(business_schema).unwrap(), BUSINESS_SCHEMA);
        assert_eq!(host.run(default_model).unwrap(), MODEL_INTENT);
    }

    #[test]
    fn times_include_the_offset() {
        let now = host().run(now).unwrap();
        assert_eq!(now.civil.date(), "2025-01-15");
        assert_eq!(now.iso(), "2025-01-15T10:30:45+08:00");
        assert_eq!(now.civil.digits(), "20250115103045");
    }

    fn host_without() -> wattle_plugin::testing::FakeHost {
        host().setting("llm_model_sql_generation", json!(""))
    }
}
