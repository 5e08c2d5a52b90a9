//! Conversion of values of WIT types to JSON, in the form that [`crate::typed::to_val`] reads.
//!
//! Keys are names of fields and cases. Such a name consists of letters, digits and hyphens, which
//! the engine validates, so no key is [`RAW_VALUE_KEY`](wattle_run::json::bounded::RAW_VALUE_KEY).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use crate::typed::by_name::ByName;
use crate::typed::value_error::ValueError;
use crate::typed::wit_type::{EXACT_INTEGER, WitType};

/// Converts a result to JSON of at most `max_bytes`, as [`approx_bytes`] counts them. The JSON can
/// take many times the memory that the value takes in the guest, so the conversion stops at the
/// limit.
///
/// [`approx_bytes`]: wattle_run::json::approx_bytes
pub(crate) fn to_json(ty: &WitType, value: Val, max_bytes: u64) -> Result<Value, ValueError> {
    let left = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    Converter { max_bytes, left }.value(ty, value)
}

struct Converter {
    max_bytes: u64,
    /// The bytes of JSON that are left.
    left: usize,
}

/// Bytes of `true`, `false` and `null`, as the budget counts them.
const LITERAL_BYTES: usize = 4;

/// Bytes of a number, as the budget counts them.
const NUMBER_BYTES: usize = 8;

/// Bytes of the quotes of a text, and of the brackets of an array or an object.
const DELIMITER_BYTES: usize = 2;

/// Bytes of the quotes of a key, its colon and a comma.
const KEY_BYTES: usize = 4;

