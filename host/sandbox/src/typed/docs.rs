//! Documentation of a component's interfaces, from its custom section `package-docs`.
//!
//! The library `wit-parser` defines the format of the section: one byte with the version of the
//! format, and then JSON. That library rejects a section that names items which the component does
//! not have, as sections of published components do. The host therefore parses the section itself:
//! it looks documentation up by name and ignores all other names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ptr;

use serde::{Deserialize, Serialize};

use crate::load::description::MAX_DOC_CHARS as MAX_FUNCTION_CHARS;
use crate::load::text::sanitize;
use crate::typed::wit_type::WitType;

/// Name of the custom section.
pub(crate) const SECTION: &str = "package-docs";

/// Supported versions of the format. For the parts that the host reads, the versions differ only in
/// [`FunctionDocs`].
const VERSIONS: &[u8] = &[0, 1];

/// Maximum size of the section, in bytes. A longer section is ignored.
const MAX_BYTES: usize = 1 << 20;

/// Maximum length of the documentation of a type, a field or a case, in characters. Each use of a
/// type in a schema has a copy of the documentation.
pub(super) const MAX_DOC_CHARS: usize = 1_000;

/// The documentation of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PackageDocs {
    worlds: BTreeMap<String, WorldDocs>,
    interfaces: BTreeMap<String, InterfaceDocs>,
}

/// The documentation of a world. The maps without `exports` in their name have the imports of the
/// world, and the exports whose names differ from those of all imports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct WorldDocs {
    funcs: BTreeMap<String, FunctionDocs>,
    func_exports: BTreeMap<String, FunctionDocs>,
    interfaces: BTreeMap<String, InterfaceDocs>,
    interface_exports: BTreeMap<String, InterfaceDocs>,
    types: BTreeMap<String, TypeDocs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct InterfaceDocs {
    funcs: BTreeMap<String, FunctionDocs>,
    types: BTreeMap<String, TypeDocs>,
}

/// The documentation of a function: text in version 0, an object in version 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum FunctionDocs {
    Text(Option<String>),
    Object {
        #[serde(default)]
        docs: Option<String>,
    },
}

/// The documentation of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TypeDocs {
    /// Documentation of the type itself.
    pub(crate) docs: Option<String>,
    /// Documentation of its fields, cases and flags, by name.
    pub(crate) items: BTreeMap<String, String>,
}

impl FunctionDocs {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Object { docs: text } => text.as_deref(),
        }
    }

    fn cut(&mut self) {
        let (Self::Text(text) | Self::Object { docs: text }) = self;
        if let Some(text) = text {
            cut(text, MAX_FUNCTION_CHARS);
        }
    }
}

impl InterfaceDocs {
    fn cut(&mut self) {
        self.funcs.values_mut().for_each(FunctionDocs::cut);
        self.types.values_mut().for_each(TypeDocs::cut);
    }
}

impl TypeDocs {
    fn cut(&mut self) {
        for text in self.docs.iter_mut().chain(self.items.values_mut()) {
            cut(text, MAX_DOC_CHARS);
        }
    }
}

/// Sanitizes and truncates a text. This is done once, whatever the number of uses of the text.
fn cut(text: &mut String, max_chars: usize) {
    *text = sanitize(text.trim(), max_chars);
}

impl PackageDocs {
    /// Parses the content of the section, and sanitizes and truncates its texts. Returns `None` if
    /// the section is too long or cannot be parsed.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
        let (version, json) = section.split_first()?;
        if !VERSIONS.contains(version) || section.len() > MAX_BYTES {
            return None;
        }
        let mut docs: Self = serde_json::from_slice(json).ok()?;
        docs.interfaces.values_mut().for_each(InterfaceDocs::cut);
        for world in docs.worlds.values_mut() {
            world
                .funcs
                .values_mut()
                .chain(world.func_exports.values_mut())
                .for_each(FunctionDocs::cut);
            let inline = world.interfaces.values_mut().chain(world.interface_exports.values_mut());
            inline.for_each(InterfaceDocs::cut);
            world.types.values_mut().for_each(TypeDocs::cut);
        }
        Some(docs)
    }
}

/// The short name of an interface, or `None` for the component itself, and the name of a function
/// or a type.
type QualifiedName<'d> = (Option<&'d str>, &'d str);

/// The documentation of a package, by name. The time of a lookup does not depend on the number of
/// worlds and interfaces.
#[derive(Debug, Default)]
pub(crate) struct DocsIndex<'d> {
    functions: HashMap<QualifiedName<'d>, Option<&'d str>>,
    types: HashMap<QualifiedName<'d>, &'d TypeDocs>,
    /// Types of the interfaces of the package; `None` for a name that types of several interfaces
    /// have.
    unqualified_types: HashMap<&'d str, Option<&'d TypeDocs>>,
}

