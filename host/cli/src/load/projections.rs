//! The stream formats and file projections of an app.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_graph::check::Problem;
use wattle_graph::id::AppName;
use wattle_graph::mapping::{FileProjection, StreamProjection};
use wattle_run::app::Projections;

use crate::config::Config;
use crate::data_folder::HostFiles;
use crate::load::app_folder::AppFolder;
use crate::load::file::{self, DOCUMENT_BYTES, FileError, TotalSize};
use crate::load::hinted_message::HintedMessage;
use crate::load::limits::STREAMS_BYTES;
use crate::load::manifest::{FILE, Manifest};

/// Folder of an app's stream formats.
const STREAMS: &str = "streams";

/// Reads the projections of an app. An archived version has no projections, because the endpoints
/// that use projections are those of the newest version.
///
/// # Errors
///
/// A message for each invalid file.
pub(super) fn read(app: &AppFolder<'_>) -> Result<Projections, Vec<String>> {
    if app.is_archived {
        return Ok(Projections::default());
    }
    let mut problems = check_files(app.manifest, app.config);
    let streams = streams(app.folder).unwrap_or_else(|found| {
        problems.extend(found);
        BTreeMap::new()
    });
    if !problems.is_empty() {
        return Err(problems.iter().map(ToString::to_string).collect());
    }
    let files = app.manifest.files.iter();
    let files = files.map(|(name, file)| (name.clone(), Arc::new(file.clone()))).collect();
    Ok(Projections { streams, files })
}

/// Returns a problem for each file projection that could overwrite files of the host. The folder
/// that the operator configures takes precedence over the folder that the app selects. A folder in
/// an environment variable is checked when files are written.
pub fn check_files(manifest: &Manifest, config: &Config) -> Vec<Problem> {
    let host_files = config.host_files();
    let app = &manifest.app.name;
    let problem = |(name, mapping): (&String, &FileProjection)| {
        reserved_folder(&host_files, config, app, name, mapping)
    };
    manifest.files.iter().filter_map(problem).collect()
}

fn reserved_folder(
    host_files: &HostFiles,
    config: &Config,
    app: &AppName,
    name: &str,
    mapping: &FileProjection,
) -> Option<Problem> {
    let operator = config.apps.get(app).and_then(|app| app.files.get(name));
    if operator.is_some_and(|files| !files.enabled) {
        return None;
    }
    let table = format!("files.{}", name.escape_debug());
    let (file, table, dir) = match operator.and_then(|files| files.dir.clone()) {
        Some(dir) => (config.file_name(), format!("apps.{app}.{table}"), dir),
        None => (FILE.to_owned(), table, PathBuf::from(&mapping.dir)),
    };
    let fixed = mapping.fixed_parts();
    let host_file = host_files.conflicting(&config.data.join(&dir), &fixed)?.to_owned();
    let folder = fixed.iter().fold(dir, |folder, part| folder.join(part));
    let message = format!(
        "`[{table}]` writes files to `{}`, and the host keeps `{}` in the data folder",
        folder.to_string_lossy().escape_debug(),
        host_file.display()
    );
    let hint = format!(
        "set `dir` to a folder that only the app uses, such as `files/{app}`; the operator can set \
         it under `[apps.{app}.files.{}]` in wattle.toml",
        name.escape_debug()
    );
    Some(HintedMessage::new(message, hint).into_problem(Path::new(&file)))
}

/// Reads the stream formats in the folder of an app.
///
/// # Errors
///
/// A problem for each invalid file. Its path is relative to the folder.
pub fn streams(folder: &Path) -> Result<BTreeMap<String, Arc<StreamProjection>>, Vec<Problem>> {
    let (mut streams, mut problems) = (BTreeMap::new(), Vec::new());
    if folder.join(STREAMS).symlink_metadata().is_err() {
        return Ok(streams);
    }
    let of_folder = |error: FileError| error.hinted().into_problem(Path::new(STREAMS));
    let entries = file::list(folder, Path::new(STREAMS));
    let mut total = TotalSize::new(format!("the files of `{STREAMS}`"), STREAMS_BYTES);
    for entry in entries.map_err(|error| vec![of_folder(error)])? {
        let name = entry.path.file_stem().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| entry.has_ending("toml")) else { continue };
        let path = Path::new(STREAMS).join(entry.path.file_name().unwrap_or_default());
        let text = file::read_text(folder, &path, DOCUMENT_BYTES);
        let text = text.map_err(|error| error.hinted());
        if let Ok(text) = &text
            && let Err(error) = total.add(text.len() as u64)
        {
            problems.push(of_folder(error));
            break;
        }
        let parse = |text: String| StreamProjection::parse(&text).map_err(HintedMessage::plain);
        match text.and_then(parse) {
            Ok(stream) => drop(streams.insert(name.to_owned(), Arc::new(stream))),
            Err(reason) => problems.push(reason.into_problem(&path)),
        }
    }
    if problems.is_empty() { Ok(streams) } else { Err(problems) }
}
