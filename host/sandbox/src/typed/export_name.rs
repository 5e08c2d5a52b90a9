//! Names of exported functions, and of the tools that they become.

use crate::load::interface::Interface;

/// Maximum length of the name of a tool, in characters. Providers of models have the same limit.
const MAX_TOOL_NAME_CHARS: usize = 64;

/// Namespaces of interfaces that the host or its runtime defines.
const FOREIGN_NAMESPACES: &[&str] = &["wasi", "wattle"];

/// Names of exports that only the runtime of a toolchain calls: the function `init` of
/// componentize-qjs, and the interface `exports` of componentize-py.
const OF_TOOLCHAINS: &[&str] = &["init", "exports"];

/// The name of an exported function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionName<'a> {
    /// The interface with its version, or the name of an instance; `None` for a function of the
    /// component itself.
    pub(crate) interface: Option<&'a str>,
    /// Name of the function.
    pub(crate) function: &'a str,
}

/// Returns true if an export of a component may be a function that becomes a tool, or an interface
/// with such functions.
pub(crate) fn is_candidate(export: &str) -> bool {
    match Interface::parse(export) {
        Some(interface) => {
            let namespace = interface.package.split(':').next().unwrap_or_default();
            !FOREIGN_NAMESPACES.contains(&namespace)
        }
        None => !OF_TOOLCHAINS.contains(&export),
    }
}

/// Returns the name of an export without its version.
pub(crate) fn without_version(export: &str) -> String {
    Interface::parse(export).map_or_else(|| export.to_owned(), |interface| interface.path())
}

/// Returns the short name of an interface: `types` for `acme:shop/types@1.0.0`.
pub(crate) fn short_name(interface: &str) -> &str {
    Interface::parse(interface).map_or(interface, |interface| interface.name)
}

impl FunctionName<'_> {
    /// Returns the name of the tool: `function`, or `interface_function`.
    ///
    /// # Errors
    ///
    /// The reason why the name cannot be that of a tool.
    pub(crate) fn tool(self) -> Result<String, String> {
        let name = match self.interface {
            Some(interface) => format!("{}_{}", short_name(interface), self.function),
            None => self.function.to_owned(),
        };
        let name = name.replace('-', "_");
        if let Some(other) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
            return Err(format!("its name has the character `{}`", other.escape_default()));
        }
        if name.len() > MAX_TOOL_NAME_CHARS {
            return Err(format!(
                "the name of its tool would have {} characters, more than {MAX_TOOL_NAME_CHARS}",
                name.len()
            ));
        }
        Ok(name)
    }
}

/// Writes the name as in `acme:shop/orders.pay`.
impl std::fmt::Display for FunctionName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.interface {
            Some(interface) => write!(f, "{}.{}", without_version(interface), self.function),
            None => f.write_str(self.function),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_of_the_host_and_of_toolchains_do_not_become_tools() {
        for export in ["add", "ops", "acme:shop/orders@1.0.0", "acme:shop/init"] {
            assert!(is_candidate(export), "{export}");
        }
        for export in ["wasi:cli/run@0.2.6", "wattle:plugin/node@0.1.0", "init", "exports"] {
            assert!(!is_candidate(export), "{export}");
        }
    }

    #[test]
    fn tools_are_named_after_interface_and_function() {
        let tool = |interface, function| FunctionName { interface, function }.tool();
        assert_eq!(tool(None, "count-words").as_deref(), Ok("count_words"));
        let orders = Some("acme:shop/order-book@1.0.0");
        assert_eq!(tool(orders, "pay").as_deref(), Ok("order_book_pay"));
        assert_eq!(tool(Some("ops"), "get-URL").as_deref(), Ok("ops_get_URL"));
        assert!(tool(None, "[method]file.read").unwrap_err().contains("`[`"));
        assert!(tool(None, &"a".repeat(65)).unwrap_err().contains("65 characters"));
        let name = FunctionName { interface: orders, function: "pay" };
        assert_eq!(name.to_string(), "acme:shop/order-book.pay");
    }
}
