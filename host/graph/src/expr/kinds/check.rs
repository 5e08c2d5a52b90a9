//! Finds operations that can never succeed.

use std::collections::BTreeMap;
use std::mem;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::parser::Expression;

use super::Kinds;
use super::operation::{FUNCTIONS, Form, Function, INDEX, ITERABLE, LOOPS, binary, unary};
use super::schema::{Property, ValueType};
use crate::expr::{parsed, references};
use crate::suggest;

/// The result of the check of a condition.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Descriptions of operations that never succeed, and of a result that is never a boolean.
    pub(crate) problems: Vec<String>,
    /// The members of channels of which the kinds are known, such as `state.order.total`, as they
    /// are written in the condition.
    pub(crate) members: BTreeMap<String, Kinds>,
}

/// Checks the operations of a condition. `channel` returns the type of the values of a channel.
/// Takes the subschemas that it reads for members from `parts_left`. Returns no problems for a
/// condition that does not parse.
pub(crate) fn check<'s>(
    condition: &str,
    channel: &dyn Fn(&str) -> ValueType<'s>,
    parts_left: &mut u32,
) -> Checked {
    let Ok((expression, _)) = parsed(condition) else { return Checked::default() };
    let checked = Checked::default();
    let mut checker = KindChecker { channel, parts_left, variables: Vec::new(), checked };
    let result = checker.kinds(&expression);
    if !result.meets(Kinds::BOOL) {
        checker.report(format!("the result is {result}, not bool"));
    }
    checker.checked
}

/// Determines the types of expressions, and collects operations that never succeed.
struct KindChecker<'a, 's> {
    channel: &'a dyn Fn(&str) -> ValueType<'s>,
    /// Number of subschemas that can still be read for members.
    parts_left: &'a mut u32,
    /// Variables of the enclosing macros.
    variables: Vec<(String, ValueType<'s>)>,
    checked: Checked,
}

impl<'s> KindChecker<'_, 's> {
    fn report(&mut self, problem: String) {
        self.checked.problems.push(problem);
    }

    /// Returns the kinds that an expression can have. Returns [`Kinds::ANY`] after a problem.
    fn kinds(&mut self, expression: &Expression) -> Kinds {
        self.value_type(expression).kinds
    }

    /// Returns the type of an expression. Returns [`ValueType::ANY`] after a problem.
    fn value_type(&mut self, expression: &Expression) -> ValueType<'s> {
        match &expression.expr {
            // `has` succeeds for a property that does not exist.
            Expr::Select(select) if select.test => {
                self.object(&select.operand, &select.field);
                Kinds::BOOL.into()
            }
            _ => {
                let channel = references::channel_of(expression, &|name| self.is_bound(name));
                match channel {
                    Some(name) => (self.channel)(&name),
                    None => self.other(expression),
                }
            }
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.variables.iter().any(|(variable, _)| variable == name)
    }

