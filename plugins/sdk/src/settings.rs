//! The app's non-secret settings, from `app.toml` and the operator's configuration.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::{Failure, settings, testing::FakeHost};
//!
//! let host = FakeHost::new().setting("zone", json!("Asia/Shanghai")).setting("rows", json!(50));
//! host.run(|| {
//!     let zone: String = settings::require("zone")?;
//!     assert_eq!(zone, "Asia/Shanghai");
//!     let limit: Option<u32> = settings::get("limit")?;
//!     assert_eq!(limit, None);
//!     assert_eq!(settings::all::<serde_json::Value>()?["rows"], 50);
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::host;
use crate::json;

/// Returns a setting as a type, or `None` if it is not set.
///
/// # Errors
///
/// `invalid` if the setting does not fit the type.
pub fn get<T: DeserializeOwned>(name: &str) -> Result<Option<T>, Failure> {
    let Some(text) = host::settings::get(name) else {
        return Ok(None);
    };
    json::read(format_args!("setting `{name}`"), &text).map(Some)
}

/// Returns a text setting without surrounding whitespace, or `None` if it is missing or blank. An
/// operator replaces a setting of `app.toml` by a blank text to unset it.
///
/// ```
/// use wattle_plugin::{Failure, settings, testing::FakeHost};
///
/// let host = FakeHost::new().setting("base_url", " https://a.example").setting("language", "");
/// host.run(|| {
///     assert_eq!(settings::text("base_url")?.as_deref(), Some("https://a.example"));
///     assert_eq!(settings::text("language")?, None);
///     assert_eq!(settings::text("missing")?, None);
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
///
/// # Errors
///
/// `invalid` if the setting is not a text.
pub fn text(name: &str) -> Result<Option<String>, Failure> {
    let text = get::<String>(name)?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Returns a text setting as [`text()`] does, or a default if it is missing or blank.
///
/// ```
/// use wattle_plugin::{settings, testing::FakeHost};
///
/// let host = FakeHost::new().setting("language", " zh ").setting("zone", " ");
/// assert_eq!(host.run(|| settings::text_or("language", "en")), Ok("zh".to_owned()));
/// assert_eq!(host.run(|| settings::text_or("zone", "UTC")), Ok("UTC".to_owned()));
/// ```
///
/// # Errors
///
/// `invalid` if the setting is not a text.
pub fn text_or(name: &str, default: &str) -> Result<String, Failure> {
    Ok(text(name)?.unwrap_or_else(|| default.to_owned()))
}

/// Returns a required setting as a type.
///
/// # Errors
///
/// `not-found` if the setting is not set, `invalid` if it does not fit the type.
pub fn require<T: DeserializeOwned>(name: &str) -> Result<T, Failure> {
    get(name)?.ok_or_else(|| {
        Failure::not_found(format!("setting `{name}` is not set; add it to `[settings]`"))
    })
}

/// Returns all settings as one type.
///
/// # Errors
///
/// `invalid` if the settings do not fit the type.
pub fn all<T: DeserializeOwned>() -> Result<T, Failure> {
    json::read("the settings", &host::settings::all())
}
