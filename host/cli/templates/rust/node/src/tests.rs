//! Tests of the plugin, without a host. `wattle build` and then `cargo test` run them.

use super::*;

#[test]
fn a_person_is_greeted_by_name() {
    let update = greet("Ada".to_owned()).unwrap();
    assert_eq!(update.greeting, "Hello, Ada!");
}
