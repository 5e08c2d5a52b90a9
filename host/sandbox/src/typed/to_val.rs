//! Conversion of JSON to values of WIT types.
//!
//! The conversion accepts what the schema of [`crate::typed::schema`] accepts, and no more: unknown
//! fields and numbers out of range are errors. Every error has the path of the value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;
use wattle_graph::suggest;

use crate::typed::by_name::ByName;
use crate::typed::value_error::{ValueError, listed, quoted};
use crate::typed::values_memory::ValuesMemory;
use crate::typed::wit_type::{IntType, WitType};

/// 2^64. Numbers of this magnitude or more fit into neither `u64` nor `s64`.
const INTEGER_BOUND: f64 = 18_446_744_073_709_551_616.0;

/// Maximum number of digits of a whole number: those of the largest `u64`.
const MAX_DIGITS: usize = 20;

/// Converts the arguments of a call, an object with a field for each parameter. The memory of the
/// values counts against `memory`.
pub(crate) fn arguments(
    params: &[(String, WitType)],
    arguments: &Value,
    memory: &mut ValuesMemory<'_>,
) -> Result<Vec<Val>, ValueError> {
    let mut converter = Converter { memory };
    let fields = converter.fields(params, arguments)?;
    Ok(fields.into_iter().map(|(_, value)| value).collect())
}

struct Converter<'c, 'm> {
    memory: &'c mut ValuesMemory<'m>,
}

impl Converter<'_, '_> {
    fn take(&mut self, bytes: usize) -> Result<(), ValueError> {
        self.memory.take(bytes)
    }

    fn value(&mut self, ty: &WitType, value: &Value) -> Result<Val, ValueError> {
        self.take(size_of::<Val>())?;
        match ty {
            WitType::Bool => match value {
                Value::Bool(is_true) => Ok(Val::Bool(*is_true)),
                _ => Err(ValueError::expected("a boolean", value)),
            },
            WitType::Int(int) => integer(*int, value),
            WitType::F32 => single_float(value),
            WitType::F64 => float(value).map(Val::Float64),
            WitType::Char => character(value),
            WitType::String => {
                let text = string(value)?;
                self.take(text.len())?;
                Ok(Val::String(text.to_owned()))
            }
            WitType::Bytes => self.bytes(value),
            WitType::List(item) => self.list(item, value),
            WitType::Tuple(types) => self.tuple(types, value),
            WitType::Record(fields) => self.fields(fields, value).map(Val::Record),
            WitType::Variant(cases) => self.variant(cases, value),
            WitType::Enum(names) => enumerated(names, value),
            WitType::Flags(names) => self.flags(names, value),
            WitType::Option(inner) => self.option(inner, value),
            WitType::Result { ok, err } => self.result(ok.as_deref(), err.as_deref(), value),
        }
    }

    fn boxed(&mut self, ty: &WitType, value: &Value) -> Result<Option<Box<Val>>, ValueError> {
        self.value(ty, value).map(|value| Some(Box::new(value)))
    }

    fn bytes(&mut self, value: &Value) -> Result<Val, ValueError> {
        let Value::String(text) = value else {
            return Err(ValueError::expected("bytes in base64", value));
        };
        // Base64 encodes three bytes as four characters.
        self.take((text.len() / 4 + 1) * 3 * size_of::<Val>())?;
        match STANDARD.decode(text) {
            Ok(bytes) => Ok(Val::List(bytes.into_iter().map(Val::U8).collect())),
            Err(error) => Err(ValueError::new(format!("expected bytes in base64: {error}"))),
        }
    }

    fn list(&mut self, ty: &WitType, value: &Value) -> Result<Val, ValueError> {
        let items = array(value)?.iter().enumerate();
        let item = |(index, item)| self.value(ty, item).map_err(|error| error.at_index(index));
        items.map(item).collect::<Result<_, _>>().map(Val::List)
    }

    fn tuple(&mut self, types: &[WitType], value: &Value) -> Result<Val, ValueError> {
        let items = array(value)?;
        if items.len() != types.len() {
            let (expected, found) = (types.len(), items.len());
            return Err(ValueError::new(format!(
                "expected an array of length {expected}, got one of length {found}"
            )));
        }
        let item = |(index, (ty, item)): (usize, (&WitType, &Value))| {
            self.value(ty, item).map_err(|error| error.at_index(index))
        };
        let items = types.iter().zip(items).enumerate().map(item);
        items.collect::<Result<_, _>>().map(Val::Tuple)
    }

