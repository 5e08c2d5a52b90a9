//! The tool `parseDateExpression`: from what a date means to a timestamp.
//!
//! A model says what a person meant, such as "one day before today"; the arithmetic is done here,
//! by the host's clock and the calendar of a zone.
//!
//! # Layout
//!
//! * `expression`: what a model may say, and what is wrong with it.
//! * `calendar`: days before and after a day.
//! * `resolve`: the instant that an expression stands for.
//! * `parse`: the tool, which answers even what it does not understand.

mod calendar;
mod expression;
mod parse;
mod resolve;

wattle_plugin::export! { tools: [parse::parse_date_expression] }
