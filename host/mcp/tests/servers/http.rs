//! Streamable HTTP, against the stand-in.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, pause, timeout};
use wattle_kit::standin::{Entry, Fault, FaultRule, Handle, Outcome, Pattern, redact};
use wattle_mcp::{McpConfig, McpServers, TransportConfig};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::ToolServers as _;

use crate::support::{
    NAME, SOON, call, call_of, call_within, caller, list, names, over_http, reachable, servers,
    standin, text,
};

/// All protocol variants of the stand-in.
const VARIANTS: [&str; 6] =
    ["", "?sse=1", "?era=legacy", "?era=legacy&sse=1", "?era=current&sse=1", "?era=current&page=2"];

fn at(standin: &Handle, manner: &str) -> McpServers {
    servers(over_http(&format!("{}/mcp{manner}", standin.base_url)))
}

/// Returns the requests of a method.
fn asked(standin: &Handle, method: &str) -> Vec<Entry> {
    let of_method =
        |entry: &Entry| entry.body.as_ref().is_some_and(|body| body["method"] == method);
    standin.requests().into_iter().filter(of_method).collect()
}

fn fault(method: &str, fault: Fault) -> FaultRule {
    let on = Pattern { body_contains: Some(format!("\"{method}\"")), ..Pattern::any() };
    FaultRule { on, fault, times: Some(1), skip: 0 }
}

