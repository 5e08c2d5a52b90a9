//! The one thread that writes: takes what waits in the queue and commits it together, so that the
//! more agents remember at once, the more share a flush.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, Durability, Error, ReadableTable as _, Table, WriteTransaction};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::failure::Failure;
use wattle_run::ports::memory::PutItem;
use wattle_run::ports::store::StoreError;

use crate::error::{backend, while_trying};
use crate::file::guarded;
use crate::file::handle::Source;
use crate::longterm::disk::fault::failure;
use crate::longterm::disk::table::{DOCUMENTS, EXPIRIES, Key, Row, get, row};
use crate::longterm::record::{Place, Record, Swap};

/// Changes that may wait; a caller with one more waits itself. Also the most that share a commit:
/// documents are small, so this stays below what one write may take.
pub(crate) const QUEUE_LIMIT: usize = 64;

/// Documents that one change removes at most: bounds how long others wait for it.
pub(crate) const REMOVED_AT_ONCE: usize = 1_000;

const COMMIT: &str = "commit";

/// Shortest pause between two attempts to open a file again that failed.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// A change, and who waits for it.
pub(crate) struct Command {
    /// What to do.
    pub change: Change,
    /// How many documents it removed, once that is durable; of a conditional change 1 if what it
    /// wanted holds now, and 0 if not.
    pub answer: oneshot::Sender<Result<usize, Failure>>,
}

/// What can be done to the documents.
pub(crate) enum Change {
    /// Write one.
    Put {
        /// Where; the key is in the item.
        path: Vec<u8>,
        /// What.
        item: PutItem,
        /// When.
        now_ms: i64,
    },
    /// Write one, if what is there is what is known.
    PutIf {
        /// Where; the key is in the item.
        path: Vec<u8>,
        /// What is known to be there; `None` if nothing is.
        known: Option<Value>,
        /// What.
        item: PutItem,
        /// When.
        now_ms: i64,
    },
    /// Delete one.
    Delete {
        /// Where.
        place: Place,
    },
    /// Delete one, if it is what is known.
    DeleteIf {
        /// Where.
        place: Place,
        /// What is known to be there.
        known: Value,
        /// When.
        now_ms: i64,
    },
    /// Some were read.
    Touch {
        /// Where.
        places: Vec<Place>,
        /// When.
        now_ms: i64,
    },
    /// Delete those in a range, up to [`REMOVED_AT_ONCE`].
    Clear {
        /// Which.
        paths: Range<Vec<u8>>,
    },
    /// Delete those that have expired, up to [`REMOVED_AT_ONCE`].
    Sweep {
        /// When.
        now_ms: i64,
    },
}

/// The one thread that writes.
pub(crate) struct Writer {
    /// The file.
    pub source: Arc<Source>,
    /// When the file is opened again, if it failed.
    pub reopen_at: Option<Instant>,
    /// What waits.
    pub commands: mpsc::Receiver<Command>,
}

impl Writer {
    /// Serves until the last sender is gone and the queue is empty.
    pub(crate) fn run(mut self) {
        while let Some(first) = self.commands.blocking_recv() {
            let mut group = vec![first];
            while group.len() < QUEUE_LIMIT
                && let Ok(command) = self.commands.try_recv()
            {
                group.push(command);
            }
            let done = self.commit(&group).map_err(failure);
            if let Err(failure) = &done {
                tracing::error!(%failure, changes = group.len(), "nothing was remembered");
            }
            for (place, command) in group.into_iter().enumerate() {
                let result = done.as_ref().map(|removed| removed[place]).map_err(Clone::clone);
                // The caller may have been dropped.
                let _ = command.answer.send(result);
            }
        }
    }
}

impl Writer {
    /// Commits a group. A file that failed is opened again first: redb takes nothing more for it.
    fn commit(&mut self, group: &[Command]) -> Result<Vec<usize>, StoreError> {
        if self.source.take_failure() && self.reopen_at.is_none() {
            self.reopen_at = Some(Instant::now());
        }
        if let Some(at) = self.reopen_at {
            if Instant::now() < at {
                return Err(backend(COMMIT, "its file failed and is opened again soon"));
            }
            self.reopen_at = Some(Instant::now() + REOPEN_PAUSE);
            self.source.reopen()?;
        }
        let handle = self.source.handle();
        let done =
            guarded(COMMIT, || commit(handle.writing()?, group).map_err(while_trying(COMMIT)));
        drop(handle);
        self.reopen_at = match &done {
            Ok(_) => None,
            Err(_) => {
                if let Err(error) = self.source.read_only() {
                    tracing::error!(%error, "long-term memory cannot be read");
                }
                Some(self.reopen_at.unwrap_or_else(Instant::now))
            }
        };
        done
    }
}

/// Makes all changes in one transaction; answers each as [`Command::answer`] says.
fn commit(database: &Database, group: &[Command]) -> Result<Vec<usize>, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let removed = {
        let mut tables = Tables::open(&transaction)?;
        group.iter().map(|command| tables.apply(&command.change)).collect::<Result<_, _>>()?
    };
    transaction.commit()?;
    Ok(removed)
}

