//! The model for the application `expense`: it passes dates to one tool and amounts to another, and
//! reports the result. It asks for missing values.

mod read;

use serde_json::{Value, json};

use self::read::Item;
use super::{CompletedCall, Dialogue, Move, arguments};
use crate::standin::question::Speaker;

/// The tool that converts a parsed date to a timestamp.
const PARSE: &str = "parseDateExpression";

/// The tool that saves a record.
const SAVE: &str = "saveExpenseToLark";

/// The beginning of a question for a missing value.
const ASKING: &str = "请问";

/// The response to a message without an expense.
const GREETING: &str = "你好，我是记账助手。告诉我花在哪里、花了多少钱，我来帮你记账。";

/// The response to a date that needs a calendar, such as a holiday.
const CALENDAR: &str = "请问是哪一天？可以说 昨天、3天前、1月2日 或 2025年1月2日。";

/// Decides the next step in conversations with the tool [`SAVE`].
pub(super) fn decide(dialogue: &Dialogue<'_>) -> Option<Move> {
    if !dialogue.offers(SAVE) {
        return None;
    }
    let said = said(dialogue);
    if read::is_vague(&said) {
        return Some(Move::Say(CALENDAR.to_owned()));
    }
    let items = read::items(&said);
    if items.is_empty() {
        return Some(Move::Say(GREETING.to_owned()));
    }
    if let Some(question) = items.iter().find_map(question) {
        return Some(Move::Say(question));
    }
    let calls: Vec<&CompletedCall<'_>> = dialogue.rounds.iter().flatten().collect();
    if dialogue.rounds.is_empty() {
        return Some(Move::Call(first(&items, dialogue.offers(PARSE))));
    }
    let saves = calls.iter().filter(|call| call.ask.name == SAVE);
    if saves.clone().count() < items.len() {
        return Some(Move::Call(second(&items, &calls)));
    }
    let reports: Vec<String> = saves.map(|call| report(call)).collect();
    Some(Move::Say(reports.join("\n\n")))
}

/// Returns the last user message, with the one before it if the model had asked for a missing
/// value.
fn said(dialogue: &Dialogue<'_>) -> String {
    let spoken = |speaker| move |turn: &&super::Turn| turn.speaker == speaker;
    let turns = &dialogue.question.turns;
    let mut users = turns.iter().filter(spoken(Speaker::User)).rev().skip(1);
    let last = turns.iter().rposition(|turn| turn.speaker == Speaker::User).unwrap_or(0);
    let before = turns[..last].iter().rev().find(spoken(Speaker::Assistant));
    match (before, users.next()) {
        (Some(before), Some(earlier)) if before.text.starts_with(ASKING) => {
            format!("{} {}", earlier.text, dialogue.user)
        }
        _ => dialogue.user.to_owned(),
    }
}

fn question(item: &Item) -> Option<String> {
    match (&item.amount, item.remark.as_str()) {
        (None, remark) => Some(format!("{ASKING}{remark}的金额是多少？")),
        (Some(amount), "") => Some(format!("{ASKING}这 {amount} 元花在哪里？")),
        _ => None,
    }
}

/// Returns the calls of the first turn: dates are parsed, and items without a date are saved.
fn first(items: &[Item], can_parse: bool) -> Vec<(String, String)> {
    let call = |item: &Item| match &item.date {
        Some(date) if can_parse => (PARSE.to_owned(), date.to_string()),
        _ => save(item, None),
    };
    items.iter().map(call).collect()
}

