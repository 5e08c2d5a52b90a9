//! What the integration tests share: plugins in plain Rust, scripted ports, and a world that puts
//! them together around a real engine and a real store.
//!
//! # Layout
//!
//! * [`native`]: a plugin whose nodes are closures.
//! * [`scripted`]: model, HTTP and SQL ports that answer from a script and count calls.
//! * [`world`]: an engine with all of it, which can be killed and started again.
//! * [`guests`]: the WebAssembly guests that `cargo xtask guests` builds.
//! * [`place`]: a folder with a configuration whose services are a stand-in.
//! * [`server`]: a whole server in the process of the test, with real components.
//! * [`asset`]: the asset application's endpoints and tables, as a client sees them.
//! * [`desk`]: an agent with the tools of test guests, as an app of loose plugins.
//! * [`expense`]: the expense application as its page uses it.
//! * [`nl2sql`]: the data question application as its page uses it.
//! * [`reasoning`]: the reasoning application as its page uses it.
//! * [`travel`]: the travel application as its page uses it.
//! * [`scene`]: the real binary with its services, to be killed and started again.
//! * [`binary`]: the real `wattle` binary as a child process.
//! * [`browser`]: a real browser, for pages.
//! * [`answer`]: what a server answers, and its event streams.
//! * [`mortal`]: an engine of its own process that dies at a write.
//! * [`effects`]: HTTP that counts effects, and can stop on either side of one.
//! * [`attack`]: what guests, clients and services try on a running host.
//! * [`load`]: many streams and runs at once, and whether an event was lost.
//! * [`before`]: a data folder from before types and fields got other names.

pub mod answer;
pub mod asset;
pub mod attack;
pub mod before;
pub mod binary;
pub mod browser;
pub mod desk;
pub mod effects;
pub mod expense;
pub mod guests;
pub mod load;
pub mod lost_put;
pub mod mortal;
pub mod native;
pub mod nl2sql;
pub mod place;
pub mod reasoning;
pub mod scene;
pub mod scripted;
pub mod server;
pub mod travel;
pub mod world;
