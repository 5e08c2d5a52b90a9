//! Instruments expressions to count their steps.
//!
//! The interpreter itself has no budget. [`metered`] wraps each operand whose size determines the
//! time of an operation into a call of a function of [`super::meter`]: ranges of loops, operands
//! that are compared or copied, arguments of functions. The length of the expression bounds the
//! time of all other operations. A loop counts all of its iterations when it starts: its body can
//! swallow the error for an exceeded limit, and the remaining iterations are then already counted.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::common::types::{CelBool, CelInt};
use cel::parser::Expression;

use super::meter::{LOOP, METER, SAME, SIZE, USE};

/// The function that returns the number of items or characters.
const SIZE_FUNCTION: &str = "size";

/// Operators that only evaluate their operands, so that the operators themselves take no steps.
const FREE: [&str; 6] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::NEGATE,
    operators::NOT_STRICTLY_FALSE,
];

/// Returns the expression with calls that count its steps.
pub(super) fn metered(expression: &Expression) -> Expression {
    expr(expression, &[])
}

/// Instruments an expression. `accumulators` are the accumulator variables of the enclosing loops.
/// A use of an accumulator as the first operand of `+` is not wrapped, because the interpreter
/// appends in place only if that operand is the plain variable.
fn expr(expression: &Expression, accumulators: &[&str]) -> Expression {
    let inner = |inner: &Expression| expr(inner, accumulators);
    let counted = |inner: &Expression| used(USE, expr(inner, accumulators), accumulators);
    let made = match &expression.expr {
        Expr::Call(call) => return rebuilt(expression, of_call(call, accumulators)),
        Expr::Select(select) => {
            let mut select = select.clone();
            select.operand = Box::new(inner(&select.operand));
            Expr::Select(select)
        }
        Expr::List(list) => {
            let mut list = list.clone();
            list.elements = list.elements.iter().map(counted).collect();
            Expr::List(list)
        }
        Expr::Map(map) => {
            let mut map = map.clone();
            for entry in &mut map.entries {
                match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        entry.key = counted(&entry.key);
                        entry.value = counted(&entry.value);
                    }
                    EntryExpr::StructField(field) => field.value = counted(&field.value),
                }
            }
            Expr::Map(map)
        }
        Expr::Struct(made) => {
            let mut made = made.clone();
            for entry in &mut made.entries {
                match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => entry.value = counted(&entry.value),
                    EntryExpr::StructField(field) => field.value = counted(&field.value),
                }
            }
            Expr::Struct(made)
        }
        Expr::Comprehension(all) => Expr::Comprehension(Box::new(of_loop(all, accumulators))),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => expression.expr.clone(),
    };
    rebuilt(expression, made)
}

fn of_call(call: &CallExpr, accumulators: &[&str]) -> Expr {
    let inner = |inner: &Expression| expr(inner, accumulators);
    let name = call.func_name.as_str();
    let counting = if name == SIZE_FUNCTION { SIZE } else { USE };
    let counted = |inner: &Expression| used(counting, expr(inner, accumulators), accumulators);
    let appends = name == operators::ADD
        && call.args.first().is_some_and(|first| is_accumulator(first, accumulators));
    match (name, call.args.as_slice()) {
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => {
            let wanted = CelBool::from(name == operators::EQUALS);
            let wanted = plain(Expr::Literal(LiteralValue::Boolean(wanted)));
            function(SAME, vec![inner(one), inner(other), wanted])
        }
        // Only the key is copied. The indexed value is borrowed.
        (operators::INDEX, [container, key]) if is_cheap_key(key) => {
            remade(call, None, vec![inner(container), inner(key)])
        }
        _ if appends || FREE.contains(&name) => {
            remade(call, None, call.args.iter().map(inner).collect())
        }
        (_, arguments) => {
            let target = call.target.as_ref().map(|target| Box::new(counted(target)));
            remade(call, target, arguments.iter().map(counted).collect())
        }
    }
}

