//! Test of import cycles: files of one crate that import one another, directly or through others.
//!
//! An import is a `use` of a module of the same crate, or a full path such as `crate::log::Commit`
//! in code. So is a type or a constant that a parent names by its child, such as `child::Type`. A
//! function of a child, such as `child::function()`, is left out: the parent declares the child to
//! call it. A re-export is not an import of the file that has it: a file that imports through it
//! imports the re-exported file. Unit tests and visibilities are left out.
//!
//! The files of a cycle can only be read and changed together, so no crate has one. What several
//! files of a cycle need belongs into a file of its own. [`PARENTS`] has the exceptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use wattle_suite::guests::root;

use super::sources;

/// The path of a module in its crate; empty for the root.
type Module = Vec<String>;

/// Parents for which types and constants of their children are left out: the crate, the parent, and
/// the reason.
const PARENTS: &[(&str, &str, &str)] = &[
    (
        "host/graph",
        "definition",
        "serde names the written form of a set of nodes, and the form converts into the set",
    ),
    (
        "host/model",
        "provider",
        "it chooses a builder of responses, and the builders implement the trait of its exchange",
    ),
    ("host/model", "provider::image", "it asks each format for the maximum images of a request"),
    ("plugins/apps/nl2sql", "statement", "it calls its children, and they return its type Refusal"),
    ("tests/xtask", "toolchains", "it builds the guests of the tables, whose rows are of its type"),
];

#[test]
fn no_files_import_one_another() {
    let mut wrong = Vec::new();
    for folder in crates() {
        for circle in of_crate(&folder) {
            let files = circle.into_iter().collect::<Vec<_>>().join(" ");
            wrong.push(format!("{}: {files}", folder.trim_end_matches("/src")));
        }
    }
    assert!(
        wrong.is_empty(),
        "these files import one another; move what several of them need into its own file:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_exception_is_needed() {
    for &(name, parent, _) in PARENTS {
        let folder = format!("{name}/src");
        let mut others = left_out(&folder);
        others.remove(parent);
        let found = circles(&files(&folder), &others);
        assert!(
            found.iter().any(|circle| circle.contains(parent)),
            "{parent} of {name} is in no cycle any more: remove its exception"
        );
    }
}

#[test]
fn cycles_through_other_files_and_re_exports_are_found() {
    let through = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("a.rs", "use crate::b::{self, B};\n"),
        ("b.rs", "pub(crate) use self::inner::Deep;\nuse super::c;\n"),
        ("b/inner.rs", "//! `crate::a` is not an import here.\npub struct Deep;\n"),
        ("c.rs", "fn f(_: crate::a::A) {}\n"),
    ];
    assert_eq!(found(&through, &[]), [circle(&["a", "b", "c"])]);
    let re_exported = [
        ("lib.rs", ""),
        ("a.rs", "use crate::b::Deep;\n"),
        ("b.rs", "pub use self::inner::Deep;\nuse crate::c::C;\n"),
        ("b/inner.rs", "use crate::a::A;\n"),
        ("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"),
    ];
    assert_eq!(found(&re_exported, &[]), [circle(&["a", "b::inner"])]);
}

#[test]
fn cycles_of_parents_and_children_are_found() {
    let files = [
        ("lib.rs", ""),
        ("a.rs", "mod b;\nmod c;\nmod d;\nstruct A(b::B, d::D);\nfn f() -> A { c::new() }\n"),
        ("a/b.rs", "use super::A;\npub(super) struct B;\n"),
        ("a/c.rs", "use super::A;\npub(super) fn new() -> A {}\n"),
        ("a/d.rs", "pub(in crate::a) struct D;\n"),
    ];
    assert_eq!(found(&files, &[]), [circle(&["a", "a::b"])]);
    assert!(found(&files, &["a"]).is_empty());
}

