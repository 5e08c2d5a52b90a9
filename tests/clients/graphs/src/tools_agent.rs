//! A scripted model that searches once, and the tool that it requests.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, ToolContext, ToolOutput, json, node, tool,
};

use crate::message::{NewMessages, Talk, asking, spoken};

/// Requests a search. Ends once the conversation has a tool result.
#[node]
pub(crate) fn searcher(_context: &Context, talk: Talk) -> Result<Outcome<NewMessages>, Failure> {
    if talk.has_answer() {
        return Ok(Outcome::new(NewMessages::one(spoken("ai-tools-done", "done.")?)));
    }
    let call = asking("ai-tools-call", "tc-1", "search", json!({"query": "v3"}));
    Ok(Outcome::new(NewMessages::one(call)).goto("tools"))
}

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// The words to search for.
    query: String,
}

/// Returns a result for any query.
#[tool(read_only, idempotent)]
pub(crate) fn search(_context: &ToolContext, query: Query) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(format!("result for '{}'", query.query)))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, ToolContext, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{search, searcher};

    #[test]
    fn the_model_searches_until_it_has_a_tool_result() {
        let user = json!({"role": "user", "content": "search for v3"});
        let tool = json!({"role": "tool", "tool_call_id": "tc-1", "content": "result for 'v3'"});
        for (messages, id, goto) in [
            (json!([]), "ai-tools-call", vec!["tools"]),
            (json!([user]), "ai-tools-call", vec!["tools"]),
            (json!([user, tool]), "ai-tools-done", vec![]),
            (json!([user, tool, user]), "ai-tools-done", vec![]),
        ] {
            let state = json!({ "messages": messages });
            let run = || testing::run_node::<searcher>(&Context::default(), &state);
            let decision = FakeHost::new().run(run).unwrap();
            assert_eq!(decision.update("messages").unwrap()[0]["id"], id);
            assert_eq!(decision.goto, goto);
        }
    }

    #[test]
    fn a_search_returns_a_result_for_its_query() {
        let context = ToolContext::default();
        let output = testing::call_tool::<search>(&context, &json!({"query": "v3"})).unwrap();
        assert_eq!(output.text_content(), "result for 'v3'");
    }
}
