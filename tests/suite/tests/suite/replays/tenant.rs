//! Cases for an app. Each case is a tenant whose model routes lead to the case; all other services
//! are stand-ins.
//!
//! The result document of a case is the body of the app's response. `route` is a model route of the
//! case; there may be several, and each app has a default one. `kind` and `model` belong to the
//! provider of the case.

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays};
use wattle_suite::answer::Answer;
use wattle_suite::server::{Setup, TestServer};

use super::{judge, read};

/// Allows the routes of tenants to use loopback addresses.
const PRIVATE: &str = "[model]\ntenant_private = true\n";

/// The endpoint of an app and its requests.
pub(super) struct Door {
    /// The endpoint.
    pub(super) path: &'static str,
    /// The route of the case if the case has no `route`.
    pub(super) route: &'static str,
    /// Returns the request body of a case.
    pub(super) body: fn(&Case) -> Value,
}

impl Door {
    /// Sends all cases of a folder to an app and checks the responses.
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
    problems.extend(case.expected().iter().map(|(key, _)| format!("`{key}` is not allowed here")));
    if answer.status != 200 {
        problems.push(format!("the status is {}", answer.status));
    }
    if !problems.is_empty() {
        problems.push(answer.body.to_string());
    }
    problems
}
