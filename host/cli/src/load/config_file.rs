//! The configuration file, which is read again when it has changed.

use std::path::Path;

use tokio::time::Instant;

use crate::config::{self, Config, SECTIONS};
use crate::error::Error;
use crate::load::scan::{self, Print};
use crate::load::watcher::DEBOUNCE;

/// The section that applies without a restart.
const GRANTS: &str = "grants";

/// What is known of the configuration file.
#[derive(Default)]
pub(super) struct ConfigFile {
    /// Fingerprint of the file when it was read last.
    print: Option<Print>,
    /// Fingerprint of a change that was not read yet, and when it was found.
    left: Option<(Print, Instant)>,
    /// Sections that have changed since the start and do not apply yet.
    pending: Vec<&'static str>,
}

/// Which changes of the file are read.
pub(super) enum Wanted {
    /// All.
    Any,
    /// Only the one with this fingerprint, which has not changed for a while.
    Settled(Option<Print>),
}

/// What a look at the file has found.
pub(super) enum Look {
    /// No change.
    Same,
    /// A change that is not read yet, with its fingerprint: the file may be in the middle of being
    /// written.
    Changing(Print),
    /// A change that was read.
    Read(Reread),
}

/// The file that was read again.
pub(super) struct Reread {
    print: Print,
    /// The configuration, or the reason why it is not valid.
    pub(super) config: Result<Box<Config>, String>,
}

impl ConfigFile {
    /// Returns the fingerprint of the file when it was read last.
    pub(super) fn print(&self) -> Option<Print> {
        self.print.clone()
    }

    /// Returns the fingerprint of the change that was left, if it was found at least [`DEBOUNCE`]
    /// ago.
    pub(super) fn settled(&self) -> Option<Print> {
        let (print, since) = self.left.as_ref()?;
        (since.elapsed() >= DEBOUNCE).then(|| print.clone())
    }

    /// Records that a change was left. Returns the time at which it can be read.
    pub(super) fn leave(&mut self, print: Print) -> Instant {
        let known = self.left.take().filter(|(known, _)| *known == print);
        let (_, since) = self.left.insert(known.unwrap_or_else(|| (print, Instant::now())));
        *since + DEBOUNCE
    }

    /// Records that the file was read again. Returns the sections that now differ from those of the
    /// start and apply after a restart, if they are not the same as before.
    pub(super) fn record(
        &mut self,
        started: &Config,
        reread: &Reread,
    ) -> Option<Vec<&'static str>> {
        self.print = Some(reread.print.clone());
        self.left = None;
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

/// Reads the configuration file again, if its fingerprint is not `known` and the change is wanted.
/// The first call always finds a change: the file can have changed since the host read it.
///
/// A part of a file can be valid and grant more than the whole file. So a file that changes while
/// it is read counts as not read.
pub(super) fn reread(started: &Config, known: Option<&Print>, wanted: &Wanted) -> Look {
    let Some(file) = started.file.as_ref() else { return Look::Same };
    let print = scan::print_of_file(file);
    if known == Some(&print) {
        return Look::Same;
    }
    if matches!(wanted, Wanted::Settled(settled) if settled.as_ref() != Some(&print)) {
        return Look::Changing(print);
    }
    // The other sections apply after a restart. Until then, the folders of the host are those with
    // which it has started, and no table may grant them.
    let read = || -> Result<Box<Config>, Error> {
        let config = config::read(Some(file))?;
        started.check_grants_of(&config)?;
        Ok(Box::new(config))
    };
    match unless_changed(file, &print, read) {
        Ok(config) => {
            let config = config.map_err(|error| error.to_string());
            Look::Read(Reread { print, config })
        }
        Err(print) => Look::Changing(print),
    }
}

/// Reads a file with a fingerprint. Returns the new fingerprint as an error if it is another one
/// after that.
fn unless_changed<T>(file: &Path, print: &Print, read: impl FnOnce() -> T) -> Result<T, Print> {
    let found = read();
    let after = scan::print_of_file(file);
    if after == *print { Ok(found) } else { Err(after) }
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
        let print = scan::print_of_file(&file);
        let rewrite = || fs::write(&file, "[grants.shop]\n").unwrap();
        assert_eq!(unless_changed(&file, &print, rewrite), Err(scan::print_of_file(&file)));
        let print = scan::print_of_file(&file);
        assert_eq!(unless_changed(&file, &print, || 1), Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_left_until_the_file_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wattle.toml");
        fs::write(&file, "").unwrap();
        let started = config::read(Some(&file)).unwrap();
        let mut known = ConfigFile::default();
        let look = |known: &ConfigFile| {
            reread(&started, known.print().as_ref(), &Wanted::Settled(known.settled()))
        };
        let Look::Read(first) = reread(&started, None, &Wanted::Any) else { panic!() };
        known.record(&started, &first);
        assert!(matches!(look(&known), Look::Same));
        // Each part of the file is valid.
        for part in ["[grants.shop]\n", "[grants.shop]\nllm = [\"chat\"]\n"] {
            fs::write(&file, part).unwrap();
            let Look::Changing(print) = look(&known) else { panic!("{part} was read") };
            let settled = known.leave(print.clone());
            assert_eq!(known.leave(print), settled, "the time begins with the change");
            assert!(matches!(look(&known), Look::Changing(_)));
            tokio::time::advance(DEBOUNCE).await;
        }
        let Look::Read(Reread { config: Ok(config), .. }) = look(&known) else { panic!() };
        assert_eq!(config.grants.len(), 1);
    }
}
