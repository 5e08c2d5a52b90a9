//! Plugins that the toolchains of other languages build.

mod defaults;
