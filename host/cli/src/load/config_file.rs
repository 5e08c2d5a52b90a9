//! The configuration file, which is read again after each change.

use std::path::Path;

use tokio::time::Instant;

use crate::config::{self, Config, SECTIONS};
use crate::error::Error;
use crate::load::scan::{self, Fingerprint};
use crate::load::watcher::DEBOUNCE;

/// The section that applies without a restart.
const GRANTS: &str = "grants";

/// The state of the configuration file.
#[derive(Default)]
pub(super) struct ConfigFile {
    /// Fingerprint of the file when it was read last.
    fingerprint: Option<Fingerprint>,
    /// Fingerprint of a change that is not read yet, and the time at which it was found.
    deferred: Option<(Fingerprint, Instant)>,
    /// Sections that have changed since the start and do not apply yet.
    pending: Vec<&'static str>,
}

/// Selects the changes of the file that are read.
pub(super) enum ChangeFilter {
    /// All changes.
    Any,
    /// Only the change that led to this fingerprint, because the file has not changed again for
    /// some time.
    Settled(Option<Fingerprint>),
}

/// The result of a check of the file.
pub(super) enum FileCheck {
    /// No change.
    Unchanged,
    /// A change that is not read yet, with its fingerprint. The file may be incomplete.
    Changing(Fingerprint),
    /// A change that was read.
    Read(Reread),
}

/// The file that was read again.
pub(super) struct Reread {
    fingerprint: Fingerprint,
    /// The configuration, or the reason why it is not valid.
    pub(super) config: Result<Box<Config>, String>,
}

impl ConfigFile {
    /// Returns the fingerprint of the file when it was read last.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint.clone()
    }

    /// Returns the fingerprint of the deferred change, if it was found at least [`DEBOUNCE`] ago.
    pub(super) fn settled(&self) -> Option<Fingerprint> {
        let (fingerprint, since) = self.deferred.as_ref()?;
        (since.elapsed() >= DEBOUNCE).then(|| fingerprint.clone())
    }

    /// Defers a change of the file. Returns the time from which the file may be read, if it does
    /// not change again before that time.
    pub(super) fn defer(&mut self, fingerprint: Fingerprint) -> Instant {
        let known = self.deferred.take().filter(|(known, _)| *known == fingerprint);
        let (_, since) =
            self.deferred.insert(known.unwrap_or_else(|| (fingerprint, Instant::now())));
        *since + DEBOUNCE
    }

    /// Records that the file was read again. Returns the sections that differ from the
    /// configuration at the start and apply after a restart. Returns `None` if these are the same
    /// sections as after the last read, or if there are none.
    pub(super) fn record(
        &mut self,
        started: &Config,
        reread: &Reread,
    ) -> Option<Vec<&'static str>> {
        self.fingerprint = Some(reread.fingerprint.clone());
        self.deferred = None;
        let config = reread.config.as_ref().ok()?;
        let is_pending = |name: &&str| {
            *name != GRANTS && config.sections.get(*name) != started.sections.get(*name)
        };
        let pending: Vec<&'static str> = SECTIONS.iter().copied().filter(is_pending).collect();
        if pending == self.pending {
            return None;
        }
        self.pending.clone_from(&pending);
        Some(pending).filter(|pending| !pending.is_empty())
    }
}

/// Reads the configuration file again, if its fingerprint is not `known` and the filter selects the
/// change. The first call always finds a change, because the file can have changed since the host
/// read it.
///
/// The result of reading is discarded if the file changes during the read, because a part of the
/// file can be valid and grant more than the whole file.
pub(super) fn reread(
    started: &Config,
    known: Option<&Fingerprint>,
    filter: &ChangeFilter,
) -> FileCheck {
    let Some(file) = started.file.as_ref() else { return FileCheck::Unchanged };
    let fingerprint = scan::fingerprint_of(file);
    if known == Some(&fingerprint) {
        return FileCheck::Unchanged;
    }
    if matches!(filter, ChangeFilter::Settled(settled) if settled.as_ref() != Some(&fingerprint)) {
        return FileCheck::Changing(fingerprint);
    }
    // The other sections apply after a restart. Until the restart, the host uses the folders of the
    // configuration with which it started, so the new tables of grants must not grant these
    // folders.
    let read = || -> Result<Box<Config>, Error> {
        let config = config::read(Some(file))?;
        started.check_grants_of(&config)?;
        Ok(Box::new(config))
    };
    match unless_changed(file, &fingerprint, read) {
        Ok(config) => {
            let config = config.map_err(|error| error.to_string());
            FileCheck::Read(Reread { fingerprint, config })
        }
        Err(fingerprint) => FileCheck::Changing(fingerprint),
    }
}

/// Reads a file. Returns the new fingerprint as an error if the file changes during the read.
fn unless_changed<T>(
    file: &Path,
    fingerprint: &Fingerprint,
    read: impl FnOnce() -> T,
) -> Result<T, Fingerprint> {
    let found = read();
    let after = scan::fingerprint_of(file);
    if after == *fingerprint { Ok(found) } else { Err(after) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wattle.toml");
        fs::write(&file, "").unwrap();
        let fingerprint = scan::fingerprint_of(&file);
        let rewrite = || fs::write(&file, "[grants.shop]\n").unwrap();
        assert_eq!(unless_changed(&file, &fingerprint, rewrite), Err(scan::fingerprint_of(&file)));
        let fingerprint = scan::fingerprint_of(&file);
        assert_eq!(unless_changed(&file, &fingerprint, || 1), Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_deferred_until_the_file_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wattle.toml");
        fs::write(&file, "").unwrap();
        let started = config::read(Some(&file)).unwrap();
        let mut known = ConfigFile::default();
        let check = |known: &ConfigFile| {
            reread(&started, known.fingerprint().as_ref(), &ChangeFilter::Settled(known.settled()))
        };
        let FileCheck::Read(first) = reread(&started, None, &ChangeFilter::Any) else { panic!() };
        known.record(&started, &first);
        assert!(matches!(check(&known), FileCheck::Unchanged));
        // Each of these partial contents of the file is a valid configuration.
        for part in ["[grants.shop]\n", "[grants.shop]\nllm = [\"chat\"]\n"] {
            fs::write(&file, part).unwrap();
            let FileCheck::Changing(fingerprint) = check(&known) else { panic!("{part} was read") };
            let settled = known.defer(fingerprint.clone());
            assert_eq!(known.defer(fingerprint), settled, "the time begins with the change");
            assert!(matches!(check(&known), FileCheck::Changing(_)));
            tokio::time::advance(DEBOUNCE).await;
        }
        let FileCheck::Read(Reread { config: Ok(config), .. }) = check(&known) else { panic!() };
        assert_eq!(config.grants.len(), 1);
    }
}
