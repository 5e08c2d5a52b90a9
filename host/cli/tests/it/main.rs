//! The command line, and whole servers in the process of the test: native API, app routes,
//! guards, reloading.

mod api;
mod binary;
mod fixture;
mod guards;
mod help;
mod native;
mod reload;
mod restart;
mod routes;
