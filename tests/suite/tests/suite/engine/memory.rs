//! Long-term memory through the gate: grants, the journal, crashes and several threads.

use std::sync::Arc;

use serde_json::json;
use wattle_kit::memory::Hooked;
use wattle_run::grant::{Grants, MemoryAccess, MemoryRule};
use wattle_run::hostcall::memory::{
    DeleteDocument, GetDocument, ListMemoryNamespaces, PutDocument, SearchDocuments,
};
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{self, MemoryScope, PutItem};
use wattle_suite::lost_put::LostPut;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{START_MS, World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.text]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

fn users() -> Vec<String> {
    vec!["users".to_owned(), "42".to_owned()]
}

fn note(text: &serde_json::Value) -> PutDocument {
    PutDocument(PutItem {
        namespace: users(),
        key: "note".into(),
        value: json!({ "text": text }),
        ttl_ms: None,
        refresh_on_read: false,
    })
}

fn read() -> GetDocument {
    GetDocument { namespace: users(), key: "note".into() }
}

fn granted(access: MemoryAccess) -> Grants {
    let rule = MemoryRule { namespace: vec!["users".to_owned()], access };
    Grants { memory: vec![rule], ..Grants::default() }
}

fn world(plugin: NativePlugin, access: MemoryAccess) -> (World, Arc<Hooked<LostPut>>) {
    let memory = LostPut::memory();
    (World::with_memory(ONE, plugin, memory.clone(), granted(access)), memory)
}

#[tokio::test]
async fn documents_of_one_thread_are_found_by_another() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let search = SearchDocuments(memory::MemorySearch {
            prefix: vec!["users".to_owned()],
            query: Some("green tea".to_owned()),
            limit: 10,
            ..memory::MemorySearch::default()
        });
        let found = gate.call(search).await?;
        gate.call(note(&call.input.get("text"))).await?;
        let found: Vec<_> = found.iter().map(|item| json!([item.value, item.score])).collect();
        Ok(json!({ "out": found }))
    });
    let (world, _) = world(plugin, MemoryAccess::ReadWrite);
    let first = world.run(json!({ "text": "She likes green tea" })).await;
    let second = world.run(json!({ "text": "or coffee" })).await;
    assert_ne!(first.run.thread, second.run.thread);
    assert_eq!(first.state["out"], json!([]));
    assert_eq!(second.state["out"], json!([[{ "text": "She likes green tea" }, 1.0]]));
}

#[tokio::test]
async fn a_put_is_repeated_safely_after_a_crash() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(note(&json!("once"))).await?;
        let found = gate.call(read()).await?;
        Ok(json!({ "out": found }))
    });
    let (mut world, memory) = world(plugin, MemoryAccess::ReadWrite);
    memory.lose_next();
    let run = world.begin(json!({})).await.unwrap();
    memory.lost().await;
    world.crash().await;
    world.clock.advance_ms(1_000);
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let out = &ended.state["out"];
    assert_eq!(out["value"], json!({ "text": "once" }));
    assert_eq!(
        (&out["created_ms"], &out["updated_ms"]),
        (&json!(START_MS), &json!(START_MS + 1_000))
    );
    assert_eq!(memory.puts(), 2);
}

#[tokio::test]
async fn a_re_executed_node_reads_from_its_journal_and_repeats_no_put() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(note(&json!("mine"))).await?;
        let found = gate.call(read()).await?;
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": found.map(|item| item.value) }))
    });
    let (mut world, memory) = world(plugin, MemoryAccess::ReadWrite);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let others = PutItem { value: json!("another's"), ..note(&json!("")).0 };
    memory.put(&MemoryScope::Tenant(None), others, START_MS).await.unwrap();
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], json!({ "text": "mine" }));
    assert_eq!((memory.puts(), memory.reads()), (2, 1));
    let kept = memory.get(&MemoryScope::Tenant(None), &users(), "note", START_MS).await.unwrap();
    assert_eq!(kept.unwrap().value, json!("another's"));
}

#[tokio::test]
async fn a_grant_to_read_denies_writes() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        gate.call(read()).await?;
        if *call.input.get("text") == "delete" {
            gate.call(DeleteDocument { namespace: users(), key: "note".into() }).await?;
        } else {
            gate.call(note(&json!("x"))).await?;
        }
        Ok(json!({}))
    });
    let (world, memory) = world(plugin, MemoryAccess::Read);
    for text in ["put", "delete"] {
        let denied = failure(&world.run(json!({ "text": text })).await);
        assert_eq!(denied.code, "denied");
        let line = r#"memory = [{ namespace = ["users","42"], access = "read-write" }]"#;
        assert!(denied.message.contains(line), "{denied}");
    }
    assert_eq!((memory.puts(), memory.reads()), (0, 2));
}

#[tokio::test]
async fn a_document_that_is_too_large_reaches_its_limit() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(note(&json!("x".repeat(300 << 10)))).await?;
        Ok(json!({}))
    });
    let (world, _) = world(plugin, MemoryAccess::ReadWrite);
    let failure = failure(&world.run(json!({})).await);
    assert_eq!(failure.code, "limit");
    assert_eq!(failure.details.unwrap()["limit"], "memory_document_bytes");
}

const CACHED: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.forged]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
cache = {}
"#;

/// All namespaces are granted, and the guest knows the key of the entry.
#[tokio::test]
async fn cache_entries_can_be_neither_read_nor_written_by_guests() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        if call.input.get("forged").is_null() {
            return Ok(json!({ "out": "true" }));
        }
        let all = memory::MemorySearch { limit: 10, ..memory::MemorySearch::default() };
        let listed = memory::ListNamespaces { limit: 10, ..memory::ListNamespaces::default() };
        let seen = json!([
            gate.call(SearchDocuments(all)).await?,
            gate.call(ListMemoryNamespaces(listed)).await?
        ]);
        let forged: memory::Item =
            serde_json::from_value(call.input.get("forged").into_owned()).unwrap();
        let memory::Item { namespace, key, value, .. } = forged;
        let put = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
        gate.call(PutDocument(put)).await?;
        Ok(json!({ "out": seen }))
    });
    let everything = MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite };
    let grants = Grants { memory: vec![everything], ..Grants::default() };
    let memory = LostPut::memory();
    let world = World::with_memory(CACHED, plugin, memory.clone(), grants);
    assert_eq!(world.run(json!({})).await.state["out"], "true");

    let all = memory::MemorySearch { limit: 10, ..memory::MemorySearch::default() };
    let kept = memory.search(&MemoryScope::Host(None), &all, START_MS).await.unwrap();
    let [entry] = kept.as_slice() else { panic!("{kept:?}") };
    let mut forged = json!(entry);
    forged["value"]["writes"][0]["value"] = json!("forged");
    let spied = world.run(json!({ "forged": forged })).await;
    assert_eq!(spied.state["out"], json!([[], []]));
    assert_eq!(world.run(json!({})).await.state["out"], "true");
}
