//! Arguments of `thread`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::DETAILS_HELP;
use crate::args::run_options::RunOptionArgs;

/// The commands of `wattle thread`.
#[derive(Clone, Debug, Subcommand)]
pub enum ThreadCommand {
    /// List threads, newest first
    List(ThreadListArgs),
    /// Show a thread: status, state, pending interrupts
    #[command(after_help = DETAILS_HELP)]
    Show(ThreadArg),
    /// Show a thread at one of its checkpoints: state, tasks that run next
    State(ThreadStateArgs),
    /// List the checkpoints of a thread, newest first
    History(ThreadHistoryArgs),
    /// Edit the state of a thread as if a node had written it
    Edit(ThreadEditArgs),
    /// Start a run from an earlier checkpoint, or from a host call with an overridden result
    Fork(ThreadForkArgs),
    /// Answer the interrupts of a thread and resume it
    Resume(ThreadResumeArgs),
    /// Stop the run of a thread before its next superstep
    Drain(ThreadArg),
    /// Retry the recovery of a thread that is set aside
    Retry(ThreadArg),
    /// Delete a thread and its data
    Delete(ThreadArg),
    /// List pending host calls, such as calls in doubt
    Calls(ThreadArg),
    /// Settle a host call that is in doubt
    Settle(ThreadSettleArgs),
    /// Migrate a thread, or all threads of an app, to the loaded code
    Migrate(ThreadMigrateArgs),
    /// Export a thread to a file that `replay` reads
    Export(ThreadExportArgs),
    /// Copy a thread with its history
    Copy(ThreadCopyArgs),
    /// Delete all but the newest checkpoints of a thread
    Prune(ThreadPruneArgs),
}

/// The thread of a command.
#[derive(Clone, Debug, Args)]
pub struct ThreadArg {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
}

/// Arguments of `thread list`.
#[derive(Clone, Debug, Args)]
pub struct ThreadListArgs {
    /// Only threads of this app
    #[arg(long)]
    pub app: Option<String>,
    /// Only threads with this status
    #[arg(long)]
    pub status: Option<StatusArg>,
    /// Maximum number of threads
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

/// The status of a thread.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StatusArg {
    /// The thread has no active run
    Idle,
    /// The thread has an active run
    Running,
    /// The last run is interrupted
    Interrupted,
    /// The last run failed
    Error,
}

/// Arguments of `thread state`.
#[derive(Clone, Debug, Args)]
pub struct ThreadStateArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Number of the checkpoint, as `thread history` shows it [default: the current checkpoint]
    #[arg(long, value_name = "NUMBER")]
    pub checkpoint: Option<u64>,
    /// Namespace of a subgraph [default: the root graph]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// Arguments of `thread history`.
#[derive(Clone, Debug, Args)]
pub struct ThreadHistoryArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Maximum number of checkpoints
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// Only checkpoints before this one
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Only checkpoints whose `source`, `step`, `run`, or metadata key has this value
    #[arg(long = "filter", value_name = "KEY=JSON")]
    pub filters: Vec<String>,
    /// Namespace of a subgraph [default: the root graph]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// Arguments of `thread edit`.
#[derive(Clone, Debug, Args)]
pub struct ThreadEditArgs {
    /// Id of the thread; created if it does not exist and `--app` is given
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Write to a channel, through its reducer; JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "CHANNEL=JSON")]
    pub set: Vec<String>,
    /// Replace the value of a channel, without its reducer
    #[arg(long, value_name = "CHANNEL=JSON")]
    pub overwrite: Vec<String>,
    /// Write as this node, whose edges and branches select the nodes that run next; `END`,
    /// `__input__` or `__copy__` [default: the only node that wrote the checkpoint]
    #[arg(long = "as", value_name = "NODE")]
    pub as_node: Option<String>,
    /// Checkpoint to edit; the thread continues from the edit [default: the current checkpoint]
    #[arg(long, value_name = "NUMBER")]
    pub checkpoint: Option<u64>,
    /// Namespace of a subgraph to edit, at its current checkpoint [default: the root graph]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// App of a new thread, or app and graph as `app/graph`
    #[arg(long, value_name = "APP[/GRAPH]")]
    pub app: Option<String>,
    /// Several edits: the `supersteps` of the HTTP API as JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "JSON", conflicts_with_all = ["set", "overwrite", "as_node"])]
    pub supersteps: Option<String>,
}

