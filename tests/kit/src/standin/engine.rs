//! The rules by which all stand-in models respond. Responses are derived, not canned.
//!
//! The kind of the expected response (see [`Shape`]) selects the rule, and the data of the
//! conversation determine the result. Equal requests get equal responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    answer::Answer,
    classify, dates, extract,
    faults::Fault,
    image, lookup, nl2sql,
    question::{Ask, Question},
    reasoning, sample, scripted,
    shape::{self, Shape},
    tools, travel,
};

/// Number of characters per token, a common estimate.
const CHARACTERS_PER_TOKEN: usize = 4;

/// Number of tokens per image, as in low detail mode.
const PICTURE_TOKENS: usize = 85;

/// Computes the completion. A `fault` may change its content.
pub(super) fn answer(
    question: &Question,
    pictures: &BTreeMap<String, String>,
    fault: Option<&Fault>,
) -> Answer {
    if let Some(Fault::Script { contents }) = fault {
        let said = scripted::answer(question, contents.front());
        let answer = finish(question, said.content, said.asks, "script");
        return Answer { reasoning: said.reasoning, ..answer };
    }
    let answer = work_out(question, pictures, fault);
    match fault {
        Some(Fault::Imprecise(mode)) => mode.distort(answer, question),
        _ => answer,
    }
}

fn work_out(
    question: &Question,
    pictures: &BTreeMap<String, String>,
    fault: Option<&Fault>,
) -> Answer {
    if let Some(next) = tools::next_step(question, fault) {
        return finish(question, next.content, next.asks, next.rule);
    }
    let (shape, schema) = shape::wanted(question);
    let (content, rule) = content(question, pictures, &shape, schema.as_ref());
    finish(question, bend(content, &shape, fault), Vec::new(), rule)
}

fn finish(question: &Question, content: String, asks: Vec<Ask>, rule: &'static str) -> Answer {
    let (characters, picture_count) = question.size();
    let written = content.chars().count()
        + asks.iter().map(|ask| ask.name.len() + ask.arguments.chars().count()).sum::<usize>();
    Answer {
        rule,
        prompt_tokens: tokens(characters) + PICTURE_TOKENS * picture_count,
        completion_tokens: tokens(written),
        content,
        reasoning: String::new(),
        asks,
    }
}

fn tokens(characters: usize) -> usize {
    characters.div_ceil(CHARACTERS_PER_TOKEN).max(1)
}

fn content(
    question: &Question,
    pictures: &BTreeMap<String, String>,
    shape: &Shape,
    schema: Option<&Value>,
) -> (String, &'static str) {
    let data = data(question, pictures);
    let today = || dates::today_in(&question.all_text());
    let blank = json!({});
    let schema = schema.unwrap_or(&blank);
    if let Some((document, rule)) =
        reasoning::answer(question, schema).or_else(|| nl2sql::answer(question, schema))
    {
        return (document.to_string(), rule);
    }
    if let Some(answered) = travel::answer(question, schema) {
        return answered;
    }
    let (document, rule) = match shape {
        Shape::Classify { labels } => {
            let verdict = sample::fit(classify::classify(&data, labels), schema, schema);
            (Value::Object(verdict), "classify")
        }
        Shape::Operations => {
            (list("operations", extract::operations(&data, today()), schema), "operations")
        }
        Shape::Holdings => {
            (list("holdings", extract::holdings(&data, today()), schema), "holdings")
        }
        Shape::Lookup => (securities(&data, schema), "lookup"),
        Shape::Other => (sample::sample(schema, schema), "sample"),
        Shape::Text => return (chat(question, &data), "chat"),
    };
    (document.to_string(), rule)
}

/// Returns the input of the rule: the content of the images or, without images, the text of the
/// user.
fn data(question: &Question, pictures: &BTreeMap<String, String>) -> String {
    let Some(turn) = question.data_turn() else {
        return String::new();
    };
    if turn.pictures.is_empty() {
        return turn.data().to_owned();
    }
    let seen = turn.pictures.iter().filter_map(|picture| image::read(picture, pictures));
    seen.collect::<Vec<_>>().join("\n")
}

/// Returns `{<name>: rows}`, with each row fitted to the item schema.
fn list(name: &str, rows: Vec<Map<String, Value>>, schema: &Value) -> Value {
    let root = sample::resolve(schema, schema);
    let items = root.pointer(&format!("/properties/{name}"));
    let items = items.and_then(|list| sample::resolve(schema, list).get("items"));
    let fitted = fit_rows(rows, schema, items);
    let whole = Map::from_iter([(name.to_owned(), fitted)]);
    Value::Object(sample::fit(whole, schema, schema))
}

/// Returns the securities that match `query`: as an array, or as an object with the array if the
/// schema describes an object.
fn securities(query: &str, schema: &Value) -> Value {
    let rows = lookup::lookup(query);
    let root = sample::resolve(schema, schema);
    let properties = root.get("properties").and_then(Value::as_object);
    let wrapper = properties
        .into_iter()
        .flatten()
        .find_map(|(key, property)| Some((key, sample::resolve(schema, property).get("items")?)));
    match wrapper {
        Some((key, items)) => json!({ key: fit_rows(rows, schema, Some(items)) }),
        None => fit_rows(rows, schema, root.get("items")),
    }
}

