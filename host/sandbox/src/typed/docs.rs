//! Documentation of a component's interfaces, from its custom section `package-docs`.
//!
//! The section is the one of the library `wit-parser`: JSON after a byte for the version of the
//! format. That library refuses a section that names more than the component has, as the sections
//! of published components do. The host looks documentation up by name and ignores the rest.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::typed::wit_type::WitType;

/// Name of the custom section.
pub(crate) const SECTION: &str = "package-docs";

/// Versions of the format, which is the same for what the host reads.
const VERSIONS: &[u8] = &[0, 1];

/// Maximum size of the section, in bytes. A longer one is ignored.
const MAX_BYTES: usize = 1 << 20;

/// The documentation of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PackageDocs {
    worlds: BTreeMap<String, WorldDocs>,
    interfaces: BTreeMap<String, InterfaceDocs>,
}

/// The documentation of a world. The maps without `exports` in their name have what the world
/// imports, and exports of other names.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl PackageDocs {
    /// Parses the content of the section; `None` if it is too long or cannot be read.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
        let (version, json) = section.split_first()?;
        let is_known = VERSIONS.contains(version) && section.len() <= MAX_BYTES;
        is_known.then(|| serde_json::from_slice(json).ok()).flatten()
    }

    /// Returns the documentation of a function of an interface, by the short name of the interface,
    /// or of the component itself.
    pub(crate) fn of_function(&self, interface: Option<&str>, function: &str) -> Option<&str> {
        let found = match interface {
            Some(name) => self.interfaces_named(name).find_map(|docs| docs.funcs.get(function)),
            None => self.worlds.values().find_map(|world| {
                world.func_exports.get(function).or_else(|| world.funcs.get(function))
            }),
        };
        found?.text()
    }

    /// Returns the documentation of a type that an interface, or the component itself, gives a
    /// name. If that has none, it is the one of the only interface that has: an interface can use
    /// types of another one under the same name.
    pub(crate) fn of_type(&self, interface: Option<&str>, name: &str) -> Option<&TypeDocs> {
        let own = match interface {
            Some(interface) => {
                self.interfaces_named(interface).find_map(|docs| docs.types.get(name))
            }
            None => self.worlds.values().find_map(|world| world.types.get(name)),
        };
        own.or_else(|| {
            let mut others = self.interfaces.values().filter_map(|docs| docs.types.get(name));
            others.next().filter(|_| others.next().is_none())
        })
    }

    fn interfaces_named(&self, name: &str) -> impl Iterator<Item = &InterfaceDocs> {
        let inline = self.worlds.values().flat_map(move |world| {
            [world.interface_exports.get(name), world.interfaces.get(name)].into_iter().flatten()
        });
        self.interfaces.get(name).into_iter().chain(inline)
    }
}

/// The documentation of types, by their structure: the engine knows types without their names.
#[derive(Debug, Default)]
pub(crate) struct DocsOfTypes<'a> {
    /// `None` for a type that has several names with different documentation.
    by_type: HashMap<WitType, Option<&'a TypeDocs>>,
}

impl<'a> DocsOfTypes<'a> {
    pub(crate) fn insert(&mut self, ty: WitType, docs: &'a TypeDocs) {
        let known = self.by_type.entry(ty).or_insert(Some(docs));
        if *known != Some(docs) {
            *known = None;
        }
    }

    pub(crate) fn get(&self, ty: &WitType) -> Option<&'a TypeDocs> {
        self.by_type.get(ty).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
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
    fn documentation_is_found_by_name() {
        let docs = PackageDocs::parse(&section(1, JSON)).unwrap();
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

    #[test]
    fn types_with_two_names_have_no_documentation() {
        let docs = |text: &str| TypeDocs { docs: Some(text.to_owned()), items: BTreeMap::new() };
        let (one, same, other) = (docs("one"), docs("one"), docs("other"));
        let mut found = DocsOfTypes::default();
        found.insert(WitType::Bool, &one);
        found.insert(WitType::Bool, &same);
        assert_eq!(found.get(&WitType::Bool), Some(&one));
        found.insert(WitType::Bool, &other);
        assert_eq!(found.get(&WitType::Bool), None);
        assert_eq!(found.get(&WitType::Char), None);
    }
}
