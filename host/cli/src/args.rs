//! The command line.

mod eval;
mod key;
mod sql;
mod store;
mod travel;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use wattle_mcp::check::NOTES;

use crate::exit;
use crate::load::compiler;

pub use self::eval::EvalArgs;
pub use self::key::{KeyCommand, KeyCreateArgs, KeyRevokeArgs, ScopeWord};
pub use self::sql::{SqlCommand, SqlReaderArgs};
pub use self::store::{StoreBackupArgs, StoreCommand, StoreRestoreArgs};
pub use self::travel::{ThreadEditArgs, ThreadForkArgs, ThreadHistoryArgs, ThreadStateArgs};

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

    /// Which part of the log the command says itself: its target.
    pub fn told(&self) -> Option<&'static str> {
        let looks_at_servers =
            matches!(self.command, Command::Doctor | Command::Mcp(McpCommand::Check(_)));
        looks_at_servers.then_some(NOTES)
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
    Trace(TraceArgs),
    /// Execute a thread once more from its journal, asking nothing outside, and show what differs
    Replay(ReplayArgs),
    /// Run the data set of an app, and show how well the models do, what it costs and how long it takes
    Eval(EvalArgs),
    /// Look after the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Make and revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// List the hosts that share the store, with their versions and loads
    Hosts,
    /// Look after databases of plugins
    #[command(subcommand)]
    Sql(SqlCommand),
    /// Look at model routes
    #[command(subcommand)]
    Model(ModelCommand),
    /// Look at servers of tools
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Check configuration, data folder, sandbox, models and databases
    Doctor,
    /// Compile one component from standard input; the host starts this for itself
    #[command(name = compiler::VERB, hide = true)]
    Compile(CompileArgs),
}

/// What compiling one component may cost.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct CompileArgs {
    /// CPU time in seconds
    pub cpu_seconds: u64,
    /// Address space in bytes
    pub memory_bytes: u64,
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
    /// How it runs
    #[command(flatten)]
    pub options: OptionArgs,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// How a run runs, in place of what its graph says.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct OptionArgs {
    /// What waits for the disk [default: commit]
    #[arg(long, value_name = "MODE")]
    pub durability: Option<DurabilityWord>,
    /// Supersteps that it may take
    #[arg(long, value_name = "STEPS")]
    pub recursion_limit: Option<u32>,
    /// Tasks of a superstep that run at once
    #[arg(long, value_name = "TASKS")]
    pub max_concurrency: Option<u32>,
    /// Stand still before these nodes; `*` for all
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub interrupt_before: Vec<String>,
    /// Stand still after these nodes; `*` for all
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub interrupt_after: Vec<String>,
}

/// What of a run waits for the disk.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityWord {
    /// Whatever leaves the host waits for what led to it
    Commit,
    /// Every superstep waits for its checkpoint, too
    Sync,
    /// Nothing waits but the end of the run
    Async,
    /// As `commit`, and only the last checkpoint is kept
    Exit,
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
    /// Show a thread at one of its checkpoints: state, tasks that run next
    State(ThreadStateArgs),
    /// List the checkpoints of a thread, newest first
    History(ThreadHistoryArgs),
    /// Write to the state of a thread as a node would
    Edit(ThreadEditArgs),
    /// Go on from an earlier checkpoint, or from a host call with another answer
    Fork(ThreadForkArgs),
    /// Answer questions of a thread and go on
    Resume(ThreadResumeArgs),
    /// Let the run of a thread stand still before its next superstep
    Drain(ThreadArg),
    /// Try again to go on with a run that was cut and set aside
    Retry(ThreadArg),
    /// Delete a thread with all that belongs to it
    Delete(ThreadArg),
    /// List host calls that were begun and have no answer: in doubt if the host died meanwhile
    Calls(ThreadArg),
    /// Say what becomes of a host call in doubt
    Settle(ThreadSettleArgs),
    /// Move a thread to the version of its graph that is loaded now
    Migrate(ThreadMigrateArgs),
    /// Write a thread into one file that `replay` can read
    Export(ThreadExportArgs),
    /// Copy a thread with its past
    Copy(ThreadCopyArgs),
    /// Take the past of a thread away
    Prune(ThreadPruneArgs),
}

/// Arguments of `trace`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TraceArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Check that nothing of it was changed behind the host's back, and print its seal
    #[arg(long)]
    pub verify: bool,
}

/// Arguments of `thread export`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadExportArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Where to write; stdout without it
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Leave out the code: `replay` needs the app then
    #[arg(long)]
    pub no_code: bool,
    /// Leave out the blobs that the thread mentions
    #[arg(long)]
    pub no_blobs: bool,
}

/// Arguments of `replay`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ReplayArgs {
    /// Id of a thread, or a file that `thread export` wrote
    #[arg(value_name = "THREAD|FILE")]
    pub target: String,
}

/// Arguments of `thread settle`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadSettleArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// The call as `thread calls` shows it
    #[arg(value_name = "CALL")]
    pub call: String,
    /// What becomes of it
    #[arg(value_name = "DECISION")]
    pub decision: Option<DecisionWord>,
    /// It had its effect, and this was its answer: JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "decision")]
    pub answer: Option<String>,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DecisionWord {
    /// Make it again
    Retry,
    /// Let its caller see that it is in doubt
    Fail,
}

/// Arguments of `thread migrate`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadMigrateArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Only say what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Drop values of channels that the new graph does not have
    #[arg(long)]
    pub drop: bool,
    /// Give a channel another value; JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "CHANNEL=JSON", allow_hyphen_values = true)]
    pub set: Vec<String>,
}

/// Arguments of `thread copy`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadCopyArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Id of the copy; a fresh one without it
    #[arg(value_name = "COPY")]
    pub to: Option<String>,
}

/// Arguments of `thread prune`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadPruneArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// What to take away
    #[arg(long, value_name = "STRATEGY", default_value = "keep-latest")]
    pub strategy: StrategyWord,
}

/// What is taken away.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StrategyWord {
    /// Everything but the newest checkpoints
    KeepLatest,
    /// The whole thread
    Delete,
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
    /// How it runs
    #[command(flatten)]
    pub options: OptionArgs,
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
    /// Forget what nodes did that have a cache
    ClearCache(GraphCacheArgs),
}

/// A graph.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphArg {
    /// App folder, `graph.toml`, app, or `app/graph`
    #[arg(value_name = "GRAPH")]
    pub target: String,
}

/// Nodes with a cache.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphCacheArgs {
    /// App, one of its graphs, or one of its nodes
    #[arg(value_name = "APP[/GRAPH[/NODE]]")]
    pub target: String,
}

/// Verbs for model routes.
#[derive(Clone, Debug, Subcommand)]
pub enum ModelCommand {
    /// Ask the models of routes, and show what came back: whole, streamed, with a tool, in a shape
    Check(ModelCheckArgs),
}

/// Arguments of `model check`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ModelCheckArgs {
    /// Routes, as `[model.routes.<name>]` names them; each is asked five times
    #[arg(value_name = "ROUTE", required = true)]
    pub routes: Vec<String>,
}

/// Verbs for servers of tools.
#[derive(Clone, Debug, Subcommand)]
pub enum McpCommand {
    /// Connect to MCP servers, and show what they offer and what of it cannot be used
    Check(McpCheckArgs),
}

/// Arguments of `mcp check`.
#[derive(Clone, Debug, ClapArgs)]
pub struct McpCheckArgs {
    /// Servers, as `[mcp.<name>]` names them [default: all]
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
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