impl Converter {
    fn take(&mut self, bytes: usize) -> Result<(), ValueError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let allowed = self.max_bytes;
            ValueError::limit(format!("the result exceeds the limit of {allowed} bytes"))
        })?;
        Ok(())
    }

    fn value(&mut self, ty: &WitType, value: Val) -> Result<Value, ValueError> {
        match (ty, value) {
            (WitType::Bool, Val::Bool(is_true)) => {
                self.take(LITERAL_BYTES)?;
                Ok(is_true.into())
            }
            (WitType::Int(_), Val::S8(number)) => self.number(number.into()),
            (WitType::Int(_), Val::U8(number)) => self.number(number.into()),
            (WitType::Int(_), Val::S16(number)) => self.number(number.into()),
            (WitType::Int(_), Val::U16(number)) => self.number(number.into()),
            (WitType::Int(_), Val::S32(number)) => self.number(number.into()),
            (WitType::Int(_), Val::U32(number)) => self.number(number.into()),
            (WitType::Int(_), Val::S64(number)) => self.number(wide(number.into(), number.into())),
            (WitType::Int(_), Val::U64(number)) => self.number(wide(number.into(), number.into())),
            (WitType::F32, Val::Float32(number)) => self.number(float(shortest(number))?),
            (WitType::F64, Val::Float64(number)) => self.number(float(number)?),
            (WitType::Char, Val::Char(only)) => self.text(only.to_string()),
            (WitType::String, Val::String(text)) => self.text(text),
            (WitType::Bytes, Val::List(items)) => self.bytes(items),
            (WitType::List(item), Val::List(items)) => self.list(item, items),
            (WitType::Tuple(types), Val::Tuple(items)) => self.tuple(types, items),
            (WitType::Record(types), Val::Record(fields)) => self.record(types, fields),
            (WitType::Variant(cases), Val::Variant(name, payload)) => {
                self.variant(cases, name, payload)
            }
            (WitType::Enum(_), Val::Enum(name)) => self.text(name),
            (WitType::Flags(_), Val::Flags(names)) => {
                self.take(DELIMITER_BYTES)?;
                names.into_iter().map(|name| self.item(|this| this.text(name))).collect()
            }
            (WitType::Option(_), Val::Option(None)) => self.null(),
            (WitType::Option(inner), Val::Option(Some(value))) if inner.is_nullable() => {
                self.field(inner, "some", *value)
            }
            (WitType::Option(inner), Val::Option(Some(value))) => self.value(inner, *value),
            (WitType::Result { ok, .. }, Val::Result(Ok(value))) => {
                self.result(ok.as_deref(), "ok", value)
            }
            (WitType::Result { err, .. }, Val::Result(Err(value))) => {
                self.result(err.as_deref(), "err", value)
            }
            (ty, _) => Err(other_type(ty)),
        }
    }

    fn null(&mut self) -> Result<Value, ValueError> {
        self.take(LITERAL_BYTES)?;
        Ok(Value::Null)
    }

    /// Counts a number. `json` is a string if JSON parsers of other languages would round the
    /// number.
    fn number(&mut self, json: Value) -> Result<Value, ValueError> {
        self.take(json.as_str().map_or(NUMBER_BYTES, |text| text.len() + DELIMITER_BYTES))?;
        Ok(json)
    }

    fn text(&mut self, text: String) -> Result<Value, ValueError> {
        self.take(text.len() + DELIMITER_BYTES)?;
        Ok(text.into())
    }

    /// Converts an item of an array, and counts its comma.
    fn item(
        &mut self,
        convert: impl FnOnce(&mut Self) -> Result<Value, ValueError>,
    ) -> Result<Value, ValueError> {
        self.take(1)?;
        convert(self)
    }

    fn bytes(&mut self, items: Vec<Val>) -> Result<Value, ValueError> {
        // Base64 encodes three bytes as four characters.
        self.take(items.len().div_ceil(3) * 4 + DELIMITER_BYTES)?;
        let byte = |item| match item {
            Val::U8(byte) => Ok(byte),
            _ => Err(other_type(&WitType::Bytes)),
        };
        let bytes: Vec<u8> = items.into_iter().map(byte).collect::<Result<_, _>>()?;
        Ok(STANDARD.encode(bytes).into())
    }

    fn list(&mut self, ty: &WitType, items: Vec<Val>) -> Result<Value, ValueError> {
        self.take(DELIMITER_BYTES)?;
        let item = |(index, value)| {
            self.item(|this| this.value(ty, value)).map_err(|error| error.at_index(index))
        };
        items.into_iter().enumerate().map(item).collect()
    }

    fn tuple(&mut self, types: &[WitType], items: Vec<Val>) -> Result<Value, ValueError> {
        self.take(DELIMITER_BYTES)?;
        let item = |(index, (ty, value)): (usize, (&WitType, Val))| {
            self.item(|this| this.value(ty, value)).map_err(|error| error.at_index(index))
        };
        types.iter().zip(items).enumerate().map(item).collect()
    }

    /// Converts a record. The object has no key for a field whose option is none.
    fn record(
        &mut self,
        types: &[(String, WitType)],
        fields: Vec<(String, Val)>,
    ) -> Result<Value, ValueError> {
        self.take(DELIMITER_BYTES)?;
        let mut object = Map::new();
        for ((_, ty), (name, value)) in types.iter().zip(fields) {
            if matches!(value, Val::Option(None)) {
                continue;
            }
            self.take(name.len() + KEY_BYTES)?;
            let value = self.value(ty, value).map_err(|error| error.in_field(&name))?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }

    fn variant(
        &mut self,
        cases: &ByName<(String, Option<WitType>)>,
        name: String,
        payload: Option<Box<Val>>,
    ) -> Result<Value, ValueError> {
        let ty = cases.named(&name).and_then(|(_, ty)| ty.as_ref());
        match (ty, payload) {
            (Some(ty), Some(value)) => self.field(ty, &name, *value),
            (None, None) => self.text(name),
            _ => Err(ValueError::new(format!("the value is not of the case `{name}`"))),
        }
    }

    fn result(
        &mut self,
        ty: Option<&WitType>,
        key: &str,
        payload: Option<Box<Val>>,
    ) -> Result<Value, ValueError> {
        match (ty, payload) {
            (Some(ty), Some(value)) => self.field(ty, key, *value),
            (None, None) => self.object(key, Self::null),
            _ => Err(ValueError::new(format!("the value is not of the case `{key}`"))),
        }
    }

    /// Converts a value to an object with one field.
    fn field(&mut self, ty: &WitType, key: &str, value: Val) -> Result<Value, ValueError> {
        let value = self.object(key, |this| this.value(ty, value));
        value.map_err(|error| error.in_field(key))
    }

    fn object(
        &mut self,
        key: &str,
        convert: impl FnOnce(&mut Self) -> Result<Value, ValueError>,
    ) -> Result<Value, ValueError> {
        self.take(DELIMITER_BYTES + key.len() + KEY_BYTES)?;
        let value = convert(self)?;
        Ok(Value::Object(Map::from_iter([(key.to_owned(), value)])))
    }
}

