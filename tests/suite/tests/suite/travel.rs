//! Tests of the travel application through its endpoints, with the agent of the plugin `std`, the
//! tools of the application, and the real server. Test names contain the numbers of the
//! requirements (S3-..).

mod attempts;
mod chat;
mod crash;
mod cut;
mod edits;
mod ending;
mod example;
mod guide;
mod hostile;
mod model;
mod page;
mod pictures;
mod places;
mod postgres;
mod prompts;
mod sessions;
mod turns;
mod use_chat;
mod videos;
