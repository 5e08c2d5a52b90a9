//! Intent of a message, and its meaning in the context of earlier ones.

use serde_json::{Value, json};

use super::vocabulary::{BUSINESS, DIMENSIONS, FOLLOWING, TERMS, VAGUE, has};
use super::{BETWEEN, period};

const SURE: f64 = 0.92;
const UNSURE: f64 = 0.6;

pub(super) fn answer(input: &Value) -> Value {
    let message = input["message"].as_str().unwrap_or_default();
    let history: Vec<&str> = input["history_user_messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let chain = chain(&history, message);
    let lower = message.to_lowercase();
    let (intent, confidence) = if is_business(&lower) || chain.len() > 1 {
        ("business_query", SURE)
    } else if has(&lower, VAGUE) {
        ("business_query", UNSURE)
    } else {
        ("chat", SURE)
    };
    json!({
        "intent": intent,
        "is_followup": chain.len() > 1,
        "confidence": confidence,
        "merged_query": chain.join("，"),
        "rewritten_query": chain.join(&BETWEEN.to_string()),
    })
}

/// Returns the messages that form one question: the one that the message refers to, those in
/// between, and the message.
fn chain<'a>(history: &[&'a str], message: &'a str) -> Vec<&'a str> {
    let mut chain = vec![message];
    if !follows(message) {
        return chain;
    }
    for earlier in history.iter().rev() {
        let lower = earlier.to_lowercase();
        if follows(earlier) {
            chain.insert(0, earlier);
        } else if is_business(&lower) {
            chain.insert(0, earlier);
            return chain;
        }
    }
    // No earlier message is a question.
    vec![message]
}

fn is_business(lower: &str) -> bool {
    has(lower, BUSINESS)
}

/// Returns true if the message begins like a follow-up, or has conditions without a subject.
fn follows(message: &str) -> bool {
    let lower = message.trim().to_lowercase();
    let begins = FOLLOWING.iter().any(|word| lower.starts_with(word));
    let has_condition =
        TERMS.iter().any(|term| lower.contains(term.value) || has(&lower, term.words))
            || DIMENSIONS.iter().any(|(_, words)| has(&lower, words))
            || period::has_any(&lower);
    (begins || !is_business(&lower)) && has_condition
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::answer;

    fn intent(history: &[&str], message: &str) -> Value {
        answer(&json!({ "message": message, "history_user_messages": history }))
    }

    #[test]
    fn chat_is_distinguished_from_questions() {
        for (message, expected) in [
            ("你好", "chat"),
            ("讲个笑话", "chat"),
            ("2024年有多少订单", "business_query"),
            ("How many orders in 2024?", "business_query"),
        ] {
            let found = intent(&[], message);
            assert_eq!(found["intent"], expected, "{message}");
            assert_eq!(found["rewritten_query"], message);
            assert_eq!(found["is_followup"], false);
        }
        assert_eq!(intent(&[], "看看数据")["confidence"], 0.6);
    }

    #[test]
    fn follow_ups_are_merged() {
        let found = intent(&["2024年有多少订单", "谢谢", "那上海呢"], "按月看看");
        assert_eq!(found["is_followup"], true);
        assert_eq!(found["rewritten_query"], "2024年有多少订单；那上海呢；按月看看");
        assert_eq!(found["merged_query"], "2024年有多少订单，那上海呢，按月看看");
        assert_eq!(intent(&[], "那上海呢")["intent"], "chat", "nothing to follow");
        let fresh = intent(&["2024年有多少订单"], "上海有多少客户");
        assert_eq!(fresh["is_followup"], false);
    }
}
