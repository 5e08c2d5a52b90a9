//! Arguments of the commands for authors of apps: `build`.

use clap::Args;

/// The app of a command.
#[derive(Clone, Debug, Default, Args)]
pub struct AppArg {
    /// Folder of the app, or name of an app of the configuration [default: the current folder]
    #[arg(value_name = "APP")]
    pub app: Option<String>,
}
