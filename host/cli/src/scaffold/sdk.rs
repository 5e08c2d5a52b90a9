//! Unpacks the SDK of a language from the binary.

use std::fs;
use std::io;
use std::path::Path;

use wattle_graph::id::Digest;

use crate::error::Error;
use crate::scaffold::embedded;
use crate::scaffold::language::Language;

/// The file with the digest of an unpacked SDK, in its folder.
const MARK: &str = ".digest";

/// Unpacks the SDK of a language into a folder, unless the folder already contains this version of
/// the SDK. Another version is replaced. Returns the digest of the SDK.
///
/// # Errors
///
/// [`Error::File`].
pub fn unpack(language: Language, folder: &Path) -> Result<Digest, Error> {
    let digest = digest(language);
    if fs::read_to_string(folder.join(MARK)).is_ok_and(|known| known == digest.to_hex()) {
        return Ok(digest);
    }
    // The folder is replaced as a whole, so that no file of another version remains.
    let draft = folder.with_extension("part");
    let written = remove(&draft)
        .and_then(|()| write(language, &draft, digest))
        .and_then(|()| remove(folder))
        .and_then(|()| fs::rename(&draft, folder));
    written.map_err(Error::file("write", folder))?;
    Ok(digest)
}

fn digest(language: Language) -> Digest {
    let parts = files(language).map(|(path, content)| format!("{path} {}\n", Digest::of(content)));
    Digest::of(parts.collect::<String>().as_bytes())
}

fn files(language: Language) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    embedded::files_in(format!("sdk/{language}"))
}

fn write(language: Language, folder: &Path, digest: Digest) -> io::Result<()> {
    for (path, content) in files(language) {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(&file, content)?;
    }
    fs::write(folder.join(MARK), digest.to_hex())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn unpacked(language: Language) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        unpack(language, &folder.path().join("sdk")).unwrap();
        folder
    }

    #[test]
    fn each_sdk_has_the_contract_the_license_and_its_manifest() {
        for (language, files) in [
            (Language::Rust, ["wit/wattle/node.wit", "LICENSE", "Cargo.toml"]),
            (Language::Typescript, ["wit/node.wit", "LICENSE", "package.json"]),
            (Language::Python, ["src/wattle/wit/node.wit", "LICENSE", "pyproject.toml"]),
            (Language::C, ["bindings/plugin.h", "LICENSE", "wattle.h"]),
        ] {
            let folder = unpacked(language);
            for file in files {
                assert!(folder.path().join("sdk").join(file).is_file(), "{language}: {file}");
            }
        }
        assert_eq!(Language::value_variants().len(), 4);
    }

    /// Registries and unpacked SDKs show a README without the rest of the repository.
    #[test]
    fn readme_links_only_to_files_of_its_sdk() {
        for &language in Language::value_variants() {
            let names: Vec<&str> = files(language).map(|(path, _)| path).collect();
            let mut readmes = files(language).filter(|(path, _)| path.ends_with("README.md"));
            let (path, content) = readmes.next().unwrap();
            let folder = path.trim_end_matches("README.md");
            let text = std::str::from_utf8(content).unwrap();
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            for target in targets.filter(|it| !it.is_empty() && !it.starts_with("https://")) {
                let file = format!("{folder}{target}");
                assert!(names.contains(&file.as_str()), "{language}: {path} links to {target}");
            }
        }
    }

    #[test]
    fn the_workspace_of_the_rust_sdk_has_its_crates_and_what_they_inherit() {
        let folder = unpacked(Language::Rust).keep();
        let read = |path: &str| -> toml::Table {
            fs::read_to_string(folder.join("sdk").join(path)).unwrap().parse().unwrap()
        };
        let workspace = &read("Cargo.toml")["workspace"];
        let members = workspace["members"].as_array().unwrap();
        assert_eq!(members.len(), 2);
        let known = workspace["dependencies"].as_table().unwrap();
        let mut used = 0;
        for member in members {
            let manifest = read(&format!("{}/Cargo.toml", member.as_str().unwrap()));
            let own = manifest["dependencies"].as_table().unwrap();
            for (name, _) in own.iter().filter(|(_, it)| it.get("workspace").is_some()) {
                assert!(known.contains_key(name), "{name}");
                used += 1;
            }
        }
        assert!(used > 0 && known.len() < 15, "{known:?}");
        let macros = known["wattle-plugin-macros"]["path"].as_str().unwrap();
        assert!(folder.join("sdk").join(macros).join("src/lib.rs").is_file(), "{macros}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_typescript_sdk_omits_what_only_its_developers_need() {
        let folder = unpacked(Language::Typescript);
        let manifest = fs::read_to_string(folder.path().join("sdk/package.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["name"], "wattle-plugin");
        assert!(manifest["dependencies"]["esbuild"].is_string());
        assert!(manifest.get("devDependencies").is_none());
        for module in [&manifest["exports"]["."], &manifest["bin"]["wattle-plugin"]] {
            let module = module.as_str().unwrap();
            assert!(folder.path().join("sdk").join(module).is_file(), "{module}");
        }
    }

    #[test]
    fn an_unpacked_sdk_is_kept_unless_its_version_differs() {
        let folder = tempfile::tempdir().unwrap();
        let sdk = folder.path().join("sdk");
        let digest = unpack(Language::C, &sdk).unwrap();
        fs::write(sdk.join("own.c"), "").unwrap();
        assert_eq!(unpack(Language::C, &sdk).unwrap(), digest);
        assert!(sdk.join("own.c").is_file(), "it was unpacked twice");
        fs::write(sdk.join(MARK), "another").unwrap();
        unpack(Language::C, &sdk).unwrap();
        assert!(!sdk.join("own.c").exists() && sdk.join("wattle.h").is_file());
        assert_ne!(unpack(Language::Python, &sdk).unwrap(), digest);
        assert!(!sdk.join("wattle.h").exists());
    }
}
