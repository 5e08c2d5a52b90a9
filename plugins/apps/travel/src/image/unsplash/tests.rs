//! Requests to the service, its responses, and its failures.

use serde_json::{Value, json};
use wattle_plugin::Failure;
use wattle_plugin::http::Response;
use wattle_plugin::testing::FakeHost;

use super::search;
use crate::image::plan::Planned;
use crate::image::{ImageAsset, ImageSource};

fn planned(id: &str) -> Planned {
    Planned {
        block_id: id.to_owned(),
        block_title: format!("Title {id}"),
        query: format!("query & {id}"),
        prompt: "a photograph of it".to_owned(),
        alt: format!("view of {id}"),
    }
}

fn photo() -> Value {
    json!({
        "id": "abc", "width": 4000, "height": 3000, "description": null,
        "urls": {"raw": "https://images.unsplash.com/raw",
                 "regular": "https://images.unsplash.com/photo-1?w=1080&q=80"},
        "links": {"html": "https://unsplash.com/photos/abc",
                  "download_location": "https://api.unsplash.com/photos/abc/download?ixid=1"},
        "user": {"id": "u", "username": "jo", "name": "Jo"},
    })
}

fn found(photos: &[Value]) -> Response {
    let answer = json!({"total": photos.len(), "results": photos});
    Response::new(200, answer.to_string())
}

fn is_search(url: &str) -> bool {
    url.contains("/search/photos")
}

/// Searches for two blocks, each with this response.
fn check(answer: impl Fn() -> Result<Response, Failure> + 'static) -> (Vec<bool>, FakeHost) {
    let host = FakeHost::new().http(move |_| answer());
    let images = host.run(|| search(&[planned("a"), planned("b")])).unwrap();
    (images.iter().map(Option::is_some).collect(), host)
}

#[test]
fn s3_28_s3_30_a_photograph_is_found_and_credited() {
    let host = FakeHost::new().http(|_| Ok(found(&[photo()])));
    let images = host.run(|| search(&[planned("a")])).unwrap();
    let expected = ImageAsset {
        block_id: "a".to_owned(),
        block_title: "Title a".to_owned(),
        query: "query & a".to_owned(),
        alt: "view of a".to_owned(),
        image_url: "https://images.unsplash.com/photo-1?w=1080&q=80".to_owned(),
        source: ImageSource::Unsplash,
        source_page: Some("https://unsplash.com/photos/abc".to_owned()),
        credit: Some("Photo by Jo on Unsplash".to_owned()),
        width: Some(4000),
        height: Some(3000),
    };
    assert_eq!(images, [Some(expected)]);
    let asked = &host.http_requests()[0];
    assert_eq!(
        asked.url,
        "https://api.unsplash.com/search/photos?query=query%20%26%20a&page=1&per_page=1\
         &orientation=landscape&content_filter=high"
    );
    let header =
        |name: &str| asked.headers.iter().find(|(key, _)| key == name).map(|(_, it)| &**it);
    assert_eq!(header("authorization"), Some("Client-ID {{secret:UNSPLASH_ACCESS_KEY}}"));
    assert_eq!((header("accept-version"), asked.timeout_ms), (Some("v1"), Some(15_000)));
}

#[test]
fn only_used_photographs_are_reported() {
    let host = FakeHost::new().http(|request| {
        let photos = if request.url.contains("20b&") { vec![] } else { vec![photo()] };
        Ok(found(&photos))
    });
    host.run(|| search(&[planned("a"), planned("b")])).unwrap();
    let requests = host.http_requests();
    let told: Vec<_> = requests.iter().filter(|it| !is_search(&it.url)).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].url, "https://api.unsplash.com/photos/abc/download?ixid=1");
    assert!(told[0].headers.iter().any(|(name, _)| name == "authorization"));
}

