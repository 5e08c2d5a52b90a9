//! A real browser, for tests of pages. Where there is none, they are left out.

use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use tokio::process::Command;

use crate::guests;

/// How long a scenario may take. Browsers start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// Names of the browser on different systems.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Has a user at a browser do something, if there is a browser: `program` is a file of
/// `tests/clients/page`. Pictures of what was seen go to the folder of installed clients.
///
/// # Panics
///
/// If the program says that something is not as it should be, or does not end.
#[expect(clippy::print_stdout, reason = "says why it is left out")]
pub async fn at_a_browser(program: &str, scenario: &str, url: &str) {
    let (folder, browser) = match found("page") {
        Ok(found) => found,
        Err(reason) => {
            println!("left out: {reason}");
            return;
        }
    };
    let mut command = Command::new("node");
    command.args([program, scenario, url, "pictures"]).current_dir(folder);
    command.env("CHROMIUM", browser).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.expect("the browser is done in time").expect("node runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{scenario} at {url}: {said}");
}

/// Whether the page of an app was built. Without Node.js it is not, and its tests are left out.
#[expect(clippy::print_stdout, reason = "says why it is left out")]
pub fn has_page(app: &str) -> bool {
    let page = guests::root().join("plugins/apps").join(app).join("page/dist/index.html");
    let is_there = page.is_file();
    if !is_there {
        println!("left out: the page is not built; `cargo xtask pages` builds it (needs Node.js)");
    }
    is_there
}

/// The folder of an installed client that drives a browser, and the browser.
///
/// # Errors
///
/// Says what is missing.
pub fn found(client: &str) -> Result<(PathBuf, PathBuf), &'static str> {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map(PathBuf::from).unwrap_or_default();
    let folder = target.join("clients").join(client);
    if !has("node") || !folder.join("node_modules").is_dir() {
        return Err("no driver for a browser; `cargo xtask clients` installs it (needs npm)");
    }
    let browser = BROWSERS.into_iter().find(|name| has(name));
    let browser = browser.ok_or("no browser (Debian: `apt-get install chromium`)")?;
    Ok((folder, path_of(browser)))
}

fn has(program: &str) -> bool {
    let mut command = Program::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Where a program is.
fn path_of(program: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| file.is_file()).unwrap_or_else(|| program.into())
}