    /// Converts an object with the fields of a record, or with the parameters of a function.
    fn fields(
        &mut self,
        types: &[(String, WitType)],
        value: &Value,
    ) -> Result<Vec<(String, Val)>, ValueError> {
        let Value::Object(object) = value else {
            return Err(ValueError::expected("an object", value));
        };
        let known = types.iter().filter(|(name, _)| object.contains_key(name)).count();
        let is_unknown = |key: &&String| types.iter().all(|(name, _)| name != *key);
        // The search for the unknown key is slow, so it runs only if there is such a key.
        if known < object.len()
            && let Some(unknown) = object.keys().find(is_unknown)
        {
            let names = types.iter().map(|(name, _)| name.as_str());
            return Err(self::unknown("field", unknown, names));
        }
        let field = |(name, ty): &(String, WitType)| {
            self.take(size_of::<String>() + name.len())?;
            let value = match object.get(name) {
                Some(value) => self.value(ty, value).map_err(|error| error.in_field(name))?,
                None if ty.is_nullable() => {
                    self.take(size_of::<Val>())?;
                    Val::Option(None)
                }
                None => return Err(ValueError::new(format!("the field `{name}` is missing"))),
            };
            Ok((name.clone(), value))
        };
        types.iter().map(field).collect()
    }

    /// Converts a variant. The JSON form of a case without a value is its name. The form of a case
    /// with a value is an object with the name as the only key.
    fn variant(
        &mut self,
        cases: &ByName<(String, Option<WitType>)>,
        value: &Value,
    ) -> Result<Val, ValueError> {
        let find = |wanted: &str| {
            cases.named(wanted).map(|(_, ty)| ty.as_ref()).ok_or_else(|| {
                let names = cases.iter().map(|(name, _)| name.as_str());
                unknown("case", wanted, names)
            })
        };
        let (name, payload) = match value {
            Value::String(name) if find(name)?.is_none() => (name, None),
            Value::String(name) => {
                let name = quoted(name);
                let text =
                    format!("the case {name} has a value: pass an object with the key {name}");
                return Err(ValueError::new(text));
            }
            Value::Object(object) => match single_field(object) {
                Some((name, inner)) => match find(name)? {
                    Some(ty) => {
                        let payload = self.boxed(ty, inner);
                        (name, payload.map_err(|error| error.in_field(name))?)
                    }
                    None => {
                        let name = quoted(name);
                        let text = format!("the case {name} has no value: pass the string {name}");
                        return Err(ValueError::new(text));
                    }
                },
                None => {
                    let text = "expected an object with one key, the name of a case";
                    return Err(ValueError::new(text));
                }
            },
            _ => return Err(ValueError::expected("a case: a string or an object", value)),
        };
        self.take(name.len())?;
        Ok(Val::Variant(name.clone(), payload))
    }

    fn flags(&mut self, names: &[String], value: &Value) -> Result<Val, ValueError> {
        let mut flags: Vec<String> = Vec::new();
        for (index, item) in array(value)?.iter().enumerate() {
            let flag = string(item).and_then(|text| {
                // Linear searches suffice, because the component model allows at most 32 flags in a
                // type.
                if !names.iter().any(|name| name == text) {
                    return Err(unknown("flag", text, names.iter().map(String::as_str)));
                }
                if flags.iter().any(|flag| flag == text) {
                    return Err(ValueError::new(format!("the flag `{text}` is given twice")));
                }
                Ok(text.to_owned())
            });
            let flag = flag.map_err(|error| error.at_index(index))?;
            self.take(size_of::<String>() + flag.len())?;
            flags.push(flag);
        }
        Ok(Val::Flags(flags))
    }

    /// Converts an option, whose JSON form is `null` or the form of the value. If the value can be
    /// `null` itself, the value is in an object with the key `some`.
    fn option(&mut self, inner: &WitType, value: &Value) -> Result<Val, ValueError> {
        if value.is_null() {
            return Ok(Val::Option(None));
        }
        if !inner.is_nullable() {
            return self.boxed(inner, value).map(Val::Option);
        }
        let some = match value {
            Value::Object(object) => single_field(object).filter(|(key, _)| *key == "some"),
            _ => None,
        };
        let Some((key, some)) = some else {
            return Err(ValueError::new("expected null or an object with the key `some`"));
        };
        self.boxed(inner, some).map(Val::Option).map_err(|error| error.in_field(key))
    }