/// Returns the calls of the second turn: items with a date are saved with their timestamps.
fn second(items: &[Item], calls: &[&CompletedCall<'_>]) -> Vec<(String, String)> {
    let parsed = calls.iter().filter(|call| call.ask.name == PARSE);
    let mut timestamps = parsed.map(|call| document(call.answer).get("timestamp").cloned());
    let dated = items.iter().filter(|item| item.date.is_some());
    dated.map(|item| save(item, timestamps.next().flatten())).collect()
}

fn save(item: &Item, date: Option<Value>) -> (String, String) {
    let mut call = json!({
        "remark": item.remark,
        "category": item.category(),
        "amount": item.amount,
    });
    if item.is_income {
        call["type"] = json!("income");
    }
    if let Some(date) = date {
        call["date"] = date;
    }
    (SAVE.to_owned(), call.to_string())
}

fn report(call: &CompletedCall<'_>) -> String {
    let answer = document(call.answer);
    let text = |pointer: &str| match answer.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    if text("/status") == "success" {
        return format!(
            "✅ 记账成功！\n\n💰 {}\n📅 {}\n🏷️ {} | 💵 ¥{} | 📊 {}",
            text("/data/fields/备注"),
            text("/data/time"),
            text("/data/fields/分类"),
            text("/data/fields/金额"),
            text("/data/fields/收支"),
        );
    }
    let remark = arguments(call.ask).get("remark").cloned().unwrap_or_default();
    let reason = answer.get("message").and_then(Value::as_str).unwrap_or(call.answer);
    format!("❌ {}：{reason}", remark.as_str().unwrap_or_default())
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{PARSE, SAVE, decide};
    use crate::standin::question::{Ask, Offer, Question, Speaker, Turn};
    use crate::standin::tools::{Dialogue, Move};

    fn question(text: &str, tools: &[&str]) -> Question {
        let offer = |name: &&str| Offer { name: (*name).to_owned(), schema: json!({}) };
        let mut question =
            Question { tools: tools.iter().map(offer).collect(), ..Question::default() };
        says(&mut question, Speaker::User, text);
        question
    }

    fn says(question: &mut Question, speaker: Speaker, text: &str) {
        question.turns.push(Turn::new(speaker, text.to_owned(), Vec::new()));
    }

    fn decided(question: &Question) -> Move {
        decide(&Dialogue::new(question)).unwrap()
    }

    /// Returns the next tool calls, and adds a result for each of them to the conversation.
    fn calls(question: &mut Question, answer: &Value) -> Vec<(String, Value)> {
        let Move::Call(calls) = decided(question) else { panic!("no call") };
        let named = calls.iter().enumerate();
        let asks: Vec<Ask> = named
            .map(|(index, (name, arguments))| Ask {
                id: format!("{}-{index}", question.turns.len()),
                name: name.clone(),
                arguments: arguments.clone(),
            })
            .collect();
        says(question, Speaker::Assistant, "");
        question.turns.last_mut().unwrap().asks.clone_from(&asks);
        for ask in asks {
            question.turns.push(Turn::answer(ask.id, answer.to_string()));
        }
        let read =
            |(name, arguments): (String, String)| (name, serde_json::from_str(&arguments).unwrap());
        calls.into_iter().map(read).collect()
    }

    fn words(question: &Question) -> String {
        match decided(question) {
            Move::Say(words) => words,
            other => panic!("a call: {other:?}"),
        }
    }

    #[test]
    fn a_date_is_parsed_and_then_saved() {
        let mut question = question("昨天打车花了20元", &[SAVE, PARSE]);
        let yesterday = json!({"type": "relative", "offset": -1, "unit": "day"});
        let first = calls(&mut question, &json!({"timestamp": 1_736_784_000_000_i64}));
        assert_eq!(first, [(PARSE.to_owned(), yesterday)]);
        let saved = json!({"remark": "打车", "category": "交通", "amount": 20,
            "date": 1_736_784_000_000_i64});
        let fields = json!({"备注": "打车", "分类": "交通", "金额": 20, "收支": "支出"});
        let answer = json!({"status": "success",
            "data": {"fields": fields, "time": "2025-01-14 00:00:00"}});
        assert_eq!(calls(&mut question, &answer), [(SAVE.to_owned(), saved)]);
        assert_eq!(
            words(&question),
            "✅ 记账成功！\n\n💰 打车\n📅 2025-01-14 00:00:00\n🏷️ 交通 | 💵 ¥20 | 📊 支出"
        );
    }

    #[test]
    fn items_without_a_parsed_date_are_saved_immediately() {
        for (text, tools) in [("打车20元", &[SAVE, PARSE][..]), ("昨天打车20元", &[SAVE][..])]
        {
            let mut question = question(text, tools);
            let wanted = calls(&mut question, &json!({"status": "error", "message": "没有表格"}));
            let saved = json!({"remark": "打车", "category": "交通", "amount": 20});
            assert_eq!(wanted, [(SAVE.to_owned(), saved)]);
            assert_eq!(words(&question), "❌ 打车：没有表格");
        }
    }

    #[test]
    fn missing_values_are_requested_and_combined() {
        let mut question = question("昨天打车", &[SAVE, PARSE]);
        let asked = words(&question);
        assert_eq!(asked, "请问打车的金额是多少？");
        says(&mut question, Speaker::Assistant, &asked);
        says(&mut question, Speaker::User, "20块");
        let first = calls(&mut question, &json!({"timestamp": 5}));
        assert_eq!(first[0].0, PARSE);
        assert_eq!(calls(&mut question, &json!({}))[0].1["amount"], 20);
        assert_eq!(words(&self::question("20元", &[SAVE])), "请问这 20 元花在哪里？");
        assert!(words(&self::question("你好", &[SAVE])).contains("记账助手"));
    }

    #[test]
    fn conversations_without_the_tool_are_ignored() {
        assert!(decide(&Dialogue::new(&question("打车20元", &[PARSE]))).is_none());
    }
}
