//! The configuration file, which is read again when it has changed.

use crate::config::{self, Config, SECTIONS};
use crate::load::scan::{self, Print};

/// The section that applies without a restart.
const GRANTS: &str = "grants";

/// What is known of the configuration file.
#[derive(Default)]
pub(super) struct ConfigFile {
    /// Fingerprint of the file when it was read last.
    print: Option<Print>,
    /// Sections that have changed since the start and do not apply yet.
    pending: Vec<&'static str>,
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

    /// Records that the file was read again. Returns the sections that now differ from those of the
    /// start and apply after a restart, if they are not the same as before.
    pub(super) fn record(
        &mut self,
        started: &Config,
        reread: &Reread,
    ) -> Option<Vec<&'static str>> {
        self.print = Some(reread.print.clone());
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

/// Reads the configuration file again, if its fingerprint is not `known`. The first call always
/// reads it: it can have changed since the host read it. Returns `None` for a host without a file.
pub(super) fn reread(started: &Config, known: Option<&Print>) -> Option<Reread> {
    let file = started.file.as_ref()?;
    // Taken before the file is read: a change meanwhile gives another fingerprint.
    let print = scan::print_of_file(file);
    if known == Some(&print) {
        return None;
    }
    // The other sections apply after a restart. Until then, the folders of the host are those with
    // which it has started, and no table may grant them.
    let config = config::read(Some(file)).and_then(|config| {
        started.check_grants_of(&config)?;
        Ok(Box::new(config))
    });
    let config = config.map_err(|error| error.to_string());
    Some(Reread { print, config })
}