struct Tables<'t> {
    documents: Table<'t, Key, Row<'static>>,
    expiries: Table<'t, (i64, &'static [u8], &'static str), ()>,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, Error> {
        let documents = transaction.open_table(DOCUMENTS)?;
        let expiries = transaction.open_table(EXPIRIES)?;
        Ok(Self { documents, expiries })
    }

    fn apply(&mut self, change: &Change) -> Result<usize, Error> {
        match change {
            Change::Put { path, item, now_ms } => {
                let place = (path.clone(), item.key.clone());
                let old = self.whole(&place)?;
                let new = Record::after(old.as_ref(), item, *now_ms);
                self.replace(&place, old.as_ref(), Some(&new))
            }
            Change::PutIf { path, known, item, now_ms } => {
                let place = (path.clone(), item.key.clone());
                let old = self.whole(&place)?;
                let swap = Record::swap(old.as_ref(), known.as_ref(), item, *now_ms);
                if swap == Swap::Write {
                    let new = Record::after(old.as_ref(), item, *now_ms);
                    self.replace(&place, old.as_ref(), Some(&new))?;
                }
                Ok(usize::from(swap != Swap::Refuse))
            }
            Change::Delete { place } => self.remove(std::slice::from_ref(place)),
            Change::DeleteIf { place, known, now_ms } => {
                let removal = match get(&self.documents, place)?.transpose() {
                    Ok(old) => Record::removal(old.as_ref(), known, *now_ms),
                    // Nobody knows what it was.
                    Err(_damaged) => Swap::Refuse,
                };
                if removal == Swap::Write {
                    self.remove(std::slice::from_ref(place))?;
                }
                Ok(usize::from(removal != Swap::Refuse))
            }
            Change::Touch { places, now_ms } => self.touch(places, *now_ms),
            Change::Clear { paths } => {
                let places = self.places_in(paths)?;
                self.remove(&places)
            }
            Change::Sweep { now_ms } => self.sweep(*now_ms),
        }
    }

    /// What stands at a place, if it is whole: a document that is damaged is written over.
    fn whole(&self, place: &Place) -> Result<Option<Record>, Error> {
        Ok(get(&self.documents, place)?.and_then(Result::ok))
    }

    /// Puts one document in place of another, in both tables.
    fn replace(
        &mut self,
        place: &Place,
        old: Option<&Record>,
        new: Option<&Record>,
    ) -> Result<usize, Error> {
        let (path, key) = (place.0.as_slice(), place.1.as_str());
        if let Some(expires_ms) = old.and_then(|old| old.expires_ms) {
            self.expiries.remove((expires_ms, path, key))?;
        }
        let Some(new) = new else {
            return Ok(usize::from(self.documents.remove((path, key))?.is_some()));
        };
        self.documents.insert((path, key), row((path, key), new))?;
        if let Some(expires_ms) = new.expires_ms {
            self.expiries.insert((expires_ms, path, key), ())?;
        }
        Ok(0)
    }

    fn remove(&mut self, places: &[Place]) -> Result<usize, Error> {
        let mut removed = 0;
        for place in places {
            let old = self.whole(place)?;
            removed += self.replace(place, old.as_ref(), None)?;
        }
        Ok(removed)
    }

    fn touch(&mut self, places: &[Place], now_ms: i64) -> Result<usize, Error> {
        for place in places {
            let Some(old) = self.whole(place)? else {
                continue;
            };
            if let Some(expires_ms) = old.refreshed(now_ms) {
                let new = Record { expires_ms: Some(expires_ms), ..old.clone() };
                self.replace(place, Some(&old), Some(&new))?;
            }
        }
        Ok(0)
    }

    fn places_in(&self, paths: &Range<Vec<u8>>) -> Result<Vec<Place>, Error> {
        let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
        let mut places = Vec::new();
        for entry in self.documents.range(range)?.take(REMOVED_AT_ONCE) {
            let (place, _) = entry?;
            let (path, key) = place.value();
            places.push((path.to_vec(), key.to_owned()));
        }
        Ok(places)
    }

    /// Removes what has expired. A document that was damaged and written over has left its entry
    /// behind, which says nothing of what stands in its place now.
    fn sweep(&mut self, now_ms: i64) -> Result<usize, Error> {
        let mut removed = 0;
        for (expires_ms, place) in self.expired(now_ms)? {
            self.expiries.remove((expires_ms, place.0.as_slice(), place.1.as_str()))?;
            if self.whole(&place)?.is_none_or(|old| !old.is_alive(now_ms)) {
                removed += self.remove(std::slice::from_ref(&place))?;
            }
        }
        Ok(removed)
    }

    fn expired(&self, now_ms: i64) -> Result<Vec<(i64, Place)>, Error> {
        let until = (now_ms.saturating_add(1), [].as_slice(), "");
        let mut expired = Vec::new();
        for entry in self.expiries.range(..until)?.take(REMOVED_AT_ONCE) {
            let (expiry, _) = entry?;
            let (expires_ms, path, key) = expiry.value();
            expired.push((expires_ms, (path.to_vec(), key.to_owned())));
        }
        Ok(expired)
    }
}
