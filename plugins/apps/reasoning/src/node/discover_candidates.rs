//! `discover_candidates`: finds data attributes and ontologies that match the question.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, emit, json, node,
};

use crate::mcp;
use crate::node::clarify;
use crate::state::{Candidate, Clarification, Intent};

/// Maximum keywords and maximum business elements that are searched for, in addition to the
/// question.
const WORDS: usize = 4;

/// Maximum attributes of one search and of the result.
const ATTRIBUTES: usize = 20;

/// Number of best attributes whose ontologies are requested.
const RELATED: usize = 8;

/// Maximum searches for ontologies.
const ONTOLOGY_SEARCHES: usize = 2;

/// Maximum ontologies of the result.
const ONTOLOGIES: usize = 20;

/// Score that each attribute adds to an ontology.
const SCORE_PER_HIT: f64 = 0.1;

const NO_ATTRIBUTE: &str = "未定位到关键数据属性，请补充更具体的业务要素或字段。";
const NO_ONTOLOGY: &str = "未定位到相关的业务本体，请补充业务对象，例如客户、订单或合同。";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
    intent: Intent,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    candidate_attributes: Vec<Candidate>,
    candidate_ontologies: Vec<Candidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clarification: Option<Clarification>,
}

/// An attribute with the ontologies that have it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Related {
    ontologies: Vec<Candidate>,
}

/// Finds candidates for the question, best first.
#[node]
pub(crate) fn discover_candidates(_context: &Context, input: Input) -> Result<Update, Failure> {
    let queries = queries(&input.query, &input.intent);
    let attributes = attributes(&queries)?;
    emit::custom("attributes_matched", json!({ "queries": queries, "attributes": attributes }))?;
    if attributes.is_empty() {
        let clarification = Some(clarify("no_attribute_match", NO_ATTRIBUTE)?);
        return Ok(Update {
            candidate_attributes: attributes,
            candidate_ontologies: Vec::new(),
            clarification,
        });
    }
    let ontologies = ontologies(&queries, &attributes)?;
    emit::custom("ontologies_located", json!({ "ontologies": ontologies }))?;
    let clarification =
        if ontologies.is_empty() { Some(clarify("no_ontology_match", NO_ONTOLOGY)?) } else { None };
    Ok(Update { candidate_attributes: attributes, candidate_ontologies: ontologies, clarification })
}

/// Returns the question, its keywords and its business elements, without duplicates.
fn queries(query: &str, intent: &Intent) -> Vec<String> {
    let words = intent.keywords.iter().take(WORDS);
    let words = words.chain(intent.business_elements.iter().take(WORDS)).map(String::as_str);
    let mut queries: Vec<String> = Vec::new();
    for text in std::iter::once(query).chain(words).map(str::trim) {
        if !text.is_empty() && !queries.iter().any(|known| known == text) {
            queries.push(text.to_owned());
        }
    }
    queries
}

fn attributes(queries: &[String]) -> Result<Vec<Candidate>, Failure> {
    let arguments = |query: &String| {
        json!({ "query": query, "top_n": ATTRIBUTES, "score_gap": 0, "relative_diff": 0,
                "w_sparse": 0.45, "w_dense": 0.55 })
    };
    let arguments = queries.iter().map(arguments).collect();
    let found = mcp::items_of_all::<Candidate>(mcp::LIST_DATA_ATTRIBUTES, arguments)?;
    Ok(best(found.into_iter().flatten(), ATTRIBUTES))
}

fn ontologies(queries: &[String], attributes: &[Candidate]) -> Result<Vec<Candidate>, Failure> {
    let codes: Vec<&str> = attributes.iter().take(RELATED).map(|known| &*known.code).collect();
    let related = mcp::items(mcp::RELATED_ONTOLOGIES, json!({ "attributeCodes": codes }))?;
    let arguments: Vec<Value> =
        queries.iter().take(ONTOLOGY_SEARCHES).map(|query| json!({ "query": query })).collect();
    let named = mcp::items_of_all::<Candidate>(mcp::LIST_ONTOLOGIES, arguments)?;
    Ok(best(by_hits(related).into_iter().chain(named.into_iter().flatten()), ONTOLOGIES))
}

/// Scores ontologies by the number of attributes that they have.
fn by_hits(related: Vec<Related>) -> Vec<Candidate> {
    let mut hits: BTreeMap<String, (u32, Candidate)> = BTreeMap::new();
    for ontology in related.into_iter().flat_map(|related| related.ontologies) {
        hits.entry(ontology.code.clone()).or_insert((0, ontology)).0 += 1;
    }
    let score = |hits: u32| (f64::from(hits) * SCORE_PER_HIT * 10_000.0).round() / 10_000.0;
    let scored = hits.into_values();
    scored.map(|(hits, ontology)| Candidate { score: score(hits), ..ontology }).collect()
}

