//! The configuration that the application ships, with the stand-in as its services.

use wattle_kit::configuration::Configuration;
use wattle_kit::standin::Handle;

use crate::workspace;

/// Environment variables that the shipped configuration names, with keys that the stand-in accepts.
pub const KEYS: [(&str, &str); 4] = [
    ("DEEPSEEK_API_KEY", "deepseek-key-of-the-suite"),
    ("GEMINI_API_KEY", "gemini-key-of-the-suite"),
    ("APIFY_TOKEN", "apify-token-of-the-suite"),
    ("UNSPLASH_ACCESS_KEY", "unsplash-key-of-the-suite"),
];

/// Returns the shipped configuration, in which only addresses and paths are those of the test.
pub fn shipped(standin: &Handle) -> Configuration {
    workspace::shipped("travel", standin)
}

/// Returns the shipped configuration as most tests need it: with the models that the routes name
/// instead of their aliases, keys of the suite, secrets from files, and without delays.
///
/// # Panics
///
/// If the shipped configuration does not have one of these values.
pub fn configuration(standin: &Handle) -> Configuration {
    let mut config = shipped(standin);
    config.remove("model.aliases").expect("the shipped aliases");
    for provider in ["deepseek", "google"] {
        config.replace(&format!("model.providers.{provider}.key_env"), "SUITE_MODEL_KEY");
    }
    for (secret, file) in [("APIFY_TOKEN", "apify-token"), ("UNSPLASH_ACCESS_KEY", "unsplash-key")]
    {
        config.remove(&format!("secrets.{secret}.env")).expect("a shipped secret");
        config.insert(&format!("secrets.{secret}.file"), file);
    }
    let agent = "wattle-suite/1.0 (+https://example.com/contact)";
    config.replace("apps.travel.settings.nominatim_user_agent", agent);
    config.replace("apps.travel.settings.nominatim_interval_ms", 20);
    config.replace("apps.travel.settings.disconnect_grace_ms", 0);
    config
}
