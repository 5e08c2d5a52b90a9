//! The host through its public interfaces: HTTP, files and the command line.

mod agents;
mod alone;
mod api;
mod app_dev;
mod app_tests;
mod bench;
mod cli;
mod control;
mod crash;
mod limits;
mod log;
mod memory;
mod messages;
mod nested;
mod node_calls;
mod older;
mod older_apps;
mod pages;
mod reload;
mod replay;
mod sandbox;
mod shared;
mod streams;
mod upgrade;
