//! The binary as a server, and commands that find it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A server process; ended with the test.
struct Served {
    child: Child,
    ready: Value,
}

impl Served {
    fn start(folder: &Path) -> Self {
        let mut child = wattle(folder, &["serve", "--json", "--listen", "127.0.0.1:0"])
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
fn commands_find_the_server_and_do_without_it_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path());
    let place = folder.path().join("data/server.json");
    let written: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    assert_eq!(written["address"], served.ready["address"]);
    // The server holds the store, so an answer can only have come from it.
    let listed = wattle(folder.path(), &["thread", "list", "--json"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0));
    assert_eq!(served.terminate(), Some(0));
    assert!(!place.exists());
    let listed = wattle(folder.path(), &["thread", "list", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "{\n  \"items\": []\n}\n");
}

#[test]
fn a_killed_server_leaves_nothing_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    drop(Served::start(folder.path()));
    assert!(folder.path().join("data/server.json").exists());
    let listed = wattle(folder.path(), &["thread", "list"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0));
    assert_eq!(Served::start(folder.path()).terminate(), Some(0));
}

#[test]
fn a_second_server_is_told_who_holds_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let _served = Served::start(folder.path());
    let second = wattle(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("is in use; stop the other wattle"), "{text}");
}

#[test]
fn the_store_gives_space_back_whatever_tenants_there_are() {
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
