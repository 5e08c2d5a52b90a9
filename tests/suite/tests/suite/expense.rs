//! The expense application through its endpoints: the agent of the plugin `std`, the tools in their
//! own components, and the real server. Test names begin with the numbers of the requirements
//! (S2-..).

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