/// Arguments of `thread fork`.
#[derive(Clone, Debug, Args)]
pub struct ThreadForkArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Start from this checkpoint
    #[arg(long, value_name = "NUMBER", required_unless_present = "call", conflicts_with = "call")]
    pub checkpoint: Option<u64>,
    /// Channel values to apply to the state of the checkpoint: JSON, `@file`, or `-` for stdin
    #[arg(long, short, value_name = "JSON", allow_hyphen_values = true, requires = "checkpoint")]
    pub input: Option<String>,
    /// Start from this host call with an overridden result: sequence number of its `called` event,
    /// or `<task>/<number>`
    #[arg(long, value_name = "CALL")]
    pub call: Option<String>,
    /// Output that the call returns: JSON, `@file`, or `-` for stdin
    #[arg(
        long,
        short,
        value_name = "JSON",
        allow_hyphen_values = true,
        requires = "call",
        conflicts_with = "fail"
    )]
    pub answer: Option<String>,
    /// Let the call fail with this message
    #[arg(long, value_name = "MESSAGE", requires = "call")]
    pub fail: Option<String>,
    /// Start the run in a copy of the thread, with this id or a generated one
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    pub copy: Option<Option<String>>,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `thread resume`.
#[derive(Clone, Debug, Args)]
pub struct ThreadResumeArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Answer to the pending interrupt: JSON, `@file` or `-`; with several interrupts `ID=JSON`
    #[arg(long = "answer", short, value_name = "[ID=]JSON", allow_hyphen_values = true)]
    pub answers: Vec<String>,
    /// Reopen the interrupts if the resumed run fails
    #[arg(long)]
    pub reopen: bool,
    /// Run options.
    #[command(flatten)]
    pub options: RunOptionArgs,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `thread settle`.
#[derive(Clone, Debug, Args)]
pub struct ThreadSettleArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Id of the call, as `thread calls` shows it
    #[arg(value_name = "CALL")]
    pub call: String,
    /// Decision about the call
    #[arg(value_name = "DECISION")]
    pub decision: Option<DecisionArg>,
    /// The call took effect and returned this output: JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "decision")]
    pub answer: Option<String>,
    /// Refuse the decision if the call has started again since this start, as `thread calls` shows
    /// it
    #[arg(long, value_name = "SEQ")]
    pub seq: Option<u64>,
}

/// A decision about a call that needs no value.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DecisionArg {
    /// Make the call again
    Retry,
    /// Fail the call with the `in-doubt` failure
    Fail,
}

/// Arguments of `thread migrate`.
#[derive(Clone, Debug, Args)]
pub struct ThreadMigrateArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD", required_unless_present = "app")]
    pub thread: Option<String>,
    /// Migrate all threads of this app that have another version
    #[arg(long, conflicts_with = "thread")]
    pub app: Option<String>,
    /// Only threads of this graph
    #[arg(long, requires = "app")]
    pub graph: Option<String>,
    /// Show the changes without applying them
    #[arg(long)]
    pub dry_run: bool,
    /// Drop values of channels that the new graph does not have
    #[arg(long)]
    pub drop: bool,
    /// Set a channel; JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "CHANNEL=JSON", allow_hyphen_values = true)]
    pub set: Vec<String>,
}

/// Arguments of `thread export`.
#[derive(Clone, Debug, Args)]
pub struct ThreadExportArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Leave out the code; `replay` then needs the app
    #[arg(long)]
    pub no_code: bool,
    /// Leave out the blobs of the thread
    #[arg(long)]
    pub no_blobs: bool,
    /// Write the thread as a test for `wattle test`; leave out the code, the metadata and the
    /// callers of requests
    #[arg(long)]
    pub as_test: bool,
}

/// Arguments of `thread copy`.
#[derive(Clone, Debug, Args)]
pub struct ThreadCopyArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Id of the copy [default: generated]
    #[arg(value_name = "COPY")]
    pub to: Option<String>,
}

/// Arguments of `thread prune`.
#[derive(Clone, Debug, Args)]
pub struct ThreadPruneArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Part of the thread to delete
    #[arg(long, value_name = "STRATEGY", default_value = "keep-latest")]
    pub strategy: StrategyArg,
}

/// The part of a thread that a prune deletes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StrategyArg {
    /// Delete all checkpoints except the newest of the thread and of each subgraph
    KeepLatest,
    /// Delete the whole thread
    Delete,
}
