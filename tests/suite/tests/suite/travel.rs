//! The travel application through its endpoints: the agent of the plugin `std`, the application's
//! tools, the real server. Tests bear the numbers of the requirements (S3-..).

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