/// Returns true for a key with which a failed lookup does not copy the container.
fn is_cheap_key(key: &Expression) -> bool {
    match &key.expr {
        Expr::Literal(LiteralValue::UInt(_) | LiteralValue::String(_)) => true,
        _ => is_integer(key),
    }
}

/// Returns true for an expression that yields an `int` or fails, such as `size(state.list) - 1`.
fn is_integer(expression: &Expression) -> bool {
    match &expression.expr {
        Expr::Literal(LiteralValue::Int(_)) => true,
        Expr::Call(call) => match call.func_name.as_str() {
            SIZE_FUNCTION => true,
            operators::ADD | operators::SUBSTRACT => call.args.iter().all(is_integer),
            _ => false,
        },
        _ => false,
    }
}

fn of_loop(all: &ComprehensionExpr, outer: &[&str]) -> ComprehensionExpr {
    let accumulators: Vec<&str> = outer.iter().copied().chain([all.accu_var.as_str()]).collect();
    let body = |part: &Expression| expr(part, &accumulators);
    let parts = nodes(&all.loop_cond) + nodes(&all.loop_step);
    let each = plain(Expr::Literal(LiteralValue::Int(CelInt::from(parts))));
    let range = expr(&all.iter_range, outer);
    ComprehensionExpr {
        iter_range: plain(function(LOOP, vec![range, each])),
        accu_init: expr(&all.accu_init, outer),
        loop_cond: body(&all.loop_cond),
        loop_step: body(&all.loop_step),
        result: body(&all.result),
        ..all.clone()
    }
}

/// Returns the number of nodes of an expression, which bounds the steps of one iteration of a loop
/// with the expression as its body.
fn nodes(expression: &Expression) -> i64 {
    let all = |parts: &[Expression]| parts.iter().map(nodes).sum::<i64>();
    1 + match &expression.expr {
        Expr::Call(call) => {
            call.target.as_ref().map_or(0, |target| nodes(target)) + all(&call.args)
        }
        Expr::Select(select) => nodes(&select.operand),
        Expr::List(list) => all(&list.elements),
        Expr::Map(map) => map.entries.iter().map(|entry| of_entry(&entry.expr)).sum(),
        Expr::Struct(made) => made.entries.iter().map(|entry| of_entry(&entry.expr)).sum(),
        Expr::Comprehension(all) => nodes(&all.iter_range) + nodes(&all.result),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

fn of_entry(entry: &EntryExpr) -> i64 {
    match entry {
        EntryExpr::StructField(field) => nodes(&field.value),
        EntryExpr::MapEntry(entry) => nodes(&entry.key) + nodes(&entry.value),
    }
}

/// Wraps an operand into a call of a counting function. Literals are not wrapped: the length of the
/// expression bounds their size.
fn used(counting: &str, expression: Expression, accumulators: &[&str]) -> Expression {
    match &expression.expr {
        Expr::Literal(_) => expression,
        _ if is_accumulator(&expression, accumulators) => expression,
        _ => plain(function(counting, vec![expression])),
    }
}

fn is_accumulator(expression: &Expression, accumulators: &[&str]) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if accumulators.contains(&name.as_str()))
}

/// Returns a call of a counting function.
fn function(name: &str, arguments: Vec<Expression>) -> Expr {
    let meter = plain(Expr::Ident(METER.to_owned()));
    let args = [meter].into_iter().chain(arguments).collect();
    Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args })
}

fn remade(call: &CallExpr, target: Option<Box<Expression>>, args: Vec<Expression>) -> Expr {
    Expr::Call(CallExpr { func_name: call.func_name.clone(), target, args })
}

fn plain(expr: Expr) -> Expression {
    Expression { id: 0, expr }
}

fn rebuilt(expression: &Expression, expr: Expr) -> Expression {
    Expression { id: expression.id, expr }
}
