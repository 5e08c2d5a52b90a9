//! Collects the channels and variables that an expression refers to.

use std::collections::BTreeSet;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::parser::Expression;

/// The names that an expression refers to.
#[derive(Default)]
pub(super) struct References {
    /// Channels, as `state.x` or `state["x"]`.
    pub channels: BTreeSet<String>,
    /// True if `state` is used in another way, so that the expression can read any channel.
    pub whole_state: bool,
    /// Variables other than `state`, in order of appearance.
    pub other_variables: Vec<String>,
}

/// Maximum nesting of loops (`all`, `exists`, `map`, `filter`). Each level multiplies the time of a
/// condition by the length of a list.
const LOOP_LIMIT: usize = 2;

/// Collects the names of an expression. Returns an error if its tree is deeper than the limit.
pub(super) fn collect(expression: &Expression, depth_limit: usize) -> Result<References, String> {
    let mut walk = ReferenceVisitor {
        names: References::default(),
        bound: Vec::new(),
        depth_left: depth_limit,
        loops_left: LOOP_LIMIT,
    };
    walk.expression(expression)?;
    Ok(walk.names)
}

struct ReferenceVisitor {
    names: References,
    /// Variables of the enclosing macros.
    bound: Vec<String>,
    depth_left: usize,
    loops_left: usize,
}

impl ReferenceVisitor {
    fn expression(&mut self, expression: &Expression) -> Result<(), String> {
        let deeper = self.depth_left.checked_sub(1);
        self.depth_left = deeper.ok_or_else(|| "the condition is nested too deeply".to_owned())?;
        let is_bound = |name: &str| self.bound.iter().any(|variable| variable == name);
        if let Some(channel) = channel_of(expression, &is_bound) {
            self.names.channels.insert(channel);
        } else {
            self.visit(&expression.expr)?;
        }
        self.depth_left += 1;
        Ok(())
    }

    fn visit(&mut self, expression: &Expr) -> Result<(), String> {
        match expression {
            Expr::Ident(name) => {
                ident(name, &self.bound, &mut self.names);
                Ok(())
            }
            Expr::Select(select) => self.expression(&select.operand),
            Expr::Call(call) => {
                call.target.iter().try_for_each(|target| self.expression(target))?;
                call.args.iter().try_for_each(|argument| self.expression(argument))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.expression(item)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(made) => made.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Result<(), String> {
        self.expression(&all.iter_range)?;
        self.expression(&all.accu_init)?;
        let before = self.bound.len();
        self.loops_left = self
            .loops_left
            .checked_sub(1)
            .ok_or_else(|| format!("more than {LOOP_LIMIT} loops are nested"))?;
        self.bound.extend([all.iter_var.clone(), all.accu_var.clone()]);
        self.bound.extend(all.iter_var2.clone());
        for part in [&all.loop_cond, &all.loop_step, &all.result] {
            self.expression(part)?;
        }
        self.bound.truncate(before);
        self.loops_left += 1;
        Ok(())
    }

    fn entry(&mut self, entry: &EntryExpr) -> Result<(), String> {
        match entry {
            EntryExpr::StructField(field) => self.expression(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key)?;
                self.expression(&entry.value)
            }
        }
    }
}

fn ident(name: &str, bound: &[String], names: &mut References) {
    /// Names of types, which conditions compare with `type(x)`.
    const TYPES: [&str; 10] =
        ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
    if bound.iter().any(|variable| variable == name) || TYPES.contains(&name) {
        return;
    }
    if name == "state" {
        names.whole_state = true;
    } else {
        names.other_variables.push(name.to_owned());
    }
}

/// Returns the channel that an expression names as `state.x` or `state["x"]`. `is_bound` returns
/// true for variables of the enclosing macros.
pub(super) fn channel_of(
    expression: &Expression,
    is_bound: &dyn Fn(&str) -> bool,
) -> Option<String> {
    match &expression.expr {
        Expr::Select(select) if is_state(&select.operand, is_bound) => Some(select.field.clone()),
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [operand, index] if is_state(operand, is_bound) => match &index.expr {
                Expr::Literal(LiteralValue::String(name)) => Some(name.inner().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if an expression is the variable `state`, and not a macro's variable of that name.
fn is_state(expression: &Expression, is_bound: &dyn Fn(&str) -> bool) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == "state" && !is_bound(name))
}
