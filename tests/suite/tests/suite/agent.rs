//! The agent of the plugin `std` with the tools of the guests `wattle-guest-tools` and
//! `wattle-guest-shadow`: real components, the real server, and a model that follows the script of
//! the user. Test names begin with the numbers of the requirements (S2-..) that they verify.

mod approval;
mod cancel;
mod crash;
mod empty;
mod hostile;
mod requests;
mod rules;
mod turns;
mod version;
