//! Calls of `settings`.

pub(crate) use crate::bindings::imports::wattle::plugin::settings::{all, get};
