//! The binary as a server, and commands that connect to it.

mod check;
mod storage;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A server process, which ends with the test.
struct Served {
    child: Child,
    ready: Value,
}

impl Served {
    fn start(folder: &Path) -> Self {
        Self::start_on(folder, "127.0.0.1:0")
    }

    fn start_on(folder: &Path, address: &str) -> Self {
        let mut child = wattle(folder, &["serve", "--json", "--listen", address])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, ready: serde_json::from_str(&line).unwrap() }
    }

    fn terminate(mut self) -> Option<i32> {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wattle(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(folder).env_clear();
    command
}

#[test]
fn commands_use_the_server_while_it_runs_and_the_store_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path());
    let place = folder.path().join("data/server.json");
    let written: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    assert_eq!(written["address"], served.ready["address"]);
    // The server has the store open, so the response must come from the server.
    let listed = wattle(folder.path(), &["thread", "list", "--json"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0));
    let hosts = wattle(folder.path(), &["hosts"]).output().unwrap();
    let hosts = String::from_utf8(hosts.stdout).unwrap();
    assert!(hosts.contains("running") && hosts.contains(env!("CARGO_PKG_VERSION")), "{hosts}");
    assert_eq!(served.terminate(), Some(0));
    assert!(!place.exists());
    let hosts = wattle(folder.path(), &["hosts"]).output().unwrap();
    assert_eq!(String::from_utf8(hosts.stdout).unwrap(), "no host is running\n");
    let listed = wattle(folder.path(), &["thread", "list", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "{\n  \"items\": []\n}\n");
}

/// Returns whether a command succeeded, and what it printed.
pub(crate) fn said(folder: &Path, args: &[&str], key: Option<&str>) -> (bool, String) {
    let mut command = wattle(folder, args);
    let ended = command.envs(key.map(|key| ("WATTLE_API_KEY", key))).output().unwrap();
    let text = [ended.stdout, ended.stderr].concat();
    (ended.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn keys_are_created_without_a_server_and_through_it() {
    let folder = tempfile::tempdir().unwrap();
    let create = ["key", "create", "--name", "operator", "--scope", "admin"];
    let made = wattle(folder.path(), &create).output().unwrap();
    let operator = String::from_utf8(made.stdout).unwrap();
    let operator = operator.trim();
    assert!(operator.starts_with("wtl_") && !operator.contains(char::is_whitespace), "{operator}");

    // A key in the store permits an address that other machines can reach.
    let served = Served::start_on(folder.path(), "0.0.0.0:0");
    let (went_well, text) = said(folder.path(), &["key", "list"], None);
    assert!(!went_well && text.contains("send a known key"), "{text}");
    let create = ["key", "create", "--name", "ci", "--tenant", "acme", "--rate", "10/s", "--json"];
    let made = wattle(folder.path(), &create).env("WATTLE_API_KEY", operator).output().unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let (went_well, text) = said(folder.path(), &["key", "list"], Some(operator));
    assert!(went_well && text.contains("acme") && text.contains("10/s"), "{text}");
    assert!(!text.contains(key), "{text}");
    let (went_well, text) = said(folder.path(), &["key", "list"], Some(key));
    assert!(!went_well && text.contains("scope `admin`"), "{text}");
    assert!(said(folder.path(), &["thread", "list"], Some(key)).0);
    assert!(said(folder.path(), &["key", "revoke", id], Some(operator)).0);
    assert!(!said(folder.path(), &["thread", "list"], Some(key)).0);

    // The last key is revoked, but requests still need a key.
    let own = operator.split('_').nth(1).unwrap();
    assert!(said(folder.path(), &["key", "revoke", own], Some(operator)).0);
    assert!(!said(folder.path(), &["thread", "list"], None).0);
    drop(served);
    let (went_well, text) = said(folder.path(), &["serve", "--listen", "0.0.0.0:0"], None);
    assert!(!went_well && text.contains("without API keys"), "{text}");
}

#[test]
fn revoking_includes_created_keys_and_the_last_key_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, by: Option<&str>| {
        let create = ["key", "create", "--name", name, "--scope", "admin", "--json"];
        let mut made = wattle(folder.path(), &create);
        let made = made.envs(by.map(|key| ("WATTLE_API_KEY", key))).output().unwrap();
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("id"), text("key"))
    };
    let (first_id, first) = make("first", None);
    let _served = Served::start(folder.path());
    let (second_id, second) = make("second", Some(&first));
    let (_, text) = said(folder.path(), &["key", "list"], Some(&second));
    assert!(text.lines().any(|line| line.contains("second") && line.contains(&first_id)), "{text}");
    let revoke = |more: &[&str]| {
        let args = [&["key", "revoke", first_id.as_str()], more].concat();
        said(folder.path(), &args, Some(&second))
    };
    let (went_well, text) = revoke(&[]);
    assert!(went_well && text.contains(&format!("are still valid: {second_id};")), "{text}");
    let (went_well, text) = revoke(&["--made"]);
    assert!(!went_well && text.contains("`--open`"), "{text}");
    let (went_well, text) = revoke(&["--made", "--open"]);
    assert!(went_well && text.contains(&format!("revoked key {second_id}")), "{text}");
    assert!(said(folder.path(), &["thread", "list"], None).0, "the host is open");
}

#[test]
fn commands_work_after_a_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    drop(Served::start(folder.path()));
    assert!(folder.path().join("data/server.json").exists());
    let listed = wattle(folder.path(), &["thread", "list"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0));
    assert_eq!(Served::start(folder.path()).terminate(), Some(0));
}

#[test]
fn a_second_server_reports_that_the_store_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let _served = Served::start(folder.path());
    let second = wattle(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("is in use; stop the other wattle"), "{text}");
}

#[test]
fn commands_without_a_server_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let list = || {
        let mut command = wattle(folder.path(), &["thread", "list"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for command in [list(), list()] {
        let ended = command.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
    }
}

#[test]
fn a_server_names_the_app_that_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    std::fs::create_dir(folder.path().join("support")).unwrap();
    write("wattle.toml", "[apps.support]\npath = \"support\"\n");
    write("support/app.toml", "[app]\nname = \"support\"\nversion = \"0.1.0\"\n");
    write("support/graph.toml", "[graphs.G]\nentry = \"b\"\n");
    let mut command = wattle(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap());
    let _served = Served { child, ready: Value::Null };
    let mut lines = printed.lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("apps yet") || line.contains("  app ")).unwrap();
    assert_eq!(line, "  app support is not loaded, because of the problem above");
}

#[test]
fn the_store_is_compacted_with_every_tenant_setting() {
    for tenants in ["tenant_header = \"x-tenant\"", "default_tenant = \"default\""] {
        let folder = tempfile::tempdir().unwrap();
        let toml = format!("[server]\n{tenants}\n[auth]\nkeys_env = \"KEYS\"\n");
        std::fs::write(folder.path().join("wattle.toml"), toml).unwrap();
        for args in [&["store", "compact", "--json"][..], &["thread", "list", "--json"]] {
            let answer = wattle(folder.path(), args).output().unwrap();
            let said = String::from_utf8_lossy(&answer.stderr);
            assert_eq!(answer.status.code(), Some(0), "{tenants} {args:?}: {said}");
        }
    }
}