    fn result(
        &mut self,
        ok: Option<&WitType>,
        err: Option<&WitType>,
        value: &Value,
    ) -> Result<Val, ValueError> {
        let fields = value.as_object().and_then(single_field);
        let (key, inner) = fields
            .filter(|(key, _)| matches!(key.as_str(), "ok" | "err"))
            .ok_or_else(|| ValueError::new("expected an object with the key `ok` or `err`"))?;
        let payload = match if key == "ok" { ok } else { err } {
            Some(ty) => self.boxed(ty, inner),
            None if inner.is_null() => Ok(None),
            None => Err(ValueError::expected("null", inner)),
        };
        let payload = payload.map_err(|error| error.in_field(key))?;
        Ok(Val::Result(if key == "ok" { Ok(payload) } else { Err(payload) }))
    }
}

fn single_field(object: &Map<String, Value>) -> Option<(&String, &Value)> {
    let mut fields = object.iter();
    fields.next().filter(|_| fields.next().is_none())
}

fn array(value: &Value) -> Result<&Vec<Value>, ValueError> {
    value.as_array().ok_or_else(|| ValueError::expected("an array", value))
}

fn string(value: &Value) -> Result<&str, ValueError> {
    value.as_str().ok_or_else(|| ValueError::expected("a string", value))
}

fn unknown<'n>(
    what: &str,
    name: &str,
    names: impl ExactSizeIterator<Item = &'n str> + Clone,
) -> ValueError {
    let question = suggest::did_you_mean(name, names.clone());
    let question = question.map(|question| format!("{question} ")).unwrap_or_default();
    let (name, names) = (quoted(name), listed(names));
    ValueError::new(format!("unknown {what} {name}; {question}the {what}s are {names}"))
}

fn enumerated(names: &ByName<String>, value: &Value) -> Result<Val, ValueError> {
    let name = string(value)?;
    match names.named(name) {
        Some(name) => Ok(Val::Enum(name.clone())),
        None => Err(unknown("case", name, names.iter().map(String::as_str))),
    }
}

fn character(value: &Value) -> Result<Val, ValueError> {
    let mut chars = string(value)?.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Ok(Val::Char(only)),
        _ => Err(ValueError::new("expected a string of one character")),
    }
}

fn float(value: &Value) -> Result<f64, ValueError> {
    value.as_f64().ok_or_else(|| ValueError::expected("a number", value))
}

/// Converts a number to the nearest `f32`.
fn single_float(value: &Value) -> Result<Val, ValueError> {
    let number = float(value)?;
    if number.abs() > f64::from(f32::MAX) {
        let most = f32::MAX;
        return Err(ValueError::new(format!("expected a number from -{most:e} to {most:e}")));
    }
    Ok(Val::Float32(number as f32))
}

fn integer(ty: IntType, value: &Value) -> Result<Val, ValueError> {
    let (number, text) = match value {
        Value::Number(number) => (whole(number), number.to_string()),
        // JSON parsers of other languages round large numbers, so these may be strings.
        Value::String(text) if ty.is_wide() => (decimal(text), text.clone()),
        _ => return Err(ValueError::expected("a whole number", value)),
    };
    number.and_then(|number| int_value(ty, number)).ok_or_else(|| {
        let (least, most) = ty.bounds();
        let found = quoted(&text);
        ValueError::new(format!("expected a whole number from {least} to {most}, got {found}"))
    })
}

/// Returns a whole number, which may be written as `2.0` or `1e3`. The cast of a float is exact,
/// because the float is whole and below [`INTEGER_BOUND`].
fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    integer.or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < INTEGER_BOUND).then_some(float as i128)
    })
}

/// Parses a whole number without leading zeros.
fn decimal(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = (1..=MAX_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn int_value(ty: IntType, number: i128) -> Option<Val> {
    Some(match ty {
        IntType::S8 => Val::S8(number.try_into().ok()?),
        IntType::U8 => Val::U8(number.try_into().ok()?),
        IntType::S16 => Val::S16(number.try_into().ok()?),
        IntType::U16 => Val::U16(number.try_into().ok()?),
        IntType::S32 => Val::S32(number.try_into().ok()?),
        IntType::U32 => Val::U32(number.try_into().ok()?),
        IntType::S64 => Val::S64(number.try_into().ok()?),
        IntType::U64 => Val::U64(number.try_into().ok()?),
    })
}

#[cfg(test)]
pub(super) mod tests;
