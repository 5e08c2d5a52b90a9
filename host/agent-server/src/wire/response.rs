//! JSON bodies of responses: threads, runs, states and assistants.

mod assistant;
mod cron;
mod interrupt;
mod item;
mod outcome;
mod run;
mod state;
mod thread;

pub use self::assistant::Assistant;
pub use self::cron::Cron;
pub use self::item::{FoundItem, Item};
pub use self::outcome::run_values;
pub use self::run::{Run, RunStatus};
pub use self::state::{Task, ThreadState};
pub use self::thread::{Thread, ThreadStatus, Ttl, TtlStrategy};

#[cfg(test)]
mod tests;
