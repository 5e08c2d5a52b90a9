//! A request to a model, independent of the API.

use serde_json::Value;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Tool,
}

/// A tool that the model may request.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) schema: Value,
}

/// A tool call that a model requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) id: String,
    pub(super) name: String,
    /// JSON text, as the model wrote it.
    pub(super) arguments: String,
}

/// A message of the conversation.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) speaker: Speaker,
    pub(super) text: String,
    /// Decoded bytes of each image; empty for an image that cannot be decoded.
    pub(super) pictures: Vec<Vec<u8>>,
    /// The tool calls that the assistant requests.
    pub(super) asks: Vec<Ask>,
    /// The id of the tool call to which a tool result belongs.
    pub(super) answers: String,
}

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) turns: Vec<Turn>,
    /// The response schema, if the request has one.
    pub(super) schema: Option<Value>,
    /// The offered tools; empty if the request disables tool calls.
    pub(super) tools: Vec<Offer>,
}

/// Markers before the data in a message that also has instructions.
const MARKERS: &[&str] = &[
    "文本：",
    "文本:",
    "用户输入：",
    "用户输入:",
    "输入：",
    "输入:",
    "查询：",
    "查询:",
    "\"\"\"",
    "<text>",
    "<input>",
    "Text:",
    "Input:",
    "Query:",
    "text:",
    "input:",
    "query:",
];

/// Markers after the data.
const CLOSERS: &[&str] = &["</text>", "</input>", "\"\"\""];

impl Question {
    /// Returns the message with the data.
    ///
    /// A later user message about the schema is a repair request for the same data.
    pub(super) fn data_turn(&self) -> Option<&Turn> {
        let is_user = |turn: &&Turn| turn.speaker == Speaker::User;
        let first = self.turns.iter().find(is_user);
        let fresh = self.turns.iter().rev().filter(is_user).find(|turn| !asks_for_repair(turn));
        fresh.or(first)
    }

    /// Returns the last text of the user.
    pub(super) fn last_user_text(&self) -> &str {
        self.turns
            .iter()
            .rev()
            .find(|turn| turn.speaker == Speaker::User)
            .map_or("", |turn| turn.text.as_str())
    }

    /// Returns all text of system and user messages, for values such as today's date.
    pub(super) fn all_text(&self) -> String {
        let mut text = self.system.clone();
        for turn in self.turns.iter().filter(|turn| turn.speaker != Speaker::Tool) {
            text.push('\n');
            text.push_str(&turn.text);
        }
        text
    }

    /// Returns the number of characters and images of the request, for the usage.
    pub(super) fn size(&self) -> (usize, usize) {
        let characters = self.all_text().chars().count()
            + self.schema.as_ref().map_or(0, |schema| schema.to_string().len());
        (characters, self.turns.iter().map(|turn| turn.pictures.len()).sum())
    }
}

impl Turn {
    /// Creates a message without tool calls.
    pub(super) fn new(speaker: Speaker, text: String, pictures: Vec<Vec<u8>>) -> Self {
        Self { speaker, text, pictures, asks: Vec::new(), answers: String::new() }
    }

    /// Creates a tool result.
    pub(super) fn answer(id: String, text: String) -> Self {
        Self { answers: id, ..Self::new(Speaker::Tool, text, Vec::new()) }
    }

    /// Returns the text after the marker of the data, or the whole text.
    pub(super) fn data(&self) -> &str {
        let mut text = self.text.trim();
        for closer in CLOSERS {
            text = text.strip_suffix(closer).unwrap_or(text).trim_end();
        }
        MARKERS
            .iter()
            .filter_map(|marker| text.rfind(marker).map(|at| &text[at + marker.len()..]))
            .min_by_key(|rest| rest.len())
            .filter(|rest| !rest.trim().is_empty())
            .unwrap_or(text)
            .trim()
    }
}

/// Returns true for a message that requests a repair of the response's format. Such a message has
/// no data.
fn asks_for_repair(turn: &Turn) -> bool {
    let text = turn.text.to_lowercase();
    turn.pictures.is_empty()
        && ["schema", "valid", "answer again", "不符合", "重新输出", "previous answer"]
            .iter()
            .any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{Question, Speaker, Turn};

    fn turn(speaker: Speaker, text: &str) -> Turn {
        Turn::new(speaker, text.to_owned(), Vec::new())
    }

    #[test]
    fn data_follows_a_marker() {
        let check = |text: &str, data: &str| {
            assert_eq!(turn(Speaker::User, text).data(), data, "{text}");
        };
        check("买入腾讯 100 股", "买入腾讯 100 股");
        check("提取交易，例如买入苹果。\n文本：买入腾讯 100 股", "买入腾讯 100 股");
        check("Extract. <text>bought 5 AAPL</text>", "bought 5 AAPL");
        check("Extract from \"\"\"bought 5 AAPL\"\"\"", "bought 5 AAPL");
        check("Query: Xiaomi", "Xiaomi");
    }

    #[test]
    fn repair_requests_are_not_data() {
        let mut question = Question {
            turns: vec![
                turn(Speaker::User, "买入腾讯"),
                turn(Speaker::Assistant, "{}"),
                turn(Speaker::User, "the answer does not match the schema"),
            ],
            ..Question::default()
        };
        assert_eq!(question.data_turn().unwrap().text, "买入腾讯");
        question.turns[2].text = "That answer is not valid: /a. Answer again.".to_owned();
        assert_eq!(question.data_turn().unwrap().text, "买入腾讯");
        question.turns[2].text = "卖出苹果".to_owned();
        assert_eq!(question.data_turn().unwrap().text, "卖出苹果");
    }
}
