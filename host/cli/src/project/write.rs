//! Writes files atomically.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wattle_graph::mapping::ProjectedFile;

/// Writes files to a folder, each with the sequence number of its event. A failed file is logged
/// and does not affect the others.
pub(super) async fn all(folder: PathBuf, files: Vec<(u64, ProjectedFile)>) {
    let written = tokio::task::spawn_blocking(move || {
        for (seq, file) in files {
            let path = folder.join(&file.path);
            if let Err(error) = write(&path, seq, &file.content) {
                tracing::warn!(path = %path.display(), %error, "cannot write a file projection");
            }
        }
    });
    if let Err(error) = written.await {
        tracing::warn!(%error, "some files of a run were not written");
    }
}

fn write(path: &Path, seq: u64, content: &Value) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    let mut place = path.to_owned();
    if let Ok(found) = fs::read(&place) {
        if found == text {
            return Ok(());
        }
        // Another event's file has this name, so the sequence number is added.
        place = beside(path, seq);
        if fs::read(&place).is_ok_and(|found| found == text) {
            return Ok(());
        }
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = place.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(&draft, &place)
}

fn beside(path: &Path, seq: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(ending) => path.with_file_name(format!("{stem}-{seq}.{}", ending.to_string_lossy())),
        None => path.with_file_name(format!("{stem}-{seq}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writing_again_is_idempotent_and_equal_names_get_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/x.json");
        for _ in 0..2 {
            write(&path, 7, &json!({ "n": 1 })).unwrap();
            write(&path, 1_007, &json!({ "n": 2 })).unwrap();
        }
        let mut names: Vec<String> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["x-1007.json", "x.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"n\": 1\n}\n");
    }
}
