//! The conformance suite of the long-term memory, for all adapters, and tests of the file alone.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod damage;
mod document;
mod expiry;
mod file;
mod fixtures;
mod model;
mod namespaces;
mod put_if;
mod search;

use std::sync::Arc;

use tempfile::TempDir;
use wattle_kit::postgres::Postgres;
use wattle_run::ports::Memory;
use wattle_store::{PostgresConfig, PostgresMemory, PostgresStore, RedbMemory, VolatileMemory};

/// Creates an empty memory in a file, and its folder.
fn redb() -> (Arc<dyn Memory>, TempDir) {
    let dir = TempDir::new().unwrap();
    let memory = RedbMemory::open(dir.path().join("memory.redb")).unwrap();
    (Arc::new(memory), dir)
}

/// Creates an empty memory in this process.
fn volatile() -> (Arc<dyn Memory>, ()) {
    (Arc::new(VolatileMemory::new()), ())
}

/// Creates an empty memory in a separate schema.
async fn postgres(server: &Postgres, schema: &str) -> PostgresMemory {
    let config = PostgresConfig::new(server.url()).with_schema(schema);
    PostgresStore::open(&config).await.unwrap().memory()
}

/// Runs each check on an empty memory of each kind. On PostgreSQL, each group has a server.
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
        document_round_trips
        documents_of_every_kind_round_trip
        any_text_is_a_valid_key
        similar_keys_are_distinct
        second_put_keeps_the_creation_time
        deletion_is_idempotent
        tenants_are_isolated
        host_scope_is_isolated
        clear_deletes_only_documents_under_the_prefix
        usage_follows_every_change_under_a_prefix
        concurrent_puts_are_all_kept;
    expiry:
        expired_documents_are_hidden
        put_replaces_the_expiry
        sweep_deletes_expired_documents
        sweep_spans_several_transactions
        read_extends_a_sliding_expiry
        peek_does_not_extend_expiry;
    search:
        prefix_matches_whole_namespace_parts
        newest_documents_come_first
        all_conditions_must_match
        special_characters_match_literally
        results_are_ranked_by_matching_words
        pages_of_a_search_are_contiguous
        search_over_the_scan_limit_fails;
    namespaces:
        namespaces_are_listed_once_in_order
        namespaces_match_patterns_and_depths
        pages_of_namespaces_are_contiguous
        namespaces_without_documents_are_not_listed;
    put_if:
        put_if_replaces_the_expected_document
        delete_if_deletes_the_expected_document
        put_if_treats_expired_documents_as_absent
        concurrent_put_if_has_one_winner
        listing_is_ordered_by_key
        listing_is_bounded_by_bytes;
    model:
        random_histories_match_the_reference_model;
}
