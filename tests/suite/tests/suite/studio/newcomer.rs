//! A newcomer who goes from the front page to an application, and watches its run in the studio.

use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_kit::standin::Pattern;
use wattle_suite::server::Setup;
use wattle_suite::{browser, guests};

/// The program of the newcomer.
const PROGRAM: &str = "studio-newcomer.js";

#[tokio::test]
async fn s0_86_a_newcomer_watches_a_sentence_become_rows() {
    need!(clients::page("welcome"));
    need!(clients::page("asset"));
    need!(clients::studio());
    // The front page is at `/`, as in the demo.
    let setup = Setup::asset().await.replace("mount = \"/\"\n", "");
    let welcome = guests::root().join("plugins/apps/welcome");
    let table = format!("[apps.welcome]\npath = \"{}\"\nmount = \"/\"\n", welcome.display());
    let server = setup.with(&table).start().await;
    let chat = server.standin().gate(Pattern::model("chat"));
    let extracts = Pattern { body_contains: Some("OperationParseSchema".into()), ..Pattern::any() };
    let extraction = server.standin().gate(extracts);
    let obey = async |order: &str| match order {
        "classify" => chat.open(),
        "extract" => extraction.open(),
        other => panic!("unexpected order `{other}` of the scenario"),
    };
    need!(browser::with_orders(PROGRAM, "watches", &server.url("/"), obey).await);
}
