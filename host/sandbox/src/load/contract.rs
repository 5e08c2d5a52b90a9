//! Checks a component's imports and exports against the contract.

use serde::{Deserialize, Serialize};

use crate::import;
use crate::load::interface::Interface;
use crate::load::rejection::Rejection;
use crate::typed::export_name::{is_candidate, without_version};
use crate::wasi;

/// The package of the contract.
const PACKAGE: &str = "wattle:plugin";

/// Supported versions of the contract: `0.1.0`, `0.1.1` and so on.
const SUPPORTED_VERSION: &str = "0.1";

/// Supported versions of WASI.
const SUPPORTED_WASI_VERSION: &str = "0.2";

/// Interfaces that a plugin may export.
const EXPORTS: &[&str] = &["node", "tool", "reducer", "web"];

/// Maximum number of exports that a message names.
const MAX_NAMES_SHOWN: usize = 5;

/// The imports and exports of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentWorld {
    /// Version of the contract that the component was built for; empty for a typed component.
    pub(crate) version: String,
    /// Imported interfaces, without versions.
    pub(crate) imports: Vec<String>,
    /// Exported interfaces of the contract, or interfaces and functions of a typed component,
    /// without versions.
    pub(crate) exports: Vec<String>,
    /// Whether the component imports WASI.
    pub(crate) wasi: bool,
    /// Whether the component is typed: it exports no interface of the contract, but functions that
    /// can be tools.
    #[serde(default)]
    pub(crate) is_typed: bool,
}

impl ComponentWorld {
    /// Returns true if the component exports this interface of the contract.
    pub(crate) fn has_export(&self, name: &str) -> bool {
        let mut interfaces = self.exports.iter().filter_map(|path| Interface::parse(path));
        interfaces.any(|interface| interface.package == PACKAGE && interface.name == name)
    }

    /// Returns true if the component imports an interface of this package.
    pub(crate) fn imports_package(&self, package: &str) -> bool {
        let mut interfaces = self.imports.iter().filter_map(|path| Interface::parse(path));
        interfaces.any(|interface| interface.package == package)
    }
}

/// Checks the names of imports and exports. Their types are checked when they are linked.
pub(crate) fn check(imports: &[String], exports: &[String]) -> Result<ComponentWorld, Rejection> {
    let Exports { version, paths: exports, is_typed } = check_exports(exports)?;
    let mut paths = Vec::with_capacity(imports.len());
    let mut wasi = false;
    for import in imports {
        let interface = check_import(import, is_typed)?;
        wasi |= wasi::PACKAGES.contains(&interface.package);
        paths.push(interface.path());
    }
    paths.sort_unstable();
    Ok(ComponentWorld { version, imports: paths, exports, wasi, is_typed })
}

/// The exports of a component that the host uses.
struct Exports {
    /// Version of the contract; empty for a typed component.
    version: String,
    paths: Vec<String>,
    is_typed: bool,
}

fn check_exports(exports: &[String]) -> Result<Exports, Rejection> {
    let known = |text: &str| {
        Interface::parse(text)
            .as_ref()
            .is_some_and(|it| it.package == PACKAGE && EXPORTS.contains(&it.name))
    };
    let (ours, others): (Vec<&String>, Vec<&String>) = exports.iter().partition(|name| known(name));
    let interfaces: Vec<Interface<'_>> =
        ours.iter().filter_map(|name| Interface::parse(name)).collect();
    if let Some(foreign) =
        interfaces.iter().find(|interface| !interface.is_compatible_with(SUPPORTED_VERSION))
    {
        return Err(wrong_version("exports", *foreign));
    }
    let (version, mut paths): (String, Vec<String>) = match interfaces.first() {
        Some(first) => (first.version.to_owned(), interfaces.iter().map(Interface::path).collect()),
        None => (String::new(), typed_exports(&others)?),
    };
    // The order in a component depends on its build and has no meaning.
    paths.sort_unstable();
    paths.dedup();
    Ok(Exports { version, paths, is_typed: interfaces.is_empty() })
}

/// Returns the exports that may be functions for tools, or interfaces with such functions. Their
/// types are known only when the component is compiled.
fn typed_exports(exports: &[&String]) -> Result<Vec<String>, Rejection> {
    let candidates = exports.iter().filter(|name| is_candidate(name));
    let paths: Vec<String> = candidates.map(|name| without_version(name)).collect();
    if paths.is_empty() { Err(no_plugin_export(exports)) } else { Ok(paths) }
}

/// Checks the name of an import. A typed component may import interfaces of other packages, for
/// types that its functions use; the linker refuses such an interface if it has functions.
fn check_import(text: &str, is_typed: bool) -> Result<Interface<'_>, Rejection> {
    let unknown = |hint: &str| {
        Rejection::new(
            "unknown-import",
            &format!("it imports `{text}`, which this host lacks"),
            hint,
        )
    };
    let Some(interface) = Interface::parse(text) else {
        return Err(unknown("import interfaces of `wattle:plugin` only"));
    };
    if interface.package == PACKAGE {
        if !interface.is_compatible_with(SUPPORTED_VERSION) {
            return Err(wrong_version("imports", interface));
        }
        if import::INTERFACES.contains(&interface.name) {
            return Ok(interface);
        }
        return Err(unknown("update the host: the plugin was built for a newer host"));
    }
    if wasi::PACKAGES.contains(&interface.package) {
        if interface.is_compatible_with(SUPPORTED_WASI_VERSION) {
            return Ok(interface);
        }
        return Err(unknown("this host supports WASI 0.2; build for `wasm32-wasip2`"));
    }
    if is_typed && is_candidate(text) {
        return Ok(interface);
    }
    Err(unknown("import interfaces of `wattle:plugin`, or of WASI 0.2, only"))
}

