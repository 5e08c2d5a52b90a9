//! The record of the last build. As long as it holds, the commands of the build have nothing to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::json;
use wattle_graph::id::Digest;

use crate::build::sources;
use crate::error::Error;
use crate::load::manifest::build::BuildTable;

/// The file with the digest of everything that the last build depended on and made.
pub(super) const MARK: &str = "built";

/// Returns the digest of what the commands of a build depend on: the commands themselves, the SDK
/// and the sources. Returns `None` if not all sources are known, because there are none, or one of
/// them cannot be read or is a symbolic link.
pub(super) fn inputs(
    table: &BuildTable,
    watched: &[PathBuf],
    sdk: Option<Digest>,
) -> Option<Digest> {
    let mut files: BTreeMap<String, Option<Digest>> = BTreeMap::new();
    for path in watched {
        sources::visit(path, &mut |file, metadata| {
            let digest = if metadata.is_file() { digest(file) } else { None };
            files.insert(file.display().to_string(), digest);
        });
    }
    if files.is_empty() || files.values().any(Option::is_none) {
        return None;
    }
    let inputs = json!([table.commands, table.env, table.outputs, files, sdk]);
    Some(Digest::of(inputs.to_string().as_bytes()))
}

fn digest(file: &Path) -> Option<Digest> {
    fs::read(file).ok().map(|content| Digest::of(&content))
}

/// Returns true if the last build had these inputs, and none of its outputs has changed since.
pub(super) fn holds(work: &Path, inputs: Digest, outputs: &[PathBuf]) -> bool {
    let Ok(mark) = fs::read_to_string(work.join(MARK)) else { return false };
    let made = |output: &PathBuf| if output.is_file() { digest(output) } else { None };
    let made: Option<Vec<Digest>> = outputs.iter().map(made).collect();
    made.is_some_and(|made| mark == text(inputs, &made))
}

/// Records a build.
///
/// # Errors
///
/// [`Error::File`].
pub(super) fn write(work: &Path, inputs: Digest, outputs: &[Digest]) -> Result<(), Error> {
    let mark = work.join(MARK);
    fs::write(&mark, text(inputs, outputs)).map_err(Error::file("write", mark))
}

/// Removes the file of a record or of a preparation, if there is one.
///
/// # Errors
///
/// [`Error::File`].
pub(super) fn remove(mark: &Path) -> Result<(), Error> {
    match fs::remove_file(mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", mark)(error))
        }
        _ => Ok(()),
    }
}

fn text(inputs: Digest, outputs: &[Digest]) -> String {
    Digest::of(json!([inputs, outputs]).to_string().as_bytes()).to_hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(command: &str) -> BuildTable {
        let words = vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()];
        BuildTable { commands: vec![words.try_into().unwrap()], ..BuildTable::default() }
    }

    #[test]
    fn inputs_are_the_commands_the_sdk_and_the_sources() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src/deep/a.py");
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        fs::write(&source, "1").unwrap();
        let watched = [folder.path().join("src"), folder.path().join("missing")];
        let of =
            |command: &str, sdk: Option<Digest>| inputs(&table(command), &watched, sdk).unwrap();
        let before = of("make", None);
        assert_eq!(of("make", None), before);
        assert_ne!(of("make all", None), before);
        assert_ne!(of("make", Some(Digest::of(b"SDK"))), before);
        fs::write(&source, "2").unwrap();
        assert_ne!(of("make", None), before);
        fs::write(&source, "1").unwrap();
        assert_eq!(of("make", None), before, "only the content counts");
        fs::write(source.with_file_name("b.py"), "").unwrap();
        assert_ne!(of("make", None), before);
        fs::rename(source.with_file_name("b.py"), folder.path().join("missing")).unwrap();
        assert_ne!(of("make", None), before);
    }

    #[test]
    fn inputs_with_unknown_sources_have_no_digest() {
        let folder = tempfile::tempdir().unwrap();
        let watched = [folder.path().join("src")];
        assert_eq!(inputs(&table("make"), &watched, None), None, "there are no sources");
        fs::create_dir(&watched[0]).unwrap();
        fs::write(watched[0].join("a.py"), "").unwrap();
        assert!(inputs(&table("make"), &watched, None).is_some());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a.py", watched[0].join("b.py")).unwrap();
            assert_eq!(inputs(&table("make"), &watched, None), None);
        }
    }

    #[test]
    fn a_record_holds_as_long_as_the_inputs_and_the_outputs_do() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path();
        let outputs = [work.join("a.wasm"), work.join("b.wasm")];
        for output in &outputs {
            fs::write(output, "made").unwrap();
        }
        let of_inputs = Digest::of(b"inputs");
        let holds = || holds(work, of_inputs, &outputs);
        assert!(!holds());
        write(work, of_inputs, &[Digest::of(b"made"); 2]).unwrap();
        assert!(holds());
        assert!(!super::holds(work, Digest::of(b"others"), &outputs));
        fs::write(&outputs[1], "changed").unwrap();
        assert!(!holds());
        fs::remove_file(&outputs[1]).unwrap();
        assert!(!holds());
        fs::write(&outputs[1], "made").unwrap();
        assert!(holds());
    }
}
