//! The real binary in a folder of its own, with its services, to be killed and started again.

use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use wattle_kit::process::lasting_port;
use wattle_kit::standin::{self, Gate, Handle, Outcome};

use crate::answer::Answer;
use crate::binary::{self, Served};
use crate::place::Place;

/// How often a test looks whether something has come about.
const LOOKS: u32 = 600;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a server is started on another port.
const PORT_ATTEMPTS: u32 = 5;

/// A folder, its services, and a client.
pub struct Scene {
    /// The folder.
    pub place: Place,
    /// The services.
    pub standin: Handle,
    /// Calls servers.
    pub client: Client,
}

impl Scene {
    /// A folder into which `put` puts what it needs; it gives the configuration.
    ///
    /// # Panics
    ///
    /// If services or folder cannot be made.
    pub async fn new(put: impl FnOnce(&Place, &Handle) -> String) -> Self {
        let standin = standin::Server::start(standin::Config::default()).await;
        let standin = standin.expect("the services start");
        let place = Place::new();
        place.share_compiled_code();
        let toml = put(&place, &standin);
        place.write("wattle.toml", toml);
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { place, standin, client }
    }

    /// Starts the server on a port that stays its own after a restart.
    ///
    /// # Panics
    ///
    /// If no port is free, or the server does not come up.
    pub async fn serve_on_lasting_port(&self) -> Served {
        let file = self.place.config();
        let toml = std::fs::read_to_string(&file).expect("the configuration");
        let mut last = None;
        for _ in 0..PORT_ATTEMPTS {
            let port = lasting_port().expect("a free port");
            let listen = format!("listen = \"127.0.0.1:{port}\"");
            self.place.write("wattle.toml", toml.replace("listen = \"127.0.0.1:0\"", &listen));
            // Another test may have taken the port since.
            match binary::try_serve(&self.place).await {
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

    /// Sends a request whose answer is cut off by the kill.
    pub fn post_in_vain(&self, server: &Served, path: &str, body: &Value) {
        let request = self.client.post(format!("{}{path}", server.url)).json(body);
        drop(tokio::spawn(request.send()));
    }

    /// Looks again and again until something is so.
    ///
    /// # Panics
    ///
    /// If it never is.
    pub async fn until_so(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..LOOKS {
            if is_so().await {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{what} never came about");
    }

    /// Looks at a path until the answer is as wanted.
    ///
    /// # Panics
    ///
    /// If it never is.
    pub async fn until(
        &self,
        server: &Served,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let what = format!("the answer of `{path}`");
        self.until_so(&what, async || wanted(&self.get(server, path).await)).await;
        self.get(server, path).await
    }

    /// How often the services answered on a path.
    pub fn answered(&self, path: &str) -> usize {
        let entries = self.standin.requests();
        let answered =
            entries.iter().filter(|it| it.path == path && it.outcome == Outcome::Answered);
        answered.count()
    }

    /// Kills the server while a request of it is held, and starts it again. The gate is opened
    /// after the services have noticed that the client is gone: before, they would answer it.
    ///
    /// # Panics
    ///
    /// If it cannot be killed or started.
    pub async fn kill_and_restart(&self, mut server: Served, gate: Option<&Gate>) -> Served {
        server.program.kill().await.expect("a program that can be killed");
        let gone = self.standin.wait_for_request(|it| it.outcome == Outcome::Abandoned);
        gone.await.expect("a request that was cut");
        gate.into_iter().for_each(Gate::open);
        binary::serve(&self.place).await
    }
}
