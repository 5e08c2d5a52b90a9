//! Tests of the reasoning application through its endpoints, with its real component and services
//! that speak their real protocols. Test names contain the numbers of the requirements (S1-..).

mod clarify;
mod decide;
mod example;
mod execute;
mod fault;
mod flow;
mod observe;
mod page;
mod postgres;
mod prompts;
mod redact;
mod restart;
mod session;
mod tenant;
mod trace;
