//! What guests, apps, services and clients may try, on a running host: nothing of it stops the host
//! or what honest callers do beside it.
//!
//! Each test asserts a limit that counts work, and then what [`calm`] asserts: the host answers,
//! honest runs complete, the control plane works, and the host stops when it is asked to. [`cases`] do
//! so on hosts of their own processes, while the attack goes on.

mod blobs;
mod cache;
mod callers;
mod calm;
mod cases;
mod conditions;
mod files;
#[cfg(target_os = "linux")]
mod full;
mod http2;
mod listeners;
mod poisoned;
mod schemas;
mod sends;
mod sockets;
mod tls;
