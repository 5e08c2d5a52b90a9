//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::exit;

/// Runs agent graphs whose nodes and tools are WebAssembly components
#[derive(Clone, Debug, Parser)]
#[command(name = "wattle", version, after_help = exit::HELP, disable_help_subcommand = true)]
pub struct Args {
    /// Configuration file [default: `wattle.toml` in the current folder, if there is one]
    #[arg(long, short, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more; twice for even more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// How much to log: a server tells its news without being asked.
    pub fn verbosity(&self) -> u8 {
        self.verbose + u8::from(matches!(self.command, Command::Serve(_)))
    }
}

/// The verbs.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Answer HTTP requests, until interrupted
    Serve(ServeArgs),
    /// Run a graph, and follow it to its end or to a question
    Run(RunArgs),
    /// Look at threads, answer their questions, delete them
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Show and check graphs
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Look at plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Show what happened on a thread: steps, nodes, host calls, times, sizes, tokens
    Trace(ThreadArg),
    /// Check configuration, data folder, sandbox, models and databases
    Doctor,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ServeArgs {
    /// Address in place of `server.listen`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Do not load files that change while the server runs
    #[arg(long)]
    pub no_watch: bool,
}

/// Arguments of `run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct RunArgs {
    /// App, or app and graph as `app/graph`
    #[arg(value_name = "APP[/GRAPH]")]
    pub target: String,
    /// Channel values: JSON, `@file`, or `-` for stdin
    #[arg(long, short, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    pub input: String,
    /// Thread to go on with, or the id of a new one
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Context for every node: JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub context: Option<String>,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// A thread.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadArg {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
}

/// Verbs for threads.
#[derive(Clone, Debug, Subcommand)]
pub enum ThreadCommand {
    /// List threads, newest first
    List(ThreadListArgs),
    /// Show a thread: status, state, open questions
    Show(ThreadArg),
    /// List the checkpoints of a thread, newest first
    History(ThreadHistoryArgs),
    /// Answer questions of a thread and go on
    Resume(ThreadResumeArgs),
    /// Delete a thread with all that belongs to it
    Delete(ThreadArg),
}

/// Arguments of `thread list`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadListArgs {
    /// Only of this app
    #[arg(long)]
    pub app: Option<String>,
    /// Only in this status
    #[arg(long)]
    pub status: Option<StatusWord>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

/// A status of a thread.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StatusWord {
    /// Nothing happens
    Idle,
    /// A run is active
    Running,
    /// It waits for answers
    Interrupted,
    /// Its last run failed
    Error,
}

/// Arguments of `thread history`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadHistoryArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

/// Arguments of `thread resume`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadResumeArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Answer to the open question: JSON, `@file` or `-`; with several questions `ID=JSON`
    #[arg(long = "answer", short, value_name = "[ID=]JSON", allow_hyphen_values = true)]
    pub answers: Vec<String>,
    /// Open the questions again if the run fails
    #[arg(long)]
    pub reopen: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Verbs for graphs.
#[derive(Clone, Debug, Subcommand)]
pub enum GraphCommand {
    /// Print a graph as a Mermaid flow chart
    Show(GraphArg),
    /// Report everything that is wrong with a graph; needs no server
    Check(GraphArg),
}

/// A graph.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphArg {
    /// App folder, `graph.toml`, app, or `app/graph`
    #[arg(value_name = "GRAPH")]
    pub target: String,
}

/// Verbs for plugins.
#[derive(Clone, Debug, Subcommand)]
pub enum PluginCommand {
    /// List the plugins of all apps
    List,
    /// Show a plugin: exports, imports, nodes, what it asks for and what it is granted
    Inspect(PluginArg),
}

/// A plugin.
#[derive(Clone, Debug, ClapArgs)]
pub struct PluginArg {
    /// Component file, or name of a loaded plugin
    #[arg(value_name = "PLUGIN")]
    pub target: String,
}
