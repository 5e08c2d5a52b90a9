//! The reasoning application: a session in each status.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::before::{get, post};
use wattle_suite::reasoning::SESSIONS;
use wattle_suite::server::TestServer;

use crate::requests::{Requests, pause};

/// Creates the sessions.
pub(crate) async fn make(server: &TestServer) -> Requests {
    let app = server.reasoning();
    let completed = app.ask("查询手机号13800138000的客户").await;
    app.run(&completed).await;
    pause(server);
    let waiting = app.ask("火星天气").await;
    let asked = app.run(&waiting).await;
    assert_eq!(asked["status"], "waiting_clarification", "{asked}");
    pause(server);
    let failed = app.ask("统计各区域的客户数量").await;
    let down = Fault::Status { status: 500, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("reasoning"), down));
    app.on(&failed, "run", &json!({})).await.expect(400);
    server.standin().clear_faults();
    pause(server);
    let cancelled = app.ask("火星天气").await;
    app.run(&cancelled).await;
    app.on(&cancelled, "cancel", &json!({})).await.expect(200);
    pause(server);
    let created = app.ask("设备状态分布").await;

    let all = [&completed, &waiting, &failed, &cancelled, &created];
    let show = |session: &String| get(&format!("{SESSIONS}/{session}"));
    let trace = |session: &String| get(&format!("{SESSIONS}/{session}/trace"));
    let page = get(&format!("{SESSIONS}/{completed}/trace?after=2&limit=3"));
    let stored = all.into_iter().flat_map(|session| [show(session), trace(session)]).chain([page]);
    let answer = json!({ "answer": { "type": "clarification", "text": "统计各区域的客户数量" } });
    let sent = [
        on(&completed, "run", &json!({})),
        on(&completed, "run", &json!({ "user_input": "统计各区域的客户数量" })),
        on(&completed, "clarify", &answer),
        on(&waiting, "run", &json!({})),
        on(&waiting, "clarify", &answer),
        on(&waiting, "run", &json!({})),
        on(&failed, "run", &json!({})),
        on(&cancelled, "run", &json!({})),
        on(&created, "run", &json!({})),
    ];
    Requests {
        stored: stored.collect(),
        continued: sent.into_iter().chain(all.into_iter().map(show)).collect(),
    }
}

fn on(session: &str, what: &str, body: &Value) -> Value {
    post(&format!("{SESSIONS}/{session}/{what}"), body)
}
