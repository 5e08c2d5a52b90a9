//! Figures about the shape of the source tree: lines and public types of the product, and import
//! cycles.
//!
//! `cargo test -p wattle-suite --test suite tidy::shape -- --ignored --nocapture` prints them, so
//! that a change of the structure can say what it has changed.
//!
//! A product line is a line of a source folder of `host` or `plugins` that is neither blank nor a
//! comment. Unit tests are left out, and so are files that only tests have. A public type is a
//! `pub` struct, enum, trait, type alias or union on a product line.

use std::fs;
use std::path::{Path, PathBuf};

use super::{circles, sources};

/// Beginnings of attributes of what only tests have.
const ONLY_TESTS: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"];

/// Keywords of items that are types.
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Numbers of lines and types in a source folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    /// All lines, with those of tests.
    raw: usize,
    product: usize,
    types: usize,
}

#[test]
#[ignore = "prints figures, which are compared by people"]
fn shape_of_the_tree() {
    let crates = circles::crates();
    let mut all = Size::default();
    for folder in crates.iter().filter(|folder| !folder.starts_with("tests/")) {
        let size = Size::of_folder(folder);
        assert!(size.product > 0, "{folder} has no product line");
        println!("{}", size.row(folder));
        all = all.and(size);
    }
    println!("{}", all.row("all"));
    let mut found = Vec::new();
    for folder in &crates {
        let name = folder.trim_end_matches("/src");
        found.extend(circles::of_crate(folder).into_iter().map(|circle| (name, circle)));
    }
    for (name, circle) in &found {
        let files: Vec<&str> = circle.iter().map(String::as_str).collect();
        println!("{:3} {name}: {}", files.len(), files.join(" "));
    }
    for part in ["host/", "plugins/", "tests/", ""] {
        let sizes = found.iter().filter(|(name, _)| name.starts_with(part));
        let sizes: Vec<usize> = sizes.map(|(_, circle)| circle.len()).collect();
        let largest = sizes.iter().max().copied().unwrap_or_default();
        println!("{:3} cycles in {part}*, largest {largest}", sizes.len());
    }
}

#[test]
fn blank_lines_comments_and_tests_are_no_product_lines() {
    let text = "//! A module.\n\n#[cfg(test)]\nmod cases;\nmod parts;\n\n/// Documented.\n\
                pub struct Part<'a>(&'a str);\npub(crate) enum Own {}\nfn f() {\n    // Why.\n}\n\
                pub unsafe trait Promise {}\n#[cfg(test)]\n#[expect(missing_docs)]\nmod tests {\n    \
                pub struct Sample;\n}\n";
    let file = Source::read(text);
    assert_eq!(file.size(), Size { raw: 18, product: 8, types: 2 });
    assert_eq!(file.test_modules, ["cases"]);
    let declared = |path: &str| test_module(Path::new(path), "cases");
    assert_eq!(declared("src/lib.rs"), Path::new("src/cases"));
    assert_eq!(declared("src/part.rs"), Path::new("src/part/cases"));
}

impl Size {
    fn of_folder(folder: &str) -> Self {
        let texts: Vec<(PathBuf, String)> = sources(folder)
            .into_iter()
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (path, text)
            })
            .collect();
        let files: Vec<(&Path, Source<'_>)> =
            texts.iter().map(|(path, text)| (path.as_path(), Source::read(text))).collect();
        let modules = files.iter().flat_map(|(path, file)| {
            file.test_modules.iter().map(move |module| test_module(path, module))
        });
        let modules: Vec<PathBuf> = modules.collect();
        files.iter().fold(Self::default(), |sum, (path, file)| {
            let path = path.with_extension("");
            let size = file.size();
            if modules.iter().any(|module| path.starts_with(module)) {
                sum.and(Self { raw: size.raw, ..Self::default() })
            } else {
                sum.and(size)
            }
        })
    }

    fn and(self, other: Self) -> Self {
        Self {
            raw: self.raw + other.raw,
            product: self.product + other.product,
            types: self.types + other.types,
        }
    }

    fn row(self, name: &str) -> String {
        let Self { raw, product, types } = self;
        format!("{name:34} {raw:7} raw {product:7} product {types:5} public types")
    }
}

/// The text of a source file.
struct Source<'a> {
    /// The number of all lines.
    raw: usize,
    /// The lines before the unit tests.
    lines: Vec<&'a str>,
    /// The names of child modules that only tests have.
    test_modules: Vec<&'a str>,
}

impl<'a> Source<'a> {
    fn read(text: &'a str) -> Self {
        let (mut lines, mut test_modules) = (Vec::new(), Vec::new());
        // The number of the first attribute of an item that only tests have.
        let mut attribute = None;
        for line in text.lines() {
            attribute = match attribute {
                None => ONLY_TESTS.iter().any(|it| line.starts_with(it)).then_some(lines.len()),
                Some(first) if line.starts_with("#[") => Some(first),
                Some(first) if line == "mod tests {" => {
                    lines.truncate(first);
                    break;
                }
                Some(_) => {
                    test_modules.extend(declared_module(line));
                    None
                }
            };
            lines.push(line);
        }
        Self { raw: text.lines().count(), lines, test_modules }
    }

    fn size(&self) -> Size {
        let product: Vec<&str> =
            self.lines.iter().map(|line| line.trim_start()).filter(|line| is_code(line)).collect();
        let types = product.iter().filter(|line| is_public_type(line)).count();
        Size { raw: self.raw, product: product.len(), types }
    }
}

fn is_code(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("//")
}

fn is_public_type(line: &str) -> bool {
    let Some(item) = line.strip_prefix("pub ") else { return false };
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    // A macro gives its types a name that begins with `$`.
    item.split_once(' ').is_some_and(|(kind, name)| TYPES.contains(&kind) && !name.starts_with('$'))
}

/// Returns the name of the module that a line declares.
fn declared_module(line: &str) -> Option<&str> {
    let (visibility, name) = line.strip_suffix(';')?.split_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
}

/// Returns the path, without extension, of a module that a file declares.
fn test_module(file: &Path, module: &str) -> PathBuf {
    let path = file.with_extension("");
    let is_root = path.ends_with("lib") || path.ends_with("main") || path.ends_with("mod");
    if is_root { path.with_file_name(module) } else { path.join(module) }
}
