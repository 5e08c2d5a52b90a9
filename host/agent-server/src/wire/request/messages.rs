//! The messages of inputs and updates.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wattle_project::agent_server::message::{ReadContext, from_wire_all};

use super::RequestError;

/// Converts the messages of an input or an update to the format of the host. Other channels are not
/// changed.
///
/// # Errors
///
/// [`RequestError::Unprocessable`] for the first invalid message.
pub(super) fn convert_messages(
    values: &Value,
    channels: &BTreeSet<String>,
    context: &mut ReadContext<'_>,
) -> Result<Value, RequestError> {
    let Value::Object(values) = values else { return Ok(values.clone()) };
    let convert = |(name, value): (&String, &Value)| {
        if !channels.contains(name) || value.is_null() {
            return Ok((name.clone(), value.clone()));
        }
        let messages = from_wire_all(value, context);
        let messages =
            messages.map_err(|why| RequestError::Unprocessable(format!("`{name}`: {why}")))?;
        Ok((name.clone(), messages))
    };
    values.iter().map(convert).collect::<Result<Map<_, _>, _>>().map(Value::Object)
}
