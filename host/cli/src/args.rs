//! The command-line arguments.

mod author;
mod eval;
mod key;
mod run_options;
mod sql;
mod store;
mod thread;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use wattle_mcp::check::NOTES_TARGET;

use crate::exit;
use crate::load::compiler;

pub use self::author::{AppArg, BenchArgs, BuildArgs, DevArgs, NewArgs, TestArgs};
pub use self::eval::EvalArgs;
pub use self::key::{KeyCommand, KeyCreateArgs, KeyRevokeArgs, ScopeArg};
pub use self::run_options::{DurabilityArg, RunOptionArgs};
pub use self::sql::{SqlCommand, SqlReaderArgs};
pub use self::store::{StoreBackupArgs, StoreCommand, StoreRestoreArgs};
pub use self::thread::{
    DecisionArg, StatusArg, StrategyArg, ThreadArg, ThreadCommand, ThreadCopyArgs, ThreadEditArgs,
    ThreadExportArgs, ThreadForkArgs, ThreadHistoryArgs, ThreadListArgs, ThreadMigrateArgs,
    ThreadPruneArgs, ThreadResumeArgs, ThreadSettleArgs, ThreadStateArgs,
};

/// Help of the commands that print the details of failures with `--verbose`.
const DETAILS_HELP: &str = "\
With --verbose, failures have their details, such as the stack of an exception.
With --json, they always have them.";

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
    /// Command to execute
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// Returns the log verbosity. A server logs at `info` by default.
    pub fn verbosity(&self) -> u8 {
        self.verbose + u8::from(matches!(self.command, Command::Serve(_)))
    }

    /// Returns the niceness of the processes that compile components for the command.
    pub fn compile_niceness(&self) -> u8 {
        if matches!(self.command, Command::Serve(_)) {
            compiler::SERVER_NICENESS
        } else {
            compiler::COMMAND_NICENESS
        }
    }

    /// Returns the log target whose events the command itself prints, if there is such a target.
    pub fn printed_target(&self) -> Option<&'static str> {
        let checks_servers =
            matches!(self.command, Command::Doctor | Command::Mcp(McpCommand::Check(_)));
        checks_servers.then_some(NOTES_TARGET)
    }
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Create the folder of a new app: a component, a graph, and tests
    New(NewArgs),
    /// Build the components of an app with the commands in `[build]` of its `app.toml`
    Build(BuildArgs),
    /// Build an app, serve it, and run an input again after each change
    Dev(DevArgs),
    /// Run the tests of an app: its cases, and threads that were exported as tests
    Test(TestArgs),
    /// Serve HTTP requests until interrupted
    Serve(ServeArgs),
    /// Run a graph and follow it until it ends or is interrupted
    Run(RunArgs),
    /// List, inspect, edit, resume and delete threads
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Show and check graphs
    #[command(subcommand)]
    Graph(GraphCommand),
    /// List and inspect plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Show the trace of a thread: supersteps, nodes, host calls, times, sizes, tokens
    #[command(after_help = DETAILS_HELP)]
    Trace(TraceArgs),
    /// Execute a thread again from its journals, without external calls, and show differences
    Replay(ReplayArgs),
    /// Execute a recorded run again and show where the time of its steps goes
    Bench(BenchArgs),
    /// Run the data set of an app and report accuracy, cost and latency
    Eval(EvalArgs),
    /// Maintain the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// List the hosts that share the store, with their versions and loads
    Hosts,
    /// Manage database roles for plugins
    #[command(subcommand)]
    Sql(SqlCommand),
    /// Check model routes
    #[command(subcommand)]
    Model(ModelCommand),
    /// Check MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Check configuration, data folder, sandbox, models and databases
    Doctor,
    /// Compile a component from standard input; only the host starts this command
    #[command(name = compiler::COMMAND, hide = true)]
    Compile(CompileArgs),
}

/// Priority and limits of a process that compiles a component.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct CompileArgs {
    /// Increment of the nice value
    pub niceness: u8,
    /// CPU time in seconds
    pub cpu_seconds: u64,
    /// Address space in bytes
    pub memory_bytes: u64,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ServeArgs {
    /// Address to listen on, instead of `server.listen`; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Do not reload files that change while the server runs
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
    /// Thread to continue, or id of a new thread
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Context for every node: JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub context: Option<String>,
    /// Run options.
    #[command(flatten)]
    pub options: RunOptionArgs,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `trace`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TraceArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Verify the seals of the event log, and print the newest seal
    #[arg(long)]
    pub verify: bool,
}

/// Arguments of `replay`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ReplayArgs {
    /// Id of a thread, or a file written by `thread export`
    #[arg(value_name = "THREAD|FILE")]
    pub target: String,
}

/// The commands of `wattle graph`.
#[derive(Clone, Debug, Subcommand)]
pub enum GraphCommand {
    /// Print a graph as a Mermaid flow chart
    Show(GraphShowArgs),
    /// Check a graph and list all problems; needs no server
    Check(GraphCheckArgs),
    /// Clear the node cache of an app, a graph or a node
    ClearCache(GraphCacheArgs),
}

/// The graphs that are printed.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphShowArgs {
    /// App folder, `graph.toml`, app, or `app/graph` [default: the current folder, or else that of
    /// the configuration]
    #[arg(value_name = "GRAPH")]
    pub target: Option<String>,
}

/// The graphs that are checked.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphCheckArgs {
    /// App folder, `graph.toml`, or app of the configuration [default: the current folder, or else
    /// that of the configuration]
    #[arg(value_name = "GRAPH")]
    pub target: Option<String>,
}

/// The nodes whose cache is cleared.
#[derive(Clone, Debug, ClapArgs)]
pub struct GraphCacheArgs {
    /// App, `app/graph`, or `app/graph/node`
    #[arg(value_name = "APP[/GRAPH[/NODE]]")]
    pub target: String,
}

/// The commands of `wattle model`.
#[derive(Clone, Debug, Subcommand)]
pub enum ModelCommand {
    /// Call the models of routes and show the results: without streaming, streamed, with a tool,
    /// with a schema
    Check(ModelCheckArgs),
}

/// Arguments of `model check`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ModelCheckArgs {
    /// Names of routes, as in `[model.routes.<name>]`; each route is called five times
    #[arg(value_name = "ROUTE", required = true)]
    pub routes: Vec<String>,
}

/// The commands of `wattle mcp`.
#[derive(Clone, Debug, Subcommand)]
pub enum McpCommand {
    /// Connect to MCP servers and show their tools, and everything that is unusable
    Check(McpCheckArgs),
}

/// Arguments of `mcp check`.
#[derive(Clone, Debug, ClapArgs)]
pub struct McpCheckArgs {
    /// Names of servers, as in `[mcp.<name>]` [default: all]
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
}

/// The commands of `wattle plugin`.
#[derive(Clone, Debug, Subcommand)]
pub enum PluginCommand {
    /// List the plugins of all apps
    List,
    /// Show a plugin: exports, imports, nodes, requested and granted permissions
    Inspect(PluginArg),
}

/// The plugin of a command.
#[derive(Clone, Debug, ClapArgs)]
pub struct PluginArg {
    /// Component file, or name of a loaded plugin
    #[arg(value_name = "PLUGIN")]
    pub target: String,
}
