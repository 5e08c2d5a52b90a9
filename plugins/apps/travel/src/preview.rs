//! The page of a guide, as it can be looked at.

use wattle_plugin::prelude::{Failure, settings};

use crate::html::Sources;

/// Setting: where the app is mounted, such as `/apps/travel`; nothing for the root.
const PUBLIC_PATH: &str = "public_path";

/// The page of a session.
#[derive(Debug)]
pub(crate) struct Preview {
    /// Its address, see [`path`].
    pub(crate) path: String,
    /// The services whose pictures it may show.
    pub(crate) sources: Sources,
}

impl Preview {
    /// The page of a session, as the settings have it.
    ///
    /// # Errors
    ///
    /// `invalid` if a setting is wrong.
    pub(crate) fn of(session_id: &str) -> Result<Self, Failure> {
        Ok(Self { path: path(session_id)?, sources: Sources::read()? })
    }
}

/// The address of a session's page, with what stands before the app's own paths.
pub(crate) fn path(session_id: &str) -> Result<String, Failure> {
    let public = settings::get::<String>(PUBLIC_PATH)?.unwrap_or_default();
    Ok(format!("{}/api/guide/{session_id}", public.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::path;

    #[test]
    fn s3_55_the_address_has_the_path_of_the_mount() {
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
