//! Graphs that behave the same every time, for programs that test clients.
//!
//! # Layout
//!
//! * `agent`: the nodes of `agent`, in the order in which they run, and of the graph inside of it.
//! * `tools_agent`: a scripted model, and the tool it asks for.
//! * `deep_agent`: two scripted models, and the tool that runs one for the other.
//! * `factory_agent`, `stalling_agent`, `spinning_agent`: the one node of each.
//! * `message`: messages as the state holds them, and streamed.
//! * `progress`: the events around a step.
//! * `python`: values as text, as clients of Python programs expect it.

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
