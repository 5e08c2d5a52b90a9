//! Budgets of values: what counts, and what happens at a limit.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::fair_share::Pool;

const CHUNK: u64 = MEMORY_CHUNK_BYTES;

fn limit(read: Result<Value, JsonError>) -> JsonLimit {
    match read {
        Err(JsonError::Limit(exceeded)) => exceeded,
        other => panic!("{other:?}"),
    }
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn json_budget_counts_values_and_keys_but_not_texts() {
    // The list with three numbers, and the object with two fields.
    for (text, bytes) in [
        ("[0,0,0]", 4 * VALUE_BYTES),
        (r#"{"a":"xxxxxxxx","b":[]}"#, 3 * VALUE_BYTES + 2 * NAME_BYTES),
    ] {
        assert!(JsonBudget::new(bytes).parse::<Value>(text).is_ok(), "{text}");
        let read = JsonBudget::new(bytes - 1).parse(text);
        assert_eq!(limit(read), JsonLimit::Values(bytes - 1), "{text}");
    }
    let long = format!("\"{}\"", "x".repeat(1_000));
    assert!(JsonBudget::new(0).parse::<Value>(&long).is_ok());
}

#[test]
fn text_after_the_limit_is_not_read() {
    let broken = format!("[{}oops", "0,".repeat(1_000));
    let read = limit(JsonBudget::new(1_000 * VALUE_BYTES).parse(&broken));
    assert_eq!(read, JsonLimit::Values(1_000 * VALUE_BYTES));
    let failure = read.to_failure("the body", "send less");
    let details = failure.details.unwrap();
    assert_eq!((&*failure.code, &details["limit"]), ("limit", &json!("json_values_bytes")));
}

#[test]
fn json_nested_deeper_than_the_limit_is_rejected() {
    let deepest = nested(JSON_MESSAGE_DEPTH);
    assert!(JsonBudget::default().parse::<Value>(&deepest).is_ok());
    let budget = JsonBudget::default();
    let read = limit(budget.parse(&nested(JSON_MESSAGE_DEPTH + 1)));
    assert_eq!(read, JsonLimit::Depth);
    assert!(budget.parse::<Value>(&deepest).is_ok(), "the depth is reset for each document");
    assert_eq!(read.to_failure("the body", "flatten it").code, "invalid");
}

#[test]
fn documents_with_the_key_of_raw_values_are_rejected() {
    let numbers = json!(format!("[{}0]", "0,".repeat(1_000)));
    let raw = format!("{{\"{RAW_VALUE_KEY}\":{numbers}}}");
    for text in [raw.clone(), raw.replace('$', "\\u0024"), format!("[{{\"a\":{raw}}}]")] {
        let read = JsonBudget::new(10 * VALUE_BYTES).parse::<Value>(&text);
        assert!(matches!(read, Err(JsonError::Syntax(_))), "{text}: {read:?}");
    }
    let value = json!({ "a": RAW_VALUE_KEY });
    let read = JsonBudget::default().parse::<Value>(&value.to_string());
    assert_eq!(read.unwrap(), value, "only the key is reserved");
}

#[test]
fn documents_share_a_budget_until_they_fail() {
    let budget = JsonBudget::new(5 * VALUE_BYTES);
    assert!(budget.parse::<Value>("[0,0]").is_ok());
    assert!(matches!(budget.parse::<Value>("[0"), Err(JsonError::Syntax(_))));
    assert!(budget.parse::<Value>("[0]").is_ok(), "a document with a syntax error does not count");
    assert_eq!(limit(budget.parse("[0]")), JsonLimit::Values(5 * VALUE_BYTES));
    budget.clear();
    assert_eq!(budget.count(&json!([0, 0])), Ok(()));
    assert_eq!(budget.count(&json!([0, 0])), Err(JsonLimit::Values(5 * VALUE_BYTES)));
    assert!(
        budget.parse::<Value>("[0]").is_ok(),
        "a value that exceeded the budget does not count"
    );
}

/// Returns the longest list of numbers whose values take at most `bytes` of memory.
fn list(bytes: u64) -> String {
    let numbers = (bytes / VALUE_BYTES - 1) as usize;
    format!("[{}]", vec!["0"; numbers].join(","))
}

/// Returns a budget whose values take memory of `pool`, at most half of it. The budget owns what
/// they take.
fn budget_in(pool: &Pool<&'static str>, allowed_bytes: u64) -> JsonBudget {
    let (pool, leases) = (pool.clone(), Mutex::new(Vec::new()));
    JsonBudget::new(allowed_bytes).with_memory(move |bytes| {
        let lease = pool.lease("a", bytes as usize, usize::MAX);
        lease.map(|lease| leases.lock().unwrap().push(lease)).is_ok()
    })
}

#[test]
fn values_take_memory_until_their_json_budget_is_dropped() {
    // Half of the pool is four chunks.
    let pool = Pool::new(8 * CHUNK as usize);
    let has_free = |chunks: u64| pool.lease("a", (chunks * CHUNK) as usize, usize::MAX).is_ok();
    let first = budget_in(&pool, u64::MAX);
    first.parse::<Value>(&list(CHUNK)).unwrap();
    assert!(has_free(4), "the first chunk is free");
    first.parse::<Value>(&list(2 * CHUNK)).unwrap();
    assert!(has_free(2) && !has_free(3), "both documents have three chunks of values");

    let second = budget_in(&pool, u64::MAX);
    let refused = second.parse::<Value>(&list(4 * CHUNK));
    assert!(matches!(refused, Err(JsonError::Syntax(_))), "{refused:?}");
    assert!(second.is_memory_refused() && !first.is_memory_refused());
    assert!(second.parse::<Value>("[0]").is_err(), "each further document fails");
    assert!(!has_free(1));
    drop(second);
    assert!(has_free(2) && !has_free(3));
    drop(first);
    assert!(has_free(4));
}

#[test]
fn values_take_no_more_memory_than_their_json_budget_allows() {
    // Half of the pool is half a chunk.
    let pool = Pool::new(CHUNK as usize);
    budget_in(&pool, 3 * CHUNK / 2).parse::<Value>(&list(3 * CHUNK / 2)).unwrap();
    let larger = budget_in(&pool, 2 * CHUNK);
    assert!(larger.parse::<Value>(&list(3 * CHUNK / 2)).is_err() && larger.is_memory_refused());
}

#[test]
fn fields_of_typed_documents_count_against_the_json_budget_like_values() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Typed {
        list: Option<Vec<Value>>,
        choice: Choice,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    enum Choice {
        Many(BTreeMap<String, Value>),
    }
    let text = r#"{"list":[1,[2]],"choice":{"Many":{"a":[3,4]}},"skipped":[5,6,7,8,9]}"#;
    let budget = JsonBudget::default();
    let choice = Choice::Many([("a".to_owned(), json!([3, 4]))].into());
    let expected = Typed { list: Some(vec![json!(1), json!([2])]), choice };
    assert_eq!(budget.parse::<Typed>(text).unwrap(), expected);
    let skipped = VALUE_BYTES + NAME_BYTES + 7;
    let whole = json!({ "list": [1, [2]], "choice": { "Many": { "a": [3, 4] } } });
    assert_eq!(budget.weight(), weight(&whole) + skipped);
}

proptest! {
    #[test]
    fn bounded_parsing_returns_the_values_of_the_parser(text in r#"[\[\]{}",:a1\\. ]{0,16}"#) {
        let budget = JsonBudget::default();
        match (budget.parse::<Value>(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(bounded), Ok(expected)) => {
                prop_assert_eq!(&bounded, &expected);
                // A key that occurs twice counts twice.
                prop_assert!(budget.weight() >= weight(&expected));
            }
            (Err(JsonError::Syntax(_)), Err(_)) => {}
            (bounded, expected) => prop_assert!(false, "{bounded:?}, {expected:?}"),
        }
    }
}
