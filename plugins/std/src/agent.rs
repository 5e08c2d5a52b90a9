//! The node `agent`: one turn of a model.

use wattle_plugin::llm::History;
use wattle_plugin::prelude::{Context, Failure, Value, code, json, llm, node};

use crate::ask;
use crate::batch::{Batch, Sent};
use crate::config::{AgentConfig, AtLimit, READS};
use crate::conversation::{Conversation, Stored, give_ids};
use crate::granted::Granted;
use crate::offer::Offer;
use crate::shown::Shown;
use crate::turn::Turn;

/// Prompt that requests the structured answer after the text.
const DOCUMENT: &str = "Give your answer again, as the requested document.";

/// Runs one turn of a model in a conversation. If the model requests tools, the node sends each
/// call to the tool node as a separate task. Otherwise the graph continues along its edges. After
/// the last permitted turn, the run fails, or the graph continues as after a completion without
/// tool calls.
#[node(config = AgentConfig, reads = READS)]
pub(crate) fn agent(context: &Context, state: Value) -> Result<Turn, Failure> {
    let config: AgentConfig = context.config()?;
    let whole = context.conversation()?;
    let talk = Conversation::read(&whole, &state)?;
    let mut said = talk.closing();
    give_ids(&context.task_id, &mut said);
    if talk.turns() >= config.max_turns {
        return match config.at_limit {
            AtLimit::Fail => Err(out_of_turns(context, config.max_turns)),
            AtLimit::End => Turn::of(&config.messages, &said),
        };
    }
    let offer = offer(&config)?;
    let history = History::of(&whole).names(offer.assigned_names());
    let history = said.iter().try_fold(history, append)?;
    let completion = ask::ask(&config, |note| {
        let mut request = request(&config, history.clone(), note);
        request.tools.clone_from(&offer.definitions);
        request
    })?;
    let message = Stored::assistant(&completion, &offer)?;
    said.push(message.clone());
    let mut turn = Turn::of(&config.messages, &said)?;
    if !message.tool_calls.is_empty() {
        let shown = config.state.as_ref().map(|channels| Shown::of(channels, &state));
        send(&config, &talk, &offer, (message, shown), &mut turn)?;
    } else if let Some(answer) = &config.answer {
        let asked = request(&config, append(history, &message)?, None).user(DOCUMENT);
        let asked = asked.schema_value(answer.name.clone(), answer.schema.clone());
        turn.write(&answer.channel, asked.complete()?.structured()?);
    }
    Ok(turn)
}

/// Adds a message to a history that the state does not have yet.
fn append(history: History, message: &Stored) -> Result<History, Failure> {
    Ok(history.append(serde_json::to_value(message)?))
}

fn out_of_turns(context: &Context, limit: usize) -> Failure {
    let node = &context.node;
    let message = format!(
        "the agent has reached its limit of {limit} turns since the last user message; raise \
         `max_turns` under `with` of the node that runs `{node}`, or request less at once"
    );
    let details = json!({"limit": "max_turns", "value": limit});
    Failure::new(code::LIMIT, message).with_details(details)
}

fn offer(config: &AgentConfig) -> Result<Offer, Failure> {
    let rules = config.rules();
    if rules.allow_none() {
        return Ok(Offer::default());
    }
    Offer::new(Granted::list()?, &rules)
}

/// Returns a request with the whole conversation. Appends the note to the system message.
fn request(config: &AgentConfig, history: History, note: Option<&str>) -> llm::Request {
    let mut request = llm::Request::route(config.route.clone());
    let system: Vec<&str> = config.system.as_deref().into_iter().chain(note).collect();
    if !system.is_empty() {
        request = request.system(system.join("\n\n"));
    }
    request.temperature = config.temperature;
    request.max_output_tokens = config.max_output_tokens;
    request.history_with(history)
}

