//! Arguments of the commands for authors of apps: `new`, `build`, `dev`, `test`, `bench`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use wattle_graph::definition::HumanDuration;

use crate::args::eval::{DEFAULT_TIMEOUT, timeout};
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
    /// Folder of the app, or name of an app of the configuration [default: the current folder, or
    /// else that of the configuration]
    #[arg(value_name = "APP")]
    pub app: Option<String>,
}

/// Arguments of `build`.
#[derive(Clone, Debug, Args)]
pub struct BuildArgs {
    /// The app.
    #[command(flatten)]
    pub app: AppArg,
    /// Run the commands even if nothing has changed since the last build
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// The app.
    #[command(flatten)]
    pub app: AppArg,
    /// Case of `tests/cases.jsonl` to run after each change [default: the first one]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["input", "graph"])]
    pub case: Option<String>,
    /// Channel values to run after each change: JSON or `@file`
    #[arg(long, short, value_name = "JSON", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Graph to run [default: the only one]
    #[arg(long, value_name = "GRAPH")]
    pub graph: Option<String>,
}

/// Arguments of `test`.
#[derive(Clone, Debug, Args)]
pub struct TestArgs {
    /// The app.
    #[command(flatten)]
    pub app: AppArg,
    /// Run only the test with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Use the models, services and databases of the configuration
    #[arg(long)]
    pub live: bool,
    /// Do not build the components first
    #[arg(long)]
    pub no_build: bool,
    /// Time limit of a case, such as `90s`
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIMEOUT, value_parser = timeout)]
    pub timeout: HumanDuration,
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Folder of the app, or name of an app of the configuration
    #[arg(value_name = "APP")]
    pub app: String,
    /// File written by `thread export`
    #[arg(value_name = "EXPORT")]
    pub export: PathBuf,
    /// Run to execute [default: the newest that can be executed again by itself]
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Number of measured executions
    #[arg(long, value_name = "TIMES", default_value = "100")]
    pub times: NonZeroU32,
}
