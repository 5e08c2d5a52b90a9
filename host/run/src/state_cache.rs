//! A cache of the states of threads.
//!
//! A store keeps a list as a chain of deltas, so reading a checkpoint takes longer as its thread
//! grows. The cache has the channel values of the newest checkpoints that this host wrote or read.
//! A turn on a long thread therefore reads no chain.
//!
//! The cache never answers alone. Each read asks the store for the checkpoint without its values:
//!
//! * The store does not return a checkpoint that was deleted, or that is not durable yet.
//! * Metadata and events are those of the store. A checkpoint that another host wrote has an id
//!   that is not in the cache.
//! * Ids of checkpoints are never reused within one incarnation of a thread. Values with the id and
//!   the incarnation that the store returns are therefore the values of the checkpoint, unless
//!   their batch was refused and another host assigned the id. Only values whose batch became
//!   durable are used.

mod states;
