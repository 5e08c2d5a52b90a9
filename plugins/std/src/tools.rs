//! The node `tools`: makes the tool calls that the model requested.

use wattle_plugin::prelude::{Context, Deserialize, Failure, Value, node};

use crate::batch::{Batch, Sent};
use crate::config::{READS, ToolsConfig};
use crate::conversation::Conversation;
use crate::shown::Shown;
use crate::turn::Turn;

/// Makes the tool calls that a model requested. If an agent sends calls to the node, it makes these
/// calls. If an edge leads to the node, it makes the calls of the last assistant message that have
/// no result.
#[node(config = ToolsConfig, reads = READS)]
pub(crate) fn tools(context: &Context, input: Value) -> Result<Turn, Failure> {
    let config: ToolsConfig = context.config()?;
    if let Ok(Sent { batch }) = Sent::deserialize(&input) {
        let rules = batch.rules.and(config.rules());
        let state = match (batch.state, &config.state) {
            (Some(shown), Some(channels)) => Some(shown.only(channels)),
            (shown, _) => shown,
        };
        return Batch { rules, state, ..batch }.run(&context.task_id);
    }
    let talk = Conversation::read(&context.conversation()?, &input)?;
    let batch = Batch {
        calls: talk.open_calls(),
        answered: talk.answered(),
        rules: config.rules(),
        messages: config.messages,
        granted: None,
        state: config.state.map(|channels| Shown::of(&channels, &input)),
    };
    batch.run(&context.task_id)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Failure, ToolOutput, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::tools;
    use crate::testing::host;

    fn calls(names: &[&str]) -> Value {
        let call = |(index, name): (usize, &&str)| json!({"id": format!("c{index}"), "name": name, "arguments": {"n": index}});
        names.iter().enumerate().map(call).collect()
    }

    fn run(host: &FakeHost, config: Value, names: &[&str]) -> Result<Decision, Failure> {
        let context = Context { task_id: "t".to_owned(), ..Context::default() };
        let context = context.with_config(config);
        let asked = json!({"role": "assistant", "content": "", "tool_calls": calls(names)});
        let state = json!({"messages": [{"role": "user", "content": "hi"}, asked]});
        host.run(|| testing::run_node::<tools>(&context, &state))
    }

    fn messages(decision: &Decision) -> &Vec<Value> {
        decision.update("messages").and_then(Value::as_array).unwrap()
    }

    #[test]
    fn open_calls_get_results_in_order() {
        let host = host();
        let decision = run(&host, json!({}), &["save", "parse", "fly"]).unwrap();
        let written = messages(&decision);
        assert_eq!(written[0]["content"], "unavailable: the book is closed\n{\"until\":8}");
        assert_eq!(
            written[1],
            json!({"id": "tool--t-1", "role": "tool", "content": "{\"n\":1}", "tool_call_id": "c1",
                "name": "parse", "status": "success", "structured": {"n": 1}})
        );
        assert_eq!(written[2]["content"], "there is no tool `fly`; the tools are `parse`, `save`");
        assert_eq!(written[2]["status"], "error");
        assert!(decision.goto.is_empty());
    }

    /// A graph whose agent has its conversation in another channel need not have that of the node.
    #[test]
    fn graph_without_the_channel_has_no_open_calls() {
        let run = || testing::run_node::<tools>(&Context::default(), &json!({"talk": []}));
        let decision = host().run(run).unwrap();
        assert!(decision.updates.is_empty() && decision.sends.is_empty());
    }

    #[test]
    fn tool_of_an_unavailable_server_is_named() {
        let missing = json!({"source": "mcp:graph", "failure": Failure::unavailable("it is down")});
        let granted = json!({"tools": [{"name": "parse"}], "missing": [missing]});
        let batch = json!({"messages": "talk", "calls": calls(&["look", "mcp:graph/look"]),
            "answered": [], "rules": {"parallel": true}, "granted": granted});
        let run = || testing::run_node::<tools>(&Context::default(), &json!({"std.calls": batch}));
        let decision = host().run(run).unwrap();
        let written = decision.update("talk").unwrap();
        for (index, name) in ["look", "mcp:graph/look"].into_iter().enumerate() {
            assert_eq!(
                written[index]["content"],
                format!(
                    "the tool `{name}` is unavailable, because the tools of `mcp:graph` could not \
                     be listed: it is down; the tools are `parse`"
                )
            );
        }
    }

    #[test]
    fn sent_calls_obey_the_rules_of_both_nodes() {
        let host = host();
        let context = Context::default().with_config(json!({"tools": ["parse"]}));
        let batch = json!({"messages": "talk", "calls": calls(&["parse", "save"]),
            "answered": [], "rules": {"parallel": true}});
        let input = json!({"std.calls": batch});
        let decision = host.run(|| testing::run_node::<tools>(&context, &input)).unwrap();
        let written = decision.update("talk").unwrap();
        assert_eq!(written[0]["status"], "success");
        assert_eq!(written[1]["content"], "there is no tool `save`; the tools are `parse`");
    }

    #[test]
    fn sent_calls_use_the_unambiguous_name() {
        let host = host();
        let granted = json!({"tools": [{"name": "parse", "reference": "date/parse"},
            {"name": "ghost", "reference": "castle/ghost"}]});
        let batch = json!({"messages": "talk", "calls": calls(&["parse", "ghost", "save"]),
            "answered": [], "rules": {"parallel": true}, "granted": granted});
        let run = || testing::run_node::<tools>(&Context::default(), &json!({"std.calls": batch}));
        let decision = host.run(run).unwrap();
        let called: Vec<_> = host.tool_calls().into_iter().map(|call| call.tool).collect();
        assert_eq!(called, ["date/parse", "castle/ghost"], "the tools are those of the agent");
        let written = decision.update("talk").unwrap();
        assert_eq!(
            (&written[0]["name"], &written[0]["status"]),
            (&json!("parse"), &json!("success"))
        );
        assert_eq!(
            written[2]["content"],
            "there is no tool `save`; the tools are `parse`, `ghost`"
        );
    }

    #[test]
    fn node_rule_without_a_matching_tool_fails() {
        let failure = run(&host(), json!({"approve": {"tools": ["sav"]}}), &["save"]).unwrap_err();
        assert_eq!(failure.code, "not-found");
        assert!(run(&host(), json!({"approve": {"tools": ["sav"]}}), &[]).is_ok());
    }

    #[test]
    fn call_without_an_allowed_decision_is_refused() {
        let host = host();
        let context = Context::default()
            .with_config(json!({"approve": {"tools": ["date/parse"], "allowed": ["edit"]}}));
        let approve = json!([{"tools": "*", "allowed": ["approve", "reject"]}]);
        let batch = json!({"messages": "talk", "calls": calls(&["parse"]), "answered": [],
            "rules": {"parallel": true, "approve": approve}});
        let run = || testing::run_node::<tools>(&context, &json!({"std.calls": batch}));
        let decision = host.run(run).unwrap();
        assert_eq!(decision.update("talk").unwrap()[0]["status"], "error");
        assert!(host.questions().is_empty() && host.tool_calls().is_empty());
    }

    #[test]
    fn order_rules_see_earlier_results_of_sequential_calls() {
        let rule = json!([{"tool": "parse", "after": ["first"]}]);
        let statuses = |parallel: bool| {
            let host = host().tool("first", |_| Ok(ToolOutput::text("1")));
            let config = json!({"order": rule, "parallel": parallel});
            let decision = run(&host, config, &["first", "parse"]).unwrap();
            messages(&decision)[1]["status"].clone()
        };
        assert_eq!((statuses(false), statuses(true)), (json!("success"), json!("error")));
    }

    #[test]
    fn person_decides_about_a_call() {
        let check = |answer: Value| {
            let host = host().answer(answer);
            let config = json!({"approve": {"tools": ["parse"]}});
            let decision = run(&host, config, &["parse"]).unwrap();
            let payload = host.questions().remove(0).payload;
            assert_eq!((&payload["tool"], &payload["call_id"]), (&json!("parse"), &json!("c0")));
            assert_eq!(payload["allowed"], json!(["approve", "edit", "reject", "respond"]));
            assert_eq!(payload["description"], "Parses.");
            messages(&decision)[0].clone()
        };
        assert_eq!(check(json!({"decision": "approve"}))["content"], "{\"n\":0}");
        let edited = check(json!({"decision": "edit", "arguments": {"n": 9}}));
        assert_eq!(
            (&edited["content"], &edited["arguments"]),
            (&json!("{\"n\":9}"), &json!({"n": 9}))
        );
        let rejected = check(json!({"decision": "reject", "message": "too much"}));
        assert_eq!(rejected["content"], "a person rejected the call: too much");
        assert_eq!(rejected["status"], "error");
        let answered = check(json!({"decision": "respond", "content": "it is 7"}));
        assert_eq!(
            (&answered["content"], &answered["status"]),
            (&json!("it is 7"), &json!("success"))
        );
    }

    #[test]
    fn pending_approval_suspends_the_task() {
        let config = json!({"approve": {"tools": "*", "allowed": ["approve", "reject"]}});
        let host = host();
        assert_eq!(run(&host, config, &["save"]).unwrap_err().code, "interrupted");
        let schema = host.questions().remove(0).response_schema.unwrap();
        assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn tools_see_the_configured_channels() {
        let host = host();
        let config = json!({"state": ["messages", "total"]});
        run(&host, config, &["parse"]).unwrap();
        let seen = host.tool_calls().remove(0).extra["state"].clone();
        assert_eq!(
            (&seen["total"], seen["messages"].as_array().map(Vec::len)),
            (&json!(null), Some(2))
        );
        let batch = json!({"messages": "talk", "calls": calls(&["parse"]), "answered": [],
            "rules": {"parallel": true}, "state": {"total": 3, "secret": 4}});
        let context = Context::default().with_config(json!({"state": ["total", "messages"]}));
        let run = || testing::run_node::<tools>(&context, &json!({"std.calls": batch}));
        host.run(run).unwrap();
        assert_eq!(host.tool_calls()[1].extra["state"], json!({"total": 3}), "channels of both");
    }

    #[test]
    fn sequential_calls_see_earlier_overwrites() {
        let host = host().tool("count", |arguments| {
            Ok(ToolOutput::text("counted").with_overwrite("total", arguments["n"].clone()))
        });
        let config = json!({"parallel": false, "updates": ["total"], "state": ["total"]});
        let decision = run(&host, config, &["count", "count"]).unwrap();
        let seen: Vec<_> = host
            .tool_calls()
            .into_iter()
            .map(|call| call.extra["state"]["total"].clone())
            .collect();
        assert_eq!(seen, [json!(null), json!(0)]);
        let written: Vec<_> = decision
            .updates
            .iter()
            .filter(|it| it.channel == "total")
            .map(|it| &it.value)
            .collect();
        assert_eq!(written, [&json!(1)]);
    }

    #[test]
    fn tools_write_only_permitted_channels() {
        let host = host().tool("count", |_| {
            Ok(ToolOutput::text("2").with_update("total", 2).with_update("messages", json!([])))
        });
        let decision = run(&host, json!({"updates": ["total"]}), &["count"]).unwrap();
        let channels: Vec<_> = decision.updates.iter().map(|it| it.channel.as_str()).collect();
        assert_eq!(channels, ["messages", "total"]);
        assert_eq!(host.logged().len(), 1);
    }
}