fn wrong_version(what: &str, interface: Interface<'_>) -> Rejection {
    let path = interface.path();
    let version = match interface.version {
        "" => "no version".to_owned(),
        version => format!("version {version}"),
    };
    Rejection::new(
        "wit-version",
        &format!(
            "it {what} `{path}` of {version}; this host supports {PACKAGE}@{SUPPORTED_VERSION}"
        ),
        format!(
            "build it with an SDK for {PACKAGE}@{SUPPORTED_VERSION}, or use a host for its version"
        ),
    )
}

fn no_plugin_export(others: &[&String]) -> Rejection {
    let names: Vec<String> =
        others.iter().take(MAX_NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
    let found = match names.len() {
        0 => "it exports nothing".to_owned(),
        _ => format!("it exports only {}", names.join(", ")),
    };
    Rejection::new(
        "missing-export",
        &format!("it is not a plugin: {found}"),
        format!(
            "export at least one of `node`, `tool`, `reducer` and `web` of \
             {PACKAGE}@{SUPPORTED_VERSION} with `export!` of the SDK, or a function of your own, \
             which becomes a tool"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_names(imports: &[&str], exports: &[&str]) -> Result<ComponentWorld, Rejection> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        check(&owned(imports), &owned(exports))
    }

    #[test]
    fn imports_and_exports_of_a_plugin_are_read() {
        let contract = check_names(
            &["wattle:plugin/types@0.1.0", "wasi:io/poll@0.2.6", "wasi:http/types@0.2.10"],
            &["wattle:plugin/web@0.1.3", "wattle:plugin/node@0.1.3", "init"],
        )
        .unwrap();
        assert_eq!(contract.version, "0.1.3");
        assert_eq!(contract.exports, ["wattle:plugin/node", "wattle:plugin/web"]);
        assert_eq!(contract.imports, ["wasi:http/types", "wasi:io/poll", "wattle:plugin/types"]);
        assert!(contract.wasi && contract.has_export("node") && !contract.has_export("tool"));
        assert!(contract.imports_package("wasi:http") && !contract.imports_package("wasi:cli"));
    }

    #[test]
    fn components_with_other_exports_are_typed() {
        let contract = check_names(
            &["acme:shop/types@1.0.0", "wasi:io/poll@0.2.6"],
            &["pay", "acme:shop/tool@1.0.0", "wasi:cli/run@0.2.6", "init"],
        )
        .unwrap();
        assert_eq!(contract.exports, ["acme:shop/tool", "pay"]);
        assert!(contract.is_typed && contract.version.is_empty() && contract.wasi);
        assert!(!contract.has_export("tool"), "`acme:shop/tool` is not of the contract");
        // If a component exports an interface of the contract, its other exports are not used.
        let contract = check_names(&[], &["wattle:plugin/node@0.1.0", "pay"]).unwrap();
        assert_eq!(contract.exports, ["wattle:plugin/node"]);
        assert!(!contract.is_typed && !contract.wasi);
        for import in ["the function exec", "wasi:io/poll@0.3.0", "wattle:plugin/teleport@0.1.0"] {
            assert_eq!(check_names(&[import], &["pay"]).unwrap_err().code, "unknown-import");
        }
    }

    #[test]
    fn invalid_imports_and_exports_have_stable_error_codes() {
        const NODE: &str = "wattle:plugin/node@0.1.0";
        let code = |imports: &[&str], exports: &[&str]| {
            let rejection = check_names(imports, exports).unwrap_err();
            (rejection.code, rejection.message)
        };
        let (of, message) = code(&[], &["wattle:plugin/node@0.2.0"]);
        assert_eq!(of, "wit-version");
        assert!(message.contains("0.2.0") && message.contains("@0.1"), "{message}");
        assert_eq!(code(&["wattle:plugin/llm@1.0.0"], &[NODE]).0, "wit-version");
        let (of, message) = code(&[], &["init", "wasi:cli/run@0.2.6"]);
        assert_eq!(of, "missing-export");
        assert!(message.contains("`wasi:cli/run@0.2.6`"), "{message}");
        assert!(code(&[], &[]).1.contains("nothing"));
        for import in [
            "evil:host/files@0.1.0",
            "the function exec",
            "wasi:http/client@0.3.0",
            "wasi:io/poll@0.3.0",
            "wattle:plugin/teleport@0.1.0",
        ] {
            let (of, message) = code(&[import], &[NODE]);
            assert_eq!(of, "unknown-import");
            assert!(message.contains(import), "{message}");
        }
    }
}
