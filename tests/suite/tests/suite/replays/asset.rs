//! Tickers as other services write them: what the person is asked to confirm.
//!
//! `say` is what a person writes, `picture` the words in a picture that a person sends. The model that reads them is
//! that of the case.

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
