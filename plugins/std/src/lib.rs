//! The nodes of an agent, which a graph file configures.
//!
//! # Layout
//!
//! * `agent`: the node `agent`, one turn of a model.
//! * `ask`: the completion of a turn; an empty or broken completion is requested again.
//! * `tools`: the node `tools`, which makes the requested tool calls.
//! * `config`: configuration of both nodes under `with`.
//! * `conversation`: messages of the current turn, and those that the nodes write.
//! * `offer`: the offered tools, under names that every provider accepts.
//! * `fold`: conversion of arguments schemas to a form that every provider accepts.
//! * `batch`: the calls of one task and their results.
//! * `granted`: the granted tools and their names.
//! * `rules`: the tool policy and its settings.
//! * `shown`: the state that tools see.
//! * `approval`: interrupts before tool calls.
//! * `turn`: the outcome of both nodes.

mod agent;
mod approval;
mod ask;
mod batch;
mod config;
mod conversation;
mod fold;
mod granted;
mod offer;
mod rules;
mod shown;
#[cfg(test)]
mod testing;
mod tools;
mod turn;

wattle_plugin::export! {
    nodes: [
        agent::agent,
        tools::tools,
    ],
}
