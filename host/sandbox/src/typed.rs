//! Typed components: components without an interface of the contract, whose exported functions are
//! tools.
//!
//! # Layout
//!
//! * `wit_type`: types of values with a JSON form.
//! * `schema`: JSON Schema of types; `docs`: documentation of interfaces.
//! * `to_val` and `from_val`: JSON to values and back; `value_error`: errors with the path of a
//!   value.

pub(crate) mod docs;
pub(crate) mod from_val;
mod schema;
pub(crate) mod to_val;
pub(crate) mod value_error;
pub(crate) mod wit_type;
