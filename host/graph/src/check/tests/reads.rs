//! Tests of the channels that nodes declare they read apart from their input schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::graph::Node;
use crate::id::ChannelName;

/// A graph whose node `a` takes any configuration.
const TALK: &str = r#"
[graphs.g]
entry = ["a", "b"]
channels.messages.reducer = "messages"
channels.notes = {}
channels.other = {}
nodes.a.node = "flexible"
nodes.b.node = "flexible"
"#;

/// The channels of a node whose configuration can name the conversation, and further channels.
fn configurable() -> Value {
    let messages = json!({ "config": "messages", "default": "messages" });
    json!({ "channels": [messages, { "config": "state" }], "conversation": messages })
}

/// Returns the nodes `a` and `b` of [`TALK`] with further lines.
fn nodes(lines: &str, input: Value, reads: Value) -> [Node; 2] {
    let app = App::default().with("flexible", input, json!({})).reading("flexible", reads);
    let graph = check_toml("graph.toml", &format!("{TALK}{lines}"), &app).unwrap().remove(0);
    ["a", "b"].map(|name| graph.nodes()[name].clone())
}

/// Returns the channels that the node `a` reads, and the one with its conversation.
fn read(lines: &str, input: Value, reads: Value) -> (Option<String>, Option<String>) {
    let [node, _] = nodes(lines, input, reads);
    let names = |reads: &BTreeSet<ChannelName>| {
        reads.iter().map(ChannelName::as_str).collect::<Vec<_>>().join(" ")
    };
    let conversation = node.conversation.map(|it| String::from(it.channel));
    (node.reads.as_deref().map(names), conversation)
}

#[test]
fn the_configuration_of_a_node_names_its_channels() {
    for (config, reads, conversation) in [
        ("", "messages", Some("messages")),
        ("nodes.a.with = { messages = 'other' }", "other", Some("other")),
        ("nodes.a.with = { state = 'notes' }", "messages notes", Some("messages")),
        (
            "nodes.a.with = { messages = 'notes', state = ['other', 'notes'] }",
            "notes other",
            Some("notes"),
        ),
        ("nodes.a.with = { messages = ['notes', 'other'] }", "notes other", None),
        // Names that are no channels of the graph.
        ("nodes.a.with = { state = ['missing', 'notes'] }", "messages notes", Some("messages")),
        ("nodes.a.with = { messages = 'missing' }", "", Some("missing")),
    ] {
        let found = read(config, json!({}), configurable());
        let expected = (Some(reads.to_owned()), conversation.map(str::to_owned));
        assert_eq!(found, expected, "{config}");
    }
}

#[test]
fn a_conversation_that_is_named_for_another_purpose_too_is_whole() {
    for (config, is_whole) in [
        ("", false),
        ("nodes.a.with = { state = 'notes' }", false),
        ("nodes.a.with = { state = ['notes', 'messages'] }", true),
        ("nodes.a.with = { messages = 'notes', state = ['messages'] }", false),
    ] {
        let [node, _] = nodes(config, json!({}), configurable());
        assert_eq!(node.conversation.unwrap().is_whole, is_whole, "{config}");
    }
}

#[test]
fn nodes_whose_configurations_name_no_channel_share_the_set() {
    let [a, b] = nodes("nodes.a.with = { route = 'chat' }", json!({}), configurable());
    assert!(Arc::ptr_eq(a.reads.as_ref().unwrap(), b.reads.as_ref().unwrap()));
    let [a, b] = nodes("nodes.a.with = { messages = 'other' }", json!({}), configurable());
    assert_ne!(a.reads, b.reads);
}

/// The input schema is that of a type with a field for the conversation, whatever the channel is.
#[test]
fn declared_channels_replace_the_properties_of_the_input_schema() {
    let input = json!({ "properties": { "missing": {}, "notes": {} } });
    let found = read("", input, json!({ "channels": [{ "channel": "other" }] }));
    assert_eq!(found, (Some("other".to_owned()), None));
}

#[test]
fn a_conversation_is_among_the_channels_that_the_node_reads() {
    let messages = json!({ "conversation": { "channel": "messages" } });
    let found = read("", json!({}), messages.clone());
    assert_eq!(found, (None, Some("messages".to_owned())), "the node reads the whole state");
    let found = read("", json!({ "properties": { "notes": {} } }), messages);
    assert_eq!(found, (Some("notes".to_owned()), None));
}
