//! Shared parts of the integration tests: plugins in plain Rust, scripted ports, and a world that
//! combines them with a real engine and a real store.
//!
//! # Layout
//!
//! * [`native`]: a plugin whose nodes are closures.
//! * [`scripted`]: model, HTTP and SQL ports with scripted results, which count calls.
//! * [`world`]: an engine with these parts, which can be killed and started again.
//! * [`guests`]: the WebAssembly guests that `cargo xtask guests` builds.
//! * [`misdeeds`]: misdeeds of guests in every language, and how the host ends them.
//! * [`workspace`]: a temporary folder with a configuration whose services are a stand-in.
//! * [`server`]: a whole server in the process of the test, with real components.
//! * [`asset`]: the asset application's endpoints and tables, as a client sees them.
//! * [`desk`]: an agent with the tools of test guests, as an app of standalone plugins.
//! * [`expense`]: the expense application through the endpoints of its page.
//! * [`nl2sql`]: the data question application through the endpoints of its page.
//! * [`reasoning`]: the reasoning application through the endpoints of its page.
//! * [`travel`]: the travel application through the endpoints of its page.
//! * [`scene`]: the real binary with its services, to be killed and started again.
//! * [`binary`]: the real `wattle` binary as a child process.
//! * [`browser`]: a real browser, for pages.
//! * [`answer`]: HTTP responses.
//! * [`event_stream`]: server-sent events.
//! * [`described`]: checks that applications respond as their `openapi.json` describes.
//! * [`mortal`]: engines in processes of their own, one of which dies at a write.
//! * [`lost_put`]: a long-term memory that loses the result of a put.
//! * [`effects`]: an HTTP port that counts effects and can stop before or after one.
//! * [`attack`]: attacks of guests, clients and services on a running host.
//! * [`load`]: many concurrent streams and runs, and a check that no event was lost.
//! * [`stored_threads`]: threads that are written into a store before its host starts.
//! * [`before`]: data folders that hosts wrote before a change of what they store.

pub mod answer;
pub mod asset;
pub mod attack;
pub mod before;
pub mod binary;
pub mod browser;
pub mod described;
pub mod desk;
pub mod effects;
pub mod event_stream;
pub mod expense;
pub mod guests;
pub mod load;
pub mod lost_put;
pub mod misdeeds;
pub mod mortal;
pub mod native;
pub mod nl2sql;
pub mod reasoning;
pub mod scene;
pub mod scripted;
pub mod server;
pub mod stored_threads;
pub mod travel;
pub mod workspace;
pub mod world;
