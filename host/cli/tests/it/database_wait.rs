//! Responses of a starting host, including those while its database is unavailable.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Response};
use wattle::config::{Config, StoreKind};
use wattle::server::Server;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_kit::process::{Program, free_port};

use crate::fixture::{self, BRIEF_STOP, write_app};

/// Timeout for a start. It is much longer than a start takes.
const IN_TIME: Duration = Duration::from_mins(2);

fn configured(folder: &Path, database: &str) -> Config {
    write_app(&folder.join("plugins"), "greeter");
    let toml = format!("{BRIEF_STOP}[store]\nurl = \"{database}\"\n");
    let mut config = fixture::config(folder, &toml);
    config.store.kind = StoreKind::Postgres;
    config
}

/// Returns the first response of a server that has not opened its port yet.
async fn first_answer(client: &Client, url: &str) -> Response {
    loop {
        match client.get(url).send().await {
            Ok(answer) => return answer,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn says_that_it_waits(client: &Client, address: &str) {
    let url = format!("{address}/healthz");
    let answer = first_answer(client, &url);
    let answer = tokio::time::timeout(IN_TIME, answer).await.expect("the port opens");
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(client.get(format!("{address}/ok")).send().await.unwrap().status().as_u16(), 200);
    for path in ["/readyz", "/api/v1/threads", "/threads"] {
        let refused = client.get(format!("{address}{path}")).send().await.unwrap();
        assert_eq!(refused.status().as_u16(), 503, "{path}");
        assert_eq!(refused.headers()["retry-after"], "1", "{path}");
    }
}

/// A named pipe that replaces a file. A process that opens the pipe for reading waits for a writer.
/// Dropping the value removes the pipe.
#[cfg(unix)]
struct Pipe(std::path::PathBuf);

#[cfg(unix)]
impl Pipe {
    fn make(path: std::path::PathBuf) -> Self {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    /// Opens the pipe for both reading and writing, which never waits. While the returned file
    /// exists, no process that opens the pipe has to wait.
    fn open(&self) -> std::io::Result<std::fs::File> {
        std::fs::File::options().read(true).write(true).open(&self.0)
    }

    /// Ends the wait of every process that opens the pipe, until the future is dropped. This takes
    /// several attempts, because a process may not have opened the pipe yet, or may open it again.
    async fn release(&self) -> std::convert::Infallible {
        loop {
            self.open().unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[cfg(unix)]
impl Drop for Pipe {
    /// Also releases waiting processes: if an assertion fails before [`Self::release`], the runtime
    /// of the test would otherwise wait forever for the thread that opens the pipe.
    fn drop(&mut self) {
        let opened = self.open();
        let _ = std::fs::remove_file(&self.0);
        drop(opened);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_port_opens_before_the_store_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = fixture::config(folder.path(), BRIEF_STOP);
    config.store.kind = StoreKind::Redb;
    config.server.listen.set_port(free_port().unwrap());
    let (pipe, listen) = (Pipe::make(config.store_file()), config.server.listen);
    let client = Client::builder().no_proxy().build().unwrap();
    let meanwhile = async {
        says_that_it_waits(&client, &format!("http://{listen}")).await;
        let ready = client.get(format!("http://{listen}/readyz")).send().await.unwrap();
        assert!(ready.text().await.unwrap().contains("the host is starting"));
        pipe.release().await
    };
    tokio::select! {
        server = Box::pin(Server::start(config, fixture::options())) => {
            assert!(server.is_err(), "a pipe is no store");
        }
        never = meanwhile => match never {},
    }
}

#[tokio::test]
async fn a_start_waits_until_the_database_is_available() {
    let postgres = need!(Postgres::for_test());
    postgres.crash().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = configured(folder.path(), &postgres.url());
    config.server.listen.set_port(free_port().unwrap());
    let listen = config.server.listen;
    let client = Client::builder().no_proxy().build().unwrap();
    let meanwhile = async {
        says_that_it_waits(&client, &format!("http://{listen}")).await;
        let restart = move || {
            postgres.restart().unwrap();
            postgres
        };
        tokio::task::spawn_blocking(restart).await.unwrap()
    };
    let start = Box::pin(Server::start(config, fixture::options()));
    let (server, _postgres) = tokio::join!(start, meanwhile);
    let server = server.unwrap();
    assert_eq!(server.addr, listen);
    let ready = client.get(format!("{}/readyz", server.url())).send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 200);
    server.shutdown().await;
}

#[tokio::test]
async fn a_start_fails_if_the_database_does_not_exist() {
    let postgres = need!(Postgres::for_test());
    let folder = tempfile::tempdir().unwrap();
    let config = configured(folder.path(), &postgres.url_of("nowhere"));
    let error = Server::start(config, fixture::options()).await.err().unwrap();
    assert!(error.to_string().contains("\"nowhere\" does not exist"), "{error}");
}

#[tokio::test]
async fn a_signal_ends_a_server_that_waits_for_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let (database, port) = (free_port().unwrap(), free_port().unwrap());
    let toml = format!("[store]\nurl = \"postgres://nobody@127.0.0.1:{database}/none\"\n");
    std::fs::write(folder.path().join("wattle.toml"), toml).unwrap();
    let mut serve = tokio::process::Command::new(env!("CARGO_BIN_EXE_wattle"));
    let address = format!("127.0.0.1:{port}");
    serve.args(["serve", "--listen", &address]).current_dir(folder.path()).env_clear();
    let mut program = Program::start(serve).unwrap();
    program.ready(|line| line.contains("waits for the database")).await.unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    says_that_it_waits(&client, &format!("http://{address}")).await;
    let ended = program.terminate().await.unwrap();
    assert_eq!(ended.code(), None, "{}", program.output());
}
