//! Why the API cannot be set up.

use wattle_graph::id::AppName;

/// Why the API cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two mounted apps answer the same requests.
    #[error(
        "apps `{first}` and `{second}` both claim `{method} {path}`\n  hint: change `mount` under \
         `[apps.{second}]`, or give it a `listen` address of its own"
    )]
    MountConflict {
        /// The app that comes first by name.
        first: AppName,
        /// The other app.
        second: AppName,
        /// The method.
        method: String,
        /// The path, in the words of the second app.
        path: String,
    },
    /// An app with an address of its own claims a path that the host answers there.
    #[error(
        "app `{app}` claims `{path}`, which the host answers itself on every address\n  hint: \
         remove `listen` under `[apps.{app}]`, or have the app use another path"
    )]
    ReservedAlone {
        /// The app.
        app: AppName,
        /// The path.
        path: String,
    },
    /// A mounted app claims a path that the host answers.
    #[error(
        "app `{app}` claims `{path}`, which the host answers itself\n  hint: change `mount` under \
         `[apps.{app}]`, or give it a `listen` address of its own"
    )]
    Reserved {
        /// The app.
        app: AppName,
        /// The path.
        path: String,
    },
}
