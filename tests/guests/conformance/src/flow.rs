//! Nodes that choose what runs next, and a reducer.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, json, node, reducer,
};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Numbers {
    /// The numbers.
    numbers: Vec<i64>,
}

/// Sends a task for each number.
#[node]
pub(crate) fn spread(_context: &Context, input: Numbers) -> Result<Outcome<()>, Failure> {
    let send =
        |outcome: Outcome<()>, number: &i64| outcome.send("square", json!({ "number": number }));
    Ok(input.numbers.iter().fold(Outcome::nothing(), send))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Number {
    /// The number.
    number: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Squared {
    /// The square.
    squares: Vec<i64>,
}

/// Squares a number.
#[node]
pub(crate) fn square(_context: &Context, input: Number) -> Result<Squared, Failure> {
    Ok(Squared { squares: vec![input.number * input.number] })
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Squares {
    /// The squares.
    squares: Vec<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Sum {
    /// Their sum.
    squares: Vec<i64>,
}

/// Replaces the squares by their sum and ends.
#[node]
pub(crate) fn total(_context: &Context, input: Squares) -> Result<Outcome<Sum>, Failure> {
    let squares = vec![input.squares.iter().sum()];
    Ok(Outcome::new(Sum { squares }).overwrite("squares").goto("END"))
}

/// Keeps the larger number.
#[reducer]
pub(crate) fn max(current: Option<i64>, updates: Vec<i64>) -> Result<i64, Failure> {
    let larger = updates.into_iter().chain(current).max();
    larger.ok_or_else(|| Failure::internal("there is nothing to reduce"))
}
