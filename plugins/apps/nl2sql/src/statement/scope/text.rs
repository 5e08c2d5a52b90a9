//! Names in double quotes that may be texts although a projection has an alias of the same name.
//! SQLite uses the alias, whatever was meant.
//!
//! `status = "completed"` compares with a text, even if there is a `SUM(...) AS completed`. `"2024"
//! <> "2023"` compares two metrics if the projection defines both, and `"orders" > 5` compares with
//! no text at all.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    UnaryOperator, Value,
};

use crate::statement::scope::relation::{Relation, lower};
use crate::statement::scope::{ScopeVisitor, expr_address};

/// Functions that return numbers.
const NUMBERS: &str = "abs avg ceil ceiling count dense_rank floor instr julianday length ntile \
    percent_rank power rank round row_number sum total";

/// Functions that return one of their arguments.
const CHOOSING: &[&str] = &["coalesce", "ifnull", "max", "min", "nullif"];

/// Parts of the names of numeric types.
const NUMERIC: &[&str] = &["INT", "NUM", "DEC", "REAL", "DOUB", "FLOA"];

/// The kind of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    /// The order of two values. Texts are compared in this way if they are dates.
    Order,
}

impl ScopeVisitor<'_> {
    /// Records the names in a comparison that may be texts.
    pub(super) fn note_texts(&mut self, expression: &Expr) {
        match expression {
            Expr::BinaryOp { left, op, right } => {
                if let Some(comparison) = comparison(op) {
                    self.note_text(left, right, comparison);
                    self.note_text(right, left, comparison);
                }
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.note_text(left, right, Comparison::Equal);
                self.note_text(right, left, Comparison::Equal);
            }
            Expr::InList { expr, list, .. } => {
                for value in list {
                    self.note_text(value, expr, Comparison::Equal);
                }
            }
            Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
                self.note_text(pattern, expr, Comparison::Equal);
            }
            Expr::Between { expr, low, high, .. } => {
                self.note_text(low, expr, Comparison::Order);
                self.note_text(high, expr, Comparison::Order);
            }
            Expr::Case { operand: Some(operand), conditions, .. } => {
                for when in conditions {
                    self.note_text(&when.condition, operand, Comparison::Equal);
                }
            }
            _ => {}
        }
    }

    fn note_text(&mut self, side: &Expr, other: &Expr, comparison: Comparison) {
        let (side, other) = (inner(side), inner(other));
        if let (Expr::Tuple(sides), Expr::Tuple(others)) = (side, other) {
            for (side, other) in sides.iter().zip(others) {
                self.note_text(side, other, comparison);
            }
        }
        if let Expr::Identifier(name) = side
            && self.may_be_text(name, other, comparison)
        {
            self.values.insert(expr_address(side));
        }
    }

    /// Returns true if a name may be a text, by what it is compared with.
    fn may_be_text(&self, name: &Ident, other: &Expr, comparison: Comparison) -> bool {
        let may_be = comparison == Comparison::Equal || is_dated(name);
        match other {
            Expr::Value(_) | Expr::UnaryOp { .. } | Expr::Subquery(_) => false,
            other if self.holds_number(other) => false,
            Expr::Identifier(beside) => match self.given(beside) {
                Some(true) => false,
                Some(false) if beside.quote_style.is_some() => is_dated(name) && !is_dated(beside),
                _ => may_be,
            },
            _ => may_be,
        }
    }

    /// Returns true if a value is certainly a number, by itself or by the type of its field.
    fn holds_number(&self, expression: &Expr) -> bool {
        let kind = match expression {
            Expr::Identifier(name) => self.around().find_map(|it| self.kind(it, name)),
            Expr::CompoundIdentifier(parts) => {
                let [.., relation, name] = parts.as_slice() else { return false };
                let wanted = lower(relation);
                let relation = self.around().find(|it| it.name == wanted);
                relation.and_then(|it| self.kind(it, name))
            }
            other => return is_number(other),
        };
        kind.is_some_and(|kind| NUMERIC.iter().any(|part| kind.contains(*part)))
    }

    /// Returns the type of a field, in upper case.
    fn kind(&self, relation: &Relation, name: &Ident) -> Option<String> {
        let table = self.knowledge.table(relation.table.as_ref()?)?;
        Some(table.column(&name.value)?.kind.to_ascii_uppercase())
    }

    /// Returns true if an output column with this name is certainly a number; `None` if the name
    /// may be a field, or the column is not known at the current position.
    fn given(&self, name: &Ident) -> Option<bool> {
        let name = lower(name);
        let is_field = |it: &Relation| it.may_have(&name);
        if self.around().any(is_field) { None } else { self.output(&name) }
    }
}

fn comparison(operator: &BinaryOperator) -> Option<Comparison> {
    match operator {
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Glob
        | BinaryOperator::Match
        | BinaryOperator::Regexp => Some(Comparison::Equal),
        BinaryOperator::Gt | BinaryOperator::GtEq | BinaryOperator::Lt | BinaryOperator::LtEq => {
            Some(Comparison::Order)
        }
        _ => None,
    }
}

/// Removes what does not change the name of an expression.
fn inner(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(nested) | Expr::Collate { expr: nested, .. } => inner(nested),
        other => other,
    }
}

/// Returns true if a name looks like a date or a part of one: `2024-01`.
fn is_dated(name: &Ident) -> bool {
    name.value.starts_with(|it: char| it.is_ascii_digit())
}

/// Returns true if a value is certainly a number.
pub(super) fn is_number(expression: &Expr) -> bool {
    match inner(expression) {
        Expr::Value(value) => matches!(value.value, Value::Number(..) | Value::Null),
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
        ),
        Expr::Case { conditions, else_result, .. } => {
            let results = conditions.iter().map(|when| &when.result);
            results.chain(else_result.as_deref()).all(is_number)
        }
        Expr::Function(function) => gives_number(function),
        Expr::UnaryOp { op: UnaryOperator::Minus, .. } | Expr::Ceil { .. } | Expr::Floor { .. } => {
            true
        }
        _ => false,
    }
}

fn gives_number(function: &Function) -> bool {
    let name = function.name.0.last().and_then(|part| part.as_ident()).map(lower);
    let name = name.unwrap_or_default();
    let FunctionArguments::List(list) = &function.args else { return false };
    let mut values = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    NUMBERS.split(' ').any(|it| it == name)
        || CHOOSING.contains(&name.as_str()) && values.any(is_number)
}
