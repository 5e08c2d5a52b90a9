//! `GET /api/v1/access`, which describes the access of the request.

use serde_json::json;

use crate::fixture::{Fixture, answer};
use crate::keys::{make, start, with};
use crate::lists::serve_tenants;

const PATH: &str = "/api/v1/access";

#[tokio::test]
async fn a_host_without_keys_gives_everybody_the_access_of_the_operator() {
    let fixture = Fixture::start("[clock]\ntime_zone = \"Asia/Shanghai\"\n").await;
    let (status, access) = fixture.get(PATH).await;
    let (_, health) = fixture.get("/api/v1/health").await;
    let expected = json!({
        "needs_key": false, "scope": "admin", "is_operator": true, "version": health["version"],
        "instance": health["instance"], "time_zone": "Asia/Shanghai", "agent_server": true,
        "apps": true, "studio": true, "install": false,
    });
    assert_eq!((status, access), (200, expected));
    let fixture = Fixture::start("[server]\nagent_server = false\nstudio = false\n").await;
    let (_, access) = fixture.get(PATH).await;
    assert_eq!((&access["agent_server"], &access["studio"]), (&json!(false), &json!(false)));
}

#[tokio::test]
async fn the_response_describes_the_access_of_the_key() {
    let (fixture, operator) = start("").await;
    let (read_id, read) =
        make(&fixture, &operator, json!({ "name": "reader", "scopes": ["read"] })).await;
    let tenant = json!({ "name": "acme", "tenant": "acme", "scopes": ["admin"] });
    let (_, tenant) = make(&fixture, &operator, tenant).await;
    let access = async |key: &str| answer(with(&fixture, key, "GET", PATH)).await;
    let (_, seen) = access(&read).await;
    assert_eq!(seen["key"], json!({ "id": read_id, "name": "reader" }));
    assert_eq!((&seen["scope"], &seen["needs_key"]), (&json!("read"), &json!(true)));
    assert_eq!((&seen["is_operator"], seen.get("tenant")), (&json!(false), None));
    let (_, seen) = access(&tenant).await;
    assert_eq!((&seen["scope"], &seen["tenant"]), (&json!("admin"), &json!("acme")));
    assert_eq!(seen["is_operator"], false);
    assert_eq!(access(&operator).await.1["is_operator"], true);

    let revoked = with(&fixture, &operator, "DELETE", &format!("/api/v1/keys/{read_id}"));
    assert_eq!(answer(revoked).await.0, 200);
    for key in [read.as_str(), "unknown"] {
        let (status, problem) = access(key).await;
        assert_eq!((status, &problem["details"]), (401, &json!({ "invalid": "key" })), "{key}");
    }
    let (status, problem) = fixture.get(PATH).await;
    assert_eq!((status, &problem["details"]), (401, &json!({ "missing": "key" })));
}

#[tokio::test]
async fn the_problem_for_a_request_without_a_tenant_names_the_header() {
    let fixture = Fixture::start("[server]\ntenant_header = \"x-tenant\"\n").await;
    let (status, problem) = fixture.get(PATH).await;
    let missing = json!({ "missing": "tenant", "header": "x-tenant" });
    assert_eq!((status, &problem["details"]), (401, &missing));
    let named = fixture.client.get(fixture.url(PATH)).header("x-tenant", "one");
    let (status, access) = answer(named).await;
    assert_eq!((status, &access["tenant"]), (200, &json!("one")));
    assert_eq!(
        (&access["tenant_header"], &access["is_operator"]),
        (&json!("x-tenant"), &json!(false))
    );
}

#[tokio::test]
async fn the_header_of_the_response_opens_the_threads_that_the_operator_lists() {
    let fixture = serve_tenants().await;
    let get = |path: &str| with(&fixture, "k-operator", "GET", path);
    let (status, access) = answer(get(PATH)).await;
    assert_eq!((status, &access["is_operator"], access.get("tenant")), (200, &json!(true), None));
    let header = access["tenant_header"].as_str().unwrap();
    let (_, list) = answer(get("/api/v1/threads?tenant=*")).await;
    let threads = list["items"].as_array().unwrap();
    assert_eq!(threads.len(), 2, "{list}");
    for thread in threads {
        let (id, tenant) = (thread["thread"].as_str().unwrap(), thread["tenant"].as_str().unwrap());
        let path = format!("/api/v1/threads/{id}");
        assert_eq!(answer(get(&path)).await.0, 401, "{id}: a request has to name the tenant");
        assert_eq!(answer(get(&path).header(header, tenant)).await.0, 200, "{id}");
    }
}
