//! Classifies an image or a text with one call of a model.

use wattle_plugin::prelude::{Completion, Deserialize, Failure, JsonSchema, llm, prompt};

use crate::picture;
use crate::state::TaskType;

pub(crate) const CLASSIFY_IMAGE_PROMPT: &str = include_str!("../prompts/img_classify.md");

const IMAGE_QUESTION: &str = include_str!("../prompts/img_classify.question.md");

const IMAGE_QUESTION_WITH_TEXT: &str =
    include_str!("../prompts/img_classify.question_with_text.md");

pub(crate) const CLASSIFY_TEXT_PROMPT: &str = include_str!("../prompts/text_classify.md");

/// Classification of an image or a text.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: `fn task` reads a `Label`")]
struct Classification {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["operation", "holding", "unknown"]))]
    kind: String,
    #[schemars(range(min = 0, max = 1))]
    confidence: f64,
    reason: String,
}

/// The part of a classification that determines the task.
#[derive(Deserialize)]
struct Label {
    #[serde(rename = "type")]
    kind: String,
}

/// Classifies an image, which the user may have sent with a text, with the vision model.
pub(crate) fn image(image: &str, text: Option<&str>) -> Result<TaskType, Failure> {
    let question = match text {
        Some(text) => prompt::fill(IMAGE_QUESTION_WITH_TEXT, &[("text", text)])?,
        None => prompt::fill(IMAGE_QUESTION, &[])?,
    };
    let request = llm::Request::route("vision")
        .system(prompt::fill(CLASSIFY_IMAGE_PROMPT, &[])?)
        .user(question)
        .image(picture::part(image)?);
    complete(request)
}

/// Classifies a text with the chat model.
pub(crate) fn text(text: &str) -> Result<TaskType, Failure> {
    let system = prompt::fill(CLASSIFY_TEXT_PROMPT, &[])?;
    complete(llm::Request::route("chat").system(system).user(text))
}

fn complete(request: llm::Request) -> Result<TaskType, Failure> {
    task(request.schema::<Classification>("ClassifySchema").temperature(0.0).complete())
}

/// Returns the kind of input that the label of a completion means. A label outside of the schema
/// that the model keeps after a repair is accepted, too: an older label (`trade_record`,
/// `position`) keeps its meaning, and any other label means [`TaskType::Unknown`].
fn task(completion: Result<Completion, Failure>) -> Result<TaskType, Failure> {
    let label = match completion {
        Ok(completion) => completion.structured::<Label>()?,
        Err(failure) => refused_label(&failure).ok_or(failure)?,
    };
    Ok(TaskType::from_label(&label.kind))
}

/// Returns the label of a completion that the host rejected because it does not match the schema.
fn refused_label(failure: &Failure) -> Option<Label> {
    serde_json::from_str(failure.refused_completion()?).ok()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Failure, json};

    use super::{TaskType, task};

    #[test]
    fn labels_outside_the_schema_have_a_task() {
        let known = Completion::of_json(json!({"type": "position", "confidence": 1, "reason": ""}));
        assert_eq!(task(Ok(known)).unwrap(), TaskType::Holding);
        let odd = json!({"type": "receipt", "confidence": 0.9}).to_string();
        let refused =
            Failure::invalid("not in the wanted shape").with_details(json!({"answer": odd}));
        assert_eq!(task(Err(refused)).unwrap(), TaskType::Unknown);
        let former = json!({"type": "trade_record", "confidence": 0.9}).to_string();
        let refused =
            Failure::invalid("not in the wanted shape").with_details(json!({"answer": former}));
        assert_eq!(task(Err(refused)).unwrap(), TaskType::Operation, "S0-23");
        let details = json!({"answer": "Sure! {...}", "document": "{\"type\":\"receipt\"}"});
        let refused = Failure::invalid("not in the wanted shape").with_details(details);
        assert_eq!(task(Err(refused)).unwrap(), TaskType::Unknown);
    }

    #[test]
    fn other_failures_are_returned() {
        let garbage = Failure::invalid("no json").with_details(json!({"answer": "??"}));
        assert!(task(Err(garbage)).is_err());
        assert!(task(Err(Failure::unavailable("model down"))).is_err());
    }
}
