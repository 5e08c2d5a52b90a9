//! Tests of the plugin, without a host. `wattle build` and then `cargo test` run them.

use wattle_plugin::testing::FakeHost;

use super::*;

#[test]
fn a_person_is_greeted_by_name() {
    let draft = greet(&Context::default(), Input { name: "Ada".to_owned() }).unwrap();
    assert_eq!(draft.greeting, "Hello, Ada!");
}

#[test]
fn the_answer_decides() {
    let host = FakeHost::new().answer(json!(false));
    let draft = Draft { greeting: "Hello, Ada!".to_owned() };
    let decision = host.run(|| approve(&Context::default(), draft)).unwrap();
    assert!(!decision.approved);
    assert_eq!(host.questions()[0].payload, json!({ "greeting": "Hello, Ada!" }));
}
