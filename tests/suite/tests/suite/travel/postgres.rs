//! Test of the application on PostgreSQL.

use serde_json::json;
use wattle_kit::need;
use wattle_suite::asset::postgres_rows;
use wattle_suite::server::Setup;
use wattle_suite::travel::{SESSIONS, TOKYO};

use crate::asset::postgres::database;

#[tokio::test]
async fn s3_53_on_postgres_a_guide_is_made_and_stored() {
    let (_postgres, url) = need!(database());
    let server = Setup::travel_on(&url).await.start().await;
    let travel = server.travel();
    let (session, said) = travel.make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let shown = travel.session(&session).await;
    assert_eq!(
        (&shown["status"], &shown["title"]),
        (&json!("COMPLETED"), &json!("Tokyo food walk"))
    );
    assert_eq!(postgres_rows(&url, "session_steps").await.len(), 6);
    assert_eq!(travel.messages(&session).await.len(), 2);
    let again = travel.chat(&session, "please make 2 new pictures").await;
    assert_eq!(again.tools(), ["search_image", "generate_handbook_html"]);
    assert_eq!(travel.messages(&session).await.len(), 4);
    assert_eq!(postgres_rows(&url, "session_steps").await.len(), 8);
    let title = json!({"title": "Mine"});
    let path = format!("{SESSIONS}/{session}");
    travel.send("PATCH", &path, Some(&title)).await.expect(200);
    assert_eq!(travel.session(&session).await["title"], "Mine");
    travel.send("DELETE", &path, None).await.expect(204);
    assert_eq!(postgres_rows(&url, "session_steps").await.len(), 0);
    assert_eq!(travel.guide(&session).await.status, 404);
}
