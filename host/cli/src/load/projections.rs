//! The stream formats and file projections of an app.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wattle_graph::mapping::StreamProjection;
use wattle_run::app::Projections;

use crate::load::app_folder::AppFolder;
use crate::load::file::{self, DOCUMENT_BYTES};

/// Folder of an app's stream formats.
const STREAMS: &str = "streams";

/// Reads the projections of an app. An archived version has none, because the endpoints that use
/// projections are those of the newest version.
///
/// # Errors
///
/// A message for each invalid file.
pub(super) fn read(app: &AppFolder<'_>) -> Result<Projections, Vec<String>> {
    if app.is_old {
        return Ok(Projections::default());
    }
    let files = app.manifest.files.iter();
    let files = files.map(|(name, file)| (name.clone(), Arc::new(file.clone()))).collect();
    Ok(Projections { streams: streams(app.folder)?, files })
}

/// Reads the stream formats in the folder of an app.
///
/// # Errors
///
/// A message for each invalid file.
pub fn streams(folder: &Path) -> Result<BTreeMap<String, Arc<StreamProjection>>, Vec<String>> {
    let (mut streams, mut problems) = (BTreeMap::new(), Vec::new());
    if folder.join(STREAMS).symlink_metadata().is_err() {
        return Ok(streams);
    }
    let entries = file::list(folder, Path::new(STREAMS));
    for entry in entries.map_err(|error| vec![error.to_string()])? {
        let name = entry.path.file_stem().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| entry.has_ending("toml")) else { continue };
        let path = Path::new(STREAMS).join(entry.path.file_name().unwrap_or_default());
        let text = file::read_text(folder, &path, DOCUMENT_BYTES);
        let text = text.map_err(|error| error.to_string());
        match text.and_then(|text| StreamProjection::parse(&text)) {
            Ok(stream) => drop(streams.insert(name.to_owned(), Arc::new(stream))),
            Err(reason) => problems.push(format!("{STREAMS}/{name}.toml: {reason}")),
        }
    }
    if problems.is_empty() { Ok(streams) } else { Err(problems) }
}
