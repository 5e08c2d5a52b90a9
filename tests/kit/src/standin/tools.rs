//! Tool calling: the next step of a model with tools.
//!
//! A rule examines the conversation since the last user message and selects the tool calls or the
//! response. The first rule with a result applies. The rule of an application has a separate file
//! and one line in [`RULES`].

mod expense;
mod notes;
mod script;
mod travel;

use serde_json::Value;

use super::faults::Fault;
use super::question::{Ask, Question, Speaker, Turn};

/// The next step of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Move {
    /// Tool calls, as names and arguments in JSON.
    Call(Vec<(String, String)>),
    /// Text and tool calls.
    Announce(String, Vec<(String, String)>),
    /// Text only.
    Say(String),
}

/// A rule with its name in the request log. It returns `None` if the conversation does not concern
/// it.
type Rule = (&'static str, fn(&Dialogue<'_>) -> Option<Move>);

/// All rules, in the order of their application.
const RULES: &[Rule] = &[
    ("tool script", script::decide),
    ("expense", expense::decide),
    ("travel", travel::decide),
    ("notes", notes::decide),
];

/// A conversation since the last user message.
pub(super) struct Dialogue<'q> {
    pub(super) question: &'q Question,
    /// The last user message.
    pub(super) user: &'q str,
    /// The tool calls since the last user message, grouped by message of the model.
    pub(super) rounds: Vec<Vec<CompletedCall<'q>>>,
}

/// A tool call and its result.
pub(super) struct CompletedCall<'q> {
    pub(super) ask: &'q Ask,
    pub(super) answer: &'q str,
}

/// The next output of the model: its text and its tool calls, with the name of the rule that chose
/// them.
pub(super) struct RuleOutput {
    pub(super) content: String,
    pub(super) asks: Vec<Ask>,
    pub(super) rule: &'static str,
}

impl<'q> Dialogue<'q> {
    fn new(question: &'q Question) -> Self {
        let is_user = |turn: &Turn| turn.speaker == Speaker::User;
        let last = question.turns.iter().rposition(is_user);
        let since = &question.turns[last.map_or(0, |index| index + 1)..];
        let asking = since.iter().enumerate().filter(|(_, turn)| !turn.asks.is_empty());
        let rounds = asking.map(|(index, turn)| {
            let with_answer =
                |ask| CompletedCall { ask, answer: answer_to(ask, &since[index + 1..]) };
            turn.asks.iter().map(with_answer).collect()
        });
        Self { question, user: question.last_user_text(), rounds: rounds.collect() }
    }

    /// Returns true if a tool is offered.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.question.tools.iter().any(|offer| offer.name == tool)
    }
}

fn answer_to<'q>(ask: &Ask, later: &'q [Turn]) -> &'q str {
    let answer = later.iter().find(|turn| turn.speaker == Speaker::Tool && turn.answers == ask.id);
    answer.map_or("", |turn| &turn.text)
}

/// Returns the next step of a model with tools. Returns `None` if no tools are offered, the request
/// has a response schema, or no rule applies.
pub(super) fn next_step(question: &Question, fault: Option<&Fault>) -> Option<RuleOutput> {
    if question.tools.is_empty() || question.schema.is_some() {
        return None;
    }
    let dialogue = Dialogue::new(question);
    let mut rules = RULES.iter();
    let (rule, next_move) = rules.find_map(|(name, rule)| Some((*name, rule(&dialogue)?)))?;
    Some(match (next_move, fault) {
        (_, Some(Fault::Content { text })) => {
            RuleOutput { content: text.clone(), asks: Vec::new(), rule }
        }
        (Move::Say(content), _) => RuleOutput { content, asks: Vec::new(), rule },
        (Move::Call(calls), fault) => called(question, String::new(), calls, fault, rule),
        (Move::Announce(words, calls), fault) => called(question, words, calls, fault, rule),
    })
}

fn called(
    question: &Question,
    content: String,
    calls: Vec<(String, String)>,
    fault: Option<&Fault>,
    rule: &'static str,
) -> RuleOutput {
    let is_bent = matches!(fault, Some(Fault::InvalidJsonContent));
    RuleOutput { content, asks: asks(question, calls, is_bent), rule }
}

/// Creates tool calls whose ids depend only on the conversation.
fn asks(question: &Question, calls: Vec<(String, String)>, is_bent: bool) -> Vec<Ask> {
    let position = question.turns.len();
    let ask = |(index, (name, arguments)): (usize, (String, String))| {
        let text = format!("{position} {index} {name} {arguments} {}", question.all_text());
        let id = format!("call_{}", &blake3::hash(text.as_bytes()).to_hex()[..20]);
        let arguments = if is_bent { "{\"unexpected\":".to_owned() } else { arguments };
        Ask { id, name, arguments }
    };
    calls.into_iter().enumerate().map(ask).collect()
}

