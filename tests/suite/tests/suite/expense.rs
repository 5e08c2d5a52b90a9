//! The expense application through its endpoints: the agent of the plugin `std`, the tools in
//! their own components, the real server. Tests bear the numbers of the requirements (S2-..).

mod api;
mod bookings;
mod crash;
mod dates;
mod example;
mod page;
mod prompt;
mod save;
mod talk;
mod thread;
mod token;
