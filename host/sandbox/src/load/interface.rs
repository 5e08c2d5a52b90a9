//! Names of interfaces, such as `wattle:plugin/llm@0.1.0`.

/// The parts of an interface's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface<'a> {
    /// Name of the package, such as `wattle:plugin`.
    pub(crate) package: &'a str,
    /// Name of the interface, such as `llm`.
    pub(crate) name: &'a str,
    /// Version, such as `0.1.0`; empty if the name has no version.
    pub(crate) version: &'a str,
}

impl<'a> Interface<'a> {
    /// Parses a name. Returns `None` if `text` does not name an interface of a package.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (path, version) = text.split_once('@').unwrap_or((text, ""));
        let (package, name) = path.split_once('/')?;
        package.contains(':').then_some(Self { package, name, version })
    }

    /// Returns the name without its version.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.package, self.name)
    }

    /// Returns true if the version is a patch version of `track`. `0.1.0` and `0.1.7` are patch
    /// versions of `0.1`, and `0.10.0` is not.
    pub(crate) fn is_compatible_with(&self, track: &str) -> bool {
        self.version
            .strip_prefix(track)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_are_parsed() {
        let llm = Interface::parse("wattle:plugin/llm@0.1.0").unwrap();
        assert_eq!((llm.package, llm.name, llm.version), ("wattle:plugin", "llm", "0.1.0"));
        assert_eq!(llm.path(), "wattle:plugin/llm");
        assert_eq!(Interface::parse("run"), None);
    }

    #[test]
    fn only_patch_versions_are_compatible() {
        let of = |text| Interface::parse(text).unwrap().is_compatible_with("0.1");
        assert!(of("a:b/c@0.1.0"));
        assert!(of("a:b/c@0.1.12"));
        assert!(!of("a:b/c@0.10.0"));
        assert!(!of("a:b/c@0.2.0"));
        assert!(!of("a:b/c@0.1.0-rc1"));
        assert!(!of("a:b/c"));
    }
}
