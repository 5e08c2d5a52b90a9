//! `select_anchor_ontologies`: chooses the ontologies to start from and the target ontologies.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, emit, json, node,
};

use crate::model;
use crate::node::clarify;
use crate::state::{self, Candidate, Clarification, Intent, PlanState, Turn};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/select_anchor_ontologies.md");

const NO_ANCHOR: &str = "无法确定从哪个业务对象入手，请说明您要查的是哪一类对象。";

/// Selection reason if the preference of the caller decides.
const PREFERRED: &str = "模型没有选出候选本体，按调用方指定的偏好选择";

/// Maximum candidates in the question to the user.
const OFFERED: usize = 5;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
    intent: Intent,
    #[serde(default)]
    candidate_ontologies: Vec<Candidate>,
    turn: Option<Turn>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    plan_state: PlanState,
    #[serde(skip_serializing_if = "Option::is_none")]
    clarification: Option<Clarification>,
}

/// What the model chooses.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Selection {
    #[schemars(with = "Vec<String>")]
    input_ontology_codes: Option<Vec<String>>,
    target_ontology_codes: Vec<String>,
    selection_reason: String,
}

/// Chooses anchors and targets among the candidates.
#[node]
pub(crate) fn select_anchor_ontologies(
    _context: &Context,
    input: Input,
) -> Result<Update, Failure> {
    let candidates = &input.candidate_ontologies;
    let facts = json!({ "query": input.query, "intent": input.intent, "candidates": candidates });
    let chosen = model::choose("reasoning_anchor", PROMPT, &facts, |it, _| settle(it, candidates))?;
    let mut plan_state = chosen.unwrap_or_default();
    if plan_state.input_ontology_codes.is_empty()
        && let Some(preferred) = preferred(&input.turn.unwrap_or_default(), candidates)
    {
        plan_state.input_ontology_codes.push(preferred.code.clone());
        plan_state.selection_reason = Some(PREFERRED.to_owned());
    }
    let clarification = if plan_state.input_ontology_codes.is_empty() {
        Some(clarify("anchor_ontology_missing", &question(candidates))?)
    } else {
        None
    };
    emit::custom("ontology_selected", serde_json::to_value(&plan_state)?)?;
    Ok(Update { plan_state, clarification })
}

/// Returns the choice without codes that are not candidates. It is an error if no anchor is left of
/// a non-empty choice. An empty choice means that no candidate matches.
fn settle(selection: Selection, candidates: &[Candidate]) -> Result<PlanState, String> {
    let Some(codes) = selection.input_ontology_codes else {
        return Err("缺少 input_ontology_codes，没有符合的候选时写空数组".to_owned());
    };
    let anchors = known(&codes, candidates);
    if anchors.is_empty() && !codes.is_empty() {
        let wrong = codes.join("、");
        return Err(format!("input_ontology_codes 中的 {wrong} 不在 candidates 中"));
    }
    Ok(PlanState {
        input_ontology_codes: anchors,
        target_ontology_codes: known(&selection.target_ontology_codes, candidates),
        selection_reason: Some(selection.selection_reason),
        ..PlanState::default()
    })
}

/// Returns the codes of the candidates that `words` name, without duplicates, in the order of
/// `words`.
fn known(words: &[String], candidates: &[Candidate]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        let names = candidates.iter().map(|known| (&*known.code, &*known.name));
        let code = state::meant(names, word).map(|at| &candidates[at].code);
        if let Some(code) = code.filter(|code| !kept.contains(code)) {
            kept.push(code.clone());
        }
    }
    kept
}

/// Returns the best candidate that the caller prefers.
fn preferred<'a>(turn: &Turn, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
    candidates.iter().find(|found| turn.preferred_ontology_codes.contains(&found.code))
}

/// Returns the question to the user, with the objects to choose from.
fn question(candidates: &[Candidate]) -> String {
    let names: Vec<&str> = candidates.iter().take(OFFERED).map(|found| &*found.name).collect();
    if names.is_empty() {
        NO_ANCHOR.to_owned()
    } else {
        format!("{NO_ANCHOR}可能相关的有：{}。", names.join("、"))
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, select_anchor_ontologies};

    fn run(answer: Value, candidates: Value, turn: Value) -> Decision {
        let host = FakeHost::new().llm(move |_| Ok(Completion::of_json(answer.clone())));
        let input =
            json!({"query": "查", "intent": {}, "candidate_ontologies": candidates, "turn": turn});
        host.run(|| run_node::<select_anchor_ontologies>(&Context::default(), &input)).unwrap()
    }

    fn anchors(decision: &Decision) -> &Value {
        &decision.update("plan_state").unwrap()["input_ontology_codes"]
    }

    #[test]
    fn codes_that_are_not_candidates_are_dropped() {
        let candidates =
            json!([{"code": "order", "score": 0.9}, {"code": "customer", "score": 0.5}]);
        let answer = json!({"input_ontology_codes": ["customer", "ship", "customer"],
                            "target_ontology_codes": ["order", "ship"], "selection_reason": "因为"});
        let decision = run(answer, candidates, Value::Null);
        assert_eq!(
            decision.update("plan_state"),
            Some(&json!({"input_ontology_codes": ["customer"], "target_ontology_codes": ["order"],
                         "selection_reason": "因为"}))
        );
        assert_eq!(decision.update("clarification"), None);
    }

    #[test]
    fn s1_33_candidates_can_be_chosen_by_name() {
        let candidates = json!([{"code": "order", "name": "订单"}, {"code": "customer"}]);
        let decision =
            run(json!({"input_ontology_codes": ["订单", "Customer"]}), candidates, Value::Null);
        assert_eq!(anchors(&decision), &json!(["order", "customer"]));
    }

    #[test]
    fn s1_33_missing_choice_uses_the_preference_or_requests_a_clarification() {
        let candidates = json!([{"code": "order", "name": "订单"}, {"code": "customer"}]);
        let turn = json!({"session_id": "s", "turn_id": "t", "turn_no": 1,
                          "preferred_ontology_codes": ["customer"]});
        for poor in [json!({"input_ontology_codes": ["ship"]}), json!({})] {
            let preferred = run(poor.clone(), candidates.clone(), turn.clone());
            assert_eq!(anchors(&preferred), &json!(["customer"]));
            let reason = &preferred.update("plan_state").unwrap()["selection_reason"];
            assert!(reason.as_str().unwrap().contains("偏好"), "the substitution is said");
            let asked = run(poor.clone(), candidates.clone(), Value::Null);
            let clarification = asked.update("clarification").unwrap();
            assert_eq!(clarification["reason"], "anchor_ontology_missing");
            assert!(clarification["question"].as_str().unwrap().contains("订单"));
        }
    }

    #[test]
    fn s1_31_s1_33_selection_prompt_permits_only_candidates_or_none() {
        assert_contains(
            PROMPT,
            &["input_ontology_codes", "target_ontology_codes", "selection_reason"],
        );
        assert_contains(PROMPT, &["可以多个", "可以为空", "只能使用 candidates 中出现的 code"]);
        assert_contains(PROMPT, &["请用户补充", "不要随意选一个", "correction"]);
    }
}
