//! A whole server in the process of the test: real components, a real store and real HTTP. Only the
//! clock is the test's, and its services are a stand-in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use wattle::config::{self, Config};
use wattle::host::Overrides;
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle_kit::clock::ManualClock;
use wattle_kit::standin::{self, Handle};
use wattle_run::ports::{Net, Sandbox};
use wattle_sandbox::{CodeCacheConfig, SandboxConfig};

use crate::answer::Answer;
use crate::described::{Apps, Registration};
use crate::workspace::{self, Workspace};
use crate::world::START_MS;

/// Maximum number of polls for something that a server does in the background.
const LOOKS: u32 = 400;

/// Interval between two polls.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The header that names the tenant, in tests with tenants.
pub const TENANT: &str = "x-tenant";

/// A server before it is started.
pub struct Setup {
    /// The folder of the server.
    pub workspace: Workspace,
    /// The stand-in of the services.
    pub standin: Handle,
    /// The clock, which starts on 2025-01-15 at half past ten in Shanghai.
    pub clock: ManualClock,
    /// API keys, separated by commas.
    keys: &'static str,
    /// True if the server reloads changed files.
    pub watch: bool,
    /// Outbound HTTP that replaces the server's own.
    pub net: Option<Arc<dyn Net>>,
    toml: String,
}

impl Setup {
    /// Creates a server without apps.
    ///
    /// # Panics
    ///
    /// If the stand-in cannot be started.
    pub async fn bare() -> Self {
        let setup = Self::without_models().await;
        Self { toml: workspace::base_toml(&setup.standin), ..setup }
    }

    /// Creates a server without apps and models, for a configuration that an application ships.
    ///
    /// # Panics
    ///
    /// If the stand-in cannot be started.
    pub async fn without_models() -> Self {
        let standin = standin::Server::start(standin::Config::default()).await;
        Self {
            workspace: Workspace::new(),
            toml: workspace::HEAD_TOML.to_owned(),
            standin: standin.expect("the stand-in starts"),
            clock: ManualClock::at_ms(START_MS).in_zone("Asia/Shanghai"),
            keys: "",
            watch: false,
            net: None,
        }
    }

    /// Creates a server with the asset application on a SQLite file.
    pub async fn asset() -> Self {
        Self::asset_on("sqlite:asset.db").await
    }

    /// Creates a server with the asset application on any database.
    pub async fn asset_on(sql_url: &str) -> Self {
        let setup = Self::bare().await;
        let toml = workspace::asset_toml(&setup.standin, sql_url);
        setup.with(&toml)
    }

    /// Creates a server with an app of the misdeeds guest that has these graphs.
    pub async fn misdeeds(graphs: &str) -> Self {
        let setup = Self::bare().await;
        setup.workspace.add_misdeeds(graphs);
        let toml = workspace::misdeeds_toml(&setup.standin);
        setup.with(&toml)
    }

    /// Adds telemetry to the configuration. The stand-in receives it.
    pub fn with_telemetry(self) -> Self {
        let toml = format!(
            "[telemetry]\notlp = \"{}/api/public/otel\"\npublic_key_env = \"SUITE_MODEL_KEY\"\n\
             secret_key_env = \"SUITE_MODEL_KEY\"\n",
            self.standin.base_url
        );
        self.with(&toml)
    }

    /// Appends to the configuration. It must not repeat a table.
    pub fn with(mut self, toml: &str) -> Self {
        self.toml.push_str(toml);
        self
    }

    /// Replaces a part of the configuration.
    ///
    /// # Panics
    ///
    /// If the configuration does not contain `from`.
    pub fn replace(mut self, from: &str, to: &str) -> Self {
        assert!(self.toml.contains(from), "no `{from}` in the configuration");
        self.toml = self.toml.replace(from, to);
        self
    }

    /// Configures the server for several tenants.
    pub fn with_tenants(self) -> Self {
        let listen = "listen = \"127.0.0.1:0\"\n";
        self.replace(listen, &format!("{listen}tenant_header = \"{TENANT}\"\n"))
    }

    /// Configures API keys of operators, separated by commas.
    pub fn with_keys(mut self, keys: &'static str) -> Self {
        self.keys = keys;
        self.with("[auth]\nkeys_env = \"SUITE_KEYS\"\n")
    }

    /// Writes the configuration file and reads it.
    ///
    /// # Panics
    ///
    /// If the configuration is not valid.
    pub fn config(&self) -> Config {
        self.workspace.write("wattle.toml", &self.toml);
        config::read(Some(&self.workspace.config())).expect("the configuration is valid")
    }