impl<'d> DocsIndex<'d> {
    /// Creates the index. If several texts document one name, the index has the first text. The
    /// interfaces of the package come first, and then its worlds. In a world, exports come before
    /// imports.
    pub(crate) fn new(docs: &'d PackageDocs) -> Self {
        let mut index = Self::default();
        let mut known = HashSet::new();
        for (name, interface) in &docs.interfaces {
            index.add_functions(Some(name), &interface.funcs);
            index.add_types(Some(name), &interface.types, &mut known);
            for type_name in interface.types.keys() {
                let docs = index.types.get(&(Some(name.as_str()), type_name.as_str())).copied();
                let unqualified = index.unqualified_types.entry(type_name);
                unqualified.and_modify(|docs| *docs = None).or_insert(docs);
            }
        }
        for world in docs.worlds.values() {
            index.add_functions(None, &world.func_exports);
            index.add_functions(None, &world.funcs);
            index.add_types(None, &world.types, &mut known);
            for (name, interface) in world.interface_exports.iter().chain(&world.interfaces) {
                index.add_functions(Some(name), &interface.funcs);
                index.add_types(Some(name), &interface.types, &mut known);
            }
        }
        index
    }

    fn add_functions(
        &mut self,
        interface: Option<&'d str>,
        functions: &'d BTreeMap<String, FunctionDocs>,
    ) {
        for (name, docs) in functions {
            self.functions.entry((interface, name.as_str())).or_insert(docs.text());
        }
    }

    /// Adds types. Names with equal documentation get the same reference, which `known` contains.
    fn add_types(
        &mut self,
        interface: Option<&'d str>,
        types: &'d BTreeMap<String, TypeDocs>,
        known: &mut HashSet<&'d TypeDocs>,
    ) {
        for (name, docs) in types {
            let docs = known.get(docs).copied().unwrap_or(docs);
            known.insert(docs);
            self.types.entry((interface, name.as_str())).or_insert(docs);
        }
    }

    /// Returns the documentation of a function. `interface` is the short name of the interface that
    /// has the function, or `None` for a function of the component itself.
    pub(crate) fn of_function(&self, interface: Option<&str>, function: &str) -> Option<&'d str> {
        self.functions.get(&(interface, function)).copied().flatten()
    }

    /// Returns the documentation of the type with a name in an interface, or in the component
    /// itself. An interface can use a type of another interface under the same name. If the
    /// interface has no documentation of the type and only one interface of the package has a type
    /// of that name, the function therefore returns the documentation of that type.
    pub(crate) fn of_type(&self, interface: Option<&str>, name: &str) -> Option<&'d TypeDocs> {
        let own = self.types.get(&(interface, name)).copied();
        own.or_else(|| self.unqualified_types.get(name).copied().flatten())
    }
}

/// The documentation of types, by their structure, because wasmtime knows types without their
/// names. Texts can be long, so documentation is compared by its reference: [`DocsIndex`] returns
/// the same reference for equal documentation.
#[derive(Debug, Default)]
pub(crate) struct DocsOfTypes<'a> {
    /// `None` for a type that has several names with different documentation.
    by_type: HashMap<WitType, Option<&'a TypeDocs>>,
    undocumented: HashSet<WitType>,
}

impl<'a> DocsOfTypes<'a> {
    pub(crate) fn insert(&mut self, ty: WitType, docs: &'a TypeDocs) {
        let known = self.by_type.entry(ty).or_insert(Some(docs));
        if known.is_some_and(|known| !ptr::eq(known, docs)) {
            *known = None;
        }
    }

    /// Adds a type that has a name without documentation.
    pub(crate) fn insert_undocumented(&mut self, ty: WitType) {
        self.undocumented.insert(ty);
    }

    /// Returns true if the type has a name, with or without documentation.
    pub(crate) fn has_name(&self, ty: &WitType) -> bool {
        self.by_type.contains_key(ty) || self.undocumented.contains(ty)
    }

