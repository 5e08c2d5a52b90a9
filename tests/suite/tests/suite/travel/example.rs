//! Tests of the configuration that the application ships, `wattle.example.toml`: its contents, and
//! that the application runs with it.

use std::time::Duration;

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::{FaultRule, Pattern, deepseek_not_found, google_not_found, redact};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::config::{self, KEYS};
use wattle_suite::travel::{self, APIFY, CHAT_MODEL, GOOGLE, NOMINATIM, TOKYO, UNSPLASH};

/// A route and its required settings.
struct Policy {
    route: &'static str,
    models: [&'static str; 2],
    /// The prefix of the names of its variables.
    variable: &'static str,
    max_output_tokens: Option<u32>,
    timeout_s: u64,
    retries: u32,
}

const POLICIES: [Policy; 6] = [
    Policy {
        route: "chat_orchestration",
        models: ["deepseek-chat", "deepseek-reasoner"],
        variable: "CHAT_ORCHESTRATION",
        max_output_tokens: Some(4096),
        timeout_s: 45,
        retries: 1,
    },
    Policy {
        route: "json_compilation_strict",
        models: ["gemini-2.5-pro", "gemini-2.5-flash"],
        variable: "JSON_COMPILATION",
        max_output_tokens: Some(8192),
        timeout_s: 60,
        retries: 2,
    },
    Policy {
        route: "spot_query_normalization",
        models: ["gemini-2.5-flash", "gemini-2.5-flash-lite"],
        variable: "SPOT_QUERY",
        max_output_tokens: Some(4096),
        timeout_s: 30,
        retries: 2,
    },
    Policy {
        route: "handbook_image_query_planning",
        models: ["gemini-2.5-flash", "gemini-2.5-flash-lite"],
        variable: "HANDBOOK_IMAGE_QUERY",
        max_output_tokens: Some(4096),
        timeout_s: 35,
        retries: 2,
    },
    Policy {
        route: "handbook_html_generation",
        models: ["gemini-3-pro-preview", "gemini-2.5-pro"],
        variable: "HANDBOOK_HTML",
        max_output_tokens: Some(16384),
        timeout_s: 75,
        retries: 1,
    },
    Policy {
        route: "handbook_image",
        models: ["imagen-4.0-fast-generate-001", "gemini-2.5-flash-image"],
        variable: "HANDBOOK_IMAGE",
        max_output_tokens: None,
        timeout_s: 90,
        retries: 1,
    },
];

impl Policy {
    /// Returns the variables that replace its models.
    fn variables(&self) -> [String; 2] {
        let name = self.variable;
        [format!("{name}_MODEL"), format!("{name}_FALLBACK_MODEL")]
    }
}

/// Prepares the shipped configuration in a new folder, with a stand-in for the services.
async fn shipped() -> Setup {
    shipped_with(|_| ()).await
}

/// Prepares the shipped configuration with a change.
async fn shipped_with(change: impl FnOnce(&mut Configuration)) -> Setup {
    let setup = Setup::without_models().await;
    travel::put(&setup.workspace);
    let mut config = config::shipped(&setup.standin);
    change(&mut config);
    setup.with(&config.to_string())
}

/// Prepares the shipped configuration without pauses between requests to the geocoder.
async fn hasty() -> Setup {
    shipped_with(|config| config.replace("apps.travel.settings.nominatim_interval_ms", 20)).await
}

/// Starts a server with the keys that the file names and with these variables.
async fn started(setup: Setup, more: &[(String, String)]) -> TestServer {
    let more = more.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    setup.start_with(&KEYS.into_iter().chain(more).collect::<Vec<_>>()).await
}

fn models(server: &TestServer, path: &str) -> Vec<String> {
    server.requests_on(path).into_iter().filter_map(|entry| entry.model).collect()
}

#[tokio::test]
async fn s3_32_s3_40_to_s3_46_the_shipped_routes_match_the_requirements() {
    let config = shipped().await.config();
    for policy in &POLICIES {
        let route = &config.model.routes[policy.route];
        let targets = route.models();
        let told: Vec<&str> = targets.iter().map(|target| target.model.as_str()).collect();
        assert_eq!(told, policy.models, "{}", policy.route);
        let variables: Vec<&str> =
            targets.iter().filter_map(|target| target.model_env.as_deref()).collect();
        assert_eq!(variables, policy.variables(), "{}", policy.route);
        let is = (route.max_output_tokens, route.timeout, route.retries);
        let due = (policy.max_output_tokens, Duration::from_secs(policy.timeout_s), policy.retries);
        assert_eq!(is, due, "{}", policy.route);
        let provider = if policy.route == "chat_orchestration" { "deepseek" } else { "google" };
        assert!(targets.iter().all(|it| it.provider == provider), "{}", policy.route);
    }
}

#[tokio::test]
async fn s3_46_requests_have_the_limits_of_the_shipped_policies() {
    let server = Setup::travel().await.start().await;
    server.travel().make(TOKYO).await;
    for Policy { route, max_output_tokens, .. } in &POLICIES[1..5] {
        let asked = server.requests_for(route).remove(0).body.unwrap();
        let told = &asked["generationConfig"]["maxOutputTokens"];
        assert_eq!(*told, json!(max_output_tokens), "{route}");
    }
    let talked = server.requests_on(CHAT_MODEL).remove(0).body.unwrap();
    let told = talked.get("max_tokens").or(talked.get("max_completion_tokens"));
    assert_eq!(told, Some(&json!(4096)), "{talked}");
}

#[tokio::test]
async fn s3_48_a_guide_is_made_with_the_shipped_configuration() {
    let server = started(hasty().await, &[]).await;
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("2 AI pictures for {TOKYO}")).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert_eq!(travel.session(&session).await["status"], "COMPLETED");

