//! Files of a data set, which are inlined into inputs as data URLs.

use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Key of an object that is replaced by the content of a file.
const REFERENCE_KEY: &str = "$file";

/// Maximum size of a file in bytes. Providers accept a request with one image of this size.
const MAX_FILE_BYTES: u64 = 4 << 20;

const MEDIA_TYPES: [(&str, &str); 7] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("csv", "text/csv"),
    ("txt", "text/plain"),
];

/// Replaces every `{"$file": "name"}` with the content of the file as a data URL.
pub(crate) fn inline_files(value: &mut Value, folder: &Path) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| inline_files(item, folder)),
        Value::Object(fields) => {
            let Some(name) = fields.get(REFERENCE_KEY) else {
                return fields.values_mut().try_for_each(|field| inline_files(field, folder));
            };
            let name = name.as_str().filter(|_| fields.len() == 1);
            let name = name.ok_or("`$file` must be the name of a file, without other keys")?;
            *value = Value::String(data_url(name, folder)?);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn data_url(name: &str, folder: &Path) -> Result<String, String> {
    let path = Path::new(name);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || name.is_empty() {
        return Err(format!("`$file` names `{name}`, which is not in the folder of the data set"));
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == ending);
    let (_, media_type) = known.ok_or_else(|| {
        let known: Vec<&str> = MEDIA_TYPES.iter().map(|(known, _)| *known).collect();
        format!("`{name}` has an unknown type; the known ones are {}", known.join(", "))
    })?;
    let unreadable = |error| format!("`{name}` cannot be read: {error}");
    // A symbolic link can point outside of the folder even if the path is within it.
    let root = std::fs::canonicalize(folder).map_err(unreadable)?;
    let file = std::fs::canonicalize(folder.join(path)).map_err(unreadable)?;
    if !file.starts_with(&root) {
        return Err(format!("`$file` names `{name}`, which is not in the folder of the data set"));
    }
    let size = std::fs::metadata(&file).map_err(unreadable)?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("`{name}` has {size} bytes; the maximum is {MAX_FILE_BYTES}"));
    }
    let bytes = std::fs::read(&file).map_err(unreadable)?;
    Ok(format!("data:{media_type};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_become_data_urls() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.png"), b"hi").unwrap();
        let mut input = json!({ "parts": [{ "url": { "$file": "a.png" } }] });
        inline_files(&mut input, folder.path()).unwrap();
        assert_eq!(input["parts"][0]["url"], "data:image/png;base64,aGk=");
    }

    #[test]
    fn files_outside_of_the_folder_of_the_data_set_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("eval");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("a.png"), b"hi").unwrap();
        std::fs::write(inner.join("a.exe"), b"hi").unwrap();
        std::os::unix::fs::symlink(folder.path().join("a.png"), inner.join("link.png")).unwrap();
        let refused =
            |file: Value| inline_files(&mut json!({ "$file": file }), &inner).unwrap_err();
        assert!(refused(json!("../a.png")).contains("not in the folder"));
        assert!(refused(json!("/etc/a.png")).contains("not in the folder"));
        assert!(refused(json!("link.png")).contains("not in the folder"));
        assert!(refused(json!("a.exe")).contains("unknown type"));
        assert!(refused(json!("b.png")).contains("cannot be read"));
        assert!(refused(json!(1)).contains("the name of a file"));
    }
}
