//! Helpers that tests of several nodes share.

use wattle_plugin::export::Node;
use wattle_plugin::llm;
use wattle_plugin::node::Decision;
use wattle_plugin::prelude::{Completion, Context, Value, blob, json};
use wattle_plugin::testing::{FakeHost, run_node};

/// 2025-01-15 10:30:45 in Shanghai.
pub(crate) const NOW_MS: i64 = 1_736_908_245_000;

/// A fake host whose clock is at [`NOW_MS`] in Shanghai.
pub(crate) fn host() -> FakeHost {
    FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800)
}

/// Runs an extraction node with a model that returns the document `found`.
pub(crate) fn extract<N: Node>(input_type: &str, found: Value) -> (Decision, llm::Request) {
    let host = host().llm(move |_| Ok(Completion::of_json(found.clone())));
    let decision = host.run(|| {
        let image = blob::put(b"png", "image/png").unwrap();
        let input = json!({
            "inputType": input_type, "imageData": image, "textInput": "昨天买入腾讯",
            "reviewPayload": {"warnings": ["先前"]},
        });
        run_node::<N>(&Context::default(), &input).unwrap()
    });
    let mut requests = host.llm_requests();
    assert_eq!(requests.len(), 1);
    (decision, requests.remove(0))
}
