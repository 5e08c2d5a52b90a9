//! The size of provider state.

use serde_json::Value;

/// Maximum bytes of the state of one response. Signatures and encrypted reasoning have some ten
/// KiB; pages that the provider's own tools found have some hundred KiB. The journal stores the
/// whole state.
pub(in crate::provider) const MAX_STATE_BYTES: usize = 4 << 20;

/// Bytes that each value counts for besides its text. A value without a text takes about ten times
/// as many bytes in memory, so this number bounds the memory of a state with many small values.
const VALUE_BYTES: usize = 8;

/// Maximum nesting depth of a value in the state.
const MAX_STATE_DEPTH: usize = 32;

/// The size of the state of one response.
#[derive(Debug, Default)]
pub(in crate::provider) struct StateSize(usize);

impl StateSize {
    /// Returns the bytes so far.
    pub(in crate::provider) fn bytes(&self) -> usize {
        self.0
    }

    /// Counts fields.
    ///
    /// # Errors
    ///
    /// Fails if the fields are nested too deep, or if the state becomes too large.
    pub(in crate::provider) fn add_fields<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), String> {
        fields.into_iter().try_for_each(|(name, value)| self.add(name.len() + approx_bytes(value)?))
    }

    /// Counts a value.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`add_fields`](Self::add_fields).
    pub(in crate::provider) fn add_value(&mut self, value: &Value) -> Result<(), String> {
        self.add(approx_bytes(value)?)
    }

    /// Counts bytes.
    ///
    /// # Errors
    ///
    /// Fails if the state becomes too large.
    pub(in crate::provider) fn add(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MAX_STATE_BYTES {
            return Err(format!(
                "its provider-specific fields have more than {MAX_STATE_BYTES} bytes"
            ));
        }
        Ok(())
    }
}

/// Returns the approximate size of a value: the bytes of its strings and names, and
/// [`VALUE_BYTES`] for itself and for each value in it.
///
/// # Errors
///
/// Fails if the value is nested too deep.
pub(in crate::provider) fn approx_bytes(value: &Value) -> Result<usize, String> {
    fn inner(value: &Value, depth: usize) -> Result<usize, String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!(
                "a provider-specific field has more than {MAX_STATE_DEPTH} levels"
            ));
        };
        let inside: usize = match value {
            Value::String(text) => text.len(),
            Value::Array(items) => {
                items.iter().map(|item| inner(item, depth)).sum::<Result<usize, String>>()?
            }
            Value::Object(fields) => {
                let sizes = fields.iter().map(|(name, it)| Ok(name.len() + inner(it, depth)?));
                sizes.sum::<Result<usize, String>>()?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        Ok(VALUE_BYTES + inside)
    }
    inner(value, MAX_STATE_DEPTH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn provider_state_is_bounded() {
        let deep = (0..MAX_STATE_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let mut own = StateSize::default();
        let refused = own.add_fields(json!({ "a": deep }).as_object().unwrap()).unwrap_err();
        assert!(refused.contains("levels"), "{refused}");
        let mut own = StateSize::default();
        let text = "x".repeat(MAX_STATE_BYTES - 1 - 2 * VALUE_BYTES);
        own.add_value(&json!({ "a": text })).unwrap();
        assert_eq!(own.bytes(), MAX_STATE_BYTES);
        let refused = own.add(1).unwrap_err();
        assert!(refused.contains("4194304 bytes"), "{refused}");
    }

    #[test]
    fn small_values_count() {
        for value in [json!([]), json!({}), json!(""), json!(0), json!(null)] {
            let refused = StateSize::default().add_value(&json!(vec![value.clone(); 600_000]));
            assert!(refused.is_err(), "{value}");
        }
    }
}
