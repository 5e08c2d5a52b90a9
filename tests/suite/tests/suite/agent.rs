//! The agent of the plugin `std` with the tools of the guests `wattle-guest-tools` and
//! `wattle-guest-shadow`: real components, the real server, a model that does what the user's
//! script says. Tests bear the numbers of the requirements
//! (S2-..) that they show.

mod approval;
mod cancel;
mod crash;
mod empty;
mod hostile;
mod rules;
mod turns;
mod version;