/// Returns the error of a value that is not of the type. wasmtime checks types, so this error
/// cannot happen.
fn other_type(ty: &WitType) -> ValueError {
    ValueError::new(format!("the value is not of the type `{ty}`"))
}

/// Returns a number as JSON. A number that JSON parsers of other languages would round becomes a
/// string.
fn wide(number: i128, json: Number) -> Value {
    if (-EXACT_INTEGER..=EXACT_INTEGER).contains(&number) {
        Value::Number(json)
    } else {
        Value::String(json.to_string())
    }
}

/// Returns the `f64` with the fewest decimal digits whose nearest `f32` is the given number: 0.1
/// instead of 0.10000000149011612.
fn shortest(number: f32) -> f64 {
    let exact = f64::from(number);
    let short = number.to_string().parse().unwrap_or(exact);
    // The shortest decimal form of the largest `f32` is larger than that `f32`.
    if short.abs() > f64::from(f32::MAX) { exact } else { short }
}

fn float(number: f64) -> Result<Value, ValueError> {
    let json = Number::from_f64(number).map(Value::Number);
    json.ok_or_else(|| ValueError::new(format!("JSON has no number `{number}`")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_run::json::approx_bytes;

    use super::*;
    use crate::typed::value_error::ValueFault;
    use crate::typed::wit_type::IntType;

    fn to_json(ty: &WitType, value: Val) -> Result<Value, ValueError> {
        super::to_json(ty, value, u64::MAX)
    }

    fn record_of(name: &str, ty: WitType) -> WitType {
        WitType::Record(vec![(name.to_owned(), ty)])
    }

    fn boxed(ty: WitType) -> Box<WitType> {
        Box::new(ty)
    }

    #[test]
    fn integers_beyond_the_exact_range_of_a_double_are_strings() {
        let of = |value| to_json(&WitType::Int(IntType::U64), value).unwrap();
        assert_eq!(of(Val::U64(1 << 53)), json!(9_007_199_254_740_992_u64));
        assert_eq!(of(Val::U64((1 << 53) + 1)), json!("9007199254740993"));
        let of = |value| to_json(&WitType::Int(IntType::S64), value).unwrap();
        assert_eq!(of(Val::S64(-5)), json!(-5));
        assert_eq!(of(Val::S64(i64::MIN)), json!("-9223372036854775808"));
    }

    #[test]
    fn f32_values_keep_their_shortest_decimal_form() {
        let of = |number| to_json(&WitType::F32, Val::Float32(number)).unwrap();
        assert_eq!(of(0.1), json!(0.1));
        assert_eq!(of(-2.5), json!(-2.5));
        assert_eq!(of(f32::MAX), json!(f64::from(f32::MAX)));
    }

    #[test]
    fn numbers_without_a_json_form_are_errors_with_their_path() {
        let ty = record_of("prices", WitType::List(boxed(WitType::F64)));
        let of = |number| {
            let prices = Val::List(vec![Val::Float64(1.0), Val::Float64(number)]);
            to_json(&ty, Val::Record(vec![("prices".to_owned(), prices)]))
        };
        assert_eq!(of(2.5), Ok(json!({ "prices": [1.0, 2.5] })));
        let error = of(f64::NAN).unwrap_err().to_string();
        assert_eq!(error, "at $.prices[1]: JSON has no number `NaN`");
        assert!(of(f64::NEG_INFINITY).unwrap_err().to_string().contains("`-inf`"));
    }

    #[test]
    fn absent_fields_and_nested_options_differ_in_json() {
        let option = |ty| WitType::Option(boxed(ty));
        let ty = record_of("note", option(option(WitType::Bool)));
        let of = |note| to_json(&ty, Val::Record(vec![("note".to_owned(), note)])).unwrap();
        let some = |value| Val::Option(Some(Box::new(value)));
        assert_eq!(of(Val::Option(None)), json!({}));
        assert_eq!(of(some(Val::Option(None))), json!({ "note": { "some": null } }));
        assert_eq!(of(some(some(Val::Bool(true)))), json!({ "note": { "some": true } }));
    }

    #[test]
    fn cases_results_flags_and_bytes_have_a_short_json_form() {
        let cases = vec![("circle".to_owned(), Some(WitType::F64)), ("none".to_owned(), None)];
        let variant = WitType::Variant(cases.into());
        let circle = Val::Variant("circle".to_owned(), Some(Box::new(Val::Float64(2.0))));
        assert_eq!(to_json(&variant, circle), Ok(json!({ "circle": 2.0 })));
        assert_eq!(to_json(&variant, Val::Variant("none".to_owned(), None)), Ok(json!("none")));
        let result = WitType::Result { ok: None, err: Some(boxed(WitType::String)) };
        assert_eq!(to_json(&result, Val::Result(Ok(None))), Ok(json!({ "ok": null })));
        let failed = Val::Result(Err(Some(Box::new(Val::String("no".to_owned())))));
        assert_eq!(to_json(&result, failed), Ok(json!({ "err": "no" })));
        let flags = WitType::Flags(vec!["read".to_owned(), "write".to_owned()]);
        let read = Val::Flags(vec!["read".to_owned()]);
        assert_eq!(to_json(&flags, read), Ok(json!(["read"])));
        let bytes = Val::List(b"hi".iter().copied().map(Val::U8).collect());
        assert_eq!(to_json(&WitType::Bytes, bytes), Ok(json!("aGk=")));
    }

    #[test]
    fn conversion_stops_at_the_limit_on_bytes() {
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let some = |value| Val::Option(Some(Box::new(value)));
        let list = |ty| WitType::List(boxed(ty));
        let cases = vec![("circle".to_owned(), Some(WitType::F64)), ("none".to_owned(), None)];
        for (ty, value) in [
            (WitType::Bool, Val::Bool(true)),
            (WitType::Int(IntType::U64), Val::U64(u64::MAX)),
            (list(WitType::Flags(names())), Val::List(vec![Val::Flags(names()); 3])),
            (WitType::Bytes, Val::List(vec![Val::U8(1); 4])),
            (
                WitType::Tuple(vec![WitType::F64, WitType::String]),
                Val::Tuple(vec![Val::Float64(0.5), Val::String("text".to_owned())]),
            ),
            (
                WitType::Variant(cases.clone().into()),
                Val::Variant("circle".to_owned(), Some(Box::new(Val::Float64(2.0)))),
            ),
            (WitType::Variant(cases.into()), Val::Variant("none".to_owned(), None)),
            (
                record_of("note", WitType::Option(boxed(WitType::Option(boxed(WitType::Bool))))),
                Val::Record(vec![("note".to_owned(), some(some(Val::Bool(true))))]),
            ),
            (WitType::Result { ok: None, err: None }, Val::Result(Ok(None))),
        ] {
            let bytes = approx_bytes(&to_json(&ty, value.clone()).unwrap());
            assert!(super::to_json(&ty, value.clone(), bytes).is_ok(), "{ty}");
            let error = super::to_json(&ty, value, bytes - 1).unwrap_err();
            assert_eq!(error.fault(), ValueFault::Limit, "{ty}: {error}");
        }
    }
}
