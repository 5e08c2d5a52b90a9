//! The host through its public doors: HTTP, files, command line.

mod api;
mod cli;
mod crash;
mod limits;
mod reload;
mod sandbox;
mod streams;