/// Returns the cycles of files, each a path and a text, with exceptions for some parents.
fn found(files: &[(&str, &str)], left_out: &[&str]) -> Vec<BTreeSet<String>> {
    let module = |path: &str| module_of(Path::new(path));
    let files = files.iter().map(|(path, text)| (module(path), code(text)));
    circles(&files.collect(), &left_out.iter().copied().collect())
}

fn circle(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns the source folders of all crates.
pub(super) fn crates() -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for part in ["host", "plugins", "tests"] {
        for file in sources(part) {
            let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if let Some((folder, _)) = path.split_once("/src/") {
                folders.insert(format!("{folder}/src"));
            }
        }
    }
    folders
}

/// Returns the cycles of a crate, each as the names of its modules.
pub(super) fn of_crate(folder: &str) -> Vec<BTreeSet<String>> {
    circles(&files(folder), &left_out(folder))
}

/// Returns the code of each module of a crate.
fn files(folder: &str) -> BTreeMap<Module, String> {
    let files = sources(folder).into_iter().map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        (module_of(file.strip_prefix(root().join(folder)).unwrap()), code(&text))
    });
    files.collect()
}

/// Returns the parents of a crate that are exceptions.
fn left_out(folder: &str) -> BTreeSet<&'static str> {
    let name = folder.trim_end_matches("/src");
    let of_crate = PARENTS.iter().filter(|(of, ..)| *of == name);
    of_crate.map(|(_, parent, _)| *parent).collect()
}

/// Returns the module of a file from its path in the source folder.
fn module_of(file: &Path) -> Module {
    let path = file.with_extension("");
    let mut parts: Module =
        path.iter().map(|part| part.to_str().unwrap_or_default().to_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        parts.pop();
    }
    parts
}

/// Returns the text without comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the sets of files that import one another, as the names of their modules. What the
/// parents in `left_out` name by their children is left out.
fn circles(files: &BTreeMap<Module, String>, left_out: &BTreeSet<&str>) -> Vec<BTreeSet<String>> {
    let imports = Imports::of(files, left_out);
    let edges: BTreeMap<&Module, BTreeSet<Module>> =
        files.keys().map(|file| (file, imports.of_file(file))).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        files.keys().map(|file| (file, reach(file, &edges))).collect();
    let mut circles = BTreeSet::new();
    for file in files.keys().filter(|file| reached[file].contains(file)) {
        let others = reached[file].iter().filter(|other| reached[*other].contains(file));
        let circle: BTreeSet<String> = others.map(|other| other.join("::")).collect();
        circles.insert(circle);
    }
    circles.into_iter().collect()
}

/// Returns all files that a file imports, directly or through others.
fn reach<'a>(
    file: &Module,
    edges: &'a BTreeMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = edges[file].iter().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(&edges[file]);
        }
    }
    reached
}

