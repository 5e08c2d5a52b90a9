//! One request to a model, whatever wire it came over.

use serde_json::Value;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Tool,
}

/// A tool that the model may ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) schema: Value,
}

/// A model's wish to call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) id: String,
    pub(super) name: String,
    /// JSON text, as the model wrote it.
    pub(super) arguments: String,
}

/// One message of the conversation.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) speaker: Speaker,
    pub(super) text: String,
    /// Decoded bytes of each picture; empty bytes for one that cannot be decoded.
    pub(super) pictures: Vec<Vec<u8>>,
    /// What the assistant asked for.
    pub(super) asks: Vec<Ask>,
    /// The id of the call that a tool answers.
    pub(super) answers: String,
}

/// What a provider's request comes down to.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) turns: Vec<Turn>,
    /// The response schema, if the request carries one as such.
    pub(super) schema: Option<Value>,
    /// Tools on offer; none if the request forbids calls.
    pub(super) tools: Vec<Offer>,
}

/// What introduces the data in a message that holds instructions as well.
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

/// What may close such data again.
const CLOSERS: &[&str] = &["</text>", "</input>", "\"\"\""];

impl Question {
    /// The turn that holds the data to work on.
    ///
    /// A later user turn that speaks of the schema is a repair request about the same data.
    pub(super) fn data_turn(&self) -> Option<&Turn> {
        let is_user = |turn: &&Turn| turn.speaker == Speaker::User;
        let first = self.turns.iter().find(is_user);
        let fresh = self.turns.iter().rev().filter(is_user).find(|turn| !asks_for_repair(turn));
        fresh.or(first)
    }

    /// The last thing the user said.
    pub(super) fn last_user_text(&self) -> &str {
        self.turns
            .iter()
            .rev()
            .find(|turn| turn.speaker == Speaker::User)
            .map_or("", |turn| turn.text.as_str())
    }

    /// Everything that was said by instruction or user, for facts such as today's date.
    pub(super) fn all_text(&self) -> String {
        let mut text = self.system.clone();
        for turn in self.turns.iter().filter(|turn| turn.speaker != Speaker::Tool) {
            text.push('\n');
            text.push_str(&turn.text);
        }
        text
    }

    /// Characters and pictures of the whole request, the base of the usage numbers.
    pub(super) fn size(&self) -> (usize, usize) {
        let characters = self.all_text().chars().count()
            + self.schema.as_ref().map_or(0, |schema| schema.to_string().len());
        (characters, self.turns.iter().map(|turn| turn.pictures.len()).sum())
    }
}

impl Turn {
    /// A message without any call.
    pub(super) fn new(speaker: Speaker, text: String, pictures: Vec<Vec<u8>>) -> Self {
        Self { speaker, text, pictures, asks: Vec::new(), answers: String::new() }
    }

    /// What a tool answered.
    pub(super) fn answer(id: String, text: String) -> Self {
        Self { answers: id, ..Self::new(Speaker::Tool, text, Vec::new()) }
    }

    /// The part of the text after the marker that introduces the data, or the whole text.
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

/// A message that complains about the form of an answer brings no data of its own.
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
    fn data_follows_its_marker() {
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
