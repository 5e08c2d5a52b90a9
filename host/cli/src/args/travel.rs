//! Arguments of time travel: `thread state|history|edit|fork`.

use clap::Args;

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
