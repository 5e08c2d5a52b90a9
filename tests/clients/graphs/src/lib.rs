//! Deterministic graphs, for programs that test clients.
//!
//! # Layout
//!
//! * `agent`: the nodes of the graph `agent`, in the order of their execution, and the node of its
//!   subgraph.
//! * `tools_agent`: a scripted model, and the tool that it requests.
//! * `deep_agent`: two scripted agents, and the tool that runs one of them.
//! * `factory_agent`, `stalling_agent`, `spinning_agent`: graphs with one node each.
//! * `message`: messages of the state, and streamed messages.
//! * `progress`: events at the start and the end of a step.
//! * `python`: text form of values, as clients of Python programs expect it.

mod agent;
mod deep_agent;
mod factory_agent;
mod message;
mod progress;
mod python;
mod spinning_agent;
mod stalling_agent;
mod tools_agent;

wattle_plugin::export! {
    nodes: [
        agent::stream_message,
        agent::call_tool,
        agent::ask_human,
        agent::run_subgraph,
        agent::sub,
        tools_agent::searcher,
        deep_agent::supervisor,
        deep_agent::researcher,
        factory_agent::echo,
        stalling_agent::stall,
        spinning_agent::spin,
    ],
    tools: [tools_agent::search, deep_agent::task],
}
