//! The demo's `wattle.toml`: the configurations of all applications in one file, with the stand-ins
//! in place of the real services.

use std::path::Path;

use anyhow::Result;
use wattle_kit::configuration::Configuration;
use wattle_kit::process::lasting_port;

use crate::tour;

/// The applications. If two of them define a route, the values of the first one apply.
const APPS: [&str; 5] = ["asset", "expense", "nl2sql", "reasoning", "travel"];

/// The value of every key and secret. The stand-ins accept any value.
const KEY: &str = "demo-key";

/// A variable that names an account, which is not a secret.
const FEISHU_APP: (&str, &str) = ("FEISHU_APP_ID", "cli_demo");

/// A configuration with the environment variables that it names.
pub(crate) struct Demo {
    /// The text of `wattle.toml`.
    pub(crate) text: String,
    /// Names and values of the environment variables.
    pub(crate) variables: Vec<(String, String)>,
}

impl Demo {
    /// Reads the configurations of all applications below `root` and points them to the stand-ins
    /// at the URL `standins`. `folder` is the folder of this run of the demo.
    pub(crate) fn read(root: &Path, folder: &Path, standins: &str) -> Result<Self> {
        let mut all = own(root)?;
        all.add_missing(tour::configuration(folder, standins)?);
        for app in APPS {
            let mut shipped = Configuration::shipped(root, app)?;
            shipped.use_standins(standins, root)?;
            // The app `welcome` is mounted at `/`, so all others keep their default mounts.
            shipped.remove(&format!("apps.{app}.mount"));
            all.add_missing(shipped);
        }
        let value = |name: &str| if name == FEISHU_APP.0 { FEISHU_APP.1 } else { KEY };
        let variables =
            all.variables().into_iter().map(|name| (name.clone(), value(&name).to_owned()));
        let variables = variables.collect();
        Ok(Self { text: format!("# Written by the demo.\n{all}"), variables })
    }
}

/// Returns the demo's own settings: a free port, at which the host can be started again, a data
/// folder, a start that waits for all apps, the app `welcome` at `/`, the grants of the example
/// `notes`, which the plugins folder has as well, and a short interval between requests to the
/// stand-in of the geocoder.
fn own(root: &Path) -> Result<Configuration> {
    let plugins = root.join("plugins");
    let port = lasting_port()?;
    let text = format!(
        "data = \"data\"\nplugins = {:?}\n[server]\nlisten = \"127.0.0.1:{port}\"\n\
         load_wait = \"10m\"\n[clock]\ntime_zone = \"Asia/Shanghai\"\n\
         [apps.welcome]\npath = {:?}\nmount = \"/\"\n\
         [apps.notes]\npath = {:?}\n\
         [apps.travel.settings]\npublic_path = \"/apps/travel\"\nnominatim_interval_ms = 20\n",
        plugins.display().to_string(),
        plugins.join("apps/welcome").display().to_string(),
        plugins.join("apps/notes").display().to_string(),
    );
    Ok(Configuration::parse("the demo's own values", &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_all_applications_and_no_real_service() {
        let root = crate::root();
        let demo = Demo::read(&root, Path::new("/demo"), "http://127.0.0.1:9").unwrap();
        assert!(!demo.text.contains("https://"), "{}", demo.text);
        let config = Configuration::parse("the demo", &demo.text).unwrap();
        let at = |key: &str| config.text(key);
        assert_eq!(at("apps.welcome.mount"), Some("/"));
        assert_eq!(at("apps.tour.path"), Some("/demo/tour"));
        assert_eq!(at("grants.tour/std.in_doubt"), Some("ask"));
        assert_eq!(at("mcp.probe.url"), Some("http://127.0.0.1:9/mcp/probe"));
        for app in APPS {
            let folder = root.join("plugins/apps").join(app).display().to_string();
            assert_eq!(at(&format!("apps.{app}.path")), Some(folder.as_str()));
            assert_eq!(at(&format!("apps.{app}.mount")), None);
        }
        let interval = config.get("apps.travel.settings.nominatim_interval_ms");
        assert_eq!(interval.map(ToString::to_string).as_deref(), Some("20"));
        // `asset` and `expense` both define the route.
        assert_eq!(at("model.routes.chat.model_env"), Some("ASSET_MODEL_CHAT"));
        assert!(demo.variables.contains(&("FEISHU_APP_ID".to_owned(), "cli_demo".to_owned())));
        assert!(demo.variables.contains(&("OPENAI_API_KEY".to_owned(), KEY.to_owned())));
    }
}
