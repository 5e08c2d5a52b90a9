//! Run options of `run` and `thread resume`.

use clap::{Args, ValueEnum};

/// Run options, which override the settings of the graph.
#[derive(Clone, Debug, Default, Args)]
pub struct RunOptionArgs {
    /// Durability of the run [default: commit]
    #[arg(long, value_name = "MODE")]
    pub durability: Option<DurabilityArg>,
    /// Maximum number of supersteps
    #[arg(long, value_name = "STEPS")]
    pub recursion_limit: Option<u32>,
    /// Maximum number of concurrent tasks of a superstep
    #[arg(long, value_name = "TASKS")]
    pub max_concurrency: Option<u32>,
    /// Stop before these nodes; `*` for all
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub interrupt_before: Vec<String>,
    /// Stop after these nodes; `*` for all
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub interrupt_after: Vec<String>,
}

/// The events that wait until data is durable on the disk.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityArg {
    /// External effects wait until the events that led to them are durable
    Commit,
    /// As `commit`, and every superstep waits for its checkpoint
    Sync,
    /// Only the end of the run waits for the disk
    Async,
    /// As `commit`, and only the last checkpoint of the run is persisted
    Exit,
}