#[test]
fn key_is_sent_only_to_the_service() {
    for address in ["https://evil.example/d", "https://api.unsplash.com.evil.example/d"] {
        let mut photo = photo();
        photo["links"]["download_location"] = json!(address);
        let host = FakeHost::new().http(move |_| Ok(found(std::slice::from_ref(&photo))));
        assert!(host.run(|| search(&[planned("a")])).unwrap()[0].is_some());
        assert_eq!(host.http_requests().len(), 1, "{address}");
    }
}

#[test]
fn failed_report_changes_nothing() {
    let host = FakeHost::new().http(|request| {
        let is_search = is_search(&request.url);
        Ok(if is_search { found(&[photo()]) } else { Response::new(500, "") })
    });
    assert!(host.run(|| search(&[planned("a")])).unwrap()[0].is_some());
}

#[test]
fn s3_29_after_a_rate_limit_no_request_is_sent() {
    for (status, text) in [(403, "Rate Limit Exceeded"), (429, "")] {
        let host = FakeHost::new().http(move |request| {
            let is_first = request.url.contains("20a&");
            Ok(if is_first { found(&[photo()]) } else { Response::new(status, text) })
        });
        let images = host.run(|| search(&[planned("a"), planned("b")])).unwrap();
        assert_eq!(images.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
        assert!(host.http_requests().iter().all(|it| is_search(&it.url)), "{status}");
    }
}

#[test]
fn s3_29_s3_31_every_failure_leaves_the_image_to_the_generation() {
    let bodies = [
        "",
        "not json",
        "[]",
        "{}",
        r#"{"results":[]}"#,
        r#"{"results":[{"urls":{}}]}"#,
        r#"{"results":[{"urls":{"regular":"http://plain.example/a.jpg"}}]}"#,
        r#"{"results":[{"urls":{"regular":"javascript:alert(1)"}}]}"#,
    ];
    for body in bodies {
        assert_eq!(check(move || Ok(Response::new(200, body))).0, [false, false], "{body}");
    }
    for status in [400, 401, 403, 404, 500, 503] {
        assert_eq!(check(move || Ok(Response::new(status, "{}"))).0, [false, false], "{status}");
    }
    let no_key = || Err(Failure::new("denied", "the secret `UNSPLASH_ACCESS_KEY` is not set"));
    assert_eq!(check(no_key).0, [false, false]);
    let (_, host) = check(|| Err(Failure::timeout("slow")));
    assert_eq!(host.logged().len(), 2);
}

#[test]
fn disabled_search_and_cancelled_run_send_no_request() {
    let host = FakeHost::new().setting("unsplash_enabled", false);
    assert_eq!(host.run(|| search(&[planned("a")])), Ok(vec![None]));
    let host = FakeHost::new().http(|_| Err(Failure::new("cancelled", "stopped")));
    assert_eq!(host.run(|| search(&[planned("a")])).unwrap_err().code, "cancelled");
}

#[test]
fn base_url_is_configurable() {
    for (setting, base) in
        [("http://127.0.0.1:9/", "http://127.0.0.1:9"), (" ", "https://api.unsplash.com")]
    {
        let host = FakeHost::new().setting("unsplash_base_url", setting);
        let host = host.http(|_| Ok(Response::new(404, "")));
        host.run(|| search(&[planned("a")])).unwrap();
        let url = &host.http_requests()[0].url;
        assert!(url.starts_with(&format!("{base}/search/photos?")), "{url}");
    }
}

#[test]
fn photographer_without_a_name_is_credited() {
    let users = [
        (json!({"name": " ", "username": "jo"}), "Photo by jo on Unsplash"),
        (json!({"name": null}), "Photo on Unsplash"),
        (Value::Null, "Photo on Unsplash"),
    ];
    for (user, credit) in users {
        let mut photo = photo();
        (photo["user"], photo["links"]) = (user, Value::Null);
        let host = FakeHost::new().http(move |_| Ok(found(std::slice::from_ref(&photo))));
        let image = host.run(|| search(&[planned("a")])).unwrap().remove(0).unwrap();
        assert_eq!(image.credit.as_deref(), Some(credit));
        assert_eq!(image.source_page, None);
    }
}
