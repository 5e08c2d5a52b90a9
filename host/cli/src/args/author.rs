//! Arguments of the commands for authors of apps: `new`, `build`.

use clap::Args;

use crate::scaffold::files::Kind;
use crate::scaffold::language::Language;

/// Arguments of `new`.
#[derive(Clone, Debug, Args)]
pub struct NewArgs {
    /// Name of the app and of its folder
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Language of the component
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    pub lang: Language,
    /// What the component provides
    #[arg(long, value_name = "KIND", default_value = "app")]
    pub kind: Kind,
}

/// The app of a command.
#[derive(Clone, Debug, Default, Args)]
pub struct AppArg {
    /// Folder of the app, or name of an app of the configuration [default: the current folder]
    #[arg(value_name = "APP")]
    pub app: Option<String>,
}