/// Sends the calls to the tool node, each as a separate task or all in one task.
fn send(
    config: &AgentConfig,
    talk: &Conversation,
    offer: &Offer,
    (message, state): (Stored, Option<Shown>),
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
        let granted = offer.granted.for_calls(calls.iter().map(|call| call.name.as_str()));
        let batch = Batch {
            messages: config.messages.clone(),
            granted: Some(granted),
            calls,
            answered: talk.answered(),
            rules: rules.clone(),
            state: state.clone(),
        };
        turn.send(&config.tool_node, &Sent { batch })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::llm::Completion;
    use wattle_plugin::message::{Part, Role};
    use wattle_plugin::node::{Conversation, Decision};
    use wattle_plugin::prelude::{Context, Failure, ToolOutput, Value, json};
    use wattle_plugin::testing::{self, FakeHost};
    use wattle_plugin::tool::ToolInfo;

    use super::agent;
    use crate::testing::{host, two_calls};

    fn run(host: &FakeHost, config: Value, messages: Value) -> Result<Decision, Failure> {
        let context = Context { task_id: "t".to_owned(), ..Context::default() };
        let context = context.with_config(config);
        let state = json!({"messages": messages});
        host.run(|| testing::run_node::<agent>(&context, &state))
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[test]
    fn completion_without_calls_continues_the_graph() {
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
        let history = json!({"channel": "messages", "at": 1, "from": 0});
        assert_eq!((request.extra["history"].clone(), request.messages.len()), (history, 1));
        assert_eq!((request.temperature, request.tools.len()), (Some(0.0), 2));
    }

    #[test]
    fn completion_is_written_under_its_streamed_id() {
        let host = host().llm(|_| Ok(two_calls().with_id("run--t-1")));
        let asked = json!({"role": "assistant", "content": "",
            "tool_calls": [{"id": "c0", "name": "save", "arguments": {}}]});
        let talk = json!([user("hi"), asked, user("and?")]);
        let decision = run(&host, json!({"route": "chat"}), talk).unwrap();
        let written = decision.update("messages").unwrap();
        let ids: Vec<_> = written.as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(
            ids,
            ["tool--t-0", "run--t-1"],
            "the result that is added for a call without a result has an id too"
        );
    }

    #[test]
    fn each_call_is_a_separate_task() {
        let host = host().llm(|_| Ok(two_calls()));
        let order = json!([{"tool": "save", "after": ["parse"]}]);
        let config = json!({"route": "chat", "tool_node": "hands", "order": order});
        let decision = run(&host, config, json!([user("hi")])).unwrap();
        assert_eq!(decision.goto, ["END"]);
        let nodes: Vec<_> = decision.sends.iter().map(|send| send.node.as_str()).collect();
        assert_eq!(nodes, ["hands", "hands"]);
        let batch = &decision.sends[1].input["std.calls"];
        let granted = json!({"tools": [{"name": "parse", "reference": "date/parse"},
            {"name": "save", "reference": "book/save", "description": "Saves.",
                "arguments_schema": {"type": "object"}}]});
        assert_eq!(batch["granted"], granted, "details of the called tool only");
        assert_eq!(batch["calls"], json!([{"id": "c2", "name": "save", "arguments": {"a": 2}}]));
        assert_eq!(batch["rules"]["order"], json!([{"tool": "save", "after": ["parse"]}]));
        let message = &decision.update("messages").unwrap()[0];
        assert_eq!(message["tool_calls"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn sequential_calls_share_a_task() {
        let host = host().llm(|_| Ok(two_calls()));
        let config = json!({"route": "chat", "parallel": false});
        let decision = run(&host, config, json!([user("hi")])).unwrap();
        assert_eq!(decision.sends.len(), 1);
        assert_eq!(decision.sends[0].input["std.calls"]["calls"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn cancelled_call_is_closed_before_the_model_is_called() {
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
        let history = json!({"channel": "messages", "at": 0, "from": 0, "append": [written[0]]});
        assert_eq!((request.extra["history"].clone(), request.messages.len()), (history, 0));
    }

    #[test]
    fn turn_limit_fails_with_the_setting_to_raise() {
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
    fn turn_limit_with_end_continues_the_graph_without_a_model_call() {
        let host = host().llm(|_| Ok(two_calls()));
        let calls = json!([{"id": "c1", "name": "save", "arguments": {}}]);
        let asked = json!({"role": "assistant", "content": "", "tool_calls": calls});
        let answer = json!({"role": "tool", "tool_call_id": "c1", "name": "save", "content": "1"});
        let config = json!({"route": "chat", "max_turns": 1, "at_limit": "end"});
        let ended = run(&host, config.clone(), json!([user("hi"), asked, answer])).unwrap();
        assert!(ended.updates.is_empty() && ended.goto.is_empty() && ended.sends.is_empty());
        let cut = run(&host, config, json!([user("hi"), asked])).unwrap();
        assert_eq!(cut.update("messages").unwrap()[0]["tool_call_id"], "c1", "the call is closed");
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn tools_get_the_state_of_the_agent() {
        let host = host().llm(|_| Ok(two_calls()));
        let config = json!({"route": "chat", "state": ["videos", "none"]});
        let context = Context::default().with_config(config);
        let state = json!({"messages": [user("hi")], "videos": [1], "html": "<p>"});
        let decision = host.run(|| testing::run_node::<agent>(&context, &state)).unwrap();
        for send in &decision.sends {
            let shown = &send.input["std.calls"]["state"];
            assert_eq!(shown, &json!({"videos": [1], "none": null}));
        }
    }

    #[test]
    fn later_turns_have_the_whole_conversation_in_the_request_only() {
        let host = host().llm(|_| Ok(Completion::of_text("hello")));
        let conversation = Conversation { channel: "talk".to_owned(), from: 40, length: 41 };
        let context = Context::default().with_config(json!({"route": "chat", "messages": "talk"}));
        let context = context.with_conversation(conversation);
        let state = json!({"talk": [user("hi")]});
        host.run(|| testing::run_node::<agent>(&context, &state)).unwrap();
        let history = json!({"channel": "talk", "at": 0, "from": 0});
        assert_eq!(host.llm_requests()[0].extra["history"], history);
    }

    #[test]
    fn host_without_histories_is_reported_before_the_model_is_called() {
        let host = host().llm(|_| Ok(Completion::of_text("hello")));
        let context = Context::default().with_config(json!({"route": "chat"}));
        let failure = host.run(|| agent(&context, json!({"messages": [user("hi")]}))).unwrap_err();
        assert_eq!(failure.code, "unsupported");
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn structured_answer_is_requested_after_the_text() {
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
        assert!(request.tools.is_empty());
        let said = &decision.update("messages").unwrap()[0];
        assert_eq!(request.extra["history"]["append"], json!([said]), "before the request for it");
        assert_eq!((&request.extra["history"]["at"], request.messages.len()), (&json!(0), 1));
    }

    #[test]
    fn rule_without_a_matching_tool_fails() {
        let host = host().llm(|_| Ok(two_calls()));
        for rule in [
            json!({"route": "chat", "approve": {"tools": ["sav"]}}),
            json!({"route": "chat", "order": [{"tool": "save", "after": ["pars"]}]}),
        ] {
            let failure = run(&host, rule, json!([user("hi")])).unwrap_err();
            assert_eq!(failure.code, "not-found");
        }
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn tool_of_an_unavailable_server_is_retryable() {
        let away = ToolInfo::missing("mcp:graph", &Failure::unavailable("`graph` is down"));
        let host = host().described_tool(away, |_| Ok(ToolOutput::text("")));
        let host = host.llm(|_| Ok(Completion::of_text("without")));
        let config = json!({"route": "chat", "tools": ["search"]});
        let failure = run(&host, config, json!([user("hi")])).unwrap_err();
        assert_eq!((&*failure.code, failure.retryable), ("unavailable", true));
        assert!(failure.message.contains("`mcp:graph`"), "{failure}");
        assert!(run(&host, json!({"route": "chat"}), json!([user("hi")])).is_ok());
        assert_eq!(host.llm_requests()[0].tools.len(), 2, "the available tools are offered");
    }

    #[test]
    fn empty_tool_list_offers_no_tools() {
        let host = host().llm(|_| Ok(Completion::of_text("hello")));
        run(&host, json!({"route": "chat", "tools": []}), json!([user("hi")])).unwrap();
        assert!(host.llm_requests()[0].tools.is_empty());
        let failure = run(&host, json!({"route": "chat", "tools": ["x"]}), json!([user("hi")]));
        assert_eq!(failure.unwrap_err().code, "not-found");
    }
}
