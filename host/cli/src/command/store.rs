//! `wattle store compact|verify|repair|backup|restore`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use wattle_api::document::store::{BackupDocument, DamageDocument};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::BlobStore as _;
use wattle_run::ports::store::{CompactionReport, Damage, DamageReport};
use wattle_store::{FileBlobs, RedbMemory, RedbStore, is_filled};

use crate::args::{StoreBackupArgs, StoreRestoreArgs};
use crate::client::{Client, Preload, find_server};
use crate::config::{ByteSize, Config, StoreKind};
use crate::data_folder::{LINK_KEY_FILE, TENANT_ROUTES_FILE, VERSIONS_FOLDER};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Files and folders of the data folder that a backup contains in addition to the store, the memory
/// and the blobs, because a host cannot create them again: code of archived versions, model routes
/// of tenants, and the secret of links.
const BACKED_UP_ENTRIES: &[&str] = &[VERSIONS_FOLDER, TENANT_ROUTES_FILE, LINK_KEY_FILE];

/// Verifies all stored data, through the running server or in the files.
pub(super) async fn verify(config: Config, output: Output) -> Result<Exit, Error> {
    let survey = match find_server(&config).await? {
        Some(remote) => Client::Remote(remote).get("/api/v1/store/verify").await?,
        None => survey_files(&config).await?,
    };
    output.data(&survey, render);
    Ok(if survey.damaged.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Surveys the files of a store that no process has open.
pub(super) async fn survey_files(config: &Config) -> Result<DamageReport, Error> {
    require_file_store(config)?;
    let file = config.store_file();
    let memory = config.memory_file();
    let read = move || (RedbStore::survey_file(file), RedbMemory::survey_file(memory));
    let read = tokio::task::spawn_blocking(read).await;
    let (survey, memory) = read.map_err(|error| unusable(error.to_string()))?;
    let mut survey = survey.map_err(Error::Store)?;
    survey.damaged.extend(memory_damage(memory)?);
    let blobs = config.blobs_folder();
    if blobs.exists() {
        let damaged = FileBlobs::open_read_only(blobs).find_damage().await;
        survey.damaged.extend(damaged.map_err(|failure| unusable(failure.message))?);
    }
    Ok(survey)
}

/// Returns the damage of a memory. A memory that cannot be opened counts as one damage.
fn memory_damage(found: Result<Vec<Damage>, Failure>) -> Result<Vec<Damage>, Error> {
    match found {
        Ok(damaged) => Ok(damaged),
        Err(failure) if failure.code == code::BROKEN => {
            Ok(vec![Damage { subject: "long-term memory".to_owned(), reason: failure.message }])
        }
        Err(failure) => Err(unusable(failure.message)),
    }
}

fn render(survey: &DamageReport) -> String {
    let mut lines = vec![format!("{} threads were read completely", survey.threads)];
    if survey.damaged.is_empty() {
        lines.push("nothing is damaged".into());
    }
    lines.extend(survey.damaged.iter().map(|damage| format!("damaged  {damage}")));
    lines.join("\n")
}

/// Rebuilds a damaged store and a damaged long-term memory.
pub(super) async fn repair(config: Config, output: Output) -> Result<Exit, Error> {
    require_file_store(&config)?;
    require_no_server(&config, "repaired").await?;
    let (file, memory) = (config.store_file(), config.memory_file());
    let repair = move || {
        let (mut survey, old) = RedbStore::repair_file(file).map_err(Error::Store)?;
        let memory =
            RedbMemory::repair_file(memory).map_err(|failure| unusable(failure.message))?;
        let (damaged, old_memory) = memory.unzip();
        survey.damaged.extend(damaged.unwrap_or_default());
        Ok::<_, Error>((survey, old, old_memory))
    };
    let repaired = tokio::task::spawn_blocking(repair).await;
    let (survey, old, old_memory) = repaired.map_err(|error| unusable(error.to_string()))??;
    let files = json!({ "survey": survey, "damaged_file": old, "damaged_memory_file": old_memory });
    output.data(&files, |_| {
        let mut lines = vec![render(&survey)];
        for old in std::iter::once(&old).chain(&old_memory) {
            lines.push(format!("the damaged file was renamed to `{}`", old.display()));
        }
        lines.join("\n")
    });
    Ok(Exit::Ok)
}

/// Copies all data to a new folder.
pub(super) async fn backup(
    config: Config,
    args: &StoreBackupArgs,
    output: Output,
) -> Result<Exit, Error> {
    require_file_store(&config)?;
    require_empty_folder(&args.folder)?;
    let data = config.data.clone();
    let client = Client::open(config, Preload::Store).await?;
    let made = client.post("/api/v1/store/backup", &json!({})).await;
    client.close().await;
    let made: BackupDocument = made?;
    let from = PathBuf::from(&made.folder);
    let copied_entries =
        BACKED_UP_ENTRIES.iter().try_for_each(|name| copy(&data.join(name), &from.join(name)));
    let moved = copied_entries.and_then(|()| move_folder(&from, &args.folder));
    if moved.is_err() {
        // The incomplete copy is removed. The error of the copy is returned below.
        let _ = fs::remove_dir_all(&from);
    }
    moved?;
    output.data(&json!({ "folder": args.folder, "damaged": made.damaged }), |_| {
        let mut lines = vec![format!("backed up to `{}`", args.folder.display())];
        for DamageDocument { subject, reason } in &made.damaged {
            lines.push(format!("left out  {subject}: {reason}"));
        }
        lines.join("\n")
    });
    Ok(if made.damaged.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Restores a backup to a data folder without a store.
pub(super) async fn restore(
    config: Config,
    args: &StoreRestoreArgs,
    output: Output,
) -> Result<Exit, Error> {
    require_file_store(&config)?;
    require_no_server(&config, "restored").await?;
    let file = config.store_file();
    let name = file.file_name().unwrap_or_default();
    if !args.folder.join(name).is_file() {
        return Err(Error::Usage {
            message: format!("`{}` contains no backup", args.folder.display()),
            hint: "name a folder that `wattle store backup` made".into(),
        });
    }
    let from = fs::canonicalize(&args.folder).map_err(Error::file("read", &args.folder))?;
    let marker = RedbStore::restore_marker(&file);
    if !is_resumed_restore(&config, &marker, &from) {
        require_no_data(&config)?;
    }
    fs::create_dir_all(&config.data).map_err(Error::file("create", &config.data))?;
    write_restore_marker(&marker, &from).map_err(Error::file("write", &marker))?;
    let entries = fs::read_dir(&args.folder).map_err(Error::file("read", &args.folder))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("read", &args.folder))?;
        if entry.file_name() != name {
            copy(&entry.path(), &config.data.join(entry.file_name()))?;
        }
    }
    // The store is copied last and renamed into place, so that an interrupted restore leaves no
    // store.
    let draft = marker.with_extension("restored");
    copy(&args.folder.join(name), &draft)?;
    fs::rename(&draft, &file)
        .and_then(|()| fs::File::open(&config.data)?.sync_all())
        .map_err(Error::file("write", &file))?;
    fs::remove_file(&marker).map_err(Error::file("delete", &marker))?;
    let survey = survey_files(&config).await?;
    output.data(&survey, |survey| {
        let data = config.data.display();
        format!("restored into `{data}`\n{}", render(survey))
    });
    Ok(if survey.damaged.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Returns the space of deleted data to the file system.
pub(super) async fn compact(client: &Client, output: Output) -> Result<Exit, Error> {
    let compacted: CompactionReport = client.post("/api/v1/store/compact", &json!({})).await?;
    output.data(&compacted, |compacted| {
        let size = |bytes: u64| ByteSize(bytes).to_string();
        format!("{} before, {} now", size(compacted.before_bytes), size(compacted.after_bytes))
    });
    Ok(Exit::Ok)
}

fn unusable(message: String) -> Error {
    Error::Unusable { what: "the store", message }
}

fn require_file_store(config: &Config) -> Result<(), Error> {
    let hint = match config.store.kind {
        StoreKind::Redb => return Ok(()),
        StoreKind::Postgres => {
            "the store is a database: use `pg_dump` and `pg_restore`, and \
                                `wattle trace --verify` for a thread"
        }
        StoreKind::Memory => "set `store.kind = \"redb\"` to keep threads in a file",
    };
    Err(Error::Usage { message: "the store has no files of its own".into(), hint: hint.into() })
}

async fn require_no_server(config: &Config, what: &str) -> Result<(), Error> {
    match find_server(config).await? {
        None => Ok(()),
        Some(remote) => Err(Error::Usage {
            message: format!("the server at {} has the store open", remote.address()),
            hint: format!("stop it: a store can be {what} only while no process uses it"),
        }),
    }
}

/// Checks that the target folder of a backup has no entries.
fn require_empty_folder(folder: &Path) -> Result<(), Error> {
    let mut entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::file("read", folder)(error)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("`{}` is not empty", folder.display()),
        hint: "name a folder that is empty or does not exist".into(),
    })
}

/// Records which backup is being restored to a data folder, so that an interrupted restore can be
/// repeated.
fn write_restore_marker(marker: &Path, from: &Path) -> io::Result<()> {
    let mut file = fs::File::create(marker)?;
    file.write_all(from.as_os_str().as_encoded_bytes())?;
    file.sync_all()
}

/// Returns true if the data folder contains an interrupted restore of the same backup.
fn is_resumed_restore(config: &Config, marker: &Path, from: &Path) -> bool {
    let is_same = |recorded: Vec<u8>| recorded == from.as_os_str().as_encoded_bytes();
    !is_filled(&config.store_file()) && fs::read(marker).is_ok_and(is_same)
}

/// Checks that the data folder contains no data, which a restore never overwrites.
fn require_no_data(config: &Config) -> Result<(), Error> {
    let blobs = config.blobs_folder();
    let has_blobs = fs::read_dir(&blobs).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_shard))
    });
    for (path, exists) in [
        (config.store_file(), is_filled(&config.store_file())),
        (config.memory_file(), is_filled(&config.memory_file())),
        (blobs, has_blobs),
    ] {
        if exists {
            return Err(Error::Usage {
                message: format!("`{}` contains data", path.display()),
                hint: "move the data folder away, or set `data` in wattle.toml to another one"
                    .into(),
            });
        }
    }
    Ok(())
}

fn is_shard(name: &str) -> bool {
    name.len() == 2
}

/// Copies a file or a folder and syncs it to disk. Skips a source that does not exist.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let metadata = match fs::metadata(from) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::file("read", from)(error)),
    };
    if metadata.is_dir() {
        fs::create_dir_all(to).map_err(Error::file("create", to))?;
        for entry in fs::read_dir(from).map_err(Error::file("read", from))? {
            let entry = entry.map_err(Error::file("read", from))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to)
        .and_then(|_| fs::File::open(to)?.sync_all())
        .map_err(Error::file("write", to))
}

/// Moves a folder. Copies it if the paths are on different file systems.
fn move_folder(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
    }
    // A rename can replace an empty folder.
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let copied = copy(from, to);
    if copied.is_err() {
        // The copy can be removed, because the folder did not exist or was empty before.
        let _ = fs::remove_dir_all(to);
    }
    copied?;
    fs::remove_dir_all(from).map_err(Error::file("delete", from))
}
