//! Tests of the data question application through its endpoints, with its real component, on the
//! sample database. Test names contain the numbers of the requirements (S4-..) and scenarios (B..)
//! that they cover.

mod answer;
mod chat;
mod config;
pub(crate) mod imprecise;
mod logs;
mod page;
mod postgres;
mod prompts;
mod quotes;
mod retry;
mod safety;
mod sessions;
mod stream;
