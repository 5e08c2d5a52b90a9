//! Reads the configuration and reports all problems at once. Each section, and each named entry of
//! a section, is parsed separately.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use figment::Figment;
use figment::providers::{Env, Format as _, Toml};
use figment::value::{Dict, Value};
use serde::de::DeserializeOwned;
use wattle_api::guard::limits::MIN_RESPONSE_BYTES;
use wattle_api::guard::tenant_name::check_tenant;
use wattle_graph::toml_depth;
use wattle_run::grant::GrantKey;

use crate::config::collect::{self, to_problem, toml_key, unknown_name_hint};
use crate::config::eval::check_prices;
use crate::config::model::check_providers;
use crate::config::origins::{Origins, PREFIX, SEPARATOR};
use crate::config::{Config, ConfigProblem, DEFAULT_FILE, LocatedProblem, ServerConfig};
use crate::error::Error;

/// Names of the sections. Other environment variables with the prefix `WATTLE_`, such as
/// `WATTLE_API_KEYS`, do not override the configuration.
pub const SECTIONS: &[&str] = &[
    "data",
    "plugins",
    "server",
    "store",
    "retention",
    "limits",
    "clock",
    "model",
    "sql",
    "secrets",
    "mcp",
    "apps",
    "grants",
    "auth",
    "tenants",
    "telemetry",
    "eval",
];

