//! Tests of the command line, and of whole servers in the process of the test: native API, app
//! routes, guards and reloads.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod access;
mod ag_ui;
mod api;
mod backup;
mod binary;
mod blobs;
mod build;
mod compile;
mod control;
mod costs;
mod crons;
mod database_wait;
mod eval;
mod exports;
mod fixture;
mod grants;
mod graphs;
mod guards;
mod help;
mod hostile_text;
mod hosts;
mod install;
mod interrupts;
mod keys;
mod lists;
mod loading;
mod migrate;
mod migrations;
mod native_sandbox;
mod new;
mod operations;
mod plugins;
mod principal;
mod projections;
mod queue;
mod queued_runs;
mod reload;
mod restart;
mod routes;
mod run_list;
mod statistics;
mod stop;
mod store_time;
mod streams;
mod studio;
mod tenants;
mod time_travel;
mod webhooks;
