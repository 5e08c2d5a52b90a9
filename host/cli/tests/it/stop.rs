//! Signals that stop a server, and the build before tests.

use std::fs;

use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use wattle::exit::Exit;
use wattle_kit::process::Program;

/// The head of a request whose body never arrives. The server asks for the body when it starts to
/// read it.
const HALF: &str = "POST /api/v1/keys HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/json\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n";

async fn terminate(program: &Program) {
    let id = program.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
}

#[tokio::test]
async fn a_second_signal_ends_a_server_that_waits_for_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.current_dir(folder.path()).env_clear();
    let mut server = Program::start(command).unwrap();
    let line = server.ready(|line| line.starts_with('{')).await.unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let address = ready["address"].as_str().unwrap().strip_prefix("http://").unwrap();
    let mut request = TcpStream::connect(address).await.unwrap();
    request.write_all(HALF.as_bytes()).await.unwrap();
    let mut goes_on = [0; 12];
    request.read_exact(&mut goes_on).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100");
    terminate(&server).await;
    server.ready(|line| line.contains("stopping")).await.unwrap();
    terminate(&server).await;
    let ended = server.ended().await.unwrap();
    assert_eq!(ended.code(), Some(Exit::Stopped as i32), "{}", server.output());
}

#[tokio::test]
async fn a_signal_during_the_build_before_tests_ends_all_processes_of_the_build() {
    const MANIFEST: &str = r#"
[app]
name = "notes"
version = "1"
[components]
notes = "notes.wasm"
[build]
commands = [["sh", "-c", "exec 3> alive; echo started >&3; sleep 600"]]
outputs = { notes = "made.wasm" }
"#;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("app.toml"), MANIFEST).unwrap();
    fs::create_dir(folder.join("tests")).unwrap();
    let case = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/status\": \"completed\"}}\n";
    fs::write(folder.join("tests/cases.jsonl"), case).unwrap();
    let alive = folder.join("alive");
    assert!(Command::new("mkfifo").arg(&alive).status().await.unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.arg("test").current_dir(folder).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let mut tests = Program::start(command).unwrap();
    // The script keeps the pipe open until it ends.
    let mut said = BufReader::new(File::open(alive).await.unwrap()).lines();
    assert_eq!(said.next_line().await.unwrap().as_deref(), Some("started"));
    terminate(&tests).await;
    let ended = tests.ended().await.unwrap();
    assert_eq!(ended.code(), Some(Exit::Stopped as i32), "{}", tests.output());
    assert_eq!(said.next_line().await.unwrap(), None, "the pipe is closed");
}
