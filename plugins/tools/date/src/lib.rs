//! The tool `parseDateExpression`, which converts the meaning of a date to a timestamp.
//!
//! A model passes the meaning, such as "one day before today". The tool calculates the timestamp
//! with the host's clock and the calendar of a time zone.
//!
//! # Layout
//!
//! * `expression`: date expressions of models, and their errors.
//! * `resolve`: conversion of expressions to instants.
//! * `parse`: the tool, which also returns a timestamp for an invalid expression.

mod expression;
mod parse;
mod resolve;

wattle_plugin::export! { tools: [parse::parse_date_expression] }