#[tokio::test]
async fn tools_work_in_every_protocol_variant() {
    for manner in VARIANTS {
        let standin = standin().await;
        let servers = at(&standin, manner);
        let tools = list(&servers).await.unwrap();
        let echo = &tools[0];
        assert_eq!((echo.name.as_str(), echo.hints.read_only), ("echo", true), "{manner}");
        assert_eq!(echo.arguments_schema["required"], json!(["text"]), "{manner}");
        assert!(tools.iter().all(|tool| !tool.name.contains("bad")), "{manner}");
        let long = tools.iter().find(|tool| tool.name == "long").unwrap();
        assert!(long.description.len() == 4096 && long.description.starts_with("[2J"), "{manner}");
        let said = call(&servers, "echo", json!({ "text": "你好" })).await.unwrap();
        assert_eq!(said.structured, Some(json!({ "text": "你好" })), "{manner}");
        assert_eq!(text(&said), r#"{"text":"你好"}"#, "{manner}");
        let failed = call(&servers, "fail", json!({})).await.unwrap();
        assert!(failed.is_error && text(&failed) == "the probe failed", "{manner}");
        let picture = call(&servers, "picture", Value::Null).await.unwrap();
        assert_eq!(text(&picture), "[image 5 bytes left out]|a greeting", "{manner}");
        let first = &standin.requests()[0];
        assert_eq!(first.headers["authorization"], redact("Bearer t-1"), "{manner}");
        assert_eq!(asked(&standin, "initialize").len(), usize::from(manner.contains("legacy")));
        servers.close().await;
    }
}

#[tokio::test]
async fn check_reports_protocol_tools_and_notes() {
    let standin = standin().await;
    for (manner, protocol) in [("", "2026-07-28"), ("?era=legacy", "2025-11-25")] {
        let check = at(&standin, manner).check(NAME).await.unwrap();
        assert_eq!(
            (check.protocol.as_deref(), &check.failure),
            (Some(protocol), &None),
            "{manner}"
        );
        assert!(check.tools.iter().any(|tool| tool.name == "echo") && check.tools_ms.is_some());
        let odd = "the tool `bad name` is left out: its name cannot be used";
        assert_eq!(check.notes, [odd], "{manner}");
    }
    let away = servers_at_nobody().check(NAME).await.unwrap();
    assert_eq!((away.failure.unwrap().code.as_str(), away.tools_ms), ("unavailable", None));
    assert_eq!(at(&standin, "").check("nobody").await.unwrap_err().code, "not-found");
}

#[tokio::test]
async fn calls_that_a_server_refuses_fail_as_invalid() {
    for manner in ["", "?era=legacy&sse=1"] {
        let standin = standin().await;
        let servers = at(&standin, manner);
        let refused = call(&servers, "refuse", json!({})).await.unwrap_err();
        assert_eq!(refused.code, "invalid", "{manner}");
        assert!(refused.message.ends_with("`refuse`: not these arguments"), "{}", refused.message);
        let unknown = call(&servers, "none", json!({})).await.unwrap_err();
        assert_eq!(unknown.code, "invalid", "{manner}");
        let list = call(&servers, "echo", json!([1])).await.unwrap_err();
        assert_eq!(list.code, "invalid", "{manner}");
        let fine = call(&servers, "echo", json!({ "text": "still here" })).await;
        assert!(fine.is_ok(), "{manner}");
    }
}

#[tokio::test]
async fn results_above_the_limit_are_truncated() {
    let standin = standin().await;
    for manner in ["", "?sse=1"] {
        let mut config = over_http(&format!("{}/mcp{manner}", standin.base_url));
        config.output_bytes = 10_000;
        let servers = servers(config);
        assert!(call(&servers, "huge", json!({ "bytes": 10_000 })).await.is_ok(), "{manner}");
        for bytes in [10_001, 100_000] {
            let cut = call(&servers, "huge", json!({ "bytes": bytes })).await.unwrap();
            let note = format!("|[cut after 10000 of {bytes} bytes;");
            assert!(text(&cut).contains(&note), "{manner} {bytes}");
        }
        assert!(call(&servers, "echo", json!({ "text": "a" })).await.is_ok(), "{manner}");
    }
}

#[tokio::test]
async fn lost_session_is_reopened() {
    let standin = standin().await;
    let servers = at(&standin, "?era=legacy");
    call(&servers, "echo", json!({ "text": "a" })).await.unwrap();
    standin.forget_mcp_sessions();
    let again = call(&servers, "echo", json!({ "text": "b" })).await.unwrap();
    assert_eq!(again.structured, Some(json!({ "text": "b" })));
    assert_eq!(asked(&standin, "initialize").len(), 2);
}

#[tokio::test]
async fn tool_list_is_cached_until_list_changed() {
    let standin = standin().await;
    let servers = at(&standin, "?era=legacy&sse=1&page=3");
    let first = names(&servers).await;
    assert_eq!(names(&servers).await, first);
    let pages = asked(&standin, "tools/list").len();
    assert_eq!(pages, 3);
    call(&servers, "announce", json!({})).await.unwrap();
    assert_eq!(names(&servers).await, first);
    assert_eq!(asked(&standin, "tools/list").len(), 2 * pages);
}

#[tokio::test]
async fn transport_errors_map_to_failure_codes() {
    let cases = [
        (Fault::Status { status: 503, retry_after: None, body: None }, "unavailable", true),
        (Fault::Status { status: 429, retry_after: None, body: None }, "rate-limited", true),
        (Fault::Status { status: 401, retry_after: None, body: None }, "unavailable", false),
        (Fault::Status { status: 302, retry_after: None, body: None }, "unavailable", true),
        (Fault::Garbage, "unavailable", true),
        (Fault::Cut, "unavailable", true),
    ];
    for (trouble, code, retryable) in cases {
        for manner in ["", "?era=legacy"] {
            let standin = standin().await;
            let servers = at(&standin, manner);
            names(&servers).await;
            standin.fault(fault("tools/call", trouble.clone()));
            let failure = call(&servers, "echo", json!({ "text": "a" })).await.unwrap_err();
            let shown = format!("{trouble:?} {manner}: {failure}");
            assert_eq!((failure.code.as_str(), failure.retryable), (code, retryable), "{shown}");
            assert!(!failure.message.contains("127.0.0.1"), "{shown}");
            let fine = call(&servers, "echo", json!({ "text": "b" })).await;
            assert!(fine.is_ok(), "{shown}, then {fine:?}");
        }
    }
}

#[tokio::test]
async fn credentials_are_redacted_in_failures() {
    const TOKEN: &str = "tok-0123456789-very-secret";
    let standin = standin().await;
    let mut config = over_http(&format!("{}/mcp", standin.base_url));
    let TransportConfig::Http(http) = &mut config.transport else {
        unreachable!("it is one over HTTP")
    };
    http.headers.insert("x-key".into(), format!("Token {TOKEN}").into());
    http.headers.insert("x-short".into(), "abc12".into());
    let servers = servers(config);
    names(&servers).await;
    let words = [
        (format!("bad key Token {TOKEN}!"), "bad key Token ***"),
        (format!("bad key {}", &TOKEN[4..20]), "bad key ***"),
        ("bad key abc12".to_owned(), "bad key ***"),
    ];
    for status in [200, 400, 401, 403, 404, 405, 409, 413, 422] {
        for (words, shown) in &words {
            let refusal = json!({ "code": -32_000, "message": words });
            for body in [
                json!({ "jsonrpc": "2.0", "id": 1, "error": refusal }),
                json!({ "error": words }),
                json!({ "detail": words }),
            ] {
                let body = Some(body);
                let trouble = Fault::Status { status, retry_after: None, body: body.clone() };
                standin.fault(fault("tools/call", trouble));
                let failed = call(&servers, "echo", json!({ "text": "a" })).await;
                let message = failed.unwrap_err().message;
                let is_unread = status == 200 && body.is_some_and(|it| it.get("detail").is_some());
                assert!(is_unread || message.contains(shown), "{status}: {message}");
                assert!(!message.contains("0123456789") && !message.contains("abc12"), "{message}");
            }
        }
    }
    for status in [401, 403] {
        let body = Some(json!({ "error": "bad key tok-***cret" }));
        standin.fault(fault("tools/call", Fault::Status { status, retry_after: None, body }));
        let failure = call(&servers, "echo", json!({ "text": "a" })).await.unwrap_err();
        assert!(failure.message.contains("bad key ***"), "{failure}");
    }
}

#[tokio::test]
async fn secrets_are_redacted_in_results() {
    let standin = standin().await;
    let mut config = over_http(&format!("{}/mcp", standin.base_url));
    config.secrets = vec!["very-secret-1".into()];
    let said = call(&servers(config), "echo", json!({ "text": "it is very-secret-1" })).await;
    let said = said.unwrap();
    assert_eq!(said.structured, Some(json!({ "text": "it is ***" })));
    assert_eq!(text(&said), r#"{"text":"it is ***"}"#);
}

#[tokio::test]
async fn timed_out_call_is_cancelled() {
    for manner in ["", "?era=legacy"] {
        let standin = standin().await;
        let servers = at(&standin, manner);
        names(&servers).await;
        standin.fault(fault("tools/call", Fault::Hang));
        let failure =
            call_within(&servers, "echo", json!({ "text": "a" }), Some(200)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{manner}");
        let called_off = |entry: &Entry| {
            let method = entry.body.as_ref().map(|body| body["method"].clone());
            entry.outcome == Outcome::Abandoned || method == Some(json!("notifications/cancelled"))
        };
        standin.wait_for_request(called_off).await.unwrap();
        standin.release();
        assert!(call(&servers, "echo", json!({ "text": "b" })).await.is_ok(), "{manner}");
    }
}

#[tokio::test]
async fn concurrent_calls_share_a_session() {
    let standin = standin().await;
    let servers = at(&standin, "?era=legacy");
    let gate = standin.gate(Pattern { body_contains: Some("tools/call".into()), ..Pattern::any() });
    let calls = join_all((0..8).map(|n| {
        let servers = &servers;
        async move { call(servers, "echo", json!({ "text": n.to_string() })).await.unwrap() }
    }));
    let waiting = async {
        gate.arrived(8).await.unwrap();
        gate.open();
    };
    let (answers, ()) = tokio::join!(calls, waiting);
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.structured, Some(json!({ "text": n.to_string() })));
    }
    assert_eq!(asked(&standin, "initialize").len(), 1);
}

#[tokio::test]
async fn slow_calls_of_one_caller_leave_places_for_another() {
    let standin = standin().await;
    let mut config = over_http(&format!("{}/mcp", standin.base_url));
    config.timeout = Duration::from_mins(10);
    let servers = servers(config);
    let gate = standin.gate(Pattern { body_contains: Some("slow".into()), ..Pattern::any() });
    let [one, other] = ["one", "other"].map(CallerId::of_key);
    let echo =
        |owner, text: &'static str| call_of(&servers, owner, "echo", json!({ "text": text }));
    let mut slow = pin!(join_all((0..72).map(|_| echo(one, "slow"))));
    let quick = async {
        gate.arrived(32).await.unwrap();
        echo(other, "quick").await.unwrap();
    };
    tokio::select! {
        biased;
        calls = slow.as_mut() => panic!("{calls:?}"),
        done = timeout(SOON, quick) => done.unwrap(),
    }
    gate.open();
    for call in slow.await {
        call.unwrap();
    }
}

#[tokio::test]
async fn timeout_of_the_tool_list_is_cached() {
    let standin = standin().await;
    let mut config = over_http(&format!("{}/mcp", standin.base_url));
    // The timeout also bounds the time of the handshake.
    config.timeout = Duration::from_secs(2);
    let servers = servers(config);
    standin.fault(FaultRule { times: None, ..fault("tools/list", Fault::Hang) });
    let failure = list(&servers).await.unwrap_err();
    assert_eq!(failure.code, "timeout", "{failure}");
    // During the second request, callers get the failure immediately.
    let mut lists = 0;
    while asked(&standin, "tools/list").len() < 2 {
        let again = list(&servers).now_or_never().expect("an answer from memory");
        assert_eq!(again.unwrap_err(), failure);
        lists += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(lists > 1);
    standin.clear_faults();
    standin.release();
    let again = async {
        while list(&servers).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, again).await.unwrap();
}

/// The clock is paused as soon as both servers have the request. From then on it advances to the
/// next timer whenever nothing else happens.
#[tokio::test]
async fn servers_that_do_not_answer_a_handshake_time_out_together() {
    const TIMEOUT: Duration = Duration::from_mins(5);
    let standin = standin().await;
    let gate = standin.gate(Pattern::path("/mcp"));
    let mut config = over_http(&format!("{}/mcp", standin.base_url));
    (config.timeout, config.handshake) = (TIMEOUT, true);
    let names = ["one", "two"];
    let configs = names.map(|name| (name.to_owned(), config.clone()));
    let config = McpConfig { servers: BTreeMap::from(configs) };
    let servers = McpServers::new(&config, reachable).unwrap();
    let (caller, begun) = (caller(), Instant::now());
    let lists = join_all(names.map(|name| servers.list(&caller, name)));
    let pausing = async {
        gate.arrived(names.len()).await.unwrap();
        pause();
    };
    let (lists, ()) = tokio::join!(lists, pausing);
    assert!(lists.into_iter().all(|list| list.unwrap_err().code == "timeout"));
    assert_eq!(asked(&standin, "initialize").len(), 2);
    // Later turns do not wait again.
    let again = names.map(|name| servers.list(&caller, name).now_or_never());
    assert!(again.into_iter().all(|list| list.expect("an answer from memory").is_err()));
    assert!((TIMEOUT..2 * TIMEOUT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn timeout_of_a_later_page_keeps_the_earlier_pages() {
    let standin = standin().await;
    let mut config = over_http(&format!("{}/mcp?era=current&page=2", standin.base_url));
    config.timeout = Duration::from_secs(4);
    let servers = servers(config);
    let hangs = FaultRule { skip: 1, times: None, ..fault("tools/list", Fault::Hang) };
    standin.fault(hangs);
    let first = names(&servers).await;
    assert_eq!(first[0], "echo");
    assert_eq!(names(&servers).now_or_never().expect("a list from memory"), first);
    standin.clear_faults();
    standin.release();
    assert!(call(&servers, "echo", json!({ "text": "a" })).await.is_ok());
}

#[tokio::test]
async fn error_of_a_later_page_keeps_the_session() {
    let standin = standin().await;
    let servers = at(&standin, "?era=legacy&page=2");
    let status = Fault::Status { status: 500, retry_after: None, body: None };
    standin.fault(FaultRule { skip: 1, ..fault("tools/list", status) });
    names(&servers).await;
    call(&servers, "echo", json!({ "text": "a" })).await.unwrap();
    assert_eq!(asked(&standin, "initialize").len(), 1);
}

#[tokio::test]
async fn private_addresses_require_the_setting() {
    let standin = standin().await;
    let port = standin.addr.port();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let mut config = over_http(&format!("http://{host}:{port}/mcp"));
        if let TransportConfig::Http(http) = &mut config.transport {
            http.private = false;
        }
        let failure = list(&servers(config)).await.unwrap_err();
        assert_eq!(failure.code, "denied", "{host}: {failure}");
        assert!(failure.message.contains("private = true"), "{failure}");
    }
    assert!(standin.requests().is_empty());
}

#[tokio::test]
async fn tools_are_listed_again_after_an_outage_of_the_server() {
    let standin = standin().await;
    let servers = at(&standin, "");
    standin.fault(FaultRule {
        on: Pattern::any(),
        fault: Fault::Status { status: 503, retry_after: None, body: None },
        times: None,
        skip: 0,
    });
    assert_eq!(list(&servers).await.unwrap_err().code, "unavailable");
    standin.clear_faults();
    assert_eq!(names(&servers).await[0], "echo");
    let nobody = servers_at_nobody();
    let failure = list(&nobody).await.unwrap_err();
    assert!(failure.message.contains("refused"), "{failure}");
}

#[tokio::test]
async fn connection_errors_name_the_origin_and_the_setting() {
    let standin = standin().await;
    let without_tls = format!("https://{}", standin.addr);
    for (origin, advice) in [
        ("http://127.0.0.1:9", "; check `url` under `[mcp.probe]`"),
        ("http://nowhere.invalid", "; check `url` under `[mcp.probe]`"),
        (
            without_tls.as_str(),
            "; the server does not speak TLS, so write `http://` in `url` under `[mcp.probe]`",
        ),
    ] {
        let servers = servers(over_http(&format!("{origin}/mcp?key=k-1")));
        let failure = list(&servers).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert!(failure.message.contains(&format!("no connection to {origin}: ")), "{failure}");
        assert!(failure.message.ends_with(advice) && !failure.message.contains("k-1"), "{failure}");
    }
}

fn servers_at_nobody() -> McpServers {
    let mut config = over_http("http://127.0.0.1:9/mcp");
    config.timeout = Duration::from_secs(5);
    servers(config)
}