/// Rejects requests as services do: invalid tool names, tool calls without a result directly after
/// them, and results without a call.
pub(super) fn check(question: &Question) -> Result<(), String> {
    for (index, offer) in question.tools.iter().enumerate() {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if offer.name.is_empty() || offer.name.len() > 64 || !offer.name.chars().all(allowed) {
            return Err(format!(
                "Invalid 'tools[{index}].function.name': string does not match pattern. Expected a \
                 string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ));
        }
        if !offer.schema.is_object() && !offer.schema.is_null() {
            return Err(format!("Invalid schema for function '{}'", offer.name));
        }
    }
    let mut open: Vec<&str> = Vec::new();
    for turn in &question.turns {
        if turn.speaker == Speaker::Tool {
            let position = open.iter().position(|id| *id == turn.answers);
            let position = position.ok_or(
                "messages with role 'tool' must be a response to a preceding message with \
                 'tool_calls'.",
            )?;
            open.remove(position);
            continue;
        }
        if !open.is_empty() {
            break;
        }
        open = turn.asks.iter().map(|ask| ask.id.as_str()).collect();
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
}

/// Parses the arguments of a call; `null` if they are not valid JSON.
pub(super) fn arguments(ask: &Ask) -> Value {
    serde_json::from_str(&ask.arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check, next_step};
    use crate::standin::faults::Fault;
    use crate::standin::question::{Ask, Offer, Question, Speaker, Turn};

    fn question(text: &str) -> Question {
        let offer = Offer { name: "echo".to_owned(), schema: json!({"type": "object"}) };
        let turns = vec![Turn::new(Speaker::User, text.to_owned(), Vec::new())];
        Question { tools: vec![offer], turns, ..Question::default() }
    }

    fn push_calls(question: &mut Question, asks: Vec<Ask>) {
        let turn = Turn::new(Speaker::Assistant, String::new(), Vec::new());
        question.turns.push(Turn { asks, ..turn });
    }

    #[test]
    fn the_script_of_the_user_is_followed_turn_by_turn() {
        let mut question =
            question("please\ncall echo {\"text\":\"a\"}\ncall fly\nthen\ncall echo x");
        let first = next_step(&question, None).unwrap();
        let calls: Vec<_> =
            first.asks.iter().map(|ask| (ask.name.as_str(), ask.arguments.as_str())).collect();
        assert_eq!(calls, [("echo", "{\"text\":\"a\"}"), ("fly", "{}")]);
        let ids: Vec<String> = first.asks.iter().map(|ask| ask.id.clone()).collect();
        assert_ne!(ids[0], ids[1]);
        push_calls(&mut question, first.asks);
        assert!(check(&question).unwrap_err().contains(&ids[1]));
        question.turns.push(Turn::answer(ids[1].clone(), "no wings".to_owned()));
        question.turns.push(Turn::answer(ids[0].clone(), "a".to_owned()));
        check(&question).unwrap();
        let second = next_step(&question, None).unwrap();
        assert_eq!(second.asks[0].arguments, "x");
        push_calls(&mut question, second.asks.clone());
        question.turns.push(Turn::answer(second.asks[0].id.clone(), "bad".to_owned()));
        let last = next_step(&question, None).unwrap();
        assert_eq!(last.content, "The tools answered:\necho: a\nfly: no wings\necho: bad");
    }

    #[test]
    fn again_repeats_the_script() {
        let mut question = question("call echo\nagain");
        for _ in 0..3 {
            let asks = next_step(&question, None).unwrap().asks;
            question.turns.push(Turn::answer(String::new(), String::new()));
            assert_eq!(asks.len(), 1);
            push_calls(&mut question, asks);
        }
    }

    #[test]
    fn faults_change_arguments_and_text() {
        let question = question("call echo");
        let bent = next_step(&question, Some(&Fault::InvalidJsonContent)).unwrap();
        assert_eq!(bent.asks[0].arguments, "{\"unexpected\":");
        let text = Fault::Content { text: "no".to_owned() };
        assert!(next_step(&question, Some(&text)).unwrap().asks.is_empty());
    }

    #[test]
    fn requests_that_services_reject_are_rejected() {
        let mut wrong = question("hi");
        wrong.tools[0].name = "date/parse".to_owned();
        assert!(check(&wrong).is_err());
        let mut orphan = question("hi");
        orphan.turns.push(Turn::answer("a".to_owned(), "1".to_owned()));
        assert!(check(&orphan).is_err());
        let mut later = question("hi");
        push_calls(&mut later, vec![Ask { id: "a".to_owned(), ..Ask::default() }]);
        later.turns.push(Turn::new(Speaker::User, "and?".to_owned(), Vec::new()));
        later.turns.push(Turn::answer("a".to_owned(), "1".to_owned()));
        assert!(check(&later).is_err());
    }
}
