//! The conformance suite of the checkpoint stores, for all adapters, and tests of single adapters.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod append;
mod backup;
mod blobs;
mod checkpoint;
mod commit_delay;
mod copy;
mod crash;
mod damage;
mod damage_while_open;
#[cfg(target_os = "linux")]
mod disk_full;
mod events;
mod file;
mod fixtures;
mod lease;
mod lease_expiry;
mod list;
mod list_deltas;
mod long_threads;
mod memory_damage;
mod model;
mod old_formats;
mod owner;
mod pending;
mod postgres;
mod postgres_faults;
mod postgres_reads;
mod proxy;
mod retention;
mod run_search;
mod seals;
mod search;
mod thread;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use wattle_run::ports::Store;
use wattle_store::{InMemoryStore, RedbStore};

/// Resources that a store needs during a test, such as its folder. Dropped at the end of the test.
type Guard = Box<dyn Any + Send>;

/// Creates an empty store in a file, and its folder.
fn redb() -> (Arc<dyn Store>, Guard) {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    (Arc::new(store), Box::new(dir))
}

/// Creates an empty store in memory.
fn in_memory() -> (Arc<dyn Store>, Guard) {
    (Arc::new(InMemoryStore::new()), Box::new(()))
}

/// Returns the path that a test passes to the process that it starts.
#[expect(clippy::disallowed_methods, reason = "a test passes it by environment")]
fn path_from_env(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap().into()
}

