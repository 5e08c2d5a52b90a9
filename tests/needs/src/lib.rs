//! What tests need of a machine beyond Rust, git and a C compiler, and how a test is left out.
//!
//! A test asks for a program and goes on with it. On a machine without the program it is left out,
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
//! With `WATTLE_REQUIRE=all` no test is left out: the conversion into [`LeftOut`] panics, and the
//! message says what is missing and which command installs it.
//!
//! [`need!`] is the only early return of a test. It takes a [`Missing`] or a [`LeftOut`], so a
//! function between the test and the program answers with `Result<_, LeftOut>` and uses `?`.
//!
//! # Layout
//!
//! * [`Program`]: the programs and where they are found
//! * [`clients`]: what `cargo xtask` installs and builds with them
//! * [`LeftOut`]: a test that was left out, and its record
//! * [`setting`]: reads a value from the environment, such as the number of trials
//!
//! This crate needs nothing but the standard library, since `xtask` is built before everything else.

pub mod clients;
mod left_out;
mod program;
mod setting;

pub use left_out::{LeftOut, Line, Missing, RECORD, REQUIRE, lines, note, requires_all};
pub use program::Program;
pub use setting::setting;

/// The value of a `Result`, or the end of the test: a program that is missing leaves it out.
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