/// The imports of the files of a crate.
struct Imports {
    /// Paths from the root of the crate, by file.
    named: BTreeMap<Module, Vec<Module>>,
    /// The re-exports of each file, by the name that other files use.
    re_exported: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Imports {
    fn of(files: &BTreeMap<Module, String>, left_out: &BTreeSet<&str>) -> Self {
        let (mut named, mut re_exported) = (BTreeMap::new(), BTreeMap::new());
        for (file, text) in files {
            let (uses, rest) = use_items(text);
            let absolute = |path: &str| absolute(path, file, files);
            let mut paths: Vec<Module> =
                full_paths(&rest).into_iter().filter_map(|path| absolute(&path)).collect();
            if !left_out.contains(file.join("::").as_str()) {
                paths.extend(items(&rest).into_iter().filter_map(|path| absolute(&path)));
            }
            for (is_public, tree) in uses {
                let leaves = expand(&tree);
                let found = leaves.iter().filter_map(|leaf| absolute(leaf));
                if is_public {
                    let names = found.map(|path| (path.last().cloned().unwrap_or_default(), path));
                    re_exported.entry(file.clone()).or_insert_with(BTreeMap::new).extend(names);
                } else {
                    paths.extend(found);
                }
            }
            named.insert(file.clone(), paths);
        }
        Self { named, re_exported }
    }

    /// Returns the files that a file imports, without the root, which only declares the others.
    fn of_file(&self, file: &Module) -> BTreeSet<Module> {
        let found = self.named[file].iter().filter_map(|path| self.resolve(path, RE_EXPORTS));
        found.filter(|found| found != file && !found.is_empty()).collect()
    }

    /// Returns the file that defines what a path names, following at most `re_exports` re-exports.
    fn resolve(&self, path: &[String], re_exports: u32) -> Option<Module> {
        let length =
            (0..=path.len()).rev().find(|&length| self.named.contains_key(&path[..length]))?;
        let (file, rest) = path.split_at(length);
        let next = rest.first().and_then(|name| self.re_exported.get(file)?.get(name));
        match next {
            Some(next) if re_exports > 0 && next != path => {
                let path = [next.as_slice(), &rest[1..]].concat();
                self.resolve(&path, re_exports - 1)
            }
            _ => Some(file.to_vec()),
        }
    }
}

/// The maximum number of chained re-exports that are followed.
const RE_EXPORTS: u32 = 8;

/// Returns all `use` items of a text, each with whether it is a re-export, and the rest of the
/// text.
fn use_items(text: &str) -> (Vec<(bool, String)>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        let (is_public, tree) = match item.split_once("use ") {
            Some(("", tree)) => (false, tree),
            Some((before, tree)) if before.starts_with("pub") => (true, tree),
            _ => {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push_str(line);
        }
        let tree = tree.split(';').next().unwrap_or_default();
        uses.push((is_public, tree.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    (uses, rest)
}

/// Returns the paths of a use tree, without the names after `as`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        let path = path.trim_end_matches("::*").trim_end_matches("::self");
        return vec![path.to_owned()];
    };
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0_u32);
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| expand(&format!("{before}{part}"))).collect()
}

/// Beginnings of paths that begin at the root of the crate, at this module or at the parent module.
const FULL: [&str; 3] = ["crate::", "super::", "self::"];

/// Returns the paths in code that begin like one of [`FULL`].
fn full_paths(text: &str) -> Vec<String> {
    let mut paths = paths(text);
    paths.retain(|path| FULL.iter().any(|first| path.starts_with(first)));
    paths
}

/// Returns the other paths in code that name a type or a constant, such as `child::Type`.
fn items(text: &str) -> Vec<String> {
    let mut paths = paths(text);
    paths.retain(|path| {
        let is_item = |part: &str| part.starts_with(char::is_uppercase);
        !FULL.iter().any(|first| path.starts_with(first)) && path.split("::").any(is_item)
    });
    paths
}

/// Returns all paths in code.
fn paths(text: &str) -> Vec<String> {
    // The module of a visibility, such as `pub(in crate::log)`, is not imported.
    let text = text.replace("pub(in crate::", "pub(in ");
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = text.split(|letter: char| !is_part(letter));
    let paths = words.filter(|word| word.contains("::"));
    paths.map(|path| path.trim_end_matches(':').to_owned()).collect()
}

/// Returns a path from the root of the crate, or `None` if it leads out of the crate.
fn absolute(path: &str, file: &Module, files: &BTreeMap<Module, String>) -> Option<Module> {
    let mut parts = path.split("::").map(str::to_owned).peekable();
    let mut module = file.clone();
    match parts.peek().map(String::as_str) {
        Some("crate") => module.clear(),
        Some("self") => {}
        Some("super") => {
            module.pop();
        }
        _ => {
            let child: Module = module.iter().cloned().chain(parts.peek().cloned()).collect();
            return files.contains_key(&child).then(|| module.into_iter().chain(parts).collect());
        }
    }
    parts.next();
    while parts.next_if(|part| part == "super").is_some() {
        module.pop();
    }
    Some(module.into_iter().chain(parts).collect())
}
