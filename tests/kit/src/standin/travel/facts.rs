//! The JSON values in a prompt, independent of the surrounding text.

use serde_json::{Map, Value};

/// Maximum number of JSON values that are read from a prompt. The prompt of a page has a handful.
const MAX_DOCUMENTS: usize = 256;

/// The objects in all JSON values of a text, outer ones first.
#[derive(Debug, Default)]
pub(super) struct Facts {
    objects: Vec<Map<String, Value>>,
}

impl Facts {
    /// Parses a prompt.
    pub(super) fn read(text: &str) -> Self {
        let mut facts = Self::default();
        for document in documents(text) {
            facts.collect(document);
        }
        facts
    }

    /// Returns the first string under one of these keys, in an object that is not a block.
    pub(super) fn text(&self, keys: &[&str]) -> Option<&str> {
        let mut whole = self.objects.iter().filter(|object| !object.contains_key("block_id"));
        whole.find_map(|object| keys.iter().find_map(|key| object.get(*key)?.as_str()))
    }

    /// Returns objects with a `block_id` and this key, one per id, in order.
    pub(super) fn of_blocks(&self, key: &str) -> Vec<&Map<String, Value>> {
        let mut found: Vec<&Map<String, Value>> = Vec::new();
        for object in self.objects.iter().filter(|object| object.contains_key(key)) {
            let id = object.get("block_id");
            if id.is_some() && found.iter().all(|known| known.get("block_id") != id) {
                found.push(object);
            }
        }
        found
    }

    /// Returns true if an object has arrays under all of these keys.
    pub(super) fn has_lists(&self, keys: &[&str]) -> bool {
        let has = |object: &Map<String, Value>, key| object.get(key).is_some_and(Value::is_array);
        self.objects.iter().any(|object| keys.iter().all(|key| has(object, *key)))
    }

    fn collect(&mut self, document: Value) {
        match document {
            Value::Array(items) => {
                for item in items {
                    self.collect(item);
                }
            }
            Value::Object(object) => {
                let inner: Vec<Value> = object.values().cloned().collect();
                self.objects.push(object);
                for value in inner {
                    self.collect(value);
                }
            }
            _ => {}
        }
    }
}

/// Returns the arrays and objects in a text.
fn documents(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']).filter(|_| found.len() < MAX_DOCUMENTS) {
        rest = &rest[start..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let skipped = match stream.next() {
            Some(Ok(document)) => {
                found.push(document);
                stream.byte_offset()
            }
            _ => 1,
        };
        rest = &rest[skipped..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Facts;

    #[test]
    fn json_values_are_found_among_words() {
        let facts = Facts::read(
            "Video: {\"title\": \"Tokyo\", \"a\": 1}\n\
             Blocks [not json] [{\"block_id\": \"x\", \"title\": \"Tower\"}] and \
             {\"images\": [{\"block_id\": \"x\", \"image_url\": \"https://a/b\"}]}.",
        );
        assert_eq!(facts.text(&["title"]), Some("Tokyo"));
        assert_eq!(facts.of_blocks("title")[0]["title"], "Tower");
        assert_eq!(facts.of_blocks("image_url").len(), 1);
        assert_eq!(facts.text(&["location"]), None);
    }
}
