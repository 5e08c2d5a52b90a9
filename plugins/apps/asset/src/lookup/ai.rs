//! The last resort: a light model that remembers securities.

use serde_json::Deserializer;
use wattle_plugin::prelude::{Completion, Deserialize, Failure, Value, llm, log};

use crate::lookup::{RESULTS, Security};

const SEARCH_PROMPT: &str = include_str!("../../prompts/enrich.md");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestion {
    ticker: String,
    name: Option<String>,
    #[serde(rename = "nameCN")]
    name_cn: Option<String>,
    currency_name: Option<String>,
}

/// Searches for several names at once. Whatever goes wrong, nothing is found.
pub(super) fn search(queries: &[String]) -> Vec<Option<Security>> {
    if queries.is_empty() {
        return Vec::new();
    }
    let requests = queries.iter().map(|query| request(query)).collect();
    let answers = llm::complete_all(requests).into_iter().zip(queries);
    answers
        .map(|(answer, query)| match answer.and_then(|answer| suggestions(&answer)) {
            Ok(suggestions) => best(suggestions),
            Err(failure) => {
                log::warn!("look up `{query}` with the light model: {failure}");
                None
            }
        })
        .collect()
}

fn request(query: &str) -> llm::Request {
    llm::Request::route("light").system(SEARCH_PROMPT.trim_end()).user(query).temperature(0.0)
}

fn suggestions(answer: &Completion) -> Result<Vec<Suggestion>, Failure> {
    last_list(&answer.text())
        .ok_or_else(|| Failure::invalid("the answer has no list of securities"))
}

/// The last list of securities in a text: models put words, fences and drafts around it.
fn last_list(text: &str) -> Option<Vec<Suggestion>> {
    let (mut last, mut rest) = (None, text);
    while let Some(start) = rest.find('[') {
        rest = &rest[start..];
        let mut lists = Deserializer::from_str(rest).into_iter::<Value>();
        // What is no JSON may have a list within it; a part of a list is not looked at.
        let Some(Ok(list)) = lists.next() else {
            rest = &rest[1..];
            continue;
        };
        rest = &rest[lists.byte_offset()..];
        last = serde_json::from_value(list).ok().or(last);
    }
    last
}

fn best(suggestions: Vec<Suggestion>) -> Option<Security> {
    suggestions.into_iter().take(RESULTS as usize).find_map(|suggestion| {
        let names = [suggestion.name_cn.as_deref(), suggestion.name.as_deref()];
        Security::from_service(&suggestion.ticker, names, suggestion.currency_name)
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Failure};
    use wattle_plugin::testing::FakeHost;

    use super::{SEARCH_PROMPT, search};

    fn check(answer: Result<&'static str, ()>, expected: Option<&str>) {
        let host = FakeHost::new().llm(move |request| {
            assert_eq!(request.route, "light");
            answer.map(Completion::of_text).map_err(|()| Failure::unavailable("down"))
        });
        let found = host.run(|| search(&["宁德时代".to_owned()])).remove(0);
        let found = found.map(|security| format!("{} {}", security.ticker, security.name));
        assert_eq!(found.as_deref(), expected, "{answer:?}");
    }

    #[test]
    fn arrays_are_read_with_and_without_fences() {
        let plain = r#"[{"ticker":"300750.SZ","name":"CATL","nameCN":"宁德时代"}]"#;
        check(Ok(plain), Some("300750.SZ 宁德时代"));
        let fenced = "好的：\n```json\n[{\"ticker\":\"700.HK\",\"name\":\"Tencent\"}]\n```\n";
        check(Ok(fenced), Some("0700.HK Tencent"));
        let drafts = "As in [1]: [], no: [{\"ticker\":\"300750.SZ\",\"name\":\"CATL\"}] [2]";
        check(Ok(drafts), Some("300750.SZ CATL"));
    }

    #[test]
    fn s0_43_the_prompt_asks_for_the_five_fields_and_for_no_inventions() {
        for rule in [
            "ticker",
            "name",
            "nameCN",
            "primaryExchange",
            "currencyName",
            "最多 3 项",
            "JSON 数组",
            "空数组 []",
            "不要编造",
            "0700.HK",
            "600519.SS",
            "000001.SZ",
            "920748.BJ",
        ] {
            assert!(SEARCH_PROMPT.contains(rule), "{rule}");
        }
        assert!(!SEARCH_PROMPT.contains("{{"), "no placeholders");
    }

    #[test]
    fn errors_find_nothing() {
        for answer in ["[]", "", "不知道", "[{}]", "{\"ticker\":1}", "[{\"ticker\":\"UNKNOWN\"}]"]
        {
            check(Ok(answer), None);
        }
        check(Err(()), None);
    }
}
