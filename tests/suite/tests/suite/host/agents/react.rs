//! `useStream` of both packages in a real browser, of the newest and of older versions, on pages of
//! another origin.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::Pattern;
use wattle_suite::browser;
use wattle_suite::server::{Setup, TestServer};

use super::{pauses, setup};

/// Maximum duration of a scenario. Browsers start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// The hooks of the packages; each is on a page of its own. No name is the beginning of another.
const HOOKS: [&str; 4] = ["react", "sdk", "older-react", "older-sdk"];

/// Pause between deltas of a completion that a page joins.
const PIECE_MS: u64 = 100;

/// Pause that is long enough for a user to stop the run.
const STOP_MS: u64 = 1_500;

/// Starts a server that accepts requests of pages of one origin, with a slow model.
async fn server(origin: &str) -> TestServer {
    let listen = "listen = \"127.0.0.1:0\"\n";
    let setup: Setup =
        setup().await.replace(listen, &format!("{listen}origins = [\"{origin}\"]\n"));
    let server = setup.start().await;
    server.standin().fault(pauses("take your time", STOP_MS));
    server.standin().fault(pauses("slowly", PIECE_MS));
    server
}

/// Runs a scenario of users at a browser, one on a page with each hook.
async fn visit(scenario: &str) -> Result<(), LeftOut> {
    let mut command = browser::driver("react")?;
    command.args(["visit.mjs", scenario]).arg(clients::node("react-older")?);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut visitor = command.spawn().unwrap();
    let mut says = BufReader::new(visitor.stdout.take().unwrap()).lines();
    let Some(origin) = says.next_line().await.unwrap() else {
        let ended = visitor.wait_with_output().await.unwrap();
        panic!("no page: {}", String::from_utf8_lossy(&ended.stderr));
    };
    let server = server(&origin).await;
    let gates = HOOKS.map(|hook| {
        let text = format!("piece by piece to {hook}");
        let on = Pattern { body_contains: Some(text), ..Pattern::model("chat") };
        (hook, server.standin().stream_gate(on))
    });
    let mut hears = visitor.stdin.take().unwrap();
    hears.write_all(format!("{}\n", server.url("")).as_bytes()).await.unwrap();
    let obey = async {
        while let Some(line) = says.next_line().await.unwrap() {
            let (order, named) = line.split_once(' ').unwrap();
            let (_, gate) = gates.iter().find(|(hook, _)| *hook == named).unwrap();
            match order {
                "next" => gate.release(1),
                "rest" => gate.open(),
                _ => panic!("unknown order: {line}"),
            }
        }
    };
    let ends = async { tokio::join!(visitor.wait_with_output(), obey).0 };
    let ended = tokio::time::timeout(PATIENCE, ends).await;
    let ended = ended.expect("the browser is done in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{scenario}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deltas_appear_as_they_are_streamed() {
    need!(visit("talks").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupts_are_shown_and_answered() {
    need!(visit("answers").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_survives_a_reload() {
    need!(visit("asks_again").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_during_a_completion_shows_the_rest() {
    need!(visit("rejoins").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_can_be_stopped() {
    need!(visit("stops").await);
}
