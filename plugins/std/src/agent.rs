//! `agent`: one model turn.

use wattle_plugin::prelude::{Context, Failure, Value, code, json, llm, node, tools};

use crate::batch::{Batch, Sent};
use crate::config::AgentConfig;
use crate::conversation::{Conversation, Stored};
use crate::offer::Offer;
use crate::turn::Turn;

/// Asks for the document after the answer in words.
const DOCUMENT: &str = "Give your answer once more, as the document that is asked for.";

/// One turn of a model in a conversation. If it asks for tools, each call goes to the tool node
/// as a task of its own; otherwise its words are the answer and the graph goes on.
#[node(config = AgentConfig)]
pub(crate) fn agent(context: &Context, state: Value) -> Result<Turn, Failure> {
    let config: AgentConfig = context.config()?;
    let mut talk = Conversation::read(&config.messages, &state)?;
    check_turns(context, &config, &talk)?;
    let mut said = talk.closing();
    talk.extend(&said);
    let offer = offer(&config)?;
    let mut request = request(&config, &talk);
    request.tools.clone_from(&offer.definitions);
    let message = talk.assistant(&request.complete()?, &offer);
    said.push(message.clone());
    let mut turn = Turn::of(&config.messages, &said)?;
    if !message.tool_calls.is_empty() {
        send(&config, &talk, message, &mut turn)?;
    } else if let Some(answer) = &config.answer {
        talk.extend(&[message]);
        let asked = request_document(&config, &talk);
        let asked = asked.schema_value(answer.name.clone(), answer.schema.clone());
        turn.write(&answer.channel, asked.complete()?.structured()?);
    }
    Ok(turn)
}

/// A model that never stops asking for tools is stopped.
fn check_turns(
    context: &Context,
    config: &AgentConfig,
    talk: &Conversation,
) -> Result<(), Failure> {
    let limit = config.max_turns;
    if talk.turns() < limit {
        return Ok(());
    }
    let node = &context.node;
    Err(Failure::new(
        code::LIMIT,
        format!(
            "the agent has taken {limit} turns since the last user message and still wants tools; \
             raise `max_turns` under `with` of the node that runs `{node}`, or ask for less at once"
        ),
    )
    .with_details(json!({"limit": "max_turns", "value": limit})))
}

fn offer(config: &AgentConfig) -> Result<Offer, Failure> {
    let rules = config.rules();
    if rules.tools.as_ref().is_some_and(|tools| tools.is_empty()) {
        return Ok(Offer::default());
    }
    Offer::new(tools::list()?, &rules)
}

fn request(config: &AgentConfig, talk: &Conversation) -> llm::Request {
    let mut request = llm::Request::route(config.route.clone());
    if let Some(system) = &config.system {
        request = request.system(system.clone());
    }
    request.temperature = config.temperature;
    request.max_output_tokens = config.max_output_tokens;
    request.messages(talk.show())
}

fn request_document(config: &AgentConfig, talk: &Conversation) -> llm::Request {
    request(config, talk).user(DOCUMENT)
}

