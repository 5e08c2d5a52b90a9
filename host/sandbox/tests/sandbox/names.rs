//! Tests of names and failures of guests that could deceive a reader.

use wattle_run::grant::Grants;
use wattle_run::ports::sandbox::GuestError;

use crate::{app, guest, load, load_error};

/// Returns a node plugin with one node. `name` is the name of the node in the notation of the text
/// format, and `bytes` is its length.
fn node_named(name: &str, bytes: usize) -> bytes::Bytes {
    let length = u8::try_from(bytes).unwrap();
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (data (i32.const 32) "{name}")
            (data (i32.const 64) "{{}}")
            (data (i32.const 128) "\20\00\00\00\{length:02x}\00\00\00\00\00\00\00\00\00\00\00\40\00\00\00\02\00\00\00\40\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 192) "\80\00\00\00\01\00\00\00")
            (func (export "wattle:plugin/node@0.1.0#describe") (result i32) (i32.const 192))
            (func (export "wattle:plugin/node@0.1.0#run") (param i32) (result i32) (i32.const 512)))"#
    );
    guest::core(&text, "node-plugin")
}

#[tokio::test]
async fn node_names_must_be_ascii() {
    let plugin = load(node_named("pay", 3)).await.unwrap();
    assert_eq!(plugin.info().nodes[0].name, "pay");
    // The `a` is Cyrillic.
    let error = load_error(node_named(r"p\d0\b0y", 4)).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains(r"`p\u{430}y`"), "{error}");
    assert!(error.message.contains("U+0430") && error.message.contains("ASCII"), "{error}");
}

/// The guest returns the failure `limit<CR><LF>X` with the message `a<ESC>[31mb<BEL>`.
#[tokio::test]
async fn failures_of_guests_are_sanitized() {
    let plugin = load(guest::reducer(
        "(i64.store (i32.const 1024) (i64.const 0x580a0d74696d696c))
         (i64.store (i32.const 1032) (i64.const 0x07626d31335b1b61))
         (i32.store (i32.const 1104) (i32.const 1))
         (i32.store (i32.const 1108) (i32.const 1024))
         (i32.store (i32.const 1112) (i32.const 8))
         (i32.store (i32.const 1116) (i32.const 1032))
         (i32.store (i32.const 1120) (i32.const 8))
         (i32.const 1104)",
    ))
    .await
    .unwrap();
    let reduced = plugin.reduce(&app(), "r", None, Vec::new(), &Grants::default()).await;
    let ended = reduced.unwrap_err();
    let GuestError::Failure(failure) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.code, "limit--X");
    assert_eq!(failure.message, "a[31mb");
}
