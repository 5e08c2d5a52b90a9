//! Finds operations that can never succeed.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::parser::Expression;

use super::Kinds;
use super::operation::{FUNCTIONS, Form, Function, ITERABLE, LOOPS, binary, unary};
use crate::expr::{parsed, references};
use crate::suggest;

/// Returns descriptions of the operations of a condition that never succeed, and of a result that
/// is never a boolean. `channel` returns the kinds of the values of a channel. Returns an empty
/// list for a condition that does not parse.
pub(crate) fn problems(condition: &str, channel: &dyn Fn(&str) -> Kinds) -> Vec<String> {
    let Ok((expression, _)) = parsed(condition) else { return Vec::new() };
    let mut checker = KindChecker { channel, variables: Vec::new(), problems: Vec::new() };
    let result = checker.expression(&expression);
    if !result.meets(Kinds::BOOL) {
        checker.problems.push(format!("the result is {result}, not bool"));
    }
    checker.problems
}

/// Determines the kinds of expressions, and collects operations that never succeed.
struct KindChecker<'a> {
    channel: &'a dyn Fn(&str) -> Kinds,
    /// Variables of the enclosing macros.
    variables: Vec<(String, Kinds)>,
    problems: Vec<String>,
}

impl KindChecker<'_> {
    /// Returns the kinds that an expression can have. Returns [`Kinds::ANY`] after a problem.
    fn expression(&mut self, expression: &Expression) -> Kinds {
        match &expression.expr {
            Expr::Select(select) if select.test => {
                self.field(&select.operand, &select.field);
                Kinds::BOOL
            }
            expr => {
                let channel = references::channel_of(expression, &|name| self.is_bound(name));
                match channel {
                    Some(name) => (self.channel)(&name),
                    None => self.other(expr),
                }
            }
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.variables.iter().any(|(variable, _)| variable == name)
    }

    fn other(&mut self, expr: &Expr) -> Kinds {
        match expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.field(&select.operand, &select.field),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::List(list) => {
                self.all(&list.elements);
                Kinds::LIST
            }
            Expr::Map(map) => {
                map.entries.iter().for_each(|entry| self.entry(&entry.expr));
                Kinds::MAP
            }
            Expr::Struct(made) => {
                made.entries.iter().for_each(|entry| self.entry(&entry.expr));
                Kinds::ANY
            }
            Expr::Unspecified => Kinds::ANY,
        }
    }

    fn variable(&self, name: &str) -> Kinds {
        let bound = self.variables.iter().rev().find(|(variable, _)| variable == name);
        match bound {
            Some((_, kinds)) => *kinds,
            None if name == "state" => Kinds::MAP,
            // An identifier that is neither a variable nor a channel is the name of a type.
            None => Kinds::OTHER,
        }
    }

    fn all(&mut self, expressions: &[Expression]) -> Vec<Kinds> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => {
                self.expression(&field.value);
            }
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key);
                self.expression(&entry.value);
            }
        }
    }

    fn field(&mut self, operand: &Expression, field: &str) -> Kinds {
        let kinds = self.expression(operand);
        if !kinds.meets(Kinds::MAP) {
            self.problems.push(format!("`.{field}` cannot be applied to {kinds}"));
        }
        Kinds::ANY
    }

    fn call(&mut self, call: &CallExpr) -> Kinds {
        let on_value = call.target.as_ref().map(|target| self.expression(target));
        let arguments: Vec<Kinds> = on_value.into_iter().chain(self.all(&call.args)).collect();
        let name = call.func_name.as_str();
        match arguments.as_slice() {
            [condition, one, other] if name == operators::CONDITIONAL => {
                self.condition(*condition);
                one.or(*other)
            }
            // The body of `all` and `exists`.
            [_, body] if call.args.first().is_some_and(is_accumulator) && is_logical(name) => {
                self.condition(*body);
                Kinds::BOOL
            }
            _ if matches!(name, operators::OPT_INDEX | operators::OPT_SELECT) => Kinds::ANY,
            [operand] => match unary(name) {
                Some(forms) => self.apply(name, forms, [*operand]),
                None => self.function(name, on_value.is_some(), &arguments),
            },
            [left, right] => match binary(name) {
                Some(forms) => self.apply(name, forms, [*left, *right]),
                None => self.function(name, on_value.is_some(), &arguments),
            },
            _ => self.function(name, on_value.is_some(), &arguments),
        }
    }

    fn condition(&mut self, kinds: Kinds) {
        if !kinds.meets(Kinds::BOOL) {
            self.problems.push(format!("{kinds} is used as a condition, which must be bool"));
        }
    }

    /// Returns the kinds of the result of an operator. Reports operands for which the operator has
    /// no form.
    fn apply<const OPERANDS: usize>(
        &mut self,
        operator: &str,
        forms: &[Form<OPERANDS>],
        operands: [Kinds; OPERANDS],
    ) -> Kinds {
        let fits = |form: &&Form<OPERANDS>| accepts(&form.operands, &operands);
        let results = forms.iter().filter(fits).map(|form| form.result);
        let result = results.fold(Kinds::NONE, Kinds::or);
        if result == Kinds::NONE {
            self.cannot_apply(symbol(operator), &operands);
            return Kinds::ANY;
        }
        result
    }

    fn cannot_apply(&mut self, operation: &str, operands: &[Kinds]) {
        let kinds: Vec<String> = operands.iter().map(ToString::to_string).collect();
        self.problems.push(format!("`{operation}` cannot be applied to {}", kinds.join(" and ")));
    }

    fn function(&mut self, name: &str, is_called_on_value: bool, arguments: &[Kinds]) -> Kinds {
        let name = name.strip_prefix('.').unwrap_or(name);
        let is_same = |known: &&Function| {
            known.name == name && known.is_called_on_value == is_called_on_value
        };
        let Some(function) = FUNCTIONS.iter().find(is_same) else {
            self.problems.push(unknown_function(name));
            return Kinds::ANY;
        };
        if function.arguments.len() != arguments.len() {
            self.problems.push(format!("`{name}` is written {}", usage(function)));
        } else if !accepts(function.arguments, arguments) {
            self.cannot_apply(name, arguments);
        }
        function.result
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Kinds {
        let range = self.expression(&all.iter_range);
        if !range.meets(ITERABLE) {
            self.problems.push(format!("a loop cannot run over {range}"));
        }
        let start = self.expression(&all.accu_init);
        let outer = self.variables.len();
        let items = [Some(&all.iter_var), all.iter_var2.as_ref()].into_iter().flatten();
        self.variables.extend(items.map(|name| (name.clone(), Kinds::ANY)));
        self.variables.push((all.accu_var.clone(), Kinds::ANY));
        self.expression(&all.loop_cond);
        let step = self.expression(&all.loop_step);
        if let Some((_, accumulated)) = self.variables.last_mut() {
            *accumulated = start.or(step);
        }
        let result = self.expression(&all.result);
        self.variables.truncate(outer);
        result
    }
}

