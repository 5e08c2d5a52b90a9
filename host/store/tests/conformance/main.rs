//! What every checkpoint store must show, run over each of ours; and what the file store must
//! show beyond that.

#![expect(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod append;
mod blobs;
mod checkpoint;
mod crash;
mod events;
mod file;
mod list;
mod model;
mod sample;
mod thread;

use std::sync::Arc;

use tempfile::TempDir;
use wattle_run::ports::Store;
use wattle_store::{MemoryStore, RedbStore};

/// An empty store in a file, and its folder.
fn redb() -> (Arc<dyn Store>, TempDir) {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    (Arc::new(store), dir)
}

/// An empty store in memory.
fn memory() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

/// Runs each check on an empty store of each kind.
macro_rules! conformance {
    ($($group:ident: $($check:ident)*;)*) => {
        conformance!(@store memory $($group: $($check)*;)*);
        conformance!(@store redb $($group: $($check)*;)*);
    };
    (@store $store:ident $($group:ident: $($check:ident)*;)*) => {
        mod $store {$(
            mod $group {$(
                #[tokio::test]
                async fn $check() {
                    let (store, _guard) = crate::$store();
                    crate::$group::$check(&*store).await;
                }
            )*}
        )*}
    };
}

conformance! {
    append:
        batches_follow_one_another
        a_gap_or_repeat_is_a_conflict
        after_a_conflict_later_batches_conflict_too
        a_refused_batch_leaves_nothing
        the_first_batch_needs_the_record
        batches_that_make_no_sense_are_refused
        tickets_are_answered_in_order
        dropping_a_ticket_does_not_undo_its_batch
        large_values_come_back
        values_nested_too_deep_are_refused
        any_thread_id_works;
    blobs:
        a_thread_knows_what_it_mentions;
    checkpoint:
        a_missing_thread_or_checkpoint_is_none
        a_checkpoint_comes_back_whole
        values_of_every_kind_come_back
        many_checkpoints_are_all_there
        threads_do_not_mix
        unchanged_channels_stand_where_they_were_written
        older_checkpoints_keep_their_values
        a_dropped_channel_is_gone
        namespaces_have_their_own_newest
        pending_events_belong_to_their_base
        pending_events_keep_their_order_over_batches
        a_new_checkpoint_starts_without_pending_events
        an_unchanged_channel_is_not_written_again
        going_back_moves_the_current_checkpoint
        a_fork_takes_values_of_an_older_checkpoint;
    events:
        events_come_in_pages
        events_of_every_kind_come_back
        events_of_a_long_thread_are_found
        a_watch_sees_the_newest_event
        a_watch_ends_with_its_thread;
    list:
        newest_come_first
        namespace_before_and_limit_narrow_down
        filters_are_all_met
        hostile_filter_keys_match_nothing
        pending_events_are_listed
        every_combination_agrees_with_the_plain_list;
    thread:
        records_are_replaced
        threads_are_listed_by_update
        runs_are_listed_oldest_first
        a_run_belongs_to_one_thread
        deleting_takes_everything_of_one_thread
        deleting_a_missing_thread_is_fine
        a_deleted_thread_can_start_anew;
}
