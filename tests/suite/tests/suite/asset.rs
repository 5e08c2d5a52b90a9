//! The asset application through its endpoints, with its real component. Test names begin with the
//! numbers of the requirements (S0-..) and acceptance scenarios (A..) that they verify.

mod api;
mod check;
mod classify;
mod enrich;
mod example;
mod expiry;
mod extract;
mod invoke;
mod lists;
mod page;
pub(crate) mod postgres;
mod prompts;
mod restart;
mod review;
mod store;
mod stream;
mod threads;

use serde_json::Value;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::TestServer;

/// Makes the chat model extract exactly this content from the next text, which the model first
/// classifies by its words.
fn extracts(server: &TestServer, content: &Value) {
    let fault = Fault::Content { text: content.to_string() };
    server.standin().fault(FaultRule::new(Pattern::model("chat"), fault).skip(1).times(1));
}
