//! WIT types of values that have a JSON form.

use std::fmt;

use crate::typed::by_name::ByName;

/// The type of a parameter, a result, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WitType {
    Bool,
    Int(IntType),
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`
    Bytes,
    List(Box<WitType>),
    Tuple(Vec<WitType>),
    Record(Vec<(String, WitType)>),
    Variant(ByName<(String, Option<WitType>)>),
    Enum(ByName<String>),
    Flags(Vec<String>),
    Option(Box<WitType>),
    Result {
        ok: Option<Box<WitType>>,
        err: Option<Box<WitType>>,
    },
}

/// A type of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IntType {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// 2^53, the largest number up to which every whole number is exact as a float. JSON parsers of
/// other languages read all numbers as floats.
pub(crate) const EXACT_INTEGER: i128 = 1 << 53;

impl IntType {
    /// Returns the smallest and the largest number of the type.
    pub(crate) fn bounds(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }

    /// Returns true if the type has numbers beyond [`EXACT_INTEGER`], which are strings in JSON.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }

    /// Returns the name of the type in WIT.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::U16 => "u16",
            Self::S32 => "s32",
            Self::U32 => "u32",
            Self::S64 => "s64",
            Self::U64 => "u64",
        }
    }
}

impl WitType {
    /// Returns true if `null` is the JSON form of a value of the type.
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Returns the length of the shortest name of a flag within a list, in bytes; `None` if no list
    /// has flags.
    pub(crate) fn shortest_listed_flag(&self) -> Option<usize> {
        self.shortest_flag(false)
    }

    fn shortest_flag(&self, is_listed: bool) -> Option<usize> {
        match self {
            Self::Flags(names) if is_listed => names.iter().map(String::len).min(),
            Self::List(item) => item.shortest_flag(true),
            Self::Tuple(types) => types.iter().filter_map(|ty| ty.shortest_flag(is_listed)).min(),
            Self::Record(fields) => {
                fields.iter().filter_map(|(_, ty)| ty.shortest_flag(is_listed)).min()
            }
            Self::Variant(cases) => {
                let types = cases.iter().filter_map(|(_, ty)| ty.as_ref());
                types.filter_map(|ty| ty.shortest_flag(is_listed)).min()
            }
            Self::Option(inner) => inner.shortest_flag(is_listed),
            Self::Result { ok, err } => {
                let types = [ok, err].into_iter().flatten();
                types.filter_map(|ty| ty.shortest_flag(is_listed)).min()
            }
            Self::Bool
            | Self::Int(_)
            | Self::F32
            | Self::F64
            | Self::Char
            | Self::String
            | Self::Bytes
            | Self::Enum(_)
            | Self::Flags(_) => None,
        }
    }
}

/// Writes the type in the syntax of WIT, with the parts of named types in braces.
impl fmt::Display for WitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int(int) => f.write_str(int.name()),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("list<u8>"),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Tuple(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", items.join(", "))
            }
            Self::Record(fields) => {
                let field = |(name, ty): &(String, Self)| format!("{name}: {ty}");
                let fields: Vec<String> = fields.iter().map(field).collect();
                write!(f, "record {{ {} }}", fields.join(", "))
            }
            Self::Variant(cases) => {
                let case = |(name, ty): &(String, Option<Self>)| match ty {
                    Some(ty) => format!("{name}({ty})"),
                    None => name.clone(),
                };
                let cases: Vec<String> = cases.iter().map(case).collect();
                write!(f, "variant {{ {} }}", cases.join(", "))
            }
            Self::Enum(names) => write!(f, "enum {{ {} }}", names.join(", ")),
            Self::Flags(names) => write!(f, "flags {{ {} }}", names.join(", ")),
            Self::Option(inner) => write!(f, "option<{inner}>"),
            Self::Result { ok, err } => match (ok, err) {
                (Some(ok), Some(err)) => write!(f, "result<{ok}, {err}>"),
                (Some(ok), None) => write!(f, "result<{ok}>"),
                (None, Some(err)) => write!(f, "result<_, {err}>"),
                (None, None) => f.write_str("result"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_in_wit() {
        let of = |ty: WitType| ty.to_string();
        let price = || WitType::Int(IntType::U32);
        let fields = vec![
            ("sku".to_owned(), WitType::String),
            ("price".to_owned(), WitType::Option(Box::new(price()))),
        ];
        assert_eq!(of(WitType::Record(fields)), "record { sku: string, price: option<u32> }");
        let cases = vec![("circle".to_owned(), Some(WitType::F64)), ("none".to_owned(), None)];
        assert_eq!(of(WitType::Variant(cases.into())), "variant { circle(f64), none }");
        let pair = WitType::Tuple(vec![WitType::Bytes, WitType::Char]);
        assert_eq!(of(WitType::List(Box::new(pair))), "list<tuple<list<u8>, char>>");
        let result = |ok: Option<WitType>, err: Option<WitType>| WitType::Result {
            ok: ok.map(Box::new),
            err: err.map(Box::new),
        };
        assert_eq!(of(result(None, Some(WitType::String))), "result<_, string>");
        assert_eq!(of(result(None, None)), "result");
        assert_eq!(
            of(WitType::Flags(vec!["read".into(), "write".into()])),
            "flags { read, write }"
        );
    }

    #[test]
    fn integer_types_have_the_bounds_of_their_width() {
        assert_eq!(IntType::S8.bounds(), (-128, 127));
        assert_eq!(IntType::U64.bounds(), (0, 18_446_744_073_709_551_615));
        assert!(IntType::S64.is_wide() && !IntType::U32.is_wide());
    }
}
