//! Runs the preparation commands of a build, and repeats them only if their inputs have changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use wattle_graph::id::Digest;

use crate::build::{process, record};
use crate::error::Error;
use crate::load::manifest::build::{BuildCommand, BuildTable};

/// The file with the digest of everything that the last preparation depended on.
pub(super) const MARK: &str = "prepared";

/// Runs the commands under `prepare`, unless they have succeeded with the same inputs. The commands
/// can change what a build depends on, so the record of the last build is removed before they run.
pub(super) async fn prepare(
    folder: &Path,
    table: &BuildTable,
    sdk: Option<Digest>,
    work: &Path,
) -> Result<(), Error> {
    if table.prepare.is_empty() {
        return Ok(());
    }
    let mark = work.join(MARK);
    let inputs = || inputs(folder, table, sdk).to_hex();
    if fs::read_to_string(&mark).is_ok_and(|prepared| prepared == inputs()) {
        return Ok(());
    }
    // The digest is removed first, because an interrupted command can leave an incomplete result
    // even if the inputs equal the recorded ones.
    record::remove(&mark)?;
    record::remove(&work.join(record::MARK))?;
    for command in &table.prepare {
        process::run(folder, &table.env, command).await?;
    }
    fs::create_dir_all(work).map_err(Error::file("create", work))?;
    // The digest is computed after the commands, because they may change an input: npm writes its
    // lock file.
    fs::write(&mark, inputs()).map_err(Error::file("write", &mark))
}

fn inputs(folder: &Path, table: &BuildTable, sdk: Option<Digest>) -> Digest {
    // A missing file is also an input: when the file is created, the commands run again.
    let content =
        |path: &PathBuf| fs::read(folder.join(path)).ok().map(|content| Digest::of(&content));
    let files: Vec<Option<Digest>> = table.prepare_inputs.iter().map(content).collect();
    let commands: &[BuildCommand] = &table.prepare;
    // The path of the app folder is an input, because a virtual environment of Python contains it.
    let place = folder.display().to_string();
    let inputs = json!([place, commands, table.env, table.prepare_inputs, files, sdk]);
    Digest::of(inputs.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(command: &[&str]) -> BuildTable {
        let words: Vec<String> = command.iter().map(ToString::to_string).collect();
        BuildTable {
            prepare: vec![words.try_into().unwrap()],
            prepare_inputs: vec!["lock".into()],
            ..BuildTable::default()
        }
    }

    /// Prepares an app whose command appends a line to `log`. Returns whether the preparation
    /// succeeded, and the number of lines.
    async fn prepared(folder: &Path, table: &BuildTable, sdk: Option<Digest>) -> (bool, usize) {
        let done = prepare(folder, table, sdk, &folder.join("work")).await.is_ok();
        (done, fs::read_to_string(folder.join("log")).unwrap_or_default().lines().count())
    }

    #[tokio::test]
    async fn a_preparation_is_repeated_only_after_a_change_or_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let log = table(&["sh", "-c", "echo x >> log"]);
        let fails = table(&["sh", "-c", "exit 1"]);
        let prepared = async |table: &BuildTable, sdk: Option<Digest>| {
            prepared(folder.path(), table, sdk).await
        };
        assert_eq!(prepared(&fails, None).await, (false, 0));
        assert_eq!(prepared(&log, None).await, (true, 1));
        assert_eq!(prepared(&log, None).await, (true, 1));
        fs::write(folder.path().join("lock"), "1").unwrap();
        assert_eq!(prepared(&log, None).await, (true, 2));
        let sdk = Some(Digest::of(b"another SDK"));
        assert_eq!(prepared(&log, sdk).await, (true, 3));
        assert_eq!(prepared(&fails, None).await, (false, 3));
        let again = prepared(&log, sdk).await;
        assert_eq!(again, (true, 4), "the failed commands may have removed packages");
    }

    #[tokio::test]
    async fn a_preparation_removes_the_record_of_the_last_build() {
        let folder = tempfile::tempdir().unwrap();
        let log = table(&["sh", "-c", "echo x >> log"]);
        let prepared = async || prepared(folder.path(), &log, None).await;
        assert_eq!(prepared().await, (true, 1));
        let built = folder.path().join("work").join(record::MARK);
        fs::write(&built, "").unwrap();
        assert_eq!(prepared().await, (true, 1));
        assert!(built.exists());
        fs::write(folder.path().join("lock"), "1").unwrap();
        assert_eq!(prepared().await, (true, 2));
        assert!(!built.exists());
    }

    #[tokio::test]
    async fn inputs_are_compared_in_the_form_that_the_commands_have_left() {
        let folder = tempfile::tempdir().unwrap();
        let writes = table(&["sh", "-c", "echo x >> log; echo locked > lock"]);
        let prepared = async || prepared(folder.path(), &writes, None).await;
        assert_eq!(prepared().await, (true, 1));
        assert_eq!(prepared().await, (true, 1));
        fs::write(folder.path().join("lock"), "pulled").unwrap();
        assert_eq!(prepared().await, (true, 2));
        assert_eq!(prepared().await, (true, 2));
    }
}
