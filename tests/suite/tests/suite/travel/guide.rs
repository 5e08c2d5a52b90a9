//! Tests from an address to a page, for each kind of video.

use serde_json::{Value, json};
use wattle_suite::server::Setup;
use wattle_suite::travel::{APIFY, KITCHEN, LISBON, NOMINATIM, NOWHERE, OSAKA, TOKYO};

/// The steps of a guide in their order.
const STEPS: [&str; 6] = [
    "parse_youtube_input",
    "crawl_youtube_videos",
    "build_travel_blocks",
    "resolve_spot_coordinates",
    "search_image",
    "generate_handbook_html",
];

fn titles(blocks: &Value) -> Vec<&str> {
    blocks.as_array().unwrap().iter().map(|block| block["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn s3_10_a_guide_is_made_step_by_step() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, said) = travel.make(TOKYO).await;
    assert_eq!(said.tools(), STEPS, "{:#?}", said.chunks);
    assert!(said.errors().is_empty(), "{:?}", said.errors());
    let preview = format!("/api/guide/{session}");
    assert!(said.text().ends_with(&format!("Your travel guide is ready: [open it]({preview}).")));

    let built = said.output("build_travel_blocks");
    let spots = ["Tokyo Tower", "Senso-ji Temple", "Yanaka Ginza"];
    assert_eq!(titles(&built["spot_blocks"]), spots, "text beyond the limit is ignored");
    let resolved = said.output("resolve_spot_coordinates");
    assert_eq!(resolved["resolved_count"], 3, "{resolved}");
    let asked = server.requests_on(NOMINATIM);
    let queries: Vec<&str> = asked.iter().map(|entry| entry.query["q"].as_str()).collect();
    assert_eq!(queries, [spots[0], spots[1], spots[2], "Yanaka Ginza Tokyo"]);

    let page = travel.guide(&session).await;
    assert!(page.header("content-type").starts_with("text/html"), "{page:?}");
    let page = page.expect(200);
    let page = page.as_str().unwrap();
    let photo = format!("{}/photo-", server.standin().base_url);
    for part in ["<h2>Tokyo Tower</h2>", "mlat=35.65", &photo, "Watch Origin Video"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(server.requests_on(APIFY).len(), 1);
}

#[tokio::test]
async fn s3_19_without_subtitles_the_description_of_a_video_is_used() {
    let server = Setup::travel().await.start().await;
    let (_, said) = server.travel().make(LISBON).await;
    let built = said.output("build_travel_blocks");
    let titles = titles(&built["blocks"]);
    assert_eq!(titles, ["Belem Tower", "Pastel de Nata", "Feira da Ladra", "Tram 28"]);
}

#[tokio::test]
async fn s3_10_without_spots_no_place_is_looked_up() {
    let server = Setup::travel().await.start().await;
    let (_, said) = server.travel().make(KITCHEN).await;
    let expected: Vec<&str> =
        STEPS.into_iter().filter(|step| *step != "resolve_spot_coordinates").collect();
    assert_eq!(said.tools(), expected);
    assert!(server.requests_on(NOMINATIM).is_empty());
}

#[tokio::test]
async fn s3_27_unknown_places_have_no_coordinates() {
    let server = Setup::travel().await.start().await;
    let (_, said) = server.travel().make(NOWHERE).await;
    let resolved = said.output("resolve_spot_coordinates");
    assert_eq!(
        (&resolved["resolved_count"], &resolved["unresolved_count"]),
        (&json!(0), &json!(3))
    );
    let spots = resolved["spot_blocks"].as_array().unwrap();
    assert!(spots.iter().all(|spot| spot["location"].is_null()), "{spots:?}");
    assert!(said.text().contains("is ready"), "{}", said.text());
}

#[tokio::test]
async fn s3_31_a_missing_photograph_is_replaced_by_a_generated_picture() {
    let server = Setup::travel().await.start().await;
    let (_, said) = server.travel().make(OSAKA).await;
    let found = said.output("search_image");
    assert_eq!(found["mode"], "unsplash", "{found}");
    let images = found["images"].as_array().unwrap();
    let of = |title: &str| images.iter().find(|image| image["block_title"] == title).unwrap();
    assert_eq!(of("Dotonbori")["source"], "unsplash");
    let made = of("Hidden Lantern Alley");
    assert_eq!(made["source"], "imagen");
    let path = made["image_url"].as_str().unwrap();
    let picture = server.client.get(server.url(path)).send().await.unwrap();
    assert_eq!(
        (picture.status().as_u16(), &picture.headers()["content-type"]),
        (200, &"image/png".parse().unwrap())
    );
    let text = wattle_kit::picture::text_of_png(&picture.bytes().await.unwrap()).unwrap();
    assert!(text.contains("Hidden Lantern Alley"), "{text}");
}
