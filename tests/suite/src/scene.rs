//! The real binary in a temporary folder, with its services, to be killed and started again.

use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use wattle_kit::process::lasting_port;
use wattle_kit::standin::{self, Gate, Handle, Outcome};

use crate::answer::Answer;
use crate::binary::{self, Served};
use crate::workspace::Workspace;

/// Maximum number of polls for a condition.
const LOOKS: u32 = 600;

/// Interval between two polls.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of ports on which a server is started.
const PORT_ATTEMPTS: u32 = 5;

/// A folder, its services, and a client.
pub struct Scene {
    /// The test folder.
    pub workspace: Workspace,
    /// The stand-in of the services.
    pub standin: Handle,
    /// The client of the servers.
    pub client: Client,
}

impl Scene {
    /// Creates a folder. `put` writes files into it and returns the configuration.
    ///
    /// # Panics
    ///
    /// If the services cannot be started, or the folder cannot be created.
    pub async fn new(put: impl FnOnce(&Workspace, &Handle) -> String) -> Self {
        let standin = standin::Server::start(standin::Config::default()).await;
        let standin = standin.expect("the services start");
        let workspace = Workspace::new();
        workspace.share_compiled_code();
        let toml = put(&workspace, &standin);
        workspace.write("wattle.toml", toml);
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { workspace, standin, client }
    }

    /// Starts the server on a port that it keeps after a restart.
    ///
    /// # Panics
    ///
    /// If no port is free, or the server does not become ready.
    pub async fn serve_on_lasting_port(&self) -> Served {
        let file = self.workspace.config();
        let toml = std::fs::read_to_string(&file).expect("the configuration");
        let mut last = None;
        for _ in 0..PORT_ATTEMPTS {
            let port = lasting_port().expect("a free port");
            let listen = format!("listen = \"127.0.0.1:{port}\"");
            self.workspace.write("wattle.toml", toml.replace("listen = \"127.0.0.1:0\"", &listen));
            // Another test may have taken the port meanwhile.
            match binary::try_serve(&self.workspace).await {
                Ok(served) => {
                    assert!(served.url.ends_with(&format!(":{port}")), "{}", served.url);
                    return served;
                }
                Err(error) => last = Some(error),
            }
        }
        panic!("the server comes up: {last:?}");
    }

    /// Reads a document.
    pub async fn get(&self, server: &Served, path: &str) -> Value {
        Answer::of(self.client.get(format!("{}{path}", server.url))).await.expect(200)
    }

    /// Posts a document.
    pub async fn post(&self, server: &Served, path: &str, body: &Value) -> Answer {
        Answer::of(self.client.post(format!("{}{path}", server.url)).json(body)).await
    }

    /// Sends a request whose response is lost when the server is killed.
    pub fn post_in_vain(&self, server: &Served, path: &str, body: &Value) {
        let request = self.client.post(format!("{}{path}", server.url)).json(body);
        drop(tokio::spawn(request.send()));
    }

    /// Polls a condition until it is true.
    ///
    /// # Panics
    ///
    /// If it does not become true in time.
    pub async fn until_so(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..LOOKS {
            if is_so().await {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("timed out waiting for {what}");
    }

    /// Polls a path until the response is as wanted.
    ///
    /// # Panics
    ///
    /// If it does not become so in time.
    pub async fn until(
        &self,
        server: &Served,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let what = format!("the response of `{path}`");
        self.until_so(&what, async || wanted(&self.get(server, path).await)).await;
        self.get(server, path).await
    }

    /// Returns the number of requests to a path that the services responded to.
    pub fn answered(&self, path: &str) -> usize {
        let entries = self.standin.requests();
        let answered =
            entries.iter().filter(|it| it.path == path && it.outcome == Outcome::Answered);
        answered.count()
    }

    /// Kills the server while one of its requests is held, and starts it again. The gate is opened
    /// after the services have detected the closed connection; before that, they would respond to
    /// the request.
    ///
    /// # Panics
    ///
    /// If the server cannot be killed or started.
    pub async fn kill_and_restart(&self, mut server: Served, gate: Option<&Gate>) -> Served {
        server.program.kill().await.expect("a program that can be killed");
        let gone = self.standin.wait_for_request(|it| it.outcome == Outcome::Abandoned);
        gone.await.expect("a request that was cut");
        gate.into_iter().for_each(Gate::open);
        binary::serve(&self.workspace).await
    }
}