    let talked = server.requests_on(CHAT_MODEL);
    for entry in &talked {
        assert_eq!(
            entry.model.as_deref(),
            Some("deepseek-v4-flash"),
            "retired models are replaced"
        );
        let thinking = &entry.body.as_ref().unwrap()["thinking"]["type"];
        assert_eq!(*thinking, json!("disabled"));
        assert_eq!(entry.headers["authorization"], redact(&format!("Bearer {}", KEYS[0].1)));
    }
    let tasks = ["gemini-3.8-flash", "gemini-3.5-flash-lite", "gemini-3.5-flash-lite"];
    let pictures = ["gemini-nano-banana-2.1"; 2];
    let expected = [&tasks[..], &pictures, &["gemini-3.1-pro-preview"]].concat();
    assert_eq!(models(&server, GOOGLE), expected);
    let google = server.requests_on(GOOGLE);
    assert!(google.iter().all(|it| it.headers["x-goog-api-key"] == redact(KEYS[1].1)));
    assert_eq!(server.requests_on(APIFY).len(), 1);
    let agent = "wattle-travel/0.1";
    let asked = server.requests_on(NOMINATIM);
    assert!(asked.iter().all(|entry| entry.headers["user-agent"] == agent), "{asked:?}");
    travel.chat(&session, "please make 1 new photo").await;
    assert!(!server.requests_on(UNSPLASH).is_empty());
}

#[tokio::test]
async fn s3_46_each_variable_replaces_its_model() {
    let named = |policy: &Policy| {
        let [first, fallback] = policy.variables();
        let prefix = if policy.route == "handbook_image" { "imagen-" } else { "" };
        let route = policy.route;
        [(first, format!("{prefix}{route}-1")), (fallback, format!("{prefix}{route}-2"))]
    };
    let variables: Vec<_> = POLICIES.iter().flat_map(named).collect();
    let server = started(hasty().await, &variables).await;
    for Policy { route, .. } in &POLICIES {
        let gone = |model: &str, fault| FaultRule::new(Pattern::model(model), fault);
        let rule = match *route {
            "chat_orchestration" => gone("chat_orchestration-1", deepseek_not_found()),
            "handbook_image" => {
                gone("imagen-handbook_image-1", google_not_found("imagen-handbook_image-1"))
            }
            route => gone(&format!("{route}-1"), google_not_found(&format!("{route}-1"))),
        };
        server.standin().fault(rule);
    }
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("1 AI picture for {TOKYO}")).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert_eq!(models(&server, CHAT_MODEL)[..2], ["chat_orchestration-1", "chat_orchestration-2"]);
    let of = |number: u32| {
        ["json_compilation_strict", "spot_query_normalization", "handbook_image_query_planning"]
            .iter()
            .map(move |route| format!("{route}-{number}"))
    };
    let asked = models(&server, GOOGLE);
    for model in of(1).chain(of(2)) {
        assert_eq!(asked.iter().filter(|it| **it == model).count(), 1, "{model} in {asked:?}");
    }
    let tail = [
        "imagen-handbook_image-1",
        "imagen-handbook_image-2",
        "handbook_html_generation-1",
        "handbook_html_generation-2",
    ];
    assert_eq!(asked[asked.len() - 4..], tail);
}

#[tokio::test]
async fn a_service_is_unavailable_without_its_shipped_grant() {
    let setup = shipped_with(|config| {
        let rules = config.get_mut("grants.travel.http").unwrap().as_array_mut().unwrap();
        let apify = rules[0].as_table_mut().unwrap();
        assert_eq!(apify.remove("secrets").unwrap()[0].as_str(), Some("APIFY_TOKEN"));
    });
    let server = started(setup.await, &[]).await;
    let (_, said) = server.travel().make(TOKYO).await;
    let error = said.tool_error("crawl_youtube_videos");
    assert!(error.contains("APIFY_TOKEN"), "{error}");
    assert!(server.requests_on(APIFY).iter().all(|it| !it.query.contains_key("token")));
    let shown: Value = json!(server.standin().requests());
    assert!(!shown.to_string().contains(KEYS[2].1));
}
