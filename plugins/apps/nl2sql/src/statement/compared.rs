//! The values that a statement compares its columns with: `customers.city = '北京'`.
//!
//! Names are taken as written, without the scopes of `scope`: comparisons explain a statement and
//! permit nothing.

use sqlparser::ast::{BinaryOperator, Expr, Query, Value};

use crate::statement::visit::{Visitor, walk};

/// A value, and the column that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// The value as text, without quotes.
    pub(crate) value: String,
    /// The column as written, without quotes: `c.city` or `city`.
    pub(crate) column: String,
}

/// Returns all comparisons of a query, in order of appearance.
pub(super) fn comparisons(query: &Query) -> Vec<Comparison> {
    let mut visitor = ComparisonVisitor::default();
    walk(query, &mut visitor);
    visitor.found
}

#[derive(Default)]
struct ComparisonVisitor {
    found: Vec<Comparison>,
}

impl Visitor for ComparisonVisitor {
    fn pre_visit_expr(&mut self, expression: &Expr) {
        match expression {
            Expr::BinaryOp { left, op, right } if compares(op) => {
                self.note(left, [right.as_ref()]);
                self.note(right, [left.as_ref()]);
            }
            Expr::InList { expr, list, .. } => self.note(expr, list),
            Expr::Between { expr, low, high, .. } => {
                self.note(expr, [low.as_ref(), high.as_ref()]);
            }
            Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
                self.note(expr, [pattern.as_ref()]);
            }
            _ => {}
        }
    }
}

impl ComparisonVisitor {
    fn note<'a>(&mut self, side: &Expr, values: impl IntoIterator<Item = &'a Expr>) {
        let Some(column) = column(side) else { return };
        let values = values.into_iter().filter_map(literal);
        self.found.extend(values.map(|value| Comparison { value, column: column.clone() }));
    }
}

fn compares(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
    )
}

/// Returns the only column of an expression, also from inside of a function: `LOWER(c.city)`.
fn column(expression: &Expr) -> Option<String> {
    let mut columns = Columns::default();
    walk(expression, &mut columns);
    columns.found.dedup();
    match columns.found.as_slice() {
        [column] => Some(column.clone()),
        _ => None,
    }
}

#[derive(Default)]
struct Columns {
    found: Vec<String>,
}

impl Visitor for Columns {
    fn pre_visit_expr(&mut self, expression: &Expr) {
        match expression {
            Expr::Identifier(name) => self.found.push(name.value.clone()),
            Expr::CompoundIdentifier(parts) => {
                let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                self.found.push(names.join("."));
            }
            _ => {}
        }
    }
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Nested(inner) => literal(inner),
        Expr::Cast { expr, .. } => literal(expr),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number.clone()),
            other => other.clone().into_string(),
        },
        _ => None,
    }
}
