//! Search with a light model, the last source of a lookup.

use serde_json::Deserializer;
use wattle_plugin::prelude::{Failure, Value, llm};

use crate::lookup::security::{RESULTS, Security};

const SEARCH_PROMPT: &str = include_str!("../../prompts/enrich.md");

/// Searches for several queries concurrently. A completion without a list of securities is a
/// failure, because it does not say that there is none.
pub(super) fn search(queries: &[String]) -> Vec<Result<Option<Security>, Failure>> {
    if queries.is_empty() {
        return Vec::new();
    }
    let requests = queries.iter().map(|query| request(query)).collect();
    let completions = llm::complete_all(requests).into_iter();
    completions.map(|completion| last_hit(&completion?.text())).collect()
}

fn request(query: &str) -> llm::Request {
    llm::Request::route("light").system(SEARCH_PROMPT.trim_end()).user(query).temperature(0.0)
}

/// Returns the first valid security of the last JSON array that has one. Models write words, code
/// fences and drafts around this array, and other arrays after it.
///
/// # Errors
///
/// `invalid` if the text has no JSON array.
fn last_hit(text: &str) -> Result<Option<Security>, Failure> {
    let (mut hit, mut has_list, mut rest) = (None, false, text);
    while let Some(start) = rest.find('[') {
        rest = &rest[start..];
        let mut lists = Deserializer::from_str(rest).into_iter::<Value>();
        // Text that is not JSON can contain an array. A parsed array is skipped as a whole, so its
        // elements are not parsed again.
        let Some(Ok(list)) = lists.next() else {
            rest = &rest[1..];
            continue;
        };
        rest = &rest[lists.byte_offset()..];
        has_list = true;
        hit = best(&list).or(hit);
    }
    if has_list { Ok(hit) } else { Err(Failure::invalid("the answer has no list of securities")) }
}

/// Returns the first valid security among the first [`RESULTS`] elements.
fn best(list: &Value) -> Option<Security> {
    let suggestions = list.as_array()?;
    suggestions.iter().take(RESULTS as usize).find_map(security)
}

fn security(suggestion: &Value) -> Option<Security> {
    let text = |field: &str| suggestion.get(field).and_then(Value::as_str);
    let currency = text("currencyName").map(str::to_owned);
    Security::from_service(text("ticker")?, [text("nameCN"), text("name")], currency)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Failure};
    use wattle_plugin::testing::{FakeHost, assert_contains};

    use super::{SEARCH_PROMPT, last_hit, search};

    /// Returns the ticker and the name that a completion of the light model has.
    fn found(completion: Result<&'static str, ()>) -> Result<Option<String>, Failure> {
        let host = FakeHost::new().llm(move |request| {
            assert_eq!(request.route, "light");
            completion.map(Completion::of_text).map_err(|()| Failure::unavailable("down"))
        });
        let found = host.run(|| search(&["宁德时代".to_owned()])).remove(0)?;
        Ok(found.map(|security| format!("{} {}", security.ticker, security.name)))
    }

    fn check(completion: &'static str, expected: Option<&str>) {
        assert_eq!(found(Ok(completion)).unwrap().as_deref(), expected, "{completion}");
    }

    #[test]
    fn arrays_are_parsed_with_and_without_fences() {
        let plain = r#"[{"ticker":"300750.SZ","name":"CATL","nameCN":"宁德时代"}]"#;
        check(plain, Some("300750.SZ 宁德时代"));
        let fenced = "好的：\n```json\n[{\"ticker\":\"700.HK\",\"name\":\"Tencent\"}]\n```\n";
        check(fenced, Some("0700.HK Tencent"));
        let drafts = "As in [1]: [], no: [{\"ticker\":\"300750.SZ\",\"name\":\"CATL\"}] [2]";
        check(drafts, Some("300750.SZ CATL"));
    }

    #[test]
    fn other_arrays_and_invalid_elements_are_skipped() {
        const HIT: &str = r#"[{"ticker":"300750.SZ","name":"CATL"}]"#;
        for others in ["其他：[]", "[1]", "[{}]", r#"[{"ticker":"UNKNOWN"}]"#, "[unfinished"] {
            for answer in [format!("{HIT}\n{others}"), format!("{others}\n{HIT}")] {
                let hit = last_hit(&answer).unwrap().map(|security| security.ticker);
                assert_eq!(hit.as_deref(), Some("300750.SZ"), "{answer}");
            }
        }
        let odd = r#"[{"ticker":null},"?",{"ticker":"300750.SZ","name":5,"nameCN":"宁德时代"}]"#;
        check(odd, Some("300750.SZ 宁德时代"));
        let two = r#"[{"ticker":"AAPL"}] No: [{"ticker":"300750.SZ","name":"CATL"}] []"#;
        check(two, Some("300750.SZ CATL"));
    }

    #[test]
    fn s0_43_prompt_requests_the_five_fields_and_forbids_inventions() {
        assert_contains(SEARCH_PROMPT, &["ticker", "name", "nameCN", "primaryExchange"]);
        assert_contains(SEARCH_PROMPT, &["currencyName", "最多 3 项", "JSON 数组", "空数组 []"]);
        assert_contains(SEARCH_PROMPT, &["不要编造", "0700.HK", "600519.SS", "000001.SZ"]);
        assert_contains(SEARCH_PROMPT, &["920748.BJ"]);
        assert!(!SEARCH_PROMPT.contains("{{"), "no placeholders");
    }

    #[test]
    fn lists_without_a_security_have_no_result() {
        for completion in ["[]", "[{}]", "[{\"ticker\":\"UNKNOWN\"}]"] {
            check(completion, None);
        }
    }

    #[test]
    fn completions_without_a_list_are_failures() {
        for completion in [Ok(""), Ok("不知道"), Ok("{\"ticker\":1}"), Err(())] {
            found(completion).unwrap_err();
        }
    }
}
