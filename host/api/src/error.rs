//! Errors of the setup of the API.

use wattle_graph::id::AppName;

/// An error of the API setup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two mounted apps claim the same requests.
    #[error(
        "apps `{first}` and `{second}` both claim `{method} {path}`\n  hint: change `mount` under \
         `[apps.{second}]`, or give it a `listen` address of its own"
    )]
    MountConflict {
        /// The first app by name.
        first: AppName,
        /// The second app by name.
        second: AppName,
        /// Method of the requests.
        method: String,
        /// Path of the second app, with its mount.
        path: String,
    },
    /// An app with its own listen address claims a path of the host on that address.
    #[error(
        "app `{app}` claims `{path}`, which the host serves itself on every address\n  hint: \
         remove `listen` under `[apps.{app}]`, or change the path in the app"
    )]
    ReservedOnAppAddress {
        /// The app.
        app: AppName,
        /// Claimed path.
        path: String,
    },
    /// A mounted app claims a path of the host.
    #[error(
        "app `{app}` claims `{path}`, which the host serves itself\n  hint: change `mount` under \
         `[apps.{app}]`, or give it a `listen` address of its own"
    )]
    Reserved {
        /// The app.
        app: AppName,
        /// Claimed path.
        path: String,
    },
    /// A mounted app claims a path of the studio.
    #[error(
        "app `{app}` claims `{path}`, where the host serves the studio\n  hint: change `mount` \
         under `[apps.{app}]`, give the studio an address of its own with `studio_listen` under \
         `[server]`, or set `studio = false` there"
    )]
    ReservedForStudio {
        /// The app.
        app: AppName,
        /// Claimed path.
        path: String,
    },
}
