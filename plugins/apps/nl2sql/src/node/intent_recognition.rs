//! `intent_recognition`: classifies a message as chat or question, and completes a question from
//! earlier ones.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, json, node, sql,
};
use wattle_plugin::prompt::fill;

use crate::running_step::Step;
use crate::state::{Intent, IntentResult};
use crate::step::{self, Done};
use crate::store::{history, sessions};
use crate::{DATABASE, ask, setting};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/intent_recognition.md");

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Input {
    message: String,
    history_user_messages: Vec<String>,
    threshold: f64,
    model_name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    intent_result: IntentResult,
}

/// The answer's shape.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    intent: Intent,
    is_followup: bool,
    #[schemars(range(min = 0, max = 1))]
    confidence: f64,
    merged_query: String,
    rewritten_query: String,
}

/// Classifies a message as chat or as a question about the data.
#[node]
pub(crate) fn intent_recognition(context: &Context, input: Input) -> Result<Update, Failure> {
    let work = |step: &Step<'_>| {
        remember(step, &input.message)?;
        recognize(&input).map(Done::Success)
    };
    let intent_result = step::run(context, "intent_recognition", &input, work)?;
    Ok(Update { intent_result })
}

/// Writes the message to the history. The run does it and not the endpoint, so that it happens once
/// even if the host stops in between.
fn remember(step: &Step<'_>, message: &str) -> Result<(), Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    let session = &step.context.thread_id;
    sessions::touch(&transaction, session, &step.owner, message)?;
    history::add_message(&transaction, session, message)?;
    transaction.commit()
}

fn recognize(input: &Input) -> Result<IntentResult, Failure> {
    let question = json!({
        "message": input.message,
        "history_user_messages": input.history_user_messages,
    });
    let today = setting::now()?.civil.date();
    let request = ask::request("intent", &input.model_name)?
        .system(fill(PROMPT, &[("today", &today)])?)
        .user(question.to_string())
        .schema::<Answer>("IntentSchema");
    let (answer, _) = ask::document(&request)?;
    Ok(judged(answer, input))
}

fn judged(answer: Answer, input: &Input) -> IntentResult {
    let confidence = answer.confidence.clamp(0.0, 1.0);
    // A confidence equal to the threshold counts as a question.
    let intent = if confidence < input.threshold { Intent::Chat } else { answer.intent };
    let said = |text: String| {
        if text.trim().is_empty() { input.message.clone() } else { text }
    };
    IntentResult {
        intent,
        is_followup: answer.is_followup && !input.history_user_messages.is_empty(),
        confidence,
        merged_query: said(answer.merged_query),
        rewritten_query: said(answer.rewritten_query),
        threshold: input.threshold,
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, Failure, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, intent_recognition};
    use crate::testing::host;

    fn run(host: &FakeHost) -> Result<Value, Failure> {
        let input = json!({"message": "有多少订单", "history_user_messages": [],
                           "threshold": 0.7, "model_name": "qwen-plus"});
        let decision = host.run(|| run_node::<intent_recognition>(&Context::default(), &input))?;
        Ok(decision.update("intent_result").cloned().unwrap())
    }

    fn answered(intent: &'static str, confidence: f64) -> FakeHost {
        host().llm(move |request| {
            assert_eq!((request.route.as_str(), request.temperature), ("intent", Some(0.1)));
            Ok(Completion::of_json(json!({
                "intent": intent, "is_followup": true, "confidence": confidence,
                "merged_query": "", "rewritten_query": "订单总数是多少",
            })))
        })
    }

    #[test]
    fn uncertain_message_is_chat() {
        for (confidence, intent) in
            [(0.69, "chat"), (0.7, "business_query"), (0.95, "business_query")]
        {
            let result = run(&answered("business_query", confidence)).unwrap();
            assert_eq!(result["intent"], intent, "{confidence}");
            assert_eq!(result["threshold"], 0.7);
        }
        assert_eq!(run(&answered("chat", 0.9)).unwrap()["intent"], "chat");
    }

    #[test]
    fn an_empty_merged_question_defaults_to_the_message() {
        let result = run(&answered("business_query", 0.9)).unwrap();
        assert_eq!(result["merged_query"], "有多少订单");
        assert_eq!(result["rewritten_query"], "订单总数是多少");
        assert_eq!(result["is_followup"], false, "there is nothing to follow");
    }

    #[test]
    fn message_is_stored_before_the_model_call() {
        let host = host().llm(|_| Err(Failure::unavailable("model down")));
        assert_eq!(run(&host).unwrap_err().message, "model down");
        let texts: Vec<String> = host.statements().into_iter().map(|it| it.text).collect();
        assert!(
            texts[1].contains("chat_session") && texts[3].contains("chat_history"),
            "{texts:?}"
        );
        assert_eq!(texts[4], "COMMIT");
        let (name, record) = &host.emitted()[0];
        assert_eq!((name.as_str(), &record["status"]), ("node_io", &json!("failed")));
        assert_eq!(record["output"], Value::Null);
    }

    #[test]
    fn s4_05_s4_14_the_intent_prompt_names_fields_and_labels() {
        assert_contains(PROMPT, &["message", "history_user_messages", "intent", "business_query"]);
        assert_contains(PROMPT, &["chat", "is_followup", "confidence：你对 intent 的把握，0 到 1"]);
        assert_contains(PROMPT, &["merged_query", "rewritten_query", "不添加用户没有说过的条件"]);
        assert_contains(PROMPT, &["今天是 {{today}}"]);
    }
}
