//! `tools`: calls what the model asked for and writes the answers.

use wattle_plugin::prelude::{Context, Deserialize, Failure, Value, node};

use crate::batch::{Batch, Sent};
use crate::config::ToolsConfig;
use crate::conversation::Conversation;
use crate::shown::Shown;
use crate::turn::Turn;

/// Calls the tools that a model asked for. Sent to by an agent it makes the calls it was sent;
/// reached by an edge it makes all calls of the last assistant message that have no answer.
#[node(config = ToolsConfig)]
pub(crate) fn tools(context: &Context, input: Value) -> Result<Turn, Failure> {
    let config: ToolsConfig = context.config()?;
    if let Ok(Sent { batch }) = Sent::deserialize(&input) {
        let rules = batch.rules.and(config.rules());
        let state = match (batch.state, &config.state) {
            (Some(shown), Some(channels)) => Some(shown.only(channels)),
            (shown, _) => shown,
        };
        return Batch { rules, state, ..batch }.run();
    }
    let talk = Conversation::read(&config.messages, &input)?;
    let batch = Batch {
        calls: talk.open_calls(),
        answered: talk.answered(),
        rules: config.rules(),
        messages: config.messages,
        granted: None,
        state: config.state.map(|channels| Shown::of(&channels, &input)),
    };
    batch.run()
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
        let context = Context::default().with_config(config);
        let asked = json!({"role": "assistant", "content": "", "tool_calls": calls(names)});
        let state = json!({"messages": [{"role": "user", "content": "hi"}, asked]});
        host.run(|| testing::run_node::<tools>(&context, &state))
    }

    fn messages(decision: &Decision) -> &Vec<Value> {
        decision.update("messages").and_then(Value::as_array).unwrap()
    }

    #[test]
    fn all_open_calls_are_answered_in_order() {
        let host = host();
        let decision = run(&host, json!({}), &["save", "parse", "fly"]).unwrap();
        let written = messages(&decision);
        assert_eq!(written[0]["content"], "unavailable: the book is closed\n{\"until\":8}");
        assert_eq!(
            written[1],
            json!({"role": "tool", "content": "{\"n\":1}", "tool_call_id": "c1", "name": "parse",
                "status": "success", "structured": {"n": 1}})
        );
        assert_eq!(written[2]["content"], "there is no tool `fly`; the tools are `parse`, `save`");
        assert_eq!(written[2]["status"], "error");
        assert!(decision.goto.is_empty());
    }

    #[test]
    fn a_tool_of_a_server_that_is_away_is_told_as_such() {
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
                    "the tool `{name}` is not known now, since `mcp:graph` does not say what it \
                     has: it is down; the tools are `parse`"
                )
            );
        }
    }

    #[test]
    fn what_was_sent_is_called_by_the_rules_of_both() {
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
    fn what_was_sent_is_called_by_the_name_that_no_other_tool_has() {
        let host = host();
        let granted = json!({"tools": [{"name": "parse", "reference": "date/parse"},
            {"name": "ghost", "reference": "castle/ghost"}]});
        let batch = json!({"messages": "talk", "calls": calls(&["parse", "ghost", "save"]),
            "answered": [], "rules": {"parallel": true}, "granted": granted});
        let run = || testing::run_node::<tools>(&Context::default(), &json!({"std.calls": batch}));
        let decision = host.run(run).unwrap();
        let called: Vec<_> = host.tool_calls().into_iter().map(|call| call.tool).collect();
        assert_eq!(called, ["date/parse", "castle/ghost"], "what was sent holds, not a new list");
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
    fn a_rule_of_the_node_that_is_about_no_tool_is_a_failure() {
        let failure = run(&host(), json!({"approve": {"tools": ["sav"]}}), &["save"]).unwrap_err();
        assert_eq!(failure.code, "not-found");
        assert!(run(&host(), json!({"approve": {"tools": ["sav"]}}), &[]).is_ok());
    }

    #[test]
    fn rules_that_leave_no_decision_refuse_the_call() {
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
    fn order_rules_see_answers_of_calls_before_if_they_run_one_by_one() {
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
    fn a_person_decides() {
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
    fn a_question_without_an_answer_stops_the_task() {
        let config = json!({"approve": {"tools": "*", "allowed": ["approve", "reject"]}});
        let host = host();
        assert_eq!(run(&host, config, &["save"]).unwrap_err().code, "interrupted");
        let schema = host.questions().remove(0).response_schema.unwrap();
        assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn tools_see_the_channels_that_the_node_shows() {
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
        assert_eq!(host.tool_calls()[1].extra["state"], json!({"total": 3}), "what both show");
    }

    #[test]
    fn calls_one_by_one_see_overwrites_of_those_before_and_the_last_one_holds() {
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
    fn tools_write_only_channels_that_the_graph_opens() {
        let host = host().tool("count", |_| {
            Ok(ToolOutput::text("2").with_update("total", 2).with_update("messages", json!([])))
        });
        let decision = run(&host, json!({"updates": ["total"]}), &["count"]).unwrap();
        let channels: Vec<_> = decision.updates.iter().map(|it| it.channel.as_str()).collect();
        assert_eq!(channels, ["messages", "total"]);
        assert_eq!(host.logged().len(), 1);
    }
}
