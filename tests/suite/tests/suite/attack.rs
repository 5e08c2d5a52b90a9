//! Attacks of guests, apps, services and clients on a running host. None of them stops the host or
//! the work of honest callers.
//!
//! Each test asserts a limit that counts work, and then what [`calm`] asserts: the host responds,
//! honest runs complete, the control plane works, and the host stops on request. The tests of
//! [`cases`] do so on hosts in processes of their own, while the attack continues, and assert that
//! the memory of the host stays within its bound.

mod blobs;
mod cache;
mod callers;
mod calm;
mod cases;
mod components;
mod conditions;
mod files;
#[cfg(target_os = "linux")]
mod full;
mod http2;
mod killed;
mod listeners;
mod poisoned;
mod schemas;
mod sends;
mod sockets;
mod tls;
