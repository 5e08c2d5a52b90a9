//! The languages that have an SDK.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A language with an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust, built by cargo
    Rust,
    /// TypeScript, built by Node.js with npm
    Typescript,
    /// Python 3.11 or newer
    Python,
    /// C, built by the compiler of Zig, which Python's package manager installs
    C,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "rust",
            Self::Typescript => "typescript",
            Self::Python => "python",
            Self::C => "c",
        })
    }
}
