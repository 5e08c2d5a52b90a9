//! Conversion of the types that wasmtime knows of a component to types of values with a JSON form.

use wasmtime::component::Type;

use crate::typed::wit_type::{IntType, WitType};

/// Maximum nesting of types, in levels. Each level is one or two levels of JSON and of its schema.
const MAX_DEPTH: usize = 20;

/// Maximum number of types, fields and cases of one function, where nested types count at each use.
/// A component can refer to one type from many places, so a small file can describe a very large
/// type.
pub(crate) const MAX_FUNCTION_TYPES: usize = 2_000;

/// Maximum length of the name of a parameter, a field or a case, in bytes. Each use of a type has a
/// copy of the names.
const MAX_NAME_BYTES: usize = 128;

/// Reads types, up to a maximum number of types, fields and cases.
pub(crate) struct TypeReader {
    limit: usize,
    left: usize,
}

impl TypeReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    /// Returns the number of types, fields and cases that were read so far.
    pub(crate) fn count(&self) -> usize {
        self.limit - self.left
    }

    /// Reads a type. The error is a predicate about the type, such as "contains a resource, which
    /// has no form in JSON".
    pub(crate) fn read(&mut self, ty: &Type) -> Result<WitType, String> {
        self.nested(ty, 1)
    }

    fn nested(&mut self, ty: &Type, depth: usize) -> Result<WitType, String> {
        self.take()?;
        if depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        let without_json = |what: &str| Err(format!("contains {what}, which has no form in JSON"));
        Ok(match ty {
            Type::Bool => WitType::Bool,
            Type::S8 => WitType::Int(IntType::S8),
            Type::U8 => WitType::Int(IntType::U8),
            Type::S16 => WitType::Int(IntType::S16),
            Type::U16 => WitType::Int(IntType::U16),
            Type::S32 => WitType::Int(IntType::S32),
            Type::U32 => WitType::Int(IntType::U32),
            Type::S64 => WitType::Int(IntType::S64),
            Type::U64 => WitType::Int(IntType::U64),
            Type::Float32 => WitType::F32,
            Type::Float64 => WitType::F64,
            Type::Char => WitType::Char,
            Type::String => WitType::String,
            Type::List(list) => match list.ty() {
                Type::U8 => WitType::Bytes,
                item => WitType::List(self.boxed(&item, depth)?),
            },
            Type::Tuple(tuple) => {
                let types = tuple.types().map(|ty| self.nested(&ty, depth + 1));
                WitType::Tuple(types.collect::<Result<_, _>>()?)
            }
            Type::Record(record) => {
                let fields = record
                    .fields()
                    .map(|field| Ok((self.name(field.name)?, self.nested(&field.ty, depth + 1)?)));
                WitType::Record(fields.collect::<Result<_, String>>()?)
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| {
                    let payload = case.ty.map(|ty| self.nested(&ty, depth + 1)).transpose()?;
                    Ok((self.name(case.name)?, payload))
                });
                WitType::Variant(cases.collect::<Result<Vec<_>, String>>()?.into())
            }
            Type::Enum(names) => WitType::Enum(self.names(names.names())?.into()),
            Type::Flags(names) => WitType::Flags(self.names(names.names())?),
            Type::Option(option) => WitType::Option(self.boxed(&option.ty(), depth)?),
            Type::Result(result) => WitType::Result {
                ok: result.ok().map(|ty| self.boxed(&ty, depth)).transpose()?,
                err: result.err().map(|ty| self.boxed(&ty, depth)).transpose()?,
            },
            Type::Own(_) | Type::Borrow(_) => return without_json("a resource"),
            Type::Future(_) => return without_json("a future"),
            Type::Stream(_) => return without_json("a stream"),
            Type::ErrorContext => return without_json("an error context"),
            Type::Map(_) => return Err("contains a map, which this host does not support".into()),
            Type::FixedLengthList(_) => {
                return Err(
                    "contains a list of fixed length, which this host does not support".into()
                );
            }
        })
    }

    fn boxed(&mut self, ty: &Type, depth: usize) -> Result<Box<WitType>, String> {
        self.nested(ty, depth + 1).map(Box::new)
    }

    fn names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<Vec<String>, String> {
        names.map(|name| self.name(name)).collect()
    }

    /// Checks and counts the name of a parameter, a field or a case.
    pub(crate) fn name(&mut self, name: &str) -> Result<String, String> {
        self.take()?;
        if name.len() > MAX_NAME_BYTES {
            return Err(format!(
                "contains a name of {} bytes, more than the limit of {MAX_NAME_BYTES}",
                name.len()
            ));
        }
        Ok(name.to_owned())
    }

    fn take(&mut self) -> Result<(), String> {
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| {
            format!("exceeds the limit of {} types, fields and cases", self.limit)
        })?;
        Ok(())
    }
}
