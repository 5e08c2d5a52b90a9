//! Nodes of the graph, one per file.

pub(crate) mod discover_candidates;
pub(crate) mod execute;
pub(crate) mod finalize;
pub(crate) mod inspect_ontology;
pub(crate) mod select_anchor_ontologies;
pub(crate) mod understand_intent;

use wattle_plugin::prelude::{Failure, emit};

use crate::state::Clarification;

/// Requests a clarification from the user. The run ends after this node.
fn clarify(reason: &str, question: &str) -> Result<Clarification, Failure> {
    let asked = Clarification { reason: reason.to_owned(), question: question.to_owned() };
    emit::custom("clarification_asked", serde_json::to_value(&asked)?)?;
    Ok(asked)
}
