//! Ready nodes: the agent loop as two nodes that a graph file configures.
//!
//! # Layout
//!
//! * `agent`: one model turn.
//! * `ask`: the answer of a turn, asked for once more if it is empty or broken.
//! * `tools`: calls what the model asked for and writes the answers.
//! * `config`: what a graph file says of them under `with`.
//! * `conversation`: the messages in the state, and what a model is shown of them.
//! * `offer`: the tools on offer, under names that every provider takes.
//! * `fold`: schemas of arguments in a form that every provider takes.
//! * `batch`: the calls of one task, and what came of them.
//! * `granted`: the granted tools, and the names that mean them.
//! * `rules`: what holds for calls.
//! * `shown`: what tools see of the state.
//! * `approval`: asking a person before a tool is called.
//! * `turn`: what both nodes return.

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
