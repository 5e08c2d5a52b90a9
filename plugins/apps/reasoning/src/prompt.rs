//! Instructions of the model calls, one file each in the folder `prompts`.
//!
//! The instructions are constant. Data that differs from call to call is in the facts, a JSON
//! document in the user message, so text of a user or of a service never becomes an instruction.

/// Instructions of `understand_intent`.
pub(crate) const UNDERSTAND: &str = include_str!("../prompts/understand_intent.md");
/// Instructions of `select_anchor_ontologies`.
pub(crate) const SELECT: &str = include_str!("../prompts/select_anchor_ontologies.md");
/// Instructions of `inspect_ontology`.
pub(crate) const INSPECT: &str = include_str!("../prompts/inspect_ontology.md");
/// Instructions of `execute` for a capability.
pub(crate) const PLAN_CAPABILITY: &str = include_str!("../prompts/plan_capability.md");
/// Instructions of `execute` for an object property.
pub(crate) const PLAN_OBJECT_PROPERTY: &str = include_str!("../prompts/plan_object_property.md");
/// Instructions of `finalize`.
pub(crate) const SUMMARIZE: &str = include_str!("../prompts/finalize.md");

#[cfg(test)]
mod tests {
    use super::{INSPECT, PLAN_CAPABILITY, PLAN_OBJECT_PROPERTY, SELECT, SUMMARIZE, UNDERSTAND};

    /// Checks that a prompt contains phrases. Each phrase is a rule of a requirement or the name of
    /// a field.
    fn check(prompt: &str, phrases: &[&str]) {
        for phrase in phrases {
            assert!(prompt.contains(phrase), "`{phrase}` is missing in: {prompt}");
        }
    }

    #[test]
    fn s1_21_intent_prompt_requests_four_fields_and_forbids_inventions() {
        check(
            UNDERSTAND,
            &["keywords", "business_elements", "goal_actions", "intent_summary", "只做理解"],
        );
        check(UNDERSTAND, &["[clarification]", "today", "原样照抄", "留空数组", "不要编造"]);
    }

    #[test]
    fn s1_31_s1_33_selection_prompt_permits_only_candidates_or_none() {
        check(SELECT, &["input_ontology_codes", "target_ontology_codes", "selection_reason"]);
        check(SELECT, &["可以多个", "可以为空", "只能使用 candidates 中出现的 code"]);
        check(SELECT, &["请用户补充", "不要随意选一个", "correction"]);
    }

    #[test]
    fn s1_34_s1_36_inspection_prompt_requests_one_resource_and_no_plan() {
        check(INSPECT, &["execute_capability", "capability_code", "二选一"]);
        check(INSPECT, &["execute_object_property", "object_property_code", "reason"]);
        check(INSPECT, &["只能使用输入中出现的 code", "不规划执行细节", "correction"]);
    }

    #[test]
    fn s1_47_s1_48_plan_prompts_require_explicit_values() {
        for prompt in [PLAN_CAPABILITY, PLAN_OBJECT_PROPERTY] {
            check(prompt, &["mode", "query", "group-analysis", "group_by", "metrics"]);
            check(prompt, &["page_size", "sort_field", "sort_order", "field_name", "operators"]);
            check(prompt, &["明确取值", "手机号", "必须写入 filters", "原样照抄", "不要遗漏"]);
            check(
                prompt,
                &["correction", "除了……以外", "不能写成 eq 或 in", "today", "上个月", "2024-12"],
            );
            for op in ["eq", "ne", "in", "not_in", "like", "gt", "gte", "lt", "lte"] {
                check(prompt, &[op]);
            }
        }
        check(PLAN_OBJECT_PROPERTY, &["target_ontology_code", "targets"]);
    }

    #[test]
    fn s1_54_summary_prompt_permits_only_the_data() {
        check(
            SUMMARIZE,
            &["summary", "不要编造数字", "没有查到", "plan.ignored", "items", "total"],
        );
    }
}
