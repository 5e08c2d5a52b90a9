//! `select_anchor_ontologies`: from which ontologies to start, and which to reach.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, emit, json, node,
};

use crate::model;
use crate::node::clarify;
use crate::state::{Candidate, Clarification, Intent, PlanState, Turn};

const SELECT_PROMPT: &str = "\
你是本体选择器。根据用户的问题和意图，从候选本体中选择：
- input_ontology_codes：作为起点的锚点本体，至少一个，可以多个，按重要性排序。起点通常是问题中给出条件的对象。
- target_ontology_codes：需要到达的目标本体，可以为空。只有当用户要的数据在另一个对象上时才填写。
- selection_reason：用一两句话说明选择的理由。
输入是一个 JSON：query、intent 和 candidates（code、name、description、score，按分数排序）。
只能使用 candidates 中出现的 code。";

const NO_ANCHOR: &str = "无法确定从哪个业务对象入手，请说明您要查的是哪一类对象。";

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
    input_ontology_codes: Vec<String>,
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
    let selection: Selection = model::decide("reasoning_anchor", SELECT_PROMPT, &facts)?;
    let is_candidate = |code: &String| candidates.iter().any(|known| known.code == *code);
    let mut anchors = once_each(selection.input_ontology_codes, is_candidate);
    if anchors.is_empty() {
        anchors.extend(second_choice(&input.turn.unwrap_or_default(), candidates));
    }
    let targets = once_each(selection.target_ontology_codes, is_candidate);
    let clarification = if anchors.is_empty() {
        Some(clarify("anchor_ontology_missing", NO_ANCHOR)?)
    } else {
        None
    };
    let plan_state = PlanState {
        input_ontology_codes: anchors,
        target_ontology_codes: targets,
        selection_reason: Some(selection.selection_reason),
        ..PlanState::default()
    };
    emit::custom("ontology_selected", serde_json::to_value(&plan_state)?)?;
    Ok(Update { plan_state, clarification })
}

/// Codes that are allowed, each once, in their order.
fn once_each(codes: Vec<String>, is_allowed: impl Fn(&String) -> bool) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for code in codes {
        if is_allowed(&code) && !kept.contains(&code) {
            kept.push(code);
        }
    }
    kept
}

/// The caller's preference, or else the best candidate.
fn second_choice(turn: &Turn, candidates: &[Candidate]) -> Option<String> {
    let is_preferred = |found: &&Candidate| turn.preferred_ontology_codes.contains(&found.code);
    let preferred = candidates.iter().find(is_preferred);
    preferred.or(candidates.first()).map(|found| found.code.clone())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::select_anchor_ontologies;

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
    fn only_candidates_are_chosen() {
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
    fn a_poor_choice_falls_to_the_preferred_then_to_the_best() {
        let candidates = json!([{"code": "order"}, {"code": "customer"}]);
        let poor = json!({"input_ontology_codes": ["ship"]});
        let turn = json!({"session_id": "s", "turn_id": "t", "turn_no": 1,
                          "preferred_ontology_codes": ["customer"]});
        assert_eq!(anchors(&run(poor.clone(), candidates.clone(), turn)), &json!(["customer"]));
        assert_eq!(anchors(&run(poor.clone(), candidates, Value::Null)), &json!(["order"]));
        let decision = run(poor, json!([]), Value::Null);
        assert_eq!(decision.update("clarification").unwrap()["reason"], "anchor_ontology_missing");
    }
}