    pub(crate) fn get(&self, ty: &WitType) -> Option<&'a TypeDocs> {
        self.by_type.get(ty).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JSON: &str = r#"{
        "docs": "Ignored.",
        "worlds": { "shop": {
            "docs": "Ignored as well.",
            "stability": { "stable": { "since": "1.0.0" } },
            "func_exports": { "pay": { "docs": "Pays." } },
            "interfaces": { "ops": { "funcs": { "run": "Runs." } } },
            "types": { "coin": { "docs": "A coin." } }
        } },
        "interfaces": {
            "orders": {
                "funcs": { "close": { "docs": "Closes.", "stability": "unknown" } },
                "types": { "line": { "docs": "A line.", "items": { "sku": "What." } } }
            },
            "other": { "types": { "size": { "docs": "One size." } } },
            "another": { "types": { "size": { "docs": "Another size." } } }
        }
    }"#;

    fn section(version: u8, json: &str) -> Vec<u8> {
        [&[version], json.as_bytes()].concat()
    }

    #[test]
    fn documentation_is_found_by_the_name_of_the_item() {
        let docs = PackageDocs::parse(&section(1, JSON)).unwrap();
        let docs = DocsIndex::new(&docs);
        assert_eq!(docs.of_function(None, "pay"), Some("Pays."));
        assert_eq!(docs.of_function(Some("orders"), "close"), Some("Closes."));
        assert_eq!(docs.of_function(Some("ops"), "run"), Some("Runs."));
        assert_eq!(docs.of_function(Some("ops"), "pay"), None);
        let line = docs.of_type(Some("orders"), "line").unwrap();
        assert_eq!((line.docs.as_deref(), line.items["sku"].as_str()), (Some("A line."), "What."));
        assert_eq!(docs.of_type(None, "coin").unwrap().docs.as_deref(), Some("A coin."));
        // Another interface uses the type.
        assert_eq!(docs.of_type(Some("ops"), "line"), Some(line));
        assert_eq!(docs.of_type(Some("ops"), "size"), None);
    }

    #[test]
    fn sections_that_cannot_be_read_are_ignored() {
        assert_eq!(PackageDocs::parse(&section(0, "{}")), Some(PackageDocs::default()));
        assert_eq!(PackageDocs::parse(&section(2, "{}")), None);
        assert_eq!(PackageDocs::parse(&section(1, "{")), None);
        assert_eq!(PackageDocs::parse(b""), None);
        assert_eq!(PackageDocs::parse(&section(1, &" ".repeat(MAX_BYTES))), None);
    }

    /// Each use of a text reads the whole text, so a long text must be truncated before.
    #[test]
    fn texts_are_truncated_when_the_section_is_parsed() {
        let long = "x\u{7}".repeat(10_000);
        let ty = json!({ "docs": long, "items": { "sku": long } });
        let docs = json!({
            "worlds": { "shop": {
                "func_exports": { "pay": { "docs": long } },
                "interfaces": { "ops": { "funcs": { "run": long } } },
                "types": { "coin": ty },
            } },
            "interfaces": { "orders": {
                "funcs": { "close": " Closes.\n" },
                "types": { "line": ty },
            } },
        });
        let docs = PackageDocs::parse(&section(1, &docs.to_string())).unwrap();
        let docs = DocsIndex::new(&docs);
        for (interface, function) in [(None, "pay"), (Some("ops"), "run")] {
            let text = docs.of_function(interface, function);
            assert_eq!(text, Some("x".repeat(MAX_FUNCTION_CHARS).as_str()), "{function}");
        }
        assert_eq!(docs.of_function(Some("orders"), "close"), Some("Closes."));
        let cut = "x".repeat(MAX_DOC_CHARS);
        for (interface, name) in [(None, "coin"), (Some("orders"), "line")] {
            let ty = docs.of_type(interface, name).unwrap();
            assert_eq!(
                (ty.docs.as_deref(), &ty.items["sku"]),
                (Some(cut.as_str()), &cut),
                "{name}"
            );
        }
    }

    #[test]
    fn first_documentation_of_a_function_is_used() {
        let json = r#"{
            "worlds": {
                "a": {
                    "funcs": { "run": "Import.", "stop": "Import." },
                    "func_exports": { "run": "Export." },
                    "interfaces": { "ops": { "funcs": { "do": "Import." } } },
                    "interface_exports": { "ops": { "funcs": { "do": "Export." } } }
                },
                "b": {
                    "func_exports": { "run": "Later.", "stop": "Later." },
                    "interface_exports": { "orders": { "funcs": { "close": "Inline." } } }
                }
            },
            "interfaces": { "orders": { "funcs": { "close": "Package." } } }
        }"#;
        let docs = PackageDocs::parse(&section(1, json)).unwrap();
        let docs = DocsIndex::new(&docs);
        assert_eq!(docs.of_function(None, "run"), Some("Export."));
        assert_eq!(docs.of_function(None, "stop"), Some("Import."));
        assert_eq!(docs.of_function(Some("ops"), "do"), Some("Export."));
        assert_eq!(docs.of_function(Some("orders"), "close"), Some("Package."));
    }

    #[test]
    fn equal_types_with_different_documentation_have_none() {
        let json = r#"{ "interfaces": { "i": { "types": {
            "one": { "docs": "One." }, "same": { "docs": "One." }, "other": { "docs": "Other." }
        } } } }"#;
        let docs = PackageDocs::parse(&section(1, json)).unwrap();
        let docs = DocsIndex::new(&docs);
        let [one, same, other] =
            ["one", "same", "other"].map(|name| docs.of_type(Some("i"), name).unwrap());
        let mut found = DocsOfTypes::default();
        found.insert(WitType::Bool, one);
        found.insert(WitType::Bool, same);
        assert_eq!(found.get(&WitType::Bool), Some(one));
        found.insert(WitType::Bool, other);
        assert_eq!(found.get(&WitType::Bool), None);
        assert_eq!(found.get(&WitType::Char), None);
        found.insert_undocumented(WitType::String);
        assert_eq!(found.get(&WitType::String), None);
        let has_name =
            [WitType::Bool, WitType::String, WitType::Char].map(|ty| found.has_name(&ty));
        assert_eq!(has_name, [true, true, false]);
    }
}
