//! A whole server in the process of the test: real components, a real store, real HTTP. Only the
//! clock is the test's, and the services it calls are a stand-in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use wattle::config::{self, Config};
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle::wire::Overrides;
use wattle_kit::clock::ManualClock;
use wattle_kit::standin::{self, Handle};
use wattle_run::ports::{Net, Sandbox};
use wattle_sandbox::{CodeCache, SandboxConfig};

use crate::answer::Answer;
use crate::place::{self, Place};
use crate::world::START_MS;

/// How often a test looks for something that a server does by itself.
const LOOKS: u32 = 400;

/// Pause between two looks.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The header that names the tenant, where a test wants tenants.
pub const TENANT: &str = "x-tenant";

/// A server before it is started.
pub struct Setup {
    /// Its folder.
    pub place: Place,
    /// The services that it calls.
    pub standin: Handle,
    /// Its clock: 2025-01-15, half past ten in Shanghai.
    pub clock: ManualClock,
    /// API keys, separated by commas.
    pub keys: &'static str,
    /// Whether it loads changed files by itself.
    pub watch: bool,
    /// Outbound HTTP in place of its own.
    pub net: Option<Arc<dyn Net>>,
    toml: String,
}

impl Setup {
    /// A server without apps.
    ///
    /// # Panics
    ///
    /// If no stand-in can be started.
    pub async fn bare() -> Self {
        let setup = Self::without_models().await;
        Self { toml: place::base_toml(&setup.standin), ..setup }
    }

    /// A server without apps and models, for a configuration that an application ships.
    ///
    /// # Panics
    ///
    /// If no stand-in can be started.
    pub async fn without_models() -> Self {
        let standin = standin::Server::start(standin::Config::default()).await;
        Self {
            place: Place::new(),
            toml: place::HEAD_TOML.to_owned(),
            standin: standin.expect("the stand-in starts"),
            clock: ManualClock::at_ms(START_MS).in_zone("Asia/Shanghai"),
            keys: "",
            watch: false,
            net: None,
        }
    }

    /// A server with the asset application on a SQLite file.
    pub async fn asset() -> Self {
        Self::asset_on("sqlite:asset.db").await
    }

    /// A server with the asset application on any database.
    pub async fn asset_on(sql_url: &str) -> Self {
        let setup = Self::bare().await;
        let toml = place::asset_toml(&setup.standin, sql_url);
        setup.with(&toml)
    }

    /// A server with an app of the misdeeds guest that has these graphs.
    pub async fn misdeeds(graphs: &str) -> Self {
        let setup = Self::bare().await;
        setup.place.add_misdeeds(graphs);
        let toml = place::misdeeds_toml(&setup.standin);
        setup.with(&toml)
    }

    /// More configuration; a table that is there already may not be opened again.
    pub fn with(mut self, toml: &str) -> Self {
        self.toml.push_str(toml);
        self
    }

    /// Replaces a piece of the configuration.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn replace(mut self, from: &str, to: &str) -> Self {
        assert!(self.toml.contains(from), "no `{from}` in the configuration");
        self.toml = self.toml.replace(from, to);
        self
    }

    /// The same server, for several tenants.
    pub fn with_tenants(self) -> Self {
        let listen = "listen = \"127.0.0.1:0\"\n";
        self.replace(listen, &format!("{listen}tenant_header = \"{TENANT}\"\n"))
    }

    /// Writes the configuration.
    ///
    /// # Panics
    ///
    /// If it is not valid.
    pub fn config(&self) -> Config {
        self.place.write("wattle.toml", &self.toml);
        config::read(Some(&self.place.config())).expect("the configuration is valid")
    }

    /// How the server is started.
    pub fn options(&self) -> ServerOptions {
        let keys = self.keys;
        let env = move |name: &str| match name {
            "SUITE_KEYS" => Some(keys.to_owned()),
            _ => {
                let known = place::ENVIRONMENT.iter().find(|(known, _)| *known == name);
                known.map(|(_, value)| (*value).to_owned())
            }
        };
        let overrides = Overrides {
            clock: Some(Arc::new(self.clock.clone())),
            sandbox: Some(sandbox()),
            net: self.net.clone(),
            env: Some(Arc::new(env)),
            ..Overrides::default()
        };
        ServerOptions { overrides, watch: self.watch }
    }

    /// Starts the server.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn start(self) -> TestServer {
        self.start_with(&[]).await
    }

    /// Starts the server with these environment variables before the usual ones.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn start_with(self, variables: &[(&str, &str)]) -> TestServer {
        // The runner of the tests shows the warnings of a server whose test fails.
        wattle::telemetry::start(0, None);
        let own = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let own: BTreeMap<String, String> = own.collect();
        let mut options = self.options();
        let usual = options.overrides.env.take();
        options.overrides.env = Some(Arc::new(move |name: &str| {
            own.get(name).cloned().or_else(|| usual.as_ref().and_then(|usual| usual(name)))
        }));
        let running = Box::pin(Server::start(self.config(), options)).await;
        let running = running.unwrap_or_else(|error| panic!("the server starts: {error}"));
        let client = Client::builder().no_proxy().build().expect("a client");
        TestServer { running, client, setup: self }
    }
}

