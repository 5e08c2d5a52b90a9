//! The prompts, one file in `prompts` each. [`wattle_plugin::prompt::fill`] fills their
//! placeholders.

/// Prompt of `intent_recognition`.
pub(crate) const INTENT_RECOGNITION: &str = include_str!("../prompts/intent_recognition.md");

/// Prompt of `task_parse`.
pub(crate) const TASK_PARSE: &str = include_str!("../prompts/task_parse.md");

/// Message that names the fields of a task that are not in the allowlist.
pub(crate) const TASK_PARSE_REPAIR: &str = include_str!("../prompts/task_parse_repair.md");

/// Prompt of `sql_generation`.
pub(crate) const SQL_GENERATION: &str = include_str!("../prompts/sql_generation.md");

/// Prompt of `result_return`.
pub(crate) const RESULT_RETURN: &str = include_str!("../prompts/result_return.md");

#[cfg(test)]
mod tests {
    use super::*;

    fn insist(prompt: &str, rules: &[&str]) {
        for rule in rules {
            assert!(prompt.contains(rule), "`{rule}` is not in the prompt:\n{prompt}");
        }
    }

    #[test]
    fn s4_05_s4_14_the_intent_prompt_names_fields_and_labels() {
        insist(
            INTENT_RECOGNITION,
            &[
                "message",
                "history_user_messages",
                "intent",
                "business_query",
                "chat",
                "is_followup",
                "confidence：你对 intent 的把握，0 到 1",
                "merged_query",
                "rewritten_query",
                "不添加用户没有说过的条件",
                "今天是 {{today}}",
            ],
        );
    }

    #[test]
    fn s4_06_s4_07_the_task_prompt_names_fields_operators_and_the_white_list() {
        insist(
            TASK_PARSE,
            &[
                "entities",
                "dimensions",
                "metrics",
                "filters",
                "time_range",
                "YYYY-MM-DD",
                "confidence",
                "= != > < >= <= like in not in between",
                "detail 明细，aggregate 汇总，ranking 排名，trend 按时间的趋势",
                "field 必须是下面白名单里的“表.字段”",
                "今天是 {{today}}",
                "白名单：\n{{schema}}",
            ],
        );
        insist(TASK_PARSE_REPAIR, &["{{fields}}", "白名单", "完整的任务"]);
    }

    #[test]
    fn s4_08_s4_31_the_sql_prompt_has_the_rules_that_the_checks_enforce() {
        insist(
            SQL_GENERATION,
            &[
                "只读",
                "以 WITH 开头",
                "只用白名单里的表和字段",
                "只写一条语句",
                "is_deleted = 0",
                "半开区间",
                "LIMIT",
                "entity_mappings：parse_result.entities 里的每个实体一条",
                "真的出现在 SQL 里",
                "hidden_context_result",
                "failed_sql",
                "field_candidates",
                "probe_samples",
                "hints",
                "今天是 {{today}}",
                "数据库方言：{{dialect}}",
                "白名单：\n{{schema}}",
            ],
        );
        // Words by which a metric of 0 is detected (S4-33).
        insist(SQL_GENERATION, &["count、total、avg"]);
    }

    #[test]
    fn s4_42_the_summary_prompt_asks_for_exact_figures() {
        insist(
            RESULT_RETURN,
            &[
                "message",
                "final_status",
                "reason_code",
                "row_count",
                "rows",
                "summary",
                "数字照抄，不推测",
                "不提 SQL",
                "闲聊",
            ],
        );
    }
}
