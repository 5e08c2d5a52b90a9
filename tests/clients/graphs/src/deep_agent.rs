//! A scripted agent that delegates its task to another agent, and the tool that runs the other
//! agent.
//!
//! The other agent is a subgraph that the tool starts. Its namespace is `tools:<task>.<n>.<m>`: `n`
//! is the number of the tool call in its task and `m` the number of the call by which the tool
//! starts the subgraph. The log therefore shows which tool call started the subgraph.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Outcome, ToolContext, ToolOutput, json, node,
    runs, tool,
};

use crate::message::{NewMessages, Talk, asking, spoken, user};

/// The graph of the other agent, which is also its `subagent_type`.
const RESEARCHER: &str = "researcher";

/// Requests the tool `task`. Ends once the conversation has a tool result.
#[node]
pub(crate) fn supervisor(_context: &Context, talk: Talk) -> Result<Outcome<NewMessages>, Failure> {
    if talk.has_answer() {
        return Ok(Outcome::new(NewMessages::one(spoken("sup-2", "Research complete.")?)));
    }
    let order = json!({"subagent_type": RESEARCHER, "description": "research v3 streaming"});
    Ok(Outcome::new(NewMessages::one(asking("sup-1", "tc-task-1", "task", order))).goto("tools"))
}

/// Writes the result of the research.
#[node]
pub(crate) fn researcher(_context: &Context, _input: Empty) -> Result<NewMessages, Failure> {
    Ok(NewMessages::one(spoken("res-1", "v3 streaming is event-typed and thread-centric.")?))
}

/// Arguments of `task`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Order {
    /// The agent to run: `researcher`.
    subagent_type: String,
    /// The task of the agent.
    description: String,
}

/// Runs another agent and returns the text of its last message.
#[tool]
pub(crate) fn task(_context: &ToolContext, order: Order) -> Result<ToolOutput, Failure> {
    if order.subagent_type != RESEARCHER {
        let text = format!("there is no agent `{}`; ask `{RESEARCHER}`", order.subagent_type);
        return Ok(ToolOutput::error(text));
    }
    let input = json!({"messages": [user(&order.description)]});
    let ended = runs::Start::graph(RESEARCHER).input(input).start_and_wait()?;
    let last = ended.completed()?["messages"].as_array().and_then(|messages| messages.last());
    let words = last.and_then(|message| message["content"].as_str());
    let words = words.ok_or_else(|| Failure::internal("the agent ended without a message"))?;
    Ok(ToolOutput::text(words))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, ToolContext, json};
    use wattle_plugin::runs::{EndedRun, Outcome};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{supervisor, task};

    #[test]
    fn the_task_is_delegated_once() {
        let tool = json!({"role": "tool", "tool_call_id": "tc-task-1", "content": "found"});
        for (messages, id, goto) in
            [(json!([]), "sup-1", vec!["tools"]), (json!([tool]), "sup-2", vec![])]
        {
            let state = json!({ "messages": messages });
            let run = || testing::run_node::<supervisor>(&Context::default(), &state);
            let decision = FakeHost::new().run(run).unwrap();
            assert_eq!(decision.update("messages").unwrap()[0]["id"], id);
            assert_eq!(decision.goto, goto);
        }
    }

    #[test]
    fn the_last_message_of_the_other_agent_is_the_output() {
        let host = FakeHost::new().run_ends(|run| EndedRun {
            run: run.clone(),
            outcome: Outcome::Completed,
            state: json!({"messages": [{"content": "do it"}, {"content": "found"}]}),
        });
        let call = |who: &str| {
            let order = json!({"subagent_type": who, "description": "do it"});
            host.run(|| testing::call_tool::<task>(&ToolContext::default(), &order)).unwrap()
        };
        assert_eq!(call("researcher").text_content(), "found");
        assert_eq!(host.started()[0].input["messages"][0]["content"], "do it");
        assert!(call("painter").is_error);
        assert_eq!(host.started().len(), 1);
    }
}
