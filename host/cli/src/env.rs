//! Environment variables, which tests replace.

use std::sync::Arc;

/// A function that reads an environment variable.
pub type ReadEnv = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Returns the environment variables of the process.
#[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
pub fn environment() -> ReadEnv {
    Arc::new(|name| std::env::var(name).ok())
}
