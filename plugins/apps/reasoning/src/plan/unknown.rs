//! Words of a plan that name nothing, apart from the words of conditions.
//!
//! A word keeps its meaning or the plan is not executed: with a default in its place, the data
//! would belong to another question. Only an empty word means the default.

use wattle_plugin::prelude::{Failure, json};

/// Failure code of a plan that has a word with an unknown meaning.
pub(crate) const UNKNOWN_WORD: &str = "unknown-word";

/// Part of a plan that has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Mode,
    Groups,
    Metrics,
    SortField,
    SortOrder,
}

/// The words of a part that name nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown {
    part: Part,
    words: String,
}

impl Unknown {
    /// Creates the unknown words of a part. `words` are joined by `、`.
    pub(super) fn new(part: Part, words: impl Into<String>) -> Self {
        Self { part, words: words.into() }
    }

    /// Returns the correction for the model.
    pub(crate) fn correction(&self) -> String {
        let words = &self.words;
        match self.part {
            Part::Mode => {
                format!("mode {words} 无法识别，请按原意改用 query、group-analysis 之一")
            }
            Part::Groups => format!("group_by 中的 {words} 不在 attributes 的 field_name 中"),
            Part::Metrics => format!(
                "metrics 中的 {words} 无法识别，agg 请按原意改用 count、sum、avg、min、max 之一，\
                 除 count 外 field 要写 attributes 中的 field_name"
            ),
            Part::SortField => format!(
                "sort_field {words} 无法识别，明细按 attributes 中的 field_name 排序，分组按 \
                 group_by 中的字段或 metrics 的 alias 排序"
            ),
            Part::SortOrder => format!("sort_order {words} 无法识别，请按原意改用 asc、desc 之一"),
        }
    }

    /// Returns the failure of a plan with these words. Its details have the part for users and the
    /// words.
    pub(super) fn failure(&self) -> Failure {
        let words = &self.words;
        let part = match self.part {
            Part::Mode => "查询方式",
            Part::Groups => "分组",
            Part::Metrics => "指标",
            Part::SortField | Part::SortOrder => "排序",
        };
        let message = format!("the plan has a word of unknown meaning: `{words}`");
        Failure::new(UNKNOWN_WORD, message).with_details(json!({ "part": part, "words": words }))
    }
}
