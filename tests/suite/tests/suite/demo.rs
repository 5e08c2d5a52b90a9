//! The demo from its start to its end, as `cargo xtask demo --once` runs it.

use wattle_suite::binary;
use wattle_suite::workspace::Workspace;

#[tokio::test]
async fn the_demo_uses_every_application_and_ends() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    let output = binary::demo(&workspace).await;
    assert_eq!(output.code, 0, "{}", output.text());
    // The addresses of the studio come last.
    assert!(output.stdout.contains("\n== the studio: http://"), "{}", output.text());
}
