//! Tests of tickers in the format of other services: the rows that a person is asked to confirm.
//!
//! `say` is the text of a person, and `picture` is the text in an image that the person sends. The
//! case provides the completions of the model that reads them.

use serde_json::{Value, json};
use wattle_kit::replay::Case;
use wattle_suite::asset::{INVOKE, picture};
use wattle_suite::server::Setup;

use super::tenant::Door;

#[tokio::test]
async fn tickers_of_other_services() {
    let door = Door { path: INVOKE, route: "chat", body };
    door.check("asset", Setup::asset().await).await;
}

fn body(case: &Case) -> Value {
    let image = case.key("picture").map(|words| picture(words, 0));
    json!({ "textInput": case.key("say"), "imageData": image })
}
