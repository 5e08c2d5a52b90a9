//! The last resort: a light model that remembers securities.

use wattle_plugin::prelude::{Completion, Deserialize, Failure, llm, log};

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
    Ok(serde_json::from_str(array(&answer.text()))?)
}

/// The array without the fences and words that models like to put around it.
fn array(text: &str) -> &str {
    match (text.find('['), text.rfind(']')) {
        (Some(start), Some(end)) if start < end => &text[start..=end],
        _ => text.trim(),
    }
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
