//! New apps, and the SDKs with which their components are built.

mod embedded;
pub mod files;
pub mod language;
pub mod sdk;
