//! Arguments of time travel: `thread state|history|edit|fork`.

use clap::Args;

/// Arguments of `thread state`.
#[derive(Clone, Debug, Args)]
pub struct ThreadStateArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// One of its checkpoints, as `thread history` lists them [default: where it stands]
    #[arg(long, value_name = "NUMBER")]
    pub checkpoint: Option<u64>,
    /// Of a subgraph
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// Arguments of `thread history`.
#[derive(Clone, Debug, Args)]
pub struct ThreadHistoryArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// Only older than this checkpoint
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Only where a fact is this: `source`, `step`, `run`, or a key of the metadata
    #[arg(long = "filter", value_name = "KEY=JSON")]
    pub filters: Vec<String>,
    /// Of a subgraph
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// Arguments of `thread edit`.
#[derive(Clone, Debug, Args)]
pub struct ThreadEditArgs {
    /// Id of the thread; made if it is not there and `--app` is given
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Write to a channel, through its reducer; JSON, `@file`, or `-` for stdin
    #[arg(long, value_name = "CHANNEL=JSON")]
    pub set: Vec<String>,
    /// Give a channel another value, past its reducer
    #[arg(long, value_name = "CHANNEL=JSON")]
    pub overwrite: Vec<String>,
    /// As which node: its edges lead on; `END`, `__input__` or `__copy__` [default: the only one
    /// that made the checkpoint]
    #[arg(long = "as", value_name = "NODE")]
    pub as_node: Option<String>,
    /// Edit this checkpoint, which forks [default: where the thread stands]
    #[arg(long, value_name = "NUMBER")]
    pub checkpoint: Option<u64>,
    /// Edit a subgraph, where it stands [default: the thread's own graph]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// App of a new thread, or app and graph as `app/graph`
    #[arg(long, value_name = "APP[/GRAPH]")]
    pub app: Option<String>,
    /// Many edits in place of one: the `supersteps` of the HTTP API as JSON, `@file`, or `-`
    #[arg(long, value_name = "JSON", conflicts_with_all = ["set", "overwrite", "as_node"])]
    pub supersteps: Option<String>,
}

/// Arguments of `thread fork`.
#[derive(Clone, Debug, Args)]
pub struct ThreadForkArgs {
    /// Id of the thread
    #[arg(value_name = "THREAD")]
    pub thread: String,
    /// Go on from this checkpoint
    #[arg(long, value_name = "NUMBER", required_unless_present = "call", conflicts_with = "call")]
    pub checkpoint: Option<u64>,
    /// Channel values on top of its state: JSON, `@file`, or `-` for stdin
    #[arg(long, short, value_name = "JSON", allow_hyphen_values = true, requires = "checkpoint")]
    pub input: Option<String>,
    /// Go on from this host call with another answer: sequence number of its `called` event, or
    /// `<task>/<number>`
    #[arg(long, value_name = "CALL")]
    pub call: Option<String>,
    /// The answer of the call: JSON, `@file`, or `-` for stdin
    #[arg(
        long,
        short,
        value_name = "JSON",
        allow_hyphen_values = true,
        requires = "call",
        conflicts_with = "fail"
    )]
    pub answer: Option<String>,
    /// Let the call fail, with this message
    #[arg(long, value_name = "MESSAGE", requires = "call")]
    pub fail: Option<String>,
    /// Go on in a copy of the thread, with an id of its own unless one is given
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    pub copy: Option<Option<String>>,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}
