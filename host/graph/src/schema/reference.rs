//! Resolution of `$ref`, which may refer only to parts of the same document.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::error::SchemaError;

/// The document in which references are resolved.
pub(super) struct Document<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
}

impl<'s> Document<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root, anchors: anchors(root) }
    }

    /// Returns the part that a reference names.
    pub(super) fn find(&self, reference: &str) -> Result<&'s Value, SchemaError> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(SchemaError::Broken(format!(
                "the schema refers to `{reference}`, which is not a part of it: only references \
                 that begin with `#` are followed"
            )));
        };
        let found = match fragment {
            "" => Some(self.root),
            _ if fragment.starts_with('/') => {
                decoded(fragment).and_then(|pointer| self.root.pointer(&pointer))
            }
            _ => self.anchors.get(fragment).copied(),
        };
        found.ok_or_else(|| {
            SchemaError::Broken(format!("the schema refers to `{reference}`, which does not exist"))
        })
    }
}

/// Returns the parts that have an anchor: `$anchor`, `$dynamicAnchor`, or an `$id` of an older
/// draft that is a fragment.
pub fn anchors(root: &Value) -> HashMap<&str, &Value> {
    let mut anchors = HashMap::new();
    collect(root, &mut anchors);
    anchors
}

fn collect<'s>(value: &'s Value, anchors: &mut HashMap<&'s str, &'s Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, anchors)),
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            let old = |key: &str| text(key).and_then(|id| id.strip_prefix('#'));
            let names = [text("$anchor"), text("$dynamicAnchor"), old("$id"), old("id")];
            anchors.extend(names.into_iter().flatten().map(|name| (name, value)));
            fields.values().for_each(|item| collect(item, anchors));
        }
        _ => {}
    }
}

/// Decodes the percent-encoding of a fragment; `None` if it is malformed.
pub fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