/// Runs each check on an empty store of each kind.
macro_rules! conformance {
    ($($group:ident: $($check:ident)*;)*) => {
        conformance!(@store in_memory $($group: $($check)*;)*);
        conformance!(@store redb $($group: $($check)*;)*);
        conformance!(@server $($group: $($check)*;)*);
    };
    // The start of a server takes a while, so all checks of a group share one server. Each check
    // has a separate schema.
    (@server $($group:ident: $($check:ident)*;)*) => {
        mod on_postgres {$(
            #[tokio::test]
            async fn $group() {
                let server = wattle_kit::need!(crate::postgres::Server::start());
                // Each store is closed before the next opens, because the connections of a server
                // are limited.
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
        batches_are_appended_in_order
        gap_or_repetition_of_sequence_numbers_is_a_conflict
        batches_queued_behind_a_conflict_conflict
        batch_without_events_after_a_conflict_conflicts
        batch_without_events_replaces_the_record_of_a_run
        refused_batch_writes_nothing
        first_batch_of_a_thread_needs_a_thread_record
        invalid_batches_are_refused
        tickets_resolve_in_order
        dropping_a_ticket_does_not_undo_its_batch
        large_values_round_trip
        too_deeply_nested_values_are_refused
        any_text_is_a_valid_thread_id;
    blobs:
        mentions_are_indexed_per_thread;
    checkpoint:
        missing_thread_or_checkpoint_is_none
        checkpoint_round_trips
        values_of_every_kind_round_trip
        many_checkpoints_are_all_readable
        threads_are_isolated
        unchanged_channels_keep_their_values
        older_checkpoints_keep_their_values
        dropped_channel_has_no_value
        each_namespace_has_a_newest_checkpoint
        pending_events_belong_to_their_base
        pending_events_keep_their_order_across_batches
        new_checkpoint_has_no_pending_events
        unchanged_channel_is_not_written_again
        current_checkpoint_can_move_back
        fork_reads_values_of_an_older_checkpoint
        subgraphs_do_not_move_the_current_checkpoint
        thread_snapshot_matches_separate_reads;
    copy:
        copy_has_the_whole_history
        copy_is_independent_of_its_original
        pruned_thread_can_be_copied
        copy_of_a_missing_thread_creates_nothing
        copy_of_a_thread_without_runs_has_its_own_incarnation
        copy_onto_an_existing_thread_is_refused
        active_thread_is_not_copied
        watch_receives_the_copy;
    events:
        events_are_paged
        pages_are_bounded_in_bytes
        events_of_every_kind_round_trip
        events_of_a_long_thread_are_found
        watch_receives_the_newest_event
        watch_ends_with_its_thread;
    lease:
        lease_of_a_live_host_is_exclusive
        concurrent_writers_do_not_fork_a_thread
        append_without_the_lease_is_fenced
        batches_before_a_release_of_the_lease_are_written
        batch_releases_its_lease_once_it_is_written
        leased_thread_is_neither_pruned_nor_deleted;
    list:
        newest_checkpoints_come_first
        namespace_position_and_limit_restrict_the_list
        all_filters_must_match
        hostile_filter_keys_match_nothing
        checkpoint_pages_are_bounded_in_bytes
        checkpoint_pages_are_bounded_in_memory
        metadata_counts_towards_the_memory_of_a_page
        pending_events_are_listed_with_their_checkpoint
        events_appended_between_two_pages_are_listed
        filters_select_from_the_unfiltered_list;
    long_threads:
        long_thread_is_copied_and_pruned
        run_of_a_long_thread_is_deleted;
    owner:
        size_of_an_owner_is_the_size_of_its_threads
        mentions_of_an_owner_are_paged;
    pending:
        pending_runs_keep_their_order
        pending_runs_are_listed_with_their_callers
        run_is_enqueued_only_once_and_only_for_an_existing_thread
        run_is_enqueued_without_a_lease
        pending_run_names_the_graph_of_an_unbound_thread
        pending_run_begins_once
        dequeued_run_never_begins
        due_run_begins_before_new_runs
        pending_runs_survive_pruning_and_are_not_copied
        pending_runs_keep_their_order_when_a_thread_is_rewritten
        blobs_of_pending_runs_are_mentioned;
    retention:
        deleting_a_run_deletes_its_events_and_checkpoints
        deleting_the_current_checkpoint_makes_an_earlier_one_current
        thread_that_moves_back_to_a_cancelled_run_is_stopped
        thread_that_moves_back_to_a_failed_run_has_its_failure
        thread_without_checkpoints_is_deleted_with_its_runs
        deleting_no_or_unknown_runs_changes_nothing
        deleting_runs_covers_all_namespaces_and_threads
        pruning_keeps_the_newest_checkpoint_of_each_namespace
        pruned_thread_accepts_further_batches
        pruning_keeps_current_and_reopenable_checkpoints
        prune_with_the_strategy_delete_deletes_the_thread
        deleting_a_run_keeps_checkpoints_that_subgraphs_need
        pruning_keeps_events_of_a_checkpoint_persisted_later
        pruning_a_thread_without_checkpoints_keeps_everything
        event_pages_skip_deleted_events
        blobs_of_deleted_data_are_not_mentioned;
    run_search:
        runs_are_found_by_each_field
        found_run_has_the_fields_of_its_thread
        run_text_search_ignores_case
        runs_are_found_by_the_metadata_of_their_threads
        runs_of_expired_threads_are_left_out
        run_search_continues_after_its_position
        run_positions_stay_valid_while_runs_change
        run_search_stops_at_its_budget
        run_search_pages_are_bounded_in_bytes
        run_counts_include_matching_runs_only;
    search:
        threads_are_found_by_each_field
        text_search_ignores_case
        metadata_condition_matches_a_part_of_the_metadata
        all_conditions_must_hold
        expired_threads_are_left_out
        search_continues_after_its_position
        positions_stay_valid_while_threads_change
        search_stops_at_its_budget
        search_pages_are_bounded_in_bytes
        counts_include_matching_threads_only;
    seals:
        seals_can_be_recomputed_from_an_export
        lists_are_exported_as_list_deltas
        exports_are_paged
        export_pages_are_bounded_in_memory
        batches_kept_by_a_rewrite_are_exported
        every_batch_changes_the_seal;
    list_deltas:
        every_version_of_a_list_round_trips
        list_deltas_can_follow_older_versions
        invalid_delta_hints_are_ignored
        items_of_a_growing_list_are_stored_once
        long_delta_chains_stay_small_and_readable;
    thread:
        records_are_replaced
        threads_are_listed_in_order_of_their_updates
        stopped_threads_are_listed_as_idle_or_as_interrupted
        thread_pages_are_bounded_in_bytes
        thread_keys_are_listed_in_the_order_of_ids
        running_threads_are_listed_in_pages
        pinned_versions_are_listed_once
        runs_are_listed_oldest_first
        newest_runs_are_read_in_pages
        run_pages_are_bounded_in_bytes
        run_walks_return_each_run_once
        run_belongs_to_one_thread
        deletion_covers_all_data_of_one_thread_only
        deleting_a_missing_thread_changes_nothing
        deleted_thread_id_can_be_reused;
}
