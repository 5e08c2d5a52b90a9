//! The model roles of the travel application: blocks of a guide, queries for places, a plan for
//! pictures, and the page. A role is told by the first line of the instructions, `Task: <name>`;
//! what to work on is read off the user's message.

mod blocks;
mod facts;
mod page;
mod plan;

use serde_json::Value;

use super::question::{Question, Speaker};
use facts::Facts;

/// What the first line of the instructions begins with.
const TASK: &str = "Task: ";

/// The answer of a role and its name; nothing for other applications.
pub(super) fn answer(question: &Question, schema: &Value) -> Option<(String, &'static str)> {
    let task = question.system.lines().find_map(|line| line.strip_prefix(TASK))?;
    let users = question.turns.iter().filter(|turn| turn.speaker == Speaker::User);
    let text = users.map(|turn| turn.text.as_str()).collect::<Vec<_>>().join("\n");
    Some(match task.trim() {
        "json_compilation_strict" => (blocks::answer(&text).to_string(), "travel blocks"),
        "spot_query_normalization" => {
            (plan::queries(&Facts::read(&text), schema).to_string(), "travel spots")
        }
        "handbook_image_query_planning" => {
            (plan::pictures(&Facts::read(&text), schema).to_string(), "travel pictures")
        }
        "handbook_html_generation" => (page::answer(&Facts::read(&text)), "travel page"),
        _ => return None,
    })
}
