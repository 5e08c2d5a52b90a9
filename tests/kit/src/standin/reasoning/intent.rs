//! Intent of a question.

use serde_json::{Value, json};

use super::words::{ACTIONS, pieces};

/// Returns the intent: words as keywords, words and values as business elements, and the actions.
pub(super) fn understand(query: &str) -> Value {
    let pieces = pieces(query);
    let mut actions: Vec<&str> = Vec::new();
    for word in ACTIONS {
        let is_part = actions.iter().any(|known| known.contains(word));
        if query.contains(word) && !is_part {
            actions.push(word);
        }
    }
    let keywords: Vec<&String> = pieces.iter().filter(|piece| !is_value(piece)).collect();
    json!({
        "keywords": keywords,
        "business_elements": pieces,
        "goal_actions": actions,
        "intent_summary": format!("用户想了解：{}", query.replace('\n', "；")),
    })
}

/// Returns true for numbers and codes, which are values and not keywords.
fn is_value(piece: &str) -> bool {
    piece.chars().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::understand;

    #[test]
    fn words_values_and_actions_are_distinguished() {
        let intent = understand("查询手机号13800138000的客户");
        assert_eq!(intent["keywords"], json!(["手机号", "客户"]));
        assert_eq!(intent["business_elements"], json!(["手机号", "13800138000", "客户"]));
        assert_eq!(intent["goal_actions"], json!(["查询"]));
        assert_eq!(understand("你好")["keywords"], json!([]));
    }
}
