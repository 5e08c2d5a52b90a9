//! The programs that tests need besides Rust, git and a C compiler, and how a test is left out.
//!
//! A test asks for a program and uses it. On a machine without the program the test is left out,
//! and `cargo xtask test` counts it:
//!
//! ```
//! use wattle_needs::{Program, need};
//!
//! fn a_page_is_shown() {
//!     let browser = need!(Program::Chromium.find());
//!     // ...
//!     # drop(browser);
//! }
//! ```
//!
//! With `WATTLE_REQUIRE=all` no test is left out: the conversion into [`LeftOut`] panics with the
//! missing program and the command that installs it.
//!
//! [`need!`] is the only early return of a test. It accepts a [`Missing`] or a [`LeftOut`], so a
//! function between the test and the program returns `Result<_, LeftOut>` and uses `?`.
//!
//! # Layout
//!
//! * [`Program`]: the programs and their locations
//! * [`clients`]: clients, pages and guests that `cargo xtask` installs and builds
//! * [`LeftOut`]: a test that was left out, and the record
//! * [`setting`]: reads a value from the environment, such as the number of trials
//!
//! This crate uses only the standard library, because `xtask` depends on it and is built first.

pub mod clients;
mod left_out;
mod program;
mod setting;

pub use left_out::{LeftOut, Line, Missing, RECORD, REQUIRE, lines, note, requires_all};
pub use program::Program;
pub use setting::setting;

/// Unwraps a `Result`, or ends the test: a missing program leaves the test out.
///
/// The error is a [`Missing`] or a [`LeftOut`].
#[macro_export]
macro_rules! need {
    ($found:expr) => {
        match $found {
            Ok(found) => found,
            Err(missing) => {
                let _: $crate::LeftOut = missing.into();
                return;
            }
        }
    };
}
