//! Distinguishes trades from holdings by the words of a text.

use serde_json::{Map, Value, json};

/// Words of a trade. Latin words match only as whole words.
const OPERATION: &[&str] = &[
    "买",
    "卖",
    "成交",
    "加仓",
    "减仓",
    "清仓",
    "建仓",
    "抛售",
    "购入",
    "入手",
    "buy",
    "bought",
    "buying",
    "sell",
    "sold",
    "selling",
    "purchased",
    "trade",
    "traded",
    "executed",
];

/// Words of a holding.
const HOLDING: &[&str] = &[
    "持有",
    "持仓",
    "持股",
    "成本",
    "均价",
    "仓位",
    "hold",
    "holding",
    "holdings",
    "holds",
    "own",
    "owns",
    "position",
    "positions",
    "cost",
];

/// Confidence for one word, and the increment for each further word.
const BASE_CONFIDENCE: f64 = 0.8;
const STEP: f64 = 0.05;
const MAX_CONFIDENCE: f64 = 0.98;

/// Returns `{type, confidence, reason}` with one of `labels` as the type.
///
/// The first word decides: `卖出持仓的腾讯` is a trade, `持有腾讯，买入价 300` is a holding.
pub(super) fn classify(text: &str, labels: &[String]) -> Map<String, Value> {
    let lower = text.to_lowercase();
    let (trades, holdings) = (hits(&lower, OPERATION), hits(&lower, HOLDING));
    let first = |hits: &[(usize, &'static str)]| hits.iter().min().copied();
    let (wanted, found) = match (first(&trades), first(&holdings)) {
        (Some(trade), Some(holding)) if holding.0 < trade.0 => ("holding", Some(holding)),
        (Some(trade), _) => ("operation", Some(trade)),
        (None, Some(holding)) => ("holding", Some(holding)),
        (None, None) => ("unknown", None),
    };
    let (confidence, reason) = match found {
        Some((_, word)) => {
            let more = (trades.len() + holdings.len() - 1) as f64;
            let confidence = (BASE_CONFIDENCE + STEP * more).min(MAX_CONFIDENCE);
            ((confidence * 100.0).round() / 100.0, format!("the text says \"{word}\""))
        }
        None => (0.3, "no word of a trade or a holding".to_owned()),
    };
    Map::from_iter([
        ("type".to_owned(), json!(label(wanted, labels))),
        ("confidence".to_owned(), json!(confidence)),
        ("reason".to_owned(), json!(reason)),
    ])
}

/// Returns the label that means `wanted` in the vocabulary of the request.
fn label<'a>(wanted: &'a str, labels: &'a [String]) -> &'a str {
    let legacy = match wanted {
        "operation" => "trade_record",
        "holding" => "position",
        other => other,
    };
    let has = |name: &str| labels.iter().any(|label| label == name);
    if !has(wanted) && has(legacy) { legacy } else { wanted }
}

/// Returns the words that occur in `lower`, each with the position of its first occurrence.
fn hits(lower: &str, words: &[&'static str]) -> Vec<(usize, &'static str)> {
    words.iter().filter_map(|word| find_word(lower, word).map(|at| (at, *word))).collect()
}

fn find_word(lower: &str, word: &str) -> Option<usize> {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    lower.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = lower[..*at].chars().next_back();
        let after = lower[at + word.len()..].chars().next();
        !word.is_ascii() || !(before.is_some_and(is_letter) || after.is_some_and(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::classify;

    fn check(text: &str, expected: &str) {
        let labels = ["operation", "holding", "unknown"].map(str::to_owned);
        assert_eq!(classify(text, &labels)["type"], expected, "{text}");
    }

    #[test]
    fn the_type_is_derived_from_words() {
        check("昨天买入腾讯 100 股 320", "operation");
        check("卖了一百股苹果", "operation");
        check("已成交：0700.HK 100", "operation");
        check("Bought 10 AAPL at 189.5", "operation");
        check("sold everything", "operation");
        check("我持有贵州茅台 10 股，成本 1500", "holding");
        check("I hold 50 Tesla shares", "holding");
        check("腾讯 100股 成本价 320", "holding");
        check("今天天气很好", "unknown");
        check("the threshold of a household", "unknown");
        check("", "unknown");
    }

    #[test]
    fn the_first_word_decides() {
        check("卖出持仓的腾讯 100 股", "operation");
        check("买入腾讯 100 股，成本 320", "operation");
        check("持有腾讯 100 股，买入价 300", "holding");
    }

    #[test]
    fn labels_follow_the_request() {
        let legacy = ["trade_record", "position", "unknown"].map(str::to_owned);
        assert_eq!(classify("买入腾讯", &legacy)["type"], "trade_record");
        assert_eq!(classify("持有腾讯", &legacy)["type"], "position");
        assert_eq!(classify("你好", &legacy)["type"], "unknown");
    }

    #[test]
    fn confidence_stays_in_range() {
        let found = classify("买 卖 成交 加仓 减仓 清仓 buy sell sold", &[]);
        assert_eq!(found["confidence"], 0.98);
        assert_eq!(classify("?", &[])["confidence"], 0.3);
    }
}
