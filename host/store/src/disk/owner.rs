//! The size of the threads of one owner, and the blobs that these threads mention.

use redb::ReadableTable;
use wattle_graph::id::{Digest, ThreadId};
use wattle_run::limit::MENTIONED_PAGE;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{MentionPage, Owner, OwnerUsage, StoreError, StoreUsage};

use crate::codec::read;
use crate::disk::snapshot::{READ, RECORD, Snapshot};
use crate::disk::table::{MENTIONS, RECORDS, RECORDS_NAME};
use crate::error::redb_error;
use crate::query::ThreadFields;

impl Snapshot {
    /// See [`Store::usage`](wattle_run::ports::Store::usage).
    pub(crate) fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError> {
        let mut usage = OwnerUsage::default();
        self.for_each_size(|thread, bytes| {
            if thread.belongs_to(of) {
                usage.add(bytes);
            }
        })?;
        Ok(usage)
    }

    /// See [`Store::total_usage`](wattle_run::ports::Store::total_usage).
    pub(crate) fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        let mut usage = StoreUsage::default();
        self.for_each_size(|thread, bytes| {
            let (app, tenant) = thread.owner();
            usage.add(app, tenant, bytes);
        })?;
        Ok(usage)
    }

    /// Calls a function with each thread and its bytes.
    fn for_each_size(&self, mut each: impl FnMut(&ThreadFields, u64)) -> Result<(), StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            // Skips a damaged record, which lists of threads log.
            let Ok(thread) =
                read::<ThreadFields>(RECORD, (RECORDS_NAME, key.value()), packed.value())
            else {
                continue;
            };
            if let Some(head) = self.head(&thread.id)? {
                each(&thread, head.bytes + packed.value().len() as u64);
            }
        }
        Ok(())
    }

    /// See [`Store::mentioned_blobs`](wattle_run::ports::Store::mentioned_blobs). A page has all
    /// mentions of each of its threads, so a thread with many mentions makes a page longer than the
    /// limit.
    pub(crate) fn mentioned(
        &self,
        of: &Owner,
        from: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        let mut page = MentionPage::default();
        if let Owner::Thread(thread) = of {
            self.mentioned_by(thread, &mut page.blobs)?;
            return Ok(page);
        }
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let first = from.unwrap_or_default().as_bytes();
        for entry in records.range(first..).map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            // Skips a damaged record, which lists of threads log.
            let Ok(thread) =
                read::<ThreadFields>(RECORD, (RECORDS_NAME, key.value()), packed.value())
            else {
                continue;
            };
            if page.blobs.len() >= MENTIONED_PAGE {
                page.next = Some(thread.id.to_string());
                break;
            }
            if thread.belongs_to(of) {
                self.mentioned_by(&thread.id, &mut page.blobs)?;
            }
        }
        Ok(page)
    }

    fn mentioned_by(&self, thread: &ThreadId, blobs: &mut Vec<BlobRef>) -> Result<(), StoreError> {
        let Some(head) = self.head(thread)? else {
            return Ok(());
        };
        let mentions = self.transaction.open_table(MENTIONS).map_err(redb_error(READ))?;
        let all = (head.number, [0; 32])..=(head.number, [u8::MAX; 32]);
        for entry in mentions.range(all).map_err(redb_error(READ))? {
            let (key, _) = entry.map_err(redb_error(READ))?;
            blobs.push(BlobRef(Digest::from_bytes(key.value().1)));
        }
        Ok(())
    }
}
