//! Lists of namespaces: order, patterns, depths, pages.

use wattle_run::ports::Memory;
use wattle_run::ports::memory::ListNamespaces;

use crate::fixtures::{empty, list, no_tenant, parts, paths, put};

const SOME: &[&[&str]] = &[
    &["users"],
    &["users", "1", "facts"],
    &["users", "1", "wishes"],
    &["users", "2", "facts"],
    &["users", "2", "facts", "old"],
    &["teams", "1", "facts"],
    &["userspace"],
];

async fn fill(memory: &dyn Memory) {
    for namespace in SOME {
        for key in ["a", "b", "c"] {
            put(memory, namespace, key, empty()).await;
        }
    }
}

pub(crate) async fn namespaces_are_listed_once_in_order(memory: &dyn Memory) {
    fill(memory).await;
    let mut expected: Vec<Vec<String>> = SOME.iter().map(|namespace| parts(namespace)).collect();
    expected.sort();
    let found = memory.namespaces(&no_tenant(), &list(&[], &[]), 0).await.unwrap();
    assert_eq!(found, expected);
}

pub(crate) async fn namespaces_match_patterns_and_depths(memory: &dyn Memory) {
    fill(memory).await;
    for (prefix, suffix, max_depth, expected) in [
        (&["users", "1"][..], &[][..], None, vec!["users/1/facts", "users/1/wishes"]),
        (&["*", "1"], &[], None, vec!["teams/1/facts", "users/1/facts", "users/1/wishes"]),
        (&[], &["facts"], None, vec!["teams/1/facts", "users/1/facts", "users/2/facts"]),
        (&["users"], &["*", "facts"], None, vec!["users/1/facts", "users/2/facts"]),
        (&["users", "*", "facts"], &["old"], None, vec!["users/2/facts/old"]),
        (&[], &[], Some(1), vec!["teams", "users", "userspace"]),
        (&[], &[], Some(2), vec!["teams/1", "users", "users/1", "users/2", "userspace"]),
        (&["users"], &["wishes"], Some(1), vec!["users"]),
        (&["users", "*", "*", "*", "*"], &[], None, vec![]),
        (&["user"], &[], None, vec![]),
    ] {
        let list = ListNamespaces { max_depth, ..list(prefix, suffix) };
        assert_eq!(paths(memory, &list).await, expected, "{prefix:?} {suffix:?} {max_depth:?}");
    }
}

pub(crate) async fn pages_of_namespaces_are_contiguous(memory: &dyn Memory) {
    fill(memory).await;
    let page = |offset, limit| ListNamespaces { offset, limit, ..list(&["users"], &[]) };
    assert_eq!(paths(memory, &page(0, 2)).await, ["users", "users/1/facts"]);
    assert_eq!(paths(memory, &page(2, 2)).await, ["users/1/wishes", "users/2/facts"]);
    assert_eq!(paths(memory, &page(4, 2)).await, ["users/2/facts/old"]);
    assert_eq!(paths(memory, &page(5, 2)).await, Vec::<String>::new());
    let cut = ListNamespaces { max_depth: Some(2), ..page(1, 2) };
    assert_eq!(paths(memory, &cut).await, ["users/1", "users/2"]);
}

pub(crate) async fn namespaces_without_documents_are_not_listed(memory: &dyn Memory) {
    put(memory, &["a"], "k", empty()).await;
    put(memory, &["a", "b"], "k", empty()).await;
    memory.delete(&no_tenant(), &parts(&["a"]), "k").await.unwrap();
    assert_eq!(paths(memory, &list(&[], &[])).await, ["a/b"]);
    memory.clear(&no_tenant(), &parts(&["a"])).await.unwrap();
    assert_eq!(paths(memory, &list(&[], &[])).await, Vec::<String>::new());
}