/// Returns at most `most` candidates with the highest score of each code, in descending order of
/// scores and, for equal scores, in the order of codes.
fn best(candidates: impl Iterator<Item = Candidate>, most: usize) -> Vec<Candidate> {
    let mut by_code: BTreeMap<String, Candidate> = BTreeMap::new();
    for candidate in candidates.filter(|candidate| !candidate.code.is_empty()) {
        match by_code.get_mut(&candidate.code) {
            Some(known) if known.score >= candidate.score => {}
            Some(known) => *known = candidate,
            None => {
                by_code.insert(candidate.code.clone(), candidate);
            }
        }
    }
    let mut sorted: Vec<Candidate> = by_code.into_values().collect();
    sorted.sort_by(|one, two| two.score.total_cmp(&one.score));
    sorted.truncate(most);
    sorted
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::{best, discover_candidates};
    use crate::mcp::{LIST_DATA_ATTRIBUTES, LIST_ONTOLOGIES, RELATED_ONTOLOGIES};
    use crate::state::Candidate;
    use crate::testing::lists;

    fn run(attributes: Value, related: Value, named: Value) -> (Decision, FakeHost) {
        let host = lists(FakeHost::new(), LIST_DATA_ATTRIBUTES, attributes);
        let host = lists(host, RELATED_ONTOLOGIES, related);
        let host = lists(host, LIST_ONTOLOGIES, named);
        let intent = json!({"keywords": ["客户", "电话", "a", "b", "c"],
                            "business_elements": ["客户", "区域"]});
        let input = json!({"query": "查客户电话", "intent": intent});
        let decision = host.run(|| run_node::<discover_candidates>(&Context::default(), &input));
        (decision.unwrap(), host)
    }

    fn attribute(code: &str, score: f64) -> Value {
        json!({"code": code, "name": code, "score": score})
    }

    #[test]
    fn words_are_searched_and_hits_are_scored() {
        let customer = json!({"code": "customer", "name": "客户"});
        let order = json!({"code": "order", "name": "订单"});
        let related = json!([
            {"attributeCode": "phone", "ontologies": [customer, order]},
            {"attributeCode": "name", "ontologies": [customer]},
            {"attributeCode": "region", "ontologies": [customer]},
        ]);
        let named = json!([{"code": "order", "score": 0.25}, {"code": "contract", "score": 0.1}]);
        let (decision, host) =
            run(json!([attribute("phone", 0.9), attribute("name", 0.95)]), related, named);
        let codes = |channel: &str| -> Vec<(String, f64)> {
            let list: Vec<Candidate> =
                serde_json::from_value(decision.update(channel).unwrap().clone()).unwrap();
            list.into_iter().map(|found| (found.code, found.score)).collect()
        };
        assert_eq!(codes("candidate_attributes"), [("name".into(), 0.95), ("phone".into(), 0.9)]);
        assert_eq!(
            codes("candidate_ontologies"),
            [("customer".into(), 0.3), ("order".into(), 0.25), ("contract".into(), 0.1)]
        );
        let calls = host.tool_calls();
        let searched: Vec<&Value> = calls
            .iter()
            .filter(|call| call.tool == LIST_DATA_ATTRIBUTES)
            .map(|call| &call.arguments["query"])
            .collect();
        assert_eq!(searched, ["查客户电话", "客户", "电话", "a", "b", "区域"]);
        assert_eq!(
            calls[0].arguments,
            json!({"query": "查客户电话", "top_n": 20, "score_gap": 0, "relative_diff": 0,
                   "w_sparse": 0.45, "w_dense": 0.55})
        );
        assert_eq!(calls.iter().filter(|call| call.tool == LIST_ONTOLOGIES).count(), 2);
        let names: Vec<String> = host.emitted().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["attributes_matched", "ontologies_located"]);
    }

    #[test]
    fn missing_attributes_or_ontologies_request_a_clarification() {
        let (decision, host) = run(json!([]), json!([]), json!([]));
        let asked = decision.update("clarification").unwrap();
        assert_eq!(asked["reason"], "no_attribute_match");
        assert_eq!(asked["question"], "未定位到关键数据属性，请补充更具体的业务要素或字段。");
        assert!(host.tool_calls().iter().all(|call| call.tool == LIST_DATA_ATTRIBUTES));
        let (decision, _) = run(json!([attribute("phone", 0.9)]), json!([]), json!([]));
        assert_eq!(decision.update("clarification").unwrap()["reason"], "no_ontology_match");
    }

    #[test]
    fn highest_score_counts_and_ties_are_ordered_by_code() {
        let found =
            |code: &str, score| Candidate { code: code.into(), score, ..Candidate::default() };
        let all =
            [found("b", 0.5), found("a", 0.5), found("b", 0.2), found("c", 0.7), found("", 1.0)];
        let codes: Vec<String> = best(all.into_iter(), 2).into_iter().map(|c| c.code).collect();
        assert_eq!(codes, ["c", "a"]);
    }
}
