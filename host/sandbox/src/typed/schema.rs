//! JSON Schema of WIT types, for the arguments of tools.
//!
//! A schema describes the values that [`crate::typed::to_val`] accepts. Like the schemas of the
//! SDKs, this schema is of draft 2020-12 and has neither references nor `$schema`.

use serde_json::{Map, Value, json};

use crate::typed::docs::{DocsOfTypes, MAX_DOC_CHARS, TypeDocs};
use crate::typed::wit_type::{IntType, WitType};

/// Returns the schema of the arguments of a function: an object with a field for each parameter.
/// `own` has the types that the interface of the function names, and `all` those of all interfaces.
pub(crate) fn of_params(
    params: &[(String, WitType)],
    own: &DocsOfTypes<'_>,
    all: &DocsOfTypes<'_>,
) -> Value {
    SchemaWriter { own, all }.object(params, None)
}

struct SchemaWriter<'a> {
    own: &'a DocsOfTypes<'a>,
    all: &'a DocsOfTypes<'a>,
}

impl<'a> SchemaWriter<'a> {
    /// Returns the documentation of a type. An interface that uses a type of another interface does
    /// not name the types of its fields and cases.
    fn docs(&self, ty: &WitType) -> Option<&'a TypeDocs> {
        if self.own.has_name(ty) { self.own.get(ty) } else { self.all.get(ty) }
    }

    fn schema(&self, ty: &WitType) -> Value {
        let docs = self.docs(ty);
        let schema = match ty {
            WitType::Bool => json!({ "type": "boolean" }),
            WitType::Int(int) => integer(*int),
            WitType::F32 => {
                let most = f64::from(f32::MAX);
                json!({ "type": "number", "minimum": -most, "maximum": most })
            }
            WitType::F64 => json!({ "type": "number" }),
            WitType::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            WitType::String => json!({ "type": "string" }),
            WitType::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            WitType::List(item) => json!({ "type": "array", "items": self.schema(item) }),
            WitType::Tuple(types) => {
                let items: Vec<Value> = types.iter().map(|ty| self.schema(ty)).collect();
                let length = items.len();
                json!({
                    "type": "array", "prefixItems": items,
                    "minItems": length, "maxItems": length,
                })
            }
            WitType::Record(fields) => self.object(fields, docs),
            WitType::Variant(cases) => self.variant(cases, docs),
            WitType::Enum(names) => with_items(json!({ "type": "string", "enum": **names }), docs),
            WitType::Flags(names) => {
                let flag = with_items(json!({ "type": "string", "enum": names }), docs);
                json!({ "type": "array", "items": flag, "uniqueItems": true })
            }
            WitType::Option(inner) => {
                let schema = self.schema(inner);
                let some = if inner.is_nullable() { wrapped("some", schema) } else { schema };
                json!({ "anyOf": [some, { "type": "null" }] })
            }
            WitType::Result { ok, err } => {
                let payload = |ty: Option<&WitType>| {
                    ty.map_or_else(|| json!({ "type": "null" }), |ty| self.schema(ty))
                };
                let (ok, err) = (payload(ok.as_deref()), payload(err.as_deref()));
                json!({ "anyOf": [wrapped("ok", ok), wrapped("err", err)] })
            }
        };
        described(schema, docs.and_then(|docs| docs.docs.as_deref()))
    }

    /// Returns the schema of an object with fields. A field of an optional type may be absent.
    fn object(&self, fields: &[(String, WitType)], docs: Option<&TypeDocs>) -> Value {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|(name, ty)| (name.clone(), described(self.schema(ty), item(docs, name))))
            .collect();
        let required: Vec<&String> = fields
            .iter()
            .filter(|(_, ty)| !matches!(ty, WitType::Option(_)))
            .map(|(name, _)| name)
            .collect();
        json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    }

    /// Returns the schema of a variant: one alternative for all cases without a payload, and one
    /// alternative for each other case.
    fn variant(&self, cases: &[(String, Option<WitType>)], docs: Option<&TypeDocs>) -> Value {
        let plain: Vec<&String> =
            cases.iter().filter(|(_, ty)| ty.is_none()).map(|(name, _)| name).collect();
        let names = (!plain.is_empty())
            .then(|| with_items(json!({ "type": "string", "enum": plain }), docs));
        let objects = cases.iter().filter_map(|(name, ty)| {
            let schema = wrapped(name, self.schema(ty.as_ref()?));
            Some(described(schema, item(docs, name)))
        });
        let alternatives: Vec<Value> = names.into_iter().chain(objects).collect();
        json!({ "anyOf": alternatives })
    }
}

fn integer(ty: IntType) -> Value {
    let (least, most) = ty.bounds();
    // All bounds fit: the largest is the maximum of `u64`, and the smallest is the minimum of
    // `i64`.
    let bound = |number: i128| match u64::try_from(number) {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(i64::try_from(number).unwrap_or(i64::MIN)),
    };
    let (minimum, maximum) = (bound(least), bound(most));
    if !ty.is_wide() {
        return json!({ "type": "integer", "minimum": minimum, "maximum": maximum });
    }
    let pattern = match ty {
        IntType::U64 => "^(0|[1-9][0-9]{0,19})$",
        _ => "^(0|-?[1-9][0-9]{0,18})$",
    };
    json!({
        "type": ["integer", "string"], "minimum": minimum, "maximum": maximum, "pattern": pattern,
    })
}

/// Returns the schema of an object with one key.
fn wrapped(key: &str, schema: Value) -> Value {
    json!({
        "type": "object", "properties": { key: schema }, "required": [key],
        "additionalProperties": false,
    })
}

fn item<'d>(docs: Option<&'d TypeDocs>, name: &str) -> Option<&'d str> {
    docs?.items.get(name).map(String::as_str)
}

/// Adds the documentation of the names of an `enum` to the description of its schema, one line per
/// name. All lines together are limited to the maximum length of the documentation of one type.
fn with_items(schema: Value, docs: Option<&TypeDocs>) -> Value {
    let names = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let lines = names.filter_map(|name| item(docs, name).map(|text| (name, text)));
    let (mut description, mut left) = (String::new(), MAX_DOC_CHARS);
    for (name, text) in lines {
        let line = format!("{}`{name}`: {text}", if description.is_empty() { "" } else { "\n" });
        description.extend(line.chars().take(left));
        left = left.saturating_sub(line.chars().count());
        if left == 0 {
            break;
        }
    }
    described(schema, Some(&description))
}

/// Adds a description to a schema, before the description that the schema already has.
fn described(mut schema: Value, text: Option<&str>) -> Value {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return schema };
    let text = match schema["description"].as_str() {
        Some(own) => format!("{text}\n\n{own}"),
        None => text.to_owned(),
    };
    schema["description"] = text.into();
    schema
}

#[cfg(test)]
mod tests;
