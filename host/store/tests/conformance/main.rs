//! What every checkpoint store must show, run over each of ours; and what the file store must
//! show beyond that.

#![expect(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod apart;
mod append;
mod backup;
mod blobs;
mod checkpoint;
mod copy;
mod crash;
mod damage;
mod delay;
mod events;
mod file;
#[cfg(target_os = "linux")]
mod full;
mod lease;
mod list;
mod long;
mod model;
mod old;
mod owner;
mod pending;
mod postgres;
mod proxy;
mod remembered;
mod retain;
mod sample;
mod seals;
mod silence;
mod tails;
mod thread;
mod trouble;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use wattle_run::ports::Store;
use wattle_store::{MemoryStore, RedbStore};

/// What a store needs to live; taken away at the end of a test.
type Guard = Box<dyn Any + Send>;

/// An empty store in a file, and its folder.
fn redb() -> (Arc<dyn Store>, Guard) {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    (Arc::new(store), Box::new(dir))
}

/// An empty store in memory.
fn memory() -> (Arc<dyn Store>, Guard) {
    (Arc::new(MemoryStore::new()), Box::new(()))
}

/// The path that a test passes to the process that it starts.
#[expect(clippy::disallowed_methods, reason = "a test passes it by environment")]
fn passed(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap().into()
}

/// Runs each check on an empty store of each kind.
macro_rules! conformance {
    ($($group:ident: $($check:ident)*;)*) => {
        conformance!(@store memory $($group: $($check)*;)*);
        conformance!(@store redb $($group: $($check)*;)*);
        conformance!(@server $($group: $($check)*;)*);
    };
    // A server takes a while to start, so each group shares one, with a schema for each check.
    (@server $($group:ident: $($check:ident)*;)*) => {
        mod on_postgres {$(
            #[tokio::test]
            async fn $group() {
                let server = wattle_kit::need!(crate::postgres::Server::start());
                // Each is closed before the next opens: a server has only so many connections.
                $({
                    let store = server.store(stringify!($check)).await;
                    crate::$group::$check(&store).await;
                })*
            }
        )*}
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
        a_fork_takes_values_of_an_older_checkpoint
        nested_graphs_do_not_move_the_thread
        the_latest_is_what_each_read_says;
    copy:
        a_copy_has_everything
        a_copy_goes_its_own_way
        a_pruned_thread_can_be_copied
        copying_a_missing_thread_makes_nothing
        copying_onto_a_thread_is_refused
        a_thread_at_work_is_not_copied
        a_watch_sees_the_copy;
    events:
        events_come_in_pages
        events_of_every_kind_come_back
        events_of_a_long_thread_are_found
        a_watch_sees_the_newest_event
        a_watch_ends_with_its_thread;
    lease:
        a_lease_keeps_others_out
        two_writers_make_no_fork
        a_writer_without_a_lease_is_fenced
        batches_handed_over_before_a_release_are_written
        nothing_is_taken_away_from_a_thread_at_work;
    list:
        newest_come_first
        namespace_before_and_limit_narrow_down
        filters_are_all_met
        hostile_filter_keys_match_nothing
        pending_events_are_listed
        every_combination_agrees_with_the_plain_list;
    long:
        a_long_thread_is_copied_and_pruned;
    owner:
        what_an_owner_takes_is_what_its_threads_do
        mentions_of_an_owner_come_in_pages;
    pending:
        pending_runs_keep_their_order
        a_run_is_asked_for_once_and_of_a_thread
        a_run_is_asked_for_without_a_lease
        a_pending_run_begins_once
        a_run_that_is_taken_out_never_begins
        nothing_begins_before_a_run_that_is_due
        pending_runs_go_with_their_thread_alone
        blobs_of_pending_runs_are_mentioned;
    retain:
        deleting_a_run_takes_what_it_did
        a_thread_goes_back_when_its_checkpoint_goes
        a_thread_without_checkpoints_goes_with_its_runs
        deleting_no_or_unknown_runs_is_fine
        deleting_runs_reaches_all_namespaces_and_threads
        pruning_keeps_the_newest_of_each_namespace
        a_pruned_thread_goes_on
        pruning_keeps_where_a_thread_stands_and_may_go_back_to
        pruning_can_take_the_whole_thread
        deleting_a_run_leaves_what_nested_graphs_go_on_from
        pruning_keeps_what_happened_before_a_checkpoint_was_stored
        pruning_a_thread_without_checkpoints_takes_nothing
        pages_reach_over_what_was_taken_away
        blobs_of_what_was_taken_away_are_not_mentioned;
    seals:
        seals_can_be_made_again_from_an_export
        a_list_is_exported_as_its_end
        exports_come_in_pages
        what_is_left_of_a_thread_is_exported_whole
        every_batch_changes_the_seal;
    tails:
        every_version_of_a_list_comes_back
        unchanged_lists_stand_where_their_end_was_written
        hints_that_do_not_fit_are_ignored
        a_growing_list_is_stored_once
        long_histories_of_a_list_stay_small_and_whole;
    thread:
        records_are_replaced
        threads_are_listed_by_update
        threads_at_work_are_found_in_pages
        versions_are_listed_once
        runs_are_listed_oldest_first
        the_newest_runs_are_read_alone
        a_run_belongs_to_one_thread
        deleting_takes_everything_of_one_thread
        deleting_a_missing_thread_is_fine
        a_deleted_thread_can_start_anew;
}
