//! Cases about an app. Each case is a tenant, whose model routes lead to the case; all other services are stand-ins.
//!
//! The document that comes of a case is the body of the app's answer. `route` is a model route that leads to the case;
//! there may be several, and each app has a usual one. `kind` and `model` are those of its provider.

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays};
use wattle_suite::answer::Answer;
use wattle_suite::server::{Setup, TestServer};

use super::{judge, read};

/// Lets the routes of tenants lead to loopback.
const PRIVATE: &str = "[model]\ntenant_private = true\n";

/// How an app is asked.
pub(super) struct Door {
    /// The endpoint.
    pub(super) path: &'static str,
    /// The route that leads to a case that names none.
    pub(super) route: &'static str,
    /// The body of the request of a case.
    pub(super) body: fn(&Case) -> Value,
}

impl Door {
    /// Asks an app everything in a folder.
    pub(super) async fn check(&self, area: &str, setup: Setup) {
        let cases = read(area);
        let replays = Replays::start(&cases).await.unwrap();
        let server = setup.with(PRIVATE).with_tenants().start().await;
        let answers = join_all(cases.iter().map(|case| self.ask(&server, case, &replays))).await;
        let found = cases.iter().zip(&answers);
        let found = found.map(|(case, answer)| (case, problems(case, answer)));
        judge(area, &found.collect::<Vec<_>>(), Some(&replays));
    }

    async fn ask(&self, server: &TestServer, case: &Case, replays: &Replays) -> Answer {
        let mut routes = case.all("route");
        if routes.is_empty() {
            routes.push(self.route.to_owned());
        }
        let tenant = case.name.as_str();
        let own = json!({
            "provider": case.key("kind").unwrap_or("openai"),
            "model": case.key("model").unwrap_or("gpt-5"),
            "base_url": format!("{}/", replays.url(case)),
        });
        for route in routes {
            let path = format!("/api/v1/tenants/{tenant}/routes/{route}");
            let put = server.request_of(Some(tenant), "PUT", &path).json(&own);
            Answer::of(put).await.expect(200);
        }
        let request = server.request_of(Some(tenant), "POST", self.path);
        Answer::of(request.json(&(self.body)(case))).await
    }
}

fn problems(case: &Case, answer: &Answer) -> Vec<String> {
    let mut problems = case.unmet(&answer.body);
    problems.extend(case.expected().iter().map(|(key, _)| format!("`{key}` is no key here")));
    if answer.status != 200 {
        problems.push(format!("the status is {}", answer.status));
    }
    if !problems.is_empty() {
        problems.push(answer.body.to_string());
    }
    problems
}
