//! What every long-term memory must show, run over each of ours; and what the one in a file must
//! show beyond that.

#![expect(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod damage;
mod document;
mod expiry;
mod file;
mod model;
mod namespaces;
mod sample;
mod search;
mod swap;

use std::sync::Arc;

use tempfile::TempDir;
use wattle_kit::postgres::Postgres;
use wattle_run::ports::Memory;
use wattle_store::{PostgresConfig, PostgresMemory, PostgresStore, RedbMemory, VolatileMemory};

/// An empty memory in a file, and its folder.
fn redb() -> (Arc<dyn Memory>, TempDir) {
    let dir = TempDir::new().unwrap();
    let memory = RedbMemory::open(dir.path().join("memory.redb")).unwrap();
    (Arc::new(memory), dir)
}

/// An empty memory in this process.
fn volatile() -> (Arc<dyn Memory>, ()) {
    (Arc::new(VolatileMemory::new()), ())
}

/// An empty memory in a schema of its own.
async fn postgres(server: &Postgres, schema: &str) -> PostgresMemory {
    let config = PostgresConfig::new(server.url()).with_schema(schema);
    PostgresStore::open(&config).await.unwrap().memory()
}

/// Runs each check on an empty memory of each kind, on PostgreSQL one group a server.
macro_rules! conformance {
    ($($group:ident: $($check:ident)*;)*) => {
        conformance!(@memory volatile $($group: $($check)*;)*);
        conformance!(@memory redb $($group: $($check)*;)*);
        mod on_postgres {$(
            #[tokio::test]
            async fn $group() {
                let server = wattle_kit::need!(crate::Postgres::for_test());
                $(
                    let memory = crate::postgres(&server, stringify!($check)).await;
                    crate::$group::$check(&memory).await;
                )*
            }
        )*}
    };
    (@memory $memory:ident $($group:ident: $($check:ident)*;)*) => {
        mod $memory {$(
            mod $group {$(
                #[tokio::test]
                async fn $check() {
                    let (memory, _guard) = crate::$memory();
                    crate::$group::$check(&*memory).await;
                }
            )*}
        )*}
    };
}

conformance! {
    document:
        a_document_comes_back
        documents_of_every_kind_come_back
        any_text_is_a_place
        places_do_not_mix
        a_second_put_keeps_the_time_of_the_first
        deleting_is_no_error_twice
        tenants_never_see_one_another
        what_the_host_keeps_is_apart
        clearing_takes_what_begins_so
        many_at_once_are_all_kept;
    expiry:
        what_has_expired_is_gone_at_once
        a_put_begins_anew
        a_sweep_takes_what_has_expired
        more_than_one_batch_is_swept
        a_read_begins_the_time_anew_if_wanted
        a_peek_begins_no_time_anew;
    search:
        a_prefix_is_of_parts_and_not_of_letters
        newest_come_first
        filters_are_all_met
        hostile_texts_find_only_themselves
        words_rank
        pages_follow_one_another
        too_much_to_look_at_is_a_limit;
    namespaces:
        each_is_told_once_and_in_order
        patterns_and_depths
        pages_follow_one_another
        a_namespace_without_documents_is_gone;
    swap:
        a_document_is_written_over_what_is_known
        a_document_is_deleted_if_it_is_what_is_known
        what_has_expired_is_not_known
        one_of_many_writes
        keys_follow_one_another
        large_documents_are_listed_a_few_at_a_time;
    model:
        any_history_agrees_with_a_plain_list;
}
