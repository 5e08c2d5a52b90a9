//! The tenant token: the host fetches it, keeps it until half an hour before its expiry, renews it
//! when it is refused, and shows it nowhere else.

use wattle_kit::standin::{FaultRule, Pattern, feishu_refusal, redact};
use wattle_suite::expense::{APP_SECRET, RECORDS_PATH, TOKEN_PATH};
use wattle_suite::server::Setup;

/// Milliseconds of an hour and a half: two hours without the last half hour.
const KEPT_MS: u32 = 5_400_000;

#[tokio::test]
async fn s2_28_a_token_is_kept_until_half_an_hour_before_its_expiry() {
    let server = Setup::expense().await.start().await;
    server.tell("打车20元，午饭30元").await;
    server.tell("咖啡18元").await;
    assert_eq!(server.requests_to(TOKEN_PATH).len(), 1);
    server.clock().advance_ms(KEPT_MS - 1_000);
    server.tell("打车20元").await;
    assert_eq!(server.requests_to(TOKEN_PATH).len(), 1);
    server.clock().advance_ms(1_000);
    server.tell("打车20元").await;
    assert_eq!(server.requests_to(TOKEN_PATH).len(), 2);
}

#[tokio::test]
async fn s2_28_a_refused_token_is_renewed_once_and_the_record_is_created() {
    let server = Setup::expense().await.start().await;
    server.tell("打车20元").await;
    server.standin().revoke_feishu_tokens();
    let reply = server.tell("咖啡18元").await;
    assert!(reply.text.contains("✅"), "{}", reply.text);
    assert_eq!(server.requests_to(TOKEN_PATH).len(), 2);
    let shown: Vec<String> = server
        .requests_to(RECORDS_PATH)
        .into_iter()
        .map(|entry| entry.headers["authorization"].clone())
        .collect();
    let [first, second] = ["1", "2"].map(|n| redact(&format!("Bearer t-standin-{n}")));
    assert_eq!(shown, [first.clone(), first, second]);
    let always = feishu_refusal(99_991_661);
    server.standin().fault(FaultRule::new(Pattern::path(RECORDS_PATH), always));
    let reply = server.tell("打车20元").await;
    assert!(reply.text.contains("访问凭证"), "{}", reply.text);
    assert_eq!(server.requests_to(TOKEN_PATH).len(), 3, "once per request");
}

#[tokio::test]
async fn s2_26_wrong_credentials_are_an_output_and_no_failure() {
    let setup = Setup::expense().await;
    setup.workspace.write("feishu-secret", "bad-secret");
    let server = setup.start().await;
    let reply = server.tell("打车20元").await;
    assert!(reply.text.starts_with("❌"), "{}", reply.text);
    assert!(reply.text.contains("凭证"), "{}", reply.text);
    let trace = server.get(&format!("/api/v1/threads/{}/trace", reply.thread)).await.expect(200);
    let seen = trace.to_string();
    assert!(!seen.contains("bad-secret"), "{seen}");
}

#[tokio::test]
async fn s2_26_missing_credentials_are_an_output_and_no_failure() {
    let setup = Setup::expense_with(|config| {
        config.remove("secrets.FEISHU_APP_SECRET").unwrap();
    });
    let server = setup.await.start().await;
    let reply = server.tell("打车20元").await;
    assert!(reply.text.contains("凭证"), "{}", reply.text);
}

#[tokio::test]
async fn tokens_and_secrets_appear_in_no_event_state_or_file() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("昨天打车20元").await;
    let path = |rest: &str| format!("/api/v1/threads/{}{rest}", reply.thread);
    let mut seen = Vec::new();
    for rest in ["", "/state", "/trace", "/history?state=true", "/events?until=idle"] {
        seen.push(server.get(&path(rest)).await.expect(200).to_string());
    }
    let data = server.setup.workspace.data();
    for file in std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            seen.push(String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
        }
    }
    for text in seen {
        for secret in ["t-standin-1", APP_SECRET, "cli_suite"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}
