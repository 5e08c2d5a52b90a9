//! The configuration that the application ships, on the stand-in in place of its services.

use wattle_kit::standin::Handle;

use crate::guests;

/// The file in the application's folder.
const FILE: &str = "plugins/apps/travel/wattle.example.toml";

/// The package of the application.
pub const TRAVEL: &str = "wattle-app-travel";

/// The variables that the file names, with keys that the stand-in accepts.
pub const KEYS: [(&str, &str); 4] = [
    ("DEEPSEEK_API_KEY", "deepseek-key-of-the-suite"),
    ("GEMINI_API_KEY", "gemini-key-of-the-suite"),
    ("APIFY_TOKEN", "apify-token-of-the-suite"),
    ("UNSPLASH_ACCESS_KEY", "unsplash-key-of-the-suite"),
];

/// The shipped file with the addresses of the stand-in; everything else is as it stands there.
///
/// # Panics
///
/// If the file is not there, or does not name a service.
pub fn shipped(standin: &Handle) -> String {
    let file = guests::root().join(FILE);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    let base = &standin.base_url;
    let app = guests::root().join("plugins/apps/travel");
    let component = guests::path(TRAVEL);
    let quoted = |from: &str, to: &str| (format!("\"{from}\""), format!("\"{to}\""));
    let mut text = replaced(
        text,
        &[
            quoted("https://api.deepseek.com/", &format!("{base}/v1/")),
            quoted("https://generativelanguage.googleapis.com/v1beta/", &format!("{base}/v1beta/")),
            quoted("https://api.apify.com", base),
            quoted("https://nominatim.openstreetmap.org", base),
            quoted("https://api.unsplash.com", base),
            (
                "path = \"plugins/apps/travel\"\n".to_owned(),
                format!(
                    "path = \"{}\"\ncomponents = {{ travel = \"{}\" }}\n",
                    app.display(),
                    component.display()
                ),
            ),
        ],
    );
    let (start, end) = between(&text, "http = [\n", "\n]\n");
    let port = standin.addr.port();
    let grant = format!(
        "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {port}, methods = [\"GET\", \
         \"POST\"], private = true, secrets = [\"APIFY_TOKEN\", \"UNSPLASH_ACCESS_KEY\"] }}]\n"
    );
    text.replace_range(start..end, &grant);
    text
}

/// The shipped file as most tests want it: with the models that the routes name and none in their
/// place, keys of the suite, and no waiting.
pub fn toml(standin: &Handle, sql_url: &str) -> String {
    let text = shipped(standin);
    let (start, _) = between(&text, "[model.aliases]", "\n");
    let (end, _) = between(&text, "[secrets]", "\n");
    let text = format!("{}{}", &text[..start], &text[end..]);
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    replaced(
        text,
        &[
            pair("\"DEEPSEEK_API_KEY\"", "\"SUITE_MODEL_KEY\""),
            pair("\"GEMINI_API_KEY\"", "\"SUITE_MODEL_KEY\""),
            pair("{ env = \"APIFY_TOKEN\" }", "{ file = \"apify-token\" }"),
            pair("{ env = \"UNSPLASH_ACCESS_KEY\" }", "{ file = \"unsplash-key\" }"),
            pair("sqlite:travel.db", sql_url),
            pair("wattle-travel/0.1", "wattle-suite/1.0 (+https://example.com/contact)"),
            pair("nominatim_interval_ms = 1100", "nominatim_interval_ms = 20"),
            pair("disconnect_grace_ms = 5000", "disconnect_grace_ms = 0"),
        ],
    )
}

/// Replaces each text, which must be there.
fn replaced(mut text: String, pairs: &[(String, String)]) -> String {
    for (from, to) in pairs {
        assert!(text.contains(from.as_str()), "no `{from}` in {FILE}");
        text = text.replace(from.as_str(), to);
    }
    text
}

/// From the beginning of `first` to the end of the next `last`.
fn between(text: &str, first: &str, last: &str) -> (usize, usize) {
    let start = text.find(first).unwrap_or_else(|| panic!("no `{first}` in {FILE}"));
    let end = text[start..].find(last).unwrap_or_else(|| panic!("no `{last}` in {FILE}"));
    (start, start + end + last.len())
}