/// One sandbox for all servers of a process: each would reserve address space for a thousand
/// guests. Compiled code is kept on disk, for other processes too.
///
/// # Panics
///
/// If the sandbox cannot be set up.
pub fn sandbox() -> Arc<dyn Sandbox> {
    static SHARED: Mutex<Option<Arc<dyn Sandbox>>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = shared.get_or_insert_with(|| {
        let cache_dir = place::compiled_code();
        std::fs::create_dir_all(&cache_dir).expect("a folder for compiled code");
        let cache = Some(CodeCache { directory: cache_dir, key: place::CODE_KEY });
        let config = SandboxConfig { cache, ..SandboxConfig::default() };
        wattle_sandbox::Sandbox::new(&config).expect("a sandbox")
    });
    sandbox.clone()
}

/// A running server.
pub struct TestServer {
    /// The server.
    pub running: RunningServer,
    /// Calls it.
    pub client: Client,
    /// What it was started from.
    pub setup: Setup,
}

impl TestServer {
    /// Stops the server and starts another one over the same folder, services and clock.
    pub async fn restart(self) -> Self {
        let Self { running, setup, .. } = self;
        running.shutdown().await;
        setup.start().await
    }

    /// The services that the server calls.
    pub fn standin(&self) -> &Handle {
        &self.setup.standin
    }

    /// The server's clock.
    pub fn clock(&self) -> &ManualClock {
        &self.setup.clock
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.url())
    }

    /// A request that the test may still change.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = method.parse().unwrap_or_default();
        self.client.request(method, self.url(path))
    }

    /// The same for a tenant; for none where there are none.
    pub fn request_of(&self, tenant: Option<&str>, method: &str, path: &str) -> RequestBuilder {
        let request = self.request(method, path);
        match tenant {
            Some(tenant) => request.header(TENANT, tenant),
            None => request,
        }
    }

    /// Reads something.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request("GET", path)).await
    }

    /// Sends a document.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("POST", path).json(body)).await
    }

    /// Deletes something.
    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request("DELETE", path)).await
    }

    /// Runs a graph of an app through the native API until it ends or stands still.
    pub async fn run(&self, app: &str, graph: &str, input: Value) -> Value {
        let start = serde_json::json!({ "graph": graph, "input": input, "wait": true });
        self.post(&format!("/api/v1/apps/{app}/runs"), &start).await.expect(200)
    }

    /// All events of a thread so far, as the stream sends them.
    pub async fn events(&self, thread: &str) -> Vec<crate::answer::Message> {
        let answer = self.get(&format!("/api/v1/threads/{thread}/events?until=idle")).await;
        crate::answer::messages(answer.expect(200).as_str().unwrap_or_default())
    }

    /// Looks at a path again and again until the answer is as wanted: for what a server does by
    /// itself, such as loading changed files.
    ///
    /// # Panics
    ///
    /// If it does not come to that in twenty seconds.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let mut last = self.get(path).await;
        for _ in 0..LOOKS {
            if wanted(&last) {
                return last;
            }
            tokio::time::sleep(PAUSE).await;
            last = self.get(path).await;
        }
        panic!("`{path}` never answered as wanted; its last answer: {last:?}");
    }
}