/// Sends each call, or all of them in order, to the tool node.
fn send(
    config: &AgentConfig,
    talk: &Conversation,
    message: Stored,
    turn: &mut Turn,
) -> Result<(), Failure> {
    let rules = config.rules();
    let calls = message.tool_calls;
    let tasks = if rules.parallel {
        calls.into_iter().map(|call| vec![call]).collect()
    } else {
        vec![calls]
    };
    for calls in tasks {
        let batch = Batch {
            messages: config.messages.clone(),
            calls,
            answered: talk.answered(),
            rules: rules.clone(),
        };
        turn.send(&config.tool_node, &Sent { batch })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::llm::Completion;
    use wattle_plugin::message::{Part, Role};
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Failure, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::agent;
    use crate::testing::{host, two_calls};

    fn run(host: &FakeHost, config: Value, messages: Value) -> Result<Decision, Failure> {
        let context = Context::default().with_config(config);
        let state = json!({"messages": messages});
        host.run(|| testing::run_node::<agent>(&context, &state))
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[test]
    fn words_are_the_answer_and_the_graph_goes_on() {
        let host = host().llm(|_| Ok(Completion::of_text("hello")));
        let config = json!({"route": "chat", "system": "be kind", "temperature": 0});
        let decision = run(&host, config, json!([user("hi")])).unwrap();
        assert_eq!(
            decision.update("messages"),
            Some(&json!([{"role": "assistant", "content": "hello"}]))
        );
        assert!(decision.goto.is_empty() && decision.sends.is_empty());
        let request = host.llm_requests().remove(0);
        assert_eq!(request.messages[0].role, Role::System);
        assert_eq!((request.temperature, request.tools.len()), (Some(0.0), 2));
    }

    #[test]
    fn each_call_is_a_task_of_its_own() {
        let host = host().llm(|_| Ok(two_calls()));
        let order = json!([{"tool": "save", "after": ["parse"]}]);
        let config = json!({"route": "chat", "tool_node": "hands", "order": order});
        let decision = run(&host, config, json!([user("hi")])).unwrap();
        assert_eq!(decision.goto, ["END"]);
        let nodes: Vec<_> = decision.sends.iter().map(|send| send.node.as_str()).collect();
        assert_eq!(nodes, ["hands", "hands"]);
        let batch = &decision.sends[1].input["std.calls"];
        assert_eq!(batch["calls"], json!([{"id": "c2", "name": "save", "arguments": {"a": 2}}]));
        assert_eq!(batch["rules"]["order"], json!([{"tool": "save", "after": ["parse"]}]));
        let message = &decision.update("messages").unwrap()[0];
        assert_eq!(message["tool_calls"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn calls_that_must_not_run_at_once_stay_together() {
        let host = host().llm(|_| Ok(two_calls()));
        let config = json!({"route": "chat", "parallel": false});
        let decision = run(&host, config, json!([user("hi")])).unwrap();
        assert_eq!(decision.sends.len(), 1);
        assert_eq!(decision.sends[0].input["std.calls"]["calls"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_cancelled_call_is_closed_before_the_model_is_asked() {
        let host = host().llm(|_| Ok(Completion::of_text("go on")));
        let asked = json!({"role": "assistant", "content": "",
            "tool_calls": [{"id": "c1", "name": "save", "arguments": {}}]});
        let talk = json!([user("hi"), asked, user("and?")]);
        let decision = run(&host, json!({"route": "chat"}), talk).unwrap();
        let written = decision.update("messages").unwrap();
        assert_eq!(written[0]["tool_call_id"], "c1");
        assert_eq!(written[0]["status"], "error");
        assert_eq!(written[1]["content"], "go on");
        let request = host.llm_requests().remove(0);
        let roles: Vec<_> = request.messages.iter().map(|message| &message.role).collect();
        assert_eq!(roles, [&Role::User, &Role::Assistant, &Role::Tool, &Role::User]);
    }

    #[test]
    fn too_many_turns_are_a_failure_that_says_what_to_do() {
        let host = host().llm(|_| Ok(two_calls()));
        let asked = json!({"role": "assistant", "content": "again"});
        let config = json!({"route": "chat", "max_turns": 2});
        let talk = json!([user("hi"), asked, asked]);
        let failure = run(&host, config.clone(), talk).unwrap_err();
        assert_eq!(failure.code, "limit");
        assert!(failure.message.contains("`max_turns`"), "{failure}");
        assert!(host.llm_requests().is_empty());
        assert!(run(&host, config, json!([asked, asked, user("more"), asked])).is_ok());
    }

    #[test]
    fn a_document_is_asked_for_after_the_words() {
        let host = host().llm(|request| {
            Ok(match request.response_schema {
                Some(_) => Completion::of_json(json!({"total": 3})),
                None => Completion {
                    parts: vec![Part::Reasoning("hm".to_owned()), Part::Text("3".to_owned())],
                    ..Completion::default()
                },
            })
        });
        let schema = json!({"type": "object"});
        let config = json!({"route": "chat",
            "answer": {"name": "sum", "schema": schema, "channel": "result"}});
        let decision = run(&host, config, json!([user("1+2")])).unwrap();
        assert_eq!(decision.update("result"), Some(&json!({"total": 3})));
        assert_eq!(decision.update("messages").unwrap()[0]["reasoning"], "hm");
        let request = host.llm_requests().remove(1);
        assert!(request.tools.is_empty() && request.text().starts_with("1+2\n3\n"));
    }

    #[test]
    fn no_tools_are_listed_if_none_are_wanted() {
        let host = host().llm(|_| Ok(Completion::of_text("")));
        run(&host, json!({"route": "chat", "tools": []}), json!([user("hi")])).unwrap();
        assert!(host.llm_requests()[0].tools.is_empty());
        let failure = run(&host, json!({"route": "chat", "tools": ["x"]}), json!([user("hi")]));
        assert_eq!(failure.unwrap_err().code, "not-found");
    }
}