/// Returns true if each value can have a kind that the corresponding operand accepts.
fn accepts(wanted: &[Kinds], values: &[Kinds]) -> bool {
    wanted.iter().zip(values).all(|(wanted, kinds)| kinds.meets(*wanted))
}

/// Returns true for the variable in which a macro collects its result.
fn is_accumulator(expression: &Expression) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name.starts_with('@'))
}

fn is_logical(operator: &str) -> bool {
    matches!(operator, operators::LOGICAL_AND | operators::LOGICAL_OR)
}

fn literal_kind(literal: &LiteralValue) -> Kinds {
    match literal {
        LiteralValue::Boolean(_) => Kinds::BOOL,
        LiteralValue::Bytes(_) => Kinds::BYTES,
        LiteralValue::Double(_) => Kinds::DOUBLE,
        LiteralValue::Int(_) => Kinds::INT,
        LiteralValue::Null => Kinds::NULL,
        LiteralValue::String(_) => Kinds::STRING,
        LiteralValue::UInt(_) => Kinds::UINT,
    }
}

/// Returns an operator as it is written.
fn symbol(operator: &str) -> &str {
    match operator {
        operators::INDEX => "[]",
        operators::IN => "in",
        other => other.trim_matches('_'),
    }
}

fn unknown_function(name: &str) -> String {
    if LOOPS.contains(&name) {
        return format!("`{name}` is written `list.{name}(item, ...)`");
    }
    if let Some(other) = FUNCTIONS.iter().find(|known| known.name == name) {
        return format!("`{name}` is written {}", usage(other));
    }
    let mut known: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    known.extend(LOOPS);
    known.push(operators::HAS);
    match suggest::did_you_mean(name, known) {
        Some(question) => format!("there is no function `{name}`: {question}"),
        None => format!("there is no function `{name}`"),
    }
}

/// Returns an example of a call of a function, such as `x.contains(y)`.
fn usage(function: &Function) -> String {
    let letters = ["x", "y"].into_iter().take(function.arguments.len());
    let name = function.name;
    match (function.is_called_on_value, letters.collect::<Vec<_>>().as_slice()) {
        (true, [value, arguments @ ..]) => format!("`{value}.{name}({})`", arguments.join(", ")),
        (_, arguments) => format!("`{name}({})`", arguments.join(", ")),
    }
}
