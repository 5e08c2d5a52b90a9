//! A problem of the configuration.

use std::fmt;

/// A problem with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Key of the value, such as `server.listen`.
    pub key: String,
    /// Description of the problem.
    pub message: String,
    /// Suggested correction.
    pub hint: Option<String>,
}

impl ConfigProblem {
    /// Returns true if the problem is that of `key`, or of a value inside of it.
    pub(super) fn is_within(&self, key: &str) -> bool {
        let inner = self.key.strip_prefix(key);
        inner.is_some_and(|inner| inner.is_empty() || inner.starts_with(['.', '[']))
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}", self.message)?;
        } else {
            write!(f, "`{}`: {}", self.key, self.message)?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A problem with the place at which the value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedProblem {
    /// The file with the line, or the environment variable; `None` if the value was set nowhere.
    pub origin: Option<String>,
    /// The problem.
    pub problem: ConfigProblem,
}

impl fmt::Display for LocatedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, problem } = self;
        origin.iter().try_for_each(|origin| write!(f, "{origin}: "))?;
        problem.fmt(f)
    }
}