fn fit_rows(rows: Vec<Map<String, Value>>, root: &Value, items: Option<&Value>) -> Value {
    let fit = |row| match items {
        Some(items) => sample::fit(row, root, items),
        None => row,
    };
    rows.into_iter().map(|row| Value::Object(fit(row))).collect()
}

fn chat(question: &Question, data: &str) -> String {
    let has_picture = question.data_turn().is_some_and(|turn| !turn.pictures.is_empty());
    let said = question.last_user_text();
    match (has_picture, data) {
        (true, "") => "I cannot make out anything in the picture.".to_owned(),
        (true, seen) => format!("The picture says: {seen}"),
        (false, _) => format!("Thank you, I have read your message: {said}"),
    }
}

/// Applies a fault that changes only the content.
fn bend(content: String, shape: &Shape, fault: Option<&Fault>) -> String {
    match fault {
        Some(Fault::InvalidJsonContent) if *shape == Shape::Text => "{\"unexpected\":".to_owned(),
        Some(Fault::InvalidJsonContent) => json!({"unexpected": true}).to_string(),
        Some(Fault::Content { text }) => text.clone(),
        Some(Fault::Fenced) => format!("Here you are:\n```json\n{content}\n```\n"),
        _ => content,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::answer;
    use crate::{
        picture::png_with_text,
        standin::{
            faults::Fault,
            question::{Question, Speaker, Turn},
        },
    };

    fn ask(system: &str, text: &str, schema: Option<Value>) -> Question {
        let turns = vec![Turn::new(Speaker::User, text.to_owned(), Vec::new())];
        let (model, system) = ("m".to_owned(), system.to_owned());
        Question { model, system, turns, schema, ..Question::default() }
    }

    fn operations_schema() -> Value {
        let row = json!({"type": "object", "additionalProperties": false,
            "required": ["ticker", "name", "action", "quantity", "price", "tradedAt"],
            "properties": {"ticker": {"type": ["string", "null"]}, "name": {"type": "string"},
                "action": {"enum": ["buy", "sell"]}, "quantity": {"type": ["number", "null"]},
                "price": {"type": ["number", "null"]}, "tradedAt": {"type": ["string", "null"]}}});
        json!({"type": "object", "required": ["operations"],
            "properties": {"operations": {"type": "array", "items": row}}})
    }

    #[test]
    fn trades_are_extracted_in_the_form_of_the_schema() {
        let question =
            ask("今天是 2025-01-15。", "昨天买入腾讯 100 股 320", Some(operations_schema()));
        let found = answer(&question, &BTreeMap::new(), None);
        let content: Value = serde_json::from_str(&found.content).unwrap();
        assert_eq!(
            content,
            json!({"operations": [{"ticker": null, "name": "腾讯", "action": "buy",
                "quantity": 100, "price": 320, "tradedAt": "2025-01-14"}]})
        );
        assert_eq!(found.rule, "operations");
        assert!(found.prompt_tokens > found.completion_tokens);
    }

    #[test]
    fn the_content_of_images_is_classified() {
        let labels = json!(["trade_record", "position", "unknown"]);
        let schema = json!({"properties": {"type": {"enum": labels},
            "confidence": {"type": "number"}}, "required": ["type", "confidence"]});
        let mut question = ask("Classify the picture.", "附加文字：买入腾讯", Some(schema));
        for (text, label) in
            [("卖出苹果 10 股", "trade_record"), ("持仓", "position"), ("猫", "unknown")]
        {
            question.turns[0].pictures = vec![png_with_text(text, 0)];
            let found = answer(&question, &BTreeMap::new(), None);
            let content: Value = serde_json::from_str(&found.content).unwrap();
            assert_eq!(content["type"], label, "{text}");
            assert!(content.get("reason").is_none(), "not in the schema");
        }
    }

    #[test]
    fn lookup_returns_a_list_that_may_be_fenced() {
        let system = "Return a JSON array of {ticker,name,nameCN,primaryExchange,currencyName}.";
        let found = answer(&ask(system, "小米", None), &BTreeMap::new(), None);
        let content: Value = serde_json::from_str(&found.content).unwrap();
        assert_eq!(content[0]["ticker"], "1810.HK");
        let unknown = answer(&ask(system, "泡泡玛特", None), &BTreeMap::new(), None);
        assert_eq!(unknown.content, "[]");
        let fenced = answer(&ask(system, "小米", None), &BTreeMap::new(), Some(&Fault::Fenced));
        assert!(fenced.content.contains("```json\n[{"), "{}", fenced.content);
    }

    #[test]
    fn other_requests_get_a_phrase_or_a_sample() {
        let chat = answer(&ask("", "Hello", None), &BTreeMap::new(), None);
        assert_eq!(chat.content, "Thank you, I have read your message: Hello");
        let properties = json!({"ok": {"type": "boolean"}});
        let schema = json!({"type": "object", "properties": properties, "required": ["ok"]});
        let sample = answer(&ask("", "Hello", Some(schema)), &BTreeMap::new(), None);
        assert_eq!(sample.content, "{\"ok\":false}");
    }

    #[test]
    fn faults_change_the_content() {
        let question = ask("", "买入腾讯", Some(operations_schema()));
        let bent = |fault| answer(&question, &BTreeMap::new(), Some(&fault)).content;
        assert_eq!(bent(Fault::InvalidJsonContent), "{\"unexpected\":true}");
        assert_eq!(bent(Fault::Content { text: "no".to_owned() }), "no");
    }
}
