//! Implements `settings` with the script.

use serde_json::Value;

use crate::testing::answer::infallible;

pub(crate) fn get(name: &str) -> Option<String> {
    infallible(|state| state.settings.get(name).map(Value::to_string))
}

pub(crate) fn all() -> String {
    infallible(|state| Value::Object(state.settings.clone()).to_string())
}
