//! Crashes at every write, random graphs, and many concurrent threads and nodes.

mod every_write;
mod load;
mod random;
mod rivals;