/// Reads the configuration file. Without a path, reads `wattle.toml` in the current folder, or
/// returns the defaults if that file does not exist.
///
/// # Errors
///
/// [`Error::NoConfigFile`] if the named file is missing, [`Error::Config`] with all problems.
pub fn read(file: Option<&Path>) -> Result<Config, Error> {
    let file = match file {
        Some(file) if !file.is_file() => return Err(Error::NoConfigFile(file.to_owned())),
        Some(file) => Some(file.to_owned()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.is_file()),
    };
    let name = file.as_deref().map_or(DEFAULT_FILE.into(), |it| it.display().to_string());
    let mut figment = Figment::new();
    let mut origins = Origins::new(name.clone(), "");
    if let Some(file) = &file {
        // A file that cannot be read is reported below.
        if let Ok(text) = fs::read_to_string(file) {
            check_depth(&text, &name)?;
            origins = Origins::new(name, &text);
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    let env = Env::prefixed(PREFIX).split(SEPARATOR).filter(|key| {
        let section = key.as_str().split('.').next().unwrap_or_default().to_ascii_lowercase();
        SECTIONS.contains(&section.as_str())
    });
    let folder = file.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new(""));
    let base =
        std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .unwrap_or_else(|_| folder.to_owned());
    let origins = origins.with_variables(&env);
    from_figment(&figment.merge(env), origins, file, &base)
}

/// Parses a configuration without environment variables. Relative paths start from `base`.
///
/// # Errors
///
/// [`Error::Config`] with all problems.
pub fn parse(text: &str, base: &Path) -> Result<Config, Error> {
    check_depth(text, DEFAULT_FILE)?;
    let origins = Origins::new(DEFAULT_FILE.to_owned(), text);
    from_figment(&Figment::new().merge(Toml::string(text)), origins, None, base)
}

fn check_depth(text: &str, file: &str) -> Result<(), Error> {
    toml_depth::check(text).map_err(|error| {
        let problem = ConfigProblem { key: String::new(), message: error.to_string(), hint: None };
        let origin = Some(format!("{file}:{}", error.line));
        Error::Config { file: file.to_owned(), problems: vec![LocatedProblem { origin, problem }] }
    })
}

fn from_figment(
    figment: &Figment,
    origins: Origins,
    file: Option<PathBuf>,
    base: &Path,
) -> Result<Config, Error> {
    let name = file.as_deref().map_or(DEFAULT_FILE.into(), |it| it.display().to_string());
    let dict: Dict = figment.extract().map_err(|error| {
        let problems = error.into_iter().map(|error| to_problem(error.path.join("."), &error));
        Error::Config { file: name.clone(), problems: origins.locate(problems.collect()) }
    })?;
    let sections = dict.clone();
    let mut reader = Reader { dict, problems: Vec::new() };
    let defaults = Config::in_folder(base);
    let mut config = Config {
        data: reader.path("data", base).unwrap_or(defaults.data),
        plugins: reader.path("plugins", base).unwrap_or(defaults.plugins),
        server: reader.section("server"),
        store: reader.section("store"),
        retention: reader.section("retention"),
        limits: reader.section("limits"),
        clock: reader.section("clock"),
        model: reader.section("model"),
        sql: reader.entries("sql"),
        secrets: reader.entries("secrets"),
        mcp: reader.entries("mcp"),
        apps: reader.entries("apps"),
        grants: reader.entries("grants"),
        auth: reader.section("auth"),
        tenants: reader.entries("tenants"),
        telemetry: reader.section("telemetry"),
        eval: reader.section("eval"),
        file,
        sections,
        origins,
        base: base.to_owned(),
        machine_bytes: defaults.machine_bytes,
    };
    reader.reject_unknown_sections();
    let mut problems = reader.problems;
    let mut of_rules = Vec::new();
    config.resolve_folders(&mut of_rules);
    check(&config, &mut of_rules);
    // A rule cannot be checked for a value that could not be read.
    of_rules.retain(|rule| !problems.iter().any(|problem| problem.is_within(&rule.key)));
    problems.extend(of_rules);
    if problems.is_empty() {
        return Ok(config);
    }
    Err(Error::Config { file: name, problems: config.origins.locate(problems) })
}

impl Config {
    /// Checks the tables of grants of a newer version of the file. Until the host restarts, the
    /// newer tables apply together with the other sections of this configuration.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] with all problems.
    pub(crate) fn check_grants_of(&self, newer: &Self) -> Result<(), Error> {
        let mut problems = Vec::new();
        for (name, granted) in &newer.grants {
            granted.check(name, self, &mut problems);
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::Config { file: self.file_name(), problems: newer.origins.locate(problems) })
    }
}

/// Checks rules that the types do not express.
fn check(config: &Config, problems: &mut Vec<ConfigProblem>) {
    let mut add = |key: String, message: String, hint: &str| {
        problems.push(ConfigProblem { key, message, hint: Some(hint.to_owned()) });
    };
    for (key, limit) in config.limits.too_many_tasks() {
        let message = format!("{limit} exceeds the maximum of 10,000,000 tasks");
        add(format!("limits.{key}"), message, "set at most 10,000,000");
    }
    for (key, limit, most) in config.limits.too_many_bytes() {
        let message = format!("{limit} exceeds the maximum of {most}");
        add(format!("limits.{key}"), message, &format!("set at most {most}"));
    }
    for (key, size, least) in config.limits.too_little_memory() {
        let message = format!("{size} is less than the minimum of {least}");
        add(format!("limits.{key}"), message, &format!("set at least {least}"));
    }
    if let Some(size) = config.server.limits.response_bytes
        && size.0 < MIN_RESPONSE_BYTES
    {
        let message = format!("{size} is too small for the responses of all callers");
        add("server.limits.response_bytes".into(), message, "set at least 1MiB");
    }
    if let Some(zone) = &config.clock.time_zone
        && jiff::tz::TimeZone::get(zone).is_err()
    {
        let message = format!("there is no time zone `{zone}`");
        add("clock.time_zone".into(), message, "use an IANA name such as `Asia/Shanghai`");
    }
    if let Some(fixed) = &config.clock.fixed
        && fixed.parse::<jiff::Timestamp>().is_err()
    {
        let message = format!("`{fixed}` is not a time with an offset");
        add("clock.fixed".into(), message, "write it as `2025-01-15T10:30:45+08:00`");
    }
    let (tenant, user) = (&config.server.tenant_header, &config.server.user_header);
    for (key, header, hint) in [
        ("server.tenant_header", tenant, "write it as `x-wattle-tenant`"),
        ("server.user_header", user, "write it as `x-forwarded-user`"),
    ] {
        if let Some(header) = header
            && header.parse::<axum::http::HeaderName>().is_err()
        {
            add(key.into(), format!("`{header}` is not a header name"), hint);
        }
    }
    match (user, config.server.trusted_proxies.is_empty()) {
        (Some(header), true) => {
            let message = format!("no proxy is trusted to send the header `{header}`");
            let hint = "list the addresses of the proxies that set it, such as `[\"127.0.0.1\"]`";
            add("server.trusted_proxies".into(), message, hint);
        }
        (None, false) => {
            let message = "no header is configured that these proxies may send".to_owned();
            add("server.trusted_proxies".into(), message, "name one in `server.user_header`");
        }
        _ => {}
    }
    check_studio(&config.server, &mut add);
    for (name, granted) in &config.grants {
        for plugin in granted.plugins.keys() {
            let hint = format!("grant it under `[grants.{}]`", GrantKey::of_plugin(plugin));
            let message = "the grants of a plugin cannot be inside those of another".to_owned();
            add(format!("grants.{name}.plugins.{plugin}"), message, &hint);
        }
    }
    for name in config.tenants.keys().chain(&config.server.default_tenant) {
        if let Err(problem) = check_tenant(name) {
            add(format!("tenants.{name}"), problem.detail.clone(), "choose another name");
        }
    }
    for (name, app) in &config.apps {
        if app.mount.as_ref().is_some_and(|mount| !mount.starts_with('/')) {
            let message = "the path must begin with `/`".to_owned();
            add(format!("apps.{name}.mount"), message, "use `/` or a prefix such as `/asset`");
        }
    }
    for (name, granted) in &config.grants {
        granted.check(name, config, problems);
    }
    for (name, database) in &config.sql {
        database.check(name, problems);
    }
    for (name, server) in &config.mcp {
        server.check(name, problems);
    }
    config.telemetry.check(problems);
    check_providers(config, problems);
    check_prices("eval.prices", &config.eval.prices, problems);
    check_prices("model.prices", &config.model.prices, problems);
    config.server.webhooks.check(problems);
    config.server.connections.check(problems);
}

/// Checks that an address of the studio serves the studio and is not the main address.
fn check_studio(server: &ServerConfig, add: &mut dyn FnMut(String, String, &str)) {
    let Some(address) = server.studio_listen else { return };
    let key = || "server.studio_listen".to_owned();
    if !server.studio {
        let message = "`server.studio` is false, so no address serves the studio".to_owned();
        add(key(), message, "remove one of the two keys");
    }
    if address == server.listen && address.port() != 0 {
        let message = format!("`{address}` is also `server.listen`");
        add(key(), message, "choose another port, such as `127.0.0.1:8701`");
    }
}

struct Reader {
    dict: Dict,
    problems: Vec<ConfigProblem>,
}

impl Reader {
    fn path(&mut self, key: &str, base: &Path) -> Option<PathBuf> {
        let value = self.dict.remove(key)?;
        self.value::<PathBuf>(key, &value).map(|path| base.join(path))
    }

    fn section<T: DeserializeOwned + Default>(&mut self, key: &str) -> T {
        let value = self.dict.remove(key);
        value.and_then(|value| self.value(key, &value)).unwrap_or_default()
    }

    fn entries<K: Ord + std::str::FromStr<Err: fmt::Display>, T: DeserializeOwned>(
        &mut self,
        section: &str,
    ) -> BTreeMap<K, T> {
        let mut entries = BTreeMap::new();
        let Some(value) = self.dict.remove(section) else { return entries };
        let Some(dict) = self.value::<Dict>(section, &value) else { return entries };
        for (name, value) in &dict {
            let key = format!("{section}.{}", toml_key(name));
            let parsed = self.value::<T>(&key, value);
            match name.parse::<K>() {
                Ok(name) => entries.extend(parsed.map(|parsed| (name, parsed))),
                Err(error) => {
                    self.problems.push(ConfigProblem {
                        key,
                        message: error.to_string(),
                        hint: None,
                    });
                }
            }
        }
        entries
    }

    fn value<T: DeserializeOwned>(&mut self, key: &str, value: &Value) -> Option<T> {
        collect::deserialize(key, value, &mut self.problems)
    }

    fn reject_unknown_sections(&mut self) {
        for key in self.dict.keys() {
            self.problems.push(ConfigProblem {
                key: key.clone(),
                message: "this section does not exist".into(),
                hint: Some(unknown_name_hint(key, "the sections are", SECTIONS)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_agent_server::UnknownKeys;
    use wattle_graph::limit::GraphLimits;
    use wattle_run::limit::FREE_DISK_BYTES;
    use wattle_run::memory_budget::DEFAULT_BUDGET;
    use wattle_sandbox::CompileLimits;
    use wattle_sql::limit::MIGRATION_TIMEOUT;

    use super::*;
    use crate::config::{MigrateRule, duration};

    fn check(text: &str) -> Result<Config, String> {
        parse(text, Path::new("/base")).map_err(|error| error.to_string())
    }

    #[test]
    fn every_documented_key_is_read() {
        let config = check(include_str!("../../tests/full.toml")).unwrap();
        assert_eq!(config.data, Path::new("/base/data"));
        assert_eq!(config.server.body_limit.0, 16 << 20);
        assert_eq!(config.server.unknown_keys, UnknownKeys::Reject);
        assert_eq!(config.apps.values().next().unwrap().mount.as_deref(), Some("/"));
        let grants = config.grants.values().next().unwrap();
        assert_eq!(grants.limits.limits().cpu_ms, 2_000);
        assert_eq!(grants.http[0].scheme, "https");
        let reader = config.grants.values().nth(1).unwrap().databases()["business"].clone();
        assert_eq!(
            (reader.schema, reader.timeout_ms, reader.rows),
            (true, Some(5_000), Some(10_000))
        );
        let typed = config.grants.values().nth(2).unwrap();
        assert_eq!(typed.environment["REGION"], "north");
        assert_eq!(typed.folders[0].path, Path::new("/base/data/reports"));
        let (asset, business) = (&config.sql["asset"], &config.sql["business"]);
        assert_eq!(business.migrate, MigrateRule::Nobody);
        assert!(matches!(&asset.migrate, MigrateRule::Apps(apps) if apps.contains("asset")));
        assert_eq!(asset.migration_timeout.map(duration), Some(MIGRATION_TIMEOUT));
        assert_eq!(config.tenants["acme"].keys_env.as_deref(), Some("ACME_API_KEYS"));
        let caps = config.caps();
        assert_eq!(config.limits.graphs(), GraphLimits::default());
        assert_eq!(config.max_handlers(), 500);
        assert_eq!((caps.run_context_bytes, caps.thread_log_bytes), (256 << 10, 1 << 30));
        assert_eq!((caps.thread_blobs, caps.app_blob_bytes), (10_000, Some(64 << 30)));
        assert_eq!((caps.run_file_bytes, caps.app_file_bytes), (256 << 20, 16 << 30));
        assert_eq!((caps.memory_bytes, caps.app_cache_bytes), (4 << 30, 1 << 30));
        assert_eq!(caps.tenant.blob_bytes, Some(16 << 30));
        assert_eq!(caps.tenants["acme"].memory_bytes, Some(2 << 30));
        assert_eq!(config.limits.compile.limits(), CompileLimits::default());
        assert_eq!(config.memory_budget(), DEFAULT_BUDGET);
        assert_eq!(config.limits.free_disk.map(|size| size.0), Some(FREE_DISK_BYTES));
        let own = &caps.tenants["acme"];
        assert_eq!(
            (own.blob_bytes, own.threads, own.bytes),
            (Some(32 << 30), Some(10_000), Some(8 << 30))
        );
        let files = &config.apps.values().nth(1).unwrap().files["node_io"];
        assert_eq!(files.dir_env.as_deref(), Some("NODE_IO_LOG_DIR"));
        let prices = config.eval_prices();
        assert_eq!(prices.keys().collect::<Vec<_>>(), ["gpt-4o", "gpt-4o-mini"]);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let text = r#"
            colour = "blue"
            [server]
            listen = "localhost"
            [store]
            kind = "paper"
            [clock]
            time_zone = "Mars/Base"
            [apps.asset]
            mont = "/"
            [apps."1x"]
            [grants.asset]
            limits = { memory = "64MB" }
            [model.routes.chat]
            provider = "openai"
        "#;
        insta::assert_snapshot!(check(text).unwrap_err());
    }

    #[test]
    fn limits_out_of_their_bounds_are_refused() {
        for (limit, part) in [
            ("run_tasks = 10_000_001", "10000001 exceeds the maximum of 10,000,000 tasks"),
            ("state_bytes = \"1GiB\"", "1GiB exceeds the maximum of 512MiB"),
            ("run_context = \"17MiB\"", "17MiB exceeds the maximum of 16MiB"),
            ("memory = \"255MiB\"", "255MiB is less than the minimum of 256MiB"),
            ("runs_memory = \"63MiB\"", "63MiB is less than the minimum of 64MiB"),
            ("services_memory = \"63MiB\"", "63MiB is less than the minimum of 64MiB"),
            ("guests_memory = \"63MiB\"", "63MiB is less than the minimum of 64MiB"),
            ("code_memory = \"63MiB\"", "63MiB is less than the minimum of 64MiB"),
            ("sqlite_memory = \"63MiB\"", "63MiB is less than the minimum of 64MiB"),
        ] {
            let error = check(&format!("[limits]\n{limit}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_nested_too_deeply_is_refused_with_its_line() {
        let deep = format!("[apps.a.settings]\nx = {}1{}", "{ a.a = ".repeat(60), "}".repeat(60));
        let expected = "`wattle.toml` is not valid\n";
        let error = check(&deep).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
        let line = "\nwattle.toml:2: tables and arrays are nested deeper than 100 levels";
        assert!(error.ends_with(line), "{error}");
    }

    #[test]
    fn folders_of_typed_components_are_checked() {
        let folder = |path: &str, guest: &str| {
            let folders = format!("folders = [{{ path = \"{path}\", guest = \"{guest}\" }}]");
            let apps = "[apps.asset]\npath = \"apps/asset\"";
            check(&format!("{apps}\n[grants.shop]\n{folders}"))
        };
        for path in ["reports", "data/reports", "/srv/reports", "plugin"] {
            let config = folder(path, "/reports").unwrap();
            let rule = &config.grants.values().next().unwrap().folders[0];
            assert_eq!(rule.path, Path::new("/base").join(path));
        }
        for (path, what) in [
            (".", "the plugins folder"),
            ("/", "the plugins folder"),
            ("plugins/asset", "the plugins folder"),
            ("data", "the data folder"),
            ("data/blobs/x", "`blobs` in the data folder"),
            ("data/WATTLE.redb", "`wattle.redb` in the data folder"),
            ("apps", "app `asset`"),
            ("reports/../data", "has `..` in it"),
        ] {
            let error = folder(path, "/reports").unwrap_err();
            assert!(error.contains(what), "{path}: {error}");
        }
        let error = folder("reports", "reports").unwrap_err();
        assert!(error.contains("`reports` is not an absolute path"), "{error}");
        let error = check("[grants.shop.environment]\n\"A=B\" = \"\"").unwrap_err();
        assert!(error.contains("this is not a valid environment variable"), "{error}");
    }

    #[test]
    fn tables_of_grants_name_a_plugin_or_an_app_and_its_plugin() {
        let config = check("[grants.std]\n[grants.\"shop/desk\"]\nllm = [\"chat\"]").unwrap();
        let keys: Vec<String> = config.grants.keys().map(ToString::to_string).collect();
        assert_eq!(keys, ["std", "\"shop/desk\""]);
        let error = check("[grants.\"shop/desk/x\"]\n[grants.\"a/b\"]\nlmm = 1").unwrap_err();
        assert!(error.contains("`grants.\"a/b\".lmm`"), "{error}");
        assert!(error.contains("`desk/x` is not a valid plugin name"), "{error}");
    }

    #[test]
    fn the_folder_of_an_app_is_its_path_or_its_name_in_the_plugins_folder() {
        let config = check("[apps.shop]\n[apps.asset]\npath = \"code/asset\"").unwrap();
        let folder = |app: &str| config.folder_of_app(&app.parse().unwrap());
        assert_eq!(folder("shop"), Some("/base/plugins/shop".into()));
        assert_eq!(folder("asset"), Some("/base/code/asset".into()));
        assert_eq!(folder("other"), None);
    }

    #[test]
    fn limits_below_their_minimum_are_refused() {
        let error = check("[server.limits]\nresponse_bytes = \"1023KiB\"").unwrap_err();
        assert!(error.contains("1023KiB is too small"), "{error}");
    }

    #[test]
    fn studio_listen_requires_the_studio_and_differs_from_listen() {
        let with = |key: &str| check(&format!("[server]\nstudio_listen = \"0.0.0.0:8701\"\n{key}"));
        for (key, part) in [
            ("studio = false", "`server.studio` is false"),
            ("listen = \"0.0.0.0:8701\"", "`0.0.0.0:8701` is also `server.listen`"),
        ] {
            let error = with(key).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let config = with("").unwrap();
        assert!(!config.server.has_studio_on_main_address());
        assert_eq!(config.public_address(), config.server.studio_listen, "it needs keys");
    }

    #[test]
    fn an_empty_configuration_file_gives_the_defaults() {
        let config = check("").unwrap();
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:8700");
        assert_eq!((config.max_runs(), config.max_handlers()), (1_000, 500));
    }
}
