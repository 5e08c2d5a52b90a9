//! Log messages for the operator. The host adds the plugin and the task to each message.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::log::{self, Level};
//! use wattle_plugin::testing::FakeHost;
//!
//! let host = FakeHost::new();
//! host.run(|| {
//!     log::info!("stored {} rows", 3);
//!     log::write(Level::Warn, "slow query", &[("ms", json!(1200))]);
//! });
//! assert_eq!(host.logged()[0].message, "stored 3 rows");
//! ```

use serde_json::Value;

use crate::host;
pub use crate::{
    __log_debug as debug, __log_error as error, __log_info as info, __log_trace as trace,
    __log_warn as warn,
};

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The finest level: individual steps.
    Trace,
    /// Details for the author of the plugin.
    Debug,
    /// Normal operation.
    Info,
    /// A possible problem.
    Warn,
    /// An error.
    Error,
}

/// Writes a message with structured fields. The host truncates a message that has more than 64 KiB
/// with its fields, and drops the messages of a task or a handler after the first 10,000, or after
/// 8 MiB.
pub fn write(level: Level, message: &str, fields: &[(&str, Value)]) {
    host::log::write(level, message, fields);
}

/// Writes a message of level `trace`, with the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_trace {
    ($($message:tt)*) => {
        $crate::log::write($crate::log::Level::Trace, &::std::format!($($message)*), &[])
    };
}

/// Writes a message of level `debug`, with the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($message:tt)*) => {
        $crate::log::write($crate::log::Level::Debug, &::std::format!($($message)*), &[])
    };
}

/// Writes a message of level `info`, with the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($message:tt)*) => {
        $crate::log::write($crate::log::Level::Info, &::std::format!($($message)*), &[])
    };
}

/// Writes a message of level `warn`, with the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($message:tt)*) => {
        $crate::log::write($crate::log::Level::Warn, &::std::format!($($message)*), &[])
    };
}

/// Writes a message of level `error`, with the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($message:tt)*) => {
        $crate::log::write($crate::log::Level::Error, &::std::format!($($message)*), &[])
    };
}
