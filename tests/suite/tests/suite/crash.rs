//! Crashes anywhere, graphs of any shape, and many of everything at once.

mod every_write;
mod load;
mod random;
mod rivals;