    /// Returns the options of the server.
    pub fn options(&self) -> ServerOptions {
        let keys = self.keys;
        let env = move |name: &str| match name {
            "SUITE_KEYS" => Some(keys.to_owned()),
            _ => {
                let known = workspace::ENVIRONMENT.iter().find(|(known, _)| *known == name);
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

    /// Starts the server with environment variables that take precedence over the usual ones.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn start_with(self, variables: &[(&str, &str)]) -> TestServer {
        // The test runner shows the warnings of a server whose test fails.
        wattle::logging::start(0, None);
        let own = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let own: BTreeMap<String, String> = own.collect();
        let mut options = self.options();
        let usual = options.overrides.env.take();
        options.overrides.env = Some(Arc::new(move |name: &str| {
            own.get(name).cloned().or_else(|| usual.as_ref().and_then(|usual| usual(name)))
        }));
        let config = self.config();
        let apps = Apps::of(&config);
        let running = Box::pin(Server::start(config, options)).await;
        let running = running.unwrap_or_else(|error| panic!("the server starts: {error}"));
        let described = apps.at(&running.url());
        let client = Client::builder().no_proxy().build().expect("a client");
        TestServer { running, client, setup: self, described }
    }
}

/// Returns the sandbox that all servers of a process share, because each sandbox reserves address
/// space for a thousand guests. Compiled code is stored on disk and shared with other processes.
///
/// # Panics
///
/// If the sandbox cannot be created.
pub fn sandbox() -> Arc<dyn Sandbox> {
    static SHARED: Mutex<Option<Arc<dyn Sandbox>>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = shared.get_or_insert_with(|| {
        let cache_dir = workspace::compiled_code();
        std::fs::create_dir_all(&cache_dir).expect("a folder for compiled code");
        let cache = Some(CodeCacheConfig { directory: cache_dir, key: workspace::CODE_KEY });
        let config = SandboxConfig { cache, ..SandboxConfig::default() };
        wattle_sandbox::Sandbox::new(&config).expect("a sandbox")
    });
    sandbox.clone()
}

/// A running server.
pub struct TestServer {
    /// The server.
    pub running: RunningServer,
    /// The client of the server.
    pub client: Client,
    /// The setup from which the server was started.
    pub setup: Setup,
    /// The applications whose responses are checked.
    pub described: Registration,
}

impl TestServer {
    /// Stops the server and starts another one with the same folder, services and clock.
    pub async fn restart(self) -> Self {
        let Self { running, setup, .. } = self;
        running.shutdown().await;
        setup.start().await
    }

    /// Returns the stand-in of the services.
    pub fn standin(&self) -> &Handle {
        &self.setup.standin
    }

    /// Returns the server's clock.
    pub fn clock(&self) -> &ManualClock {
        &self.setup.clock
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.url())
    }

    /// Returns a request that the test can still change.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = method.parse().unwrap_or_default();
        self.client.request(method, self.url(path))
    }

    /// Returns a request of a tenant, or one without a tenant.
    pub fn request_of(&self, tenant: Option<&str>, method: &str, path: &str) -> RequestBuilder {
        let request = self.request(method, path);
        match tenant {
            Some(tenant) => request.header(TENANT, tenant),
            None => request,
        }
    }

    /// Sends a `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request("GET", path)).await
    }

    /// Posts a document.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("POST", path).json(body)).await
    }

    /// Posts a document with an API key, for a tenant or for none.
    pub async fn post_as(
        &self,
        key: &str,
        tenant: Option<&str>,
        path: &str,
        body: &Value,
    ) -> Answer {
        let request = self.request_of(tenant, "POST", path);
        Answer::of(request.bearer_auth(key).json(body)).await
    }

    /// Sends a `DELETE`.
    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request("DELETE", path)).await
    }

    /// Runs a graph of an app through the native API until the run ends or is interrupted.
    pub async fn run(&self, app: &str, graph: &str, input: Value) -> Value {
        let start = serde_json::json!({ "graph": graph, "input": input, "wait": true });
        self.post(&format!("/api/v1/apps/{app}/runs"), &start).await.expect(200)
    }

    /// Returns all events of a thread so far, in the form of the stream.
    pub async fn events(&self, thread: &str) -> Vec<crate::event_stream::Message> {
        let answer = self.get(&format!("/api/v1/threads/{thread}/events?until=idle")).await;
        crate::event_stream::messages(answer.expect(200).as_str().unwrap_or_default())
    }

    /// Polls a path until the response is as wanted, for something that a server does in the
    /// background, such as a reload.
    ///
    /// # Panics
    ///
    /// If it is not as wanted within twenty seconds.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let mut last = self.get(path).await;
        for _ in 0..LOOKS {
            if wanted(&last) {
                return last;
            }
            tokio::time::sleep(PAUSE).await;
            last = self.get(path).await;
        }
        panic!("`{path}` was never as wanted; its last response: {last:?}");
    }
}
