//! The operations of CEL, by the kinds of their operands.

use cel::common::ast::operators;

use super::Kinds;

/// One form of an operation: the kinds of each operand for which it is defined, and the kinds of
/// the result.
pub(super) struct Form<const OPERANDS: usize> {
    pub(super) operands: [Kinds; OPERANDS],
    pub(super) result: Kinds,
}

const fn form<const OPERANDS: usize>(operands: [Kinds; OPERANDS], result: Kinds) -> Form<OPERANDS> {
    Form { operands, result }
}

const fn arithmetic(kind: Kinds) -> Form<2> {
    form([kind, kind], kind)
}

/// Kinds of keys of a map.
const KEY: Kinds = Kinds::BOOL.or(Kinds::NUMBER).or(Kinds::STRING);

/// Kinds of values that can be converted to a number.
const NUMERAL: Kinds = Kinds::NUMBER.or(Kinds::STRING);

/// Kinds of values that can be converted to a string.
const SCALAR: Kinds = KEY.or(Kinds::BYTES);

/// Kinds of strings and bytes.
const TEXT: Kinds = Kinds::STRING.or(Kinds::BYTES);

/// Kinds of values that can be converted to a boolean.
const TRUTH: Kinds = Kinds::BOOL.or(Kinds::STRING);

/// Kinds of values that have a size.
const SIZED: Kinds = TEXT.or(ITERABLE);

/// Kinds of values that loops run over.
pub(super) const ITERABLE: Kinds = Kinds::LIST.or(Kinds::MAP);

const ADD: &[Form<2>] = &[
    arithmetic(Kinds::INT),
    arithmetic(Kinds::UINT),
    arithmetic(Kinds::DOUBLE),
    arithmetic(Kinds::STRING),
    arithmetic(Kinds::BYTES),
    form([Kinds::LIST, ITERABLE], Kinds::LIST),
];

const NUMERIC: &[Form<2>] =
    &[arithmetic(Kinds::INT), arithmetic(Kinds::UINT), arithmetic(Kinds::DOUBLE)];

const REMAINDER: &[Form<2>] = &[arithmetic(Kinds::INT), arithmetic(Kinds::UINT)];

const COMPARE: &[Form<2>] = &[
    form([Kinds::NUMBER, Kinds::NUMBER], Kinds::BOOL),
    form([Kinds::STRING, Kinds::STRING], Kinds::BOOL),
    form([Kinds::BYTES, Kinds::BYTES], Kinds::BOOL),
    form([Kinds::BOOL, Kinds::BOOL], Kinds::BOOL),
];

const EQUAL: &[Form<2>] = &[form([Kinds::ANY, Kinds::ANY], Kinds::BOOL)];

const LOGICAL: &[Form<2>] = &[arithmetic(Kinds::BOOL)];

const IN: &[Form<2>] =
    &[form([Kinds::ANY, Kinds::LIST], Kinds::BOOL), form([KEY, Kinds::MAP], Kinds::BOOL)];

pub(super) const INDEX: &[Form<2>] =
    &[form([Kinds::LIST, Kinds::NUMBER], Kinds::ANY), form([Kinds::MAP, KEY], Kinds::ANY)];

/// Returns the forms of an operator with two operands.
pub(super) fn binary(operator: &str) -> Option<&'static [Form<2>]> {
    Some(match operator {
        operators::ADD => ADD,
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE => NUMERIC,
        operators::MODULO => REMAINDER,
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => COMPARE,
        operators::EQUALS | operators::NOT_EQUALS => EQUAL,
        operators::LOGICAL_AND | operators::LOGICAL_OR => LOGICAL,
        operators::IN => IN,
        _ => return None,
    })
}

const NOT: &[Form<1>] = &[form([Kinds::BOOL], Kinds::BOOL)];

const NEGATE: &[Form<1>] = &[form([Kinds::INT], Kinds::INT), form([Kinds::DOUBLE], Kinds::DOUBLE)];

/// The operator that ends the loop of a macro. It accepts values of every kind.
const NOT_STRICTLY_FALSE: &[Form<1>] = &[form([Kinds::ANY], Kinds::BOOL)];

/// Returns the forms of an operator with one operand.
pub(super) fn unary(operator: &str) -> Option<&'static [Form<1>]> {
    Some(match operator {
        operators::LOGICAL_NOT => NOT,
        operators::NEGATE => NEGATE,
        operators::NOT_STRICTLY_FALSE => NOT_STRICTLY_FALSE,
        _ => return None,
    })
}

/// A function, with the kinds of its arguments and of its result. A function that is called on a
/// value, as in `x.size()`, has the value as its first argument.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) is_called_on_value: bool,
    pub(super) arguments: &'static [Kinds],
    pub(super) result: Kinds,
}

const fn global(name: &'static str, arguments: &'static [Kinds], result: Kinds) -> Function {
    Function { name, is_called_on_value: false, arguments, result }
}

const fn on_value(name: &'static str, arguments: &'static [Kinds], result: Kinds) -> Function {
    Function { name, is_called_on_value: true, arguments, result }
}

/// The functions of the interpreter with the features that it is built with. The functions of
/// optional values are left out, because no expression can make an optional value.
pub(super) const FUNCTIONS: &[Function] = &[
    global("size", &[SIZED], Kinds::INT),
    on_value("size", &[SIZED], Kinds::INT),
    global("int", &[NUMERAL], Kinds::INT),
    global("uint", &[NUMERAL], Kinds::UINT),
    global("double", &[NUMERAL], Kinds::DOUBLE),
    global("string", &[SCALAR], Kinds::STRING),
    global("bytes", &[TEXT], Kinds::BYTES),
    global("bool", &[TRUTH], Kinds::BOOL),
    global("dyn", &[Kinds::ANY], Kinds::ANY),
    global("type", &[Kinds::ANY], Kinds::OTHER),
    on_value("contains", &[Kinds::STRING, Kinds::STRING], Kinds::BOOL),
    on_value("startsWith", &[Kinds::STRING, Kinds::STRING], Kinds::BOOL),
    on_value("endsWith", &[Kinds::STRING, Kinds::STRING], Kinds::BOOL),
];

/// The macros that loop. The parser does not expand a macro with the wrong number of arguments,
/// which stays a call.
pub(super) const LOOPS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];