    fn other(&mut self, expression: &Expression) -> ValueType<'s> {
        let kinds = match &expression.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => return self.variable(name),
            Expr::Select(select) => {
                let member = self.field(&select.operand, &select.field);
                return self.member(expression, member);
            }
            Expr::Call(call) => match call.args.as_slice() {
                [operand, key] if call.func_name == operators::INDEX => {
                    let member = self.index(operand, key);
                    return self.member(expression, member);
                }
                _ => self.call(call),
            },
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
        };
        kinds.into()
    }

    /// Records the kinds of a member, and returns its type.
    fn member(&mut self, expression: &Expression, member: ValueType<'s>) -> ValueType<'s> {
        if member.kinds.is_known()
            && let Some(text) = written(expression)
        {
            self.checked.members.insert(text, member.kinds);
        }
        member
    }

    fn variable(&self, name: &str) -> ValueType<'s> {
        let bound = self.variables.iter().rev().find(|(variable, _)| variable == name);
        match bound {
            Some((_, value_type)) => *value_type,
            None if name == "state" => Kinds::MAP.into(),
            // An identifier that is neither a variable nor a channel is the name of a type.
            None => Kinds::OTHER.into(),
        }
    }

    fn all(&mut self, expressions: &[Expression]) -> Vec<Kinds> {
        expressions.iter().map(|expression| self.kinds(expression)).collect()
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => {
                self.kinds(&field.value);
            }
            EntryExpr::MapEntry(entry) => {
                self.kinds(&entry.key);
                self.kinds(&entry.value);
            }
        }
    }

    /// Returns the type of an expression of which a field is selected.
    fn object(&mut self, operand: &Expression, field: &str) -> ValueType<'s> {
        let object = self.value_type(operand);
        if object.kinds.meets(Kinds::MAP) {
            return object;
        }
        self.report(format!("`.{field}` cannot be applied to {}", object.kinds));
        ValueType::ANY
    }

    fn field(&mut self, operand: &Expression, field: &str) -> ValueType<'s> {
        let object = self.object(operand, field);
        self.property(operand, object, field)
    }

    /// Returns the type of a property of `object`, which is the value of `operand`. Reports a
    /// property that no object has.
    fn property(
        &mut self,
        operand: &Expression,
        object: ValueType<'s>,
        name: &str,
    ) -> ValueType<'s> {
        match object.property(name, self.parts_left) {
            Property::Type(value_type) => value_type,
            Property::Missing(names) => {
                let text = written(operand).map(|text| format!("`{text}`"));
                let object = text.unwrap_or_else(|| "the object".to_owned());
                let hint = suggest::hint(name, "properties", names.into_iter());
                self.report(format!("{object} has no property `{name}`: {hint}"));
                ValueType::ANY
            }
        }
    }

    /// Returns the type of a member of a list or an object. A property of an object is known if
    /// the key is a literal.
    fn index(&mut self, operand: &Expression, key: &Expression) -> ValueType<'s> {
        let (value, key_kinds) = (self.value_type(operand), self.kinds(key));
        self.apply(operators::INDEX, INDEX, [value.kinds, key_kinds]);
        match &key.expr {
            Expr::Literal(LiteralValue::String(name)) if value.kinds.meets(Kinds::MAP) => {
                self.property(operand, value, name.inner())
            }
            // The keys of an object are strings, so any other key is an index of a list.
            _ if value.kinds.meets(Kinds::LIST) && !key_kinds.meets(Kinds::STRING) => {
                value.item(self.parts_left)
            }
            _ => ValueType::ANY,
        }
    }

    fn call(&mut self, call: &CallExpr) -> Kinds {
        let on_value = call.target.as_ref().map(|target| self.kinds(target));
        let arguments: Vec<Kinds> = on_value.into_iter().chain(self.arguments(call)).collect();
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

    /// Returns the kinds of the arguments of a call. An argument that is never evaluated is not
    /// checked, and can have any kind.
    fn arguments(&mut self, call: &CallExpr) -> Vec<Kinds> {
        let first = call.args.first();
        let skipped = first.and_then(|first| self.skipped_argument(&call.func_name, first));
        let kinds = |(index, argument): (usize, &Expression)| {
            if skipped == Some(index) { Kinds::ANY } else { self.kinds(argument) }
        };
        call.args.iter().enumerate().map(kinds).collect()
    }

    /// Returns the number of the argument that an operator never evaluates because of the result of
    /// its first argument.
    fn skipped_argument(&mut self, operator: &str, first: &Expression) -> Option<usize> {
        match operator {
            operators::LOGICAL_AND => (self.outcome(first) == Some(false)).then_some(1),
            operators::LOGICAL_OR => (self.outcome(first) == Some(true)).then_some(1),
            operators::CONDITIONAL => {
                self.outcome(first).map(|is_true| if is_true { 2 } else { 1 })
            }
            _ => None,
        }
    }

    /// Returns the result of an expression that is the same for every state because `has` is false
    /// for a property that does not exist. Returns `None` if the result is not known.
    fn outcome(&mut self, expression: &Expression) -> Option<bool> {
        match &expression.expr {
            // Other operands can have such tests inside, and each level would double the work.
            Expr::Select(select) if select.test && written(&select.operand).is_some() => {
                // Problems of the operand are reported where the expression is checked.
                let checked = mem::take(&mut self.checked);
                let object = self.value_type(&select.operand);
                self.checked = checked;
                let property = object.property(&select.field, self.parts_left);
                matches!(property, Property::Missing(_)).then_some(false)
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::LOGICAL_NOT, [operand]) => {
                    self.outcome(operand).map(|is_true| !is_true)
                }
                (operators::LOGICAL_AND, [left, right]) => self.decided([left, right], false),
                (operators::LOGICAL_OR, [left, right]) => self.decided([left, right], true),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns `decisive` if it is the result of one of the operands.
    fn decided(&mut self, operands: [&Expression; 2], decisive: bool) -> Option<bool> {
        let is_decided = operands.into_iter().any(|it| self.outcome(it) == Some(decisive));
        is_decided.then_some(decisive)
    }

    fn condition(&mut self, kinds: Kinds) {
        if !kinds.meets(Kinds::BOOL) {
            self.report(format!("{kinds} is used as a condition, which must be bool"));
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
        self.report(format!("`{operation}` cannot be applied to {}", kinds.join(" and ")));
    }

    fn function(&mut self, name: &str, is_called_on_value: bool, arguments: &[Kinds]) -> Kinds {
        let name = name.strip_prefix('.').unwrap_or(name);
        let is_same = |known: &&Function| {
            known.name == name && known.is_called_on_value == is_called_on_value
        };
        let Some(function) = FUNCTIONS.iter().find(is_same) else {
            self.report(unknown_function(name));
            return Kinds::ANY;
        };
        if function.arguments.len() != arguments.len() {
            self.report(format!("`{name}` is written {}", usage(function)));
        } else if !accepts(function.arguments, arguments) {
            self.cannot_apply(name, arguments);
        }
        function.result
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Kinds {
        let range = self.value_type(&all.iter_range);
        if !range.kinds.meets(ITERABLE) {
            self.report(format!("a loop cannot run over {}", range.kinds));
        }
        let start = self.kinds(&all.accu_init);
        let outer = self.variables.len();
        // A loop over an object runs over its keys, and one with two variables over more.
        let is_of_items = !range.kinds.meets(Kinds::MAP) && all.iter_var2.is_none();
        let item = if is_of_items { range.item(self.parts_left) } else { ValueType::ANY };
        self.variables.push((all.iter_var.clone(), item));
        let others = all.iter_var2.iter().chain([&all.accu_var]);
        self.variables.extend(others.map(|name| (name.clone(), ValueType::ANY)));
        self.kinds(&all.loop_cond);
        let step = self.kinds(&all.loop_step);
        if let Some((_, accumulated)) = self.variables.last_mut() {
            *accumulated = start.or(step).into();
        }
        let result = self.kinds(&all.result);
        self.variables.truncate(outer);
        result
    }
}

/// Returns an expression of members as it is written, such as `state.order.total`; `None` for other
/// expressions.
fn written(expression: &Expression) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", written(&select.operand)?, select.field)),
        Expr::Call(call) => match call.args.as_slice() {
            [operand, key] if call.func_name == operators::INDEX => {
                let key = match &key.expr {
                    Expr::Literal(LiteralValue::String(name)) => format!("{:?}", name.inner()),
                    Expr::Literal(LiteralValue::Int(index)) => index.inner().to_string(),
                    _ => written(key)?,
                };
                Some(format!("{}[{key}]", written(operand)?))
            }
            _ => None,
        },
        _ => None,
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
