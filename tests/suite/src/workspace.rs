//! A folder with a `wattle.toml` whose services are a stand-in, for a server in the process of the
//! test and for the real binary.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::Handle;

use crate::guests;

/// Environment variables that the configurations name, with keys that the stand-in accepts.
pub const ENVIRONMENT: [(&str, &str); 2] =
    [("SUITE_MODEL_KEY", "suite-model-key"), ("SUITE_MASSIVE_KEY", "suite-massive-key")];

/// The package of the asset application.
pub const ASSET: &str = "wattle-app-asset";

/// The package of the misbehaving guest.
pub const MISDEEDS: &str = "wattle-guest-misdeeds";

/// The key of the compiled code that tests share.
pub const CODE_KEY: [u8; 32] = *b"compiled code of wattle's suite.";

/// A temporary folder with `wattle.toml`, `plugins` and `data`.
pub struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// Creates an empty folder.
    ///
    /// # Panics
    ///
    /// If the folder cannot be created.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("wattle-suite-").tempdir();
        let workspace = Self { folder: folder.expect("a temporary folder") };
        create(&workspace.plugins());
        create(&workspace.data());
        workspace
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the configuration file.
    pub fn config(&self) -> PathBuf {
        self.root().join("wattle.toml")
    }

    /// Returns the plugins folder, which a server can watch.
    pub fn plugins(&self) -> PathBuf {
        self.root().join("plugins")
    }

    /// Returns the folder with store, blobs and databases.
    pub fn data(&self) -> PathBuf {
        self.root().join("data")
    }

    /// Returns the file of the redb store in the data folder.
    pub fn store_file(&self) -> PathBuf {
        self.data().join("wattle.redb")
    }

    /// Returns the host's cache of compiled code: a folder, or a link to the one that tests share.
    pub fn code_cache(&self) -> PathBuf {
        code_cache(&self.data())
    }

    /// Writes a file below the folder.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.root().join(path);
        file.parent().into_iter().for_each(create);
        // A rename is atomic, so a server that watches the folder never reads an incomplete file.
        let draft = file.with_extension("part");
        fs::write(&draft, content).expect("the file can be written");
        fs::rename(&draft, &file).expect("the file can be renamed");
    }

    /// Lets the real binary use code that other tests have compiled, because compiling takes
    /// seconds.
    ///
    /// # Panics
    ///
    /// If the link cannot be created.
    pub fn share_compiled_code(&self) {
        share_compiled_code(&self.data());
    }

    /// Writes an app of the misdeeds guest with these graphs into the plugins folder.
    pub fn add_misdeeds(&self, graphs: &str) {
        self.write("plugins/misdeeds/misdeeds.wasm", guests::bytes(MISDEEDS));
        self.write("plugins/misdeeds/graph.toml", graphs);
        self.write("plugins/misdeeds/app.toml", MISDEEDS_APP);
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets the real binary use the compiled code of other tests with another data folder.
///
/// # Panics
///
/// If the link cannot be created.
pub fn share_compiled_code(data: &Path) {
    let shared = compiled_code();
    create(&shared);
    create(data);
    std::os::unix::fs::symlink(&shared, code_cache(data)).expect("a link");
    fs::write(data.join("cache.key"), CODE_KEY).expect("the key can be written");
}

/// Returns the cache of compiled code in a data folder.
fn code_cache(data: &Path) -> PathBuf {
    data.join("cache")
}

fn create(folder: &Path) {
    fs::create_dir_all(folder).expect("the folder can be created");
}

/// Returns the folder in which tests share compiled guests. It is below cargo's target folder, like
/// the guests.
pub fn compiled_code() -> PathBuf {
    let guest = guests::path(ASSET);
    guest.ancestors().nth(3).unwrap_or(&guest).join("tmp/suite-compiled")
}

const MISDEEDS_APP: &str = r#"
[app]
name = "misdeeds"
version = "0.1.0"
doc = "misbehaves on request"
[components]
misdeeds = "misdeeds.wasm"
[needs]
llm = ["chat"]
http = [{ host = "127.0.0.1", scheme = "http", methods = ["GET"], private = true }]
memory = [{ namespace = ["users"], access = "read-write" }, { namespace = ["facts"] }]
"#;

/// The first part of a configuration: a free port and a data folder. A start waits for all apps,
/// whose compilation takes long on a busy machine.
pub const HEAD_TOML: &str = r#"
data = "data"
plugins = "plugins"
[server]
listen = "127.0.0.1:0"
load_wait = "10m"
[clock]
time_zone = "Asia/Shanghai"
"#;

/// Returns the first part of a configuration, with model routes to the stand-in.
pub fn base_toml(standin: &Handle) -> String {
    format!("{HEAD_TOML}{}", model_toml(standin))
}

/// Returns model routes to the stand-in. [`ENVIRONMENT`] has their key.
pub fn model_toml(standin: &Handle) -> String {
    let mut text = format!(
        r#"
[model.providers.standin]
kind = "openai"
base_url = "{}/v1/"
key_env = "SUITE_MODEL_KEY"
"#,
        standin.base_url
    );
    for route in ["vision", "chat", "light"] {
        text.push_str(&format!(
            "[model.routes.{route}]\nprovider = \"standin\"\nmodel = \"{route}\"\nretries = 1\n"
        ));
    }
    text
}

/// Returns the configuration that an application ships, with the stand-in as its services and the
/// component that `cargo xtask guests` built. The folder, the component and its package have the
/// application's name.
///
/// # Panics
///
/// If the configuration cannot be read, or its services cannot be replaced.
pub fn shipped(app: &str, standin: &Handle) -> Configuration {
    let root = guests::root();
    let read = || {
        let mut config = Configuration::shipped(&root, app)?;
        config.use_standins(&standin.base_url, &root).map(|()| config)
    };
    let mut config = read().unwrap_or_else(|error| panic!("{error}"));
    let component = guests::path(&format!("wattle-app-{app}")).display().to_string();
    config.insert(&format!("apps.{app}.components.{app}"), component);
    config
}

/// Returns the configuration of the asset application on the stand-in, with its data in the
/// database at `sql_url`.
pub fn asset_toml(standin: &Handle, sql_url: &str) -> String {
    format!(
        r#"
[sql.asset]
url = "{sql_url}"
[secrets]
MASSIVE_API_KEY = {{ env = "SUITE_MASSIVE_KEY" }}
[apps.asset]
path = "{app}"
mount = "/"
components = {{ asset = "{component}" }}
settings = {{ massive_base_url = "{base}" }}
[grants.asset]
llm = ["vision", "chat", "light"]
http = [{{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["GET"], private = true, secrets = ["MASSIVE_API_KEY"] }}]
sql = [{{ database = "asset", access = "read-write" }}]
"#,
        app = guests::root().join("plugins/apps/asset").display(),
        component = guests::path(ASSET).display(),
        base = standin.base_url,
        port = standin.addr.port(),
    )
}

/// Returns the grants of the misdeeds guest: only the stand-in, and limits that are reached soon.
pub fn misdeeds_toml(standin: &Handle) -> String {
    format!(
        r#"
[grants.misdeeds]
llm = ["chat"]
http = [{{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["GET"], private = true }}]
memory = [{{ namespace = ["users"], access = "read-write" }}, {{ namespace = ["facts"] }}]
limits = {{ cpu = "300ms", memory = "16MiB", output = "1MiB", host_calls = 100, call_deadline = "60s" }}
"#,
        port = standin.addr.port(),
    )
}
