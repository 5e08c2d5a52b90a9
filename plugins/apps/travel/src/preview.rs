//! The page of a guide, as clients see it.

use wattle_plugin::prelude::{Failure, settings};

use crate::html::Sources;

/// Setting with the mount of the app, such as `/apps/travel`; empty for the root.
const PUBLIC_PATH: &str = "public_path";

/// The page of a session.
#[derive(Debug)]
pub(crate) struct Preview {
    /// Its path, see [`path`].
    pub(crate) path: String,
    /// The services whose images it may show.
    pub(crate) sources: Sources,
}

impl Preview {
    /// Returns the page of a session, as configured in the settings.
    ///
    /// # Errors
    ///
    /// Returns `invalid` if a setting is invalid.
    pub(crate) fn of(session_id: &str) -> Result<Self, Failure> {
        Ok(Self { path: path(session_id)?, sources: Sources::read()? })
    }
}

/// Returns the path of a session's page, with the mount of the app.
pub(crate) fn path(session_id: &str) -> Result<String, Failure> {
    let public = settings::get::<String>(PUBLIC_PATH)?.unwrap_or_default();
    Ok(format!("{}/api/guide/{session_id}", public.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::path;

    #[test]
    fn s3_55_the_path_includes_the_mount() {
        for (public, address) in [
            ("", "/api/guide/s"),
            ("/", "/api/guide/s"),
            ("/apps/travel", "/apps/travel/api/guide/s"),
            ("/apps/travel/", "/apps/travel/api/guide/s"),
        ] {
            let host = FakeHost::new().setting("public_path", public);
            assert_eq!(host.run(|| path("s")).unwrap(), address);
        }
        assert_eq!(FakeHost::new().run(|| path("s")).unwrap(), "/api/guide/s");
    }
}
