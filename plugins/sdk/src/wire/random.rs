//! Calls of `random`.

pub(crate) use crate::bindings::imports::wattle::plugin::random::{bytes, u64};
