//! A real browser for tests of pages. Without a browser these tests are left out.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use wattle_kit::needs::{self, LeftOut, Program, clients};
use wattle_kit::standin::Gate;

use crate::binary;
use crate::scene::Scene;

/// Maximum duration of a scenario. Browsers start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// The environment variable with the URL of a running browser, which programs inherit.
const SHARED: &str = "WATTLE_BROWSER";

/// Prefix of a line by which the program gives the test an order.
const ORDER: &str = "order ";

/// Runs a scenario of a user at a browser. `program` is a compiled program of `tests/clients/page`,
/// such as `asset.js`. Screenshots go to the folder of installed clients.
///
/// # Errors
///
/// [`LeftOut`] without a browser or its driver.
///
/// # Panics
///
/// If the program reports a failure or does not end in time.
pub async fn at_a_browser(program: &str, scenario: &str, url: &str) -> Result<(), LeftOut> {
    let refuse = async |order: &str| panic!("{scenario} orders `{order}`");
    with_orders(program, scenario, url, refuse).await
}

/// Runs a scenario while a gate of a stand-in holds requests. The program orders `open` to release
/// them.
///
/// # Errors
///
/// [`LeftOut`] without a browser or its driver.
///
/// # Panics
///
/// If the program reports a failure or does not end in time.
pub async fn with_gate(
    program: &str,
    scenario: &str,
    url: &str,
    gate: Gate,
) -> Result<(), LeftOut> {
    let obey = async |order: &str| match order {
        "open" => gate.open(),
        other => panic!("{scenario} orders `{other}`"),
    };
    with_orders(program, scenario, url, obey).await
}

/// Runs a scenario at the page at `path` of the real binary, in the folder of a scene. The program
/// orders `kill` to kill the server, and `start` to start it again at the same address. The URL of
/// the page has the address of the stand-in as the parameter `standin`, which pages ignore.
///
/// # Errors
///
/// [`LeftOut`] without a browser or its driver.
///
/// # Panics
///
/// If the server cannot be killed or started, or if the program reports a failure or does not end
/// in time.
pub async fn with_kills(
    program: &str,
    scenario: &str,
    scene: &Scene,
    path: &str,
) -> Result<(), LeftOut> {
    with_kills_and(program, scenario, scene, path, |order| {
        panic!("{scenario} orders `{order}`");
    })
    .await
}

/// Runs a scenario as [`with_kills`] does. `obey` carries out all further orders.
///
/// # Errors
///
/// [`LeftOut`] without a browser or its driver.
///
/// # Panics
///
/// As [`with_kills`].
pub async fn with_kills_and(
    program: &str,
    scenario: &str,
    scene: &Scene,
    path: &str,
    obey: impl Fn(&str),
) -> Result<(), LeftOut> {
    let first = scene.serve_on_lasting_port().await;
    let address = first.url.clone();
    let url = format!("{address}{path}?standin={}", scene.standin.base_url);
    let mut server = Some(first);
    let carry_out = async |order: &str| match order {
        "kill" => {
            let mut killed = server.take().expect("the server is running");
            killed.program.kill().await.expect("the program can be killed");
        }
        "start" => {
            let started = binary::serve(&scene.workspace).await;
            assert_eq!(started.url, address, "the new server has the same address");
            server = Some(started);
        }
        other => obey(other),
    };
    with_orders(program, scenario, &url, carry_out).await
}

/// Runs a scenario whose program gives orders to the test: it prints `order <word>`, and reads a
/// line when `obey` has returned.
///
/// # Errors
///
/// [`LeftOut`] without a browser or its driver.
///
/// # Panics
///
/// If the program reports a failure or does not end in time.
pub async fn with_orders(
    program: &str,
    scenario: &str,
    url: &str,
    obey: impl AsyncFnMut(&str),
) -> Result<(), LeftOut> {
    let mut command = driver("page")?;
    command.args([program, scenario, url, "pictures"]).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, run(command, obey)).await;
    let (status, said) = ended.expect("the browser is done in time");
    assert!(status.success(), "{scenario} at {url}: {said}");
    Ok(())
}

/// Runs a program to its end and returns what it wrote to standard error.
async fn run(mut command: Command, mut obey: impl AsyncFnMut(&str)) -> (ExitStatus, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("node runs");
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let mut stdin = stdin.expect("a pipe");
    let mut lines = BufReader::new(stdout.expect("a pipe")).lines();
    let carry_out = async move {
        while let Some(line) = lines.next_line().await.expect("node writes") {
            if let Some(order) = line.strip_prefix(ORDER) {
                obey(order).await;
                stdin.write_all(b"done\n").await.expect("node reads");
            }
        }
    };
    let (ended, ()) = tokio::join!(child.wait_with_output(), carry_out);
    let ended = ended.expect("node ends");
    (ended.status, String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// Returns Node.js in the folder of an installed client that drives a browser, with the browser.
///
/// # Errors
///
/// [`LeftOut`] if one of them is missing.
pub fn driver(client: &str) -> Result<Command, LeftOut> {
    let mut command = Command::new("node");
    command.current_dir(clients::node(client)?);
    // The search starts the browser once, for its version.
    if needs::setting::<String>(SHARED).is_none() {
        command.env("CHROMIUM", Program::Chromium.find()?);
    }
    Ok(command)
}
