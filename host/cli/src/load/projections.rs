//! The streams and files that an app describes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use wattle_graph::mapping::StreamMapping;
use wattle_run::app::Projections;

use crate::load::app_folder::AppFolder;

/// The folder with an app's streams.
const STREAMS: &str = "streams";

/// Reads an app's projections. Those of an old version are not kept: the endpoints that use them
/// are always those of the newest.
///
/// # Errors
///
/// A sentence for each file that is not valid.
pub(super) fn read(app: &AppFolder<'_>) -> Result<Projections, Vec<String>> {
    if app.is_old {
        return Ok(Projections::default());
    }
    let files = app.manifest.files.iter();
    let files = files.map(|(name, file)| (name.clone(), Arc::new(file.clone()))).collect();
    Ok(Projections { streams: streams(app.folder)?, files })
}

/// Reads the streams of an app's folder.
///
/// # Errors
///
/// A sentence for each file that is not valid.
pub fn streams(folder: &Path) -> Result<BTreeMap<String, Arc<StreamMapping>>, Vec<String>> {
    let (mut streams, mut problems) = (BTreeMap::new(), Vec::new());
    let entries = fs::read_dir(folder.join(STREAMS)).into_iter().flatten();
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let name = path.file_stem().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| path.extension().is_some_and(|it| it == "toml")) else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| StreamMapping::parse(&text)) {
            Ok(stream) => drop(streams.insert(name.to_owned(), Arc::new(stream))),
            Err(reason) => problems.push(format!("{STREAMS}/{name}.toml: {reason}")),
        }
    }
    if problems.is_empty() { Ok(streams) } else { Err(problems) }
}
