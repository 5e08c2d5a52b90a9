//! The model for the tasks of the application `travel`: blocks of a guide, queries for places, a
//! plan for images, and the page. The schema of the response identifies a task. A page has no
//! schema and is identified by its blocks and images. The input of a task is in the user messages.

mod blocks;
mod facts;
mod page;
mod plan;

use serde_json::Value;

use super::question::{Question, Speaker};
use super::sample;
use facts::Facts;

/// Fields of the items in a plan for images.
const PICTURE: [&str; 4] = ["block_id", "query", "prompt", "alt"];

/// Returns the response for a task and its name, or `None` for other applications.
pub(super) fn answer(question: &Question, schema: &Value) -> Option<(String, &'static str)> {
    let users = question.turns.iter().filter(|turn| turn.speaker == Speaker::User);
    let text = users.map(|turn| turn.text.as_str()).collect::<Vec<_>>().join("\n");
    let form = Form::of(schema);
    if form.has("blocks") && form.has("spot_blocks") {
        return Some((blocks::answer(&text).to_string(), "travel blocks"));
    }
    if form.has("spot_queries") {
        let queries = plan::queries(&Facts::read(&text), schema);
        return Some((queries.to_string(), "travel spots"));
    }
    if form.has_list_of(&PICTURE) {
        let pictures = plan::pictures(&Facts::read(&text), schema);
        return Some((pictures.to_string(), "travel pictures"));
    }
    if !form.is_free() || !question.tools.is_empty() {
        return None;
    }
    let facts = Facts::read(&text);
    facts.has_lists(&["blocks", "images"]).then(|| (page::answer(&facts), "travel page"))
}

/// The schema of a response. Free text has no fields.
struct Form<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl<'s> Form<'s> {
    fn of(schema: &'s Value) -> Self {
        Self { root: sample::resolve(schema, schema), schema }
    }

    fn is_free(&self) -> bool {
        self.root.as_object().is_none_or(serde_json::Map::is_empty)
    }

    fn has(&self, field: &str) -> bool {
        self.root["properties"].get(field).is_some()
    }

    /// Returns true if a field is an array of objects with these fields.
    fn has_list_of(&self, fields: &[&str]) -> bool {
        let lists = self.root["properties"].as_object().into_iter().flatten();
        lists.into_iter().any(|(_, list)| {
            let items = sample::resolve(self.schema, list).get("items");
            let item = items.map(|items| sample::resolve(self.schema, items));
            item.is_some_and(|item| fields.iter().all(|it| item["properties"].get(*it).is_some()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::answer;
    use crate::standin::question::{Offer, Question, Speaker, Turn};

    fn role(text: &str, schema: &Value) -> Option<&'static str> {
        let turns = vec![Turn::new(Speaker::User, text.to_owned(), Vec::new())];
        answer(&Question { turns, ..Question::default() }, schema).map(|(_, role)| role)
    }

    #[test]
    fn schemas_identify_tasks() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/Item"}});
        let item = json!({"properties": {"block_id": {}, "query": {}, "prompt": {}, "alt": {}}});
        for (properties, expected) in [
            (json!({"blocks": list, "spot_blocks": list}), Some("travel blocks")),
            (json!({"spot_queries": list}), Some("travel spots")),
            (json!({"images": list}), Some("travel pictures")),
            (json!({"rows": {"type": "array", "items": {"type": "string"}}}), None),
            (json!({"blocks": {"type": "string"}}), None),
        ] {
            let schema = json!({"type": "object", "properties": properties,
                "$defs": {"Item": item}});
            assert_eq!(role("anything", &schema), expected, "{schema}");
        }
    }

    #[test]
    fn blocks_and_images_identify_a_page() {
        let free = json!({});
        assert_eq!(role("{\"blocks\": [], \"images\": []}", &free), Some("travel page"));
        for text in ["Make a page", "{\"blocks\": []}", "{\"blocks\": 1, \"images\": 2}"] {
            assert_eq!(role(text, &free), None, "{text}");
        }
        let turn = Turn::new(Speaker::User, "{\"blocks\":[],\"images\":[]}".to_owned(), Vec::new());
        let tools = vec![Offer::default()];
        let talk = Question { turns: vec![turn], tools, ..Question::default() };
        assert!(answer(&talk, &free).is_none(), "a conversation with tools is not a task");
    }
}
