//! The page of a guide: a complete HTML document in a code fence, as models write it.

use serde_json::{Map, Value};

use super::facts::Facts;

/// One column on narrow screens, several on wide ones.
const STYLE: &str = "\
body{margin:0;font:16px/1.6 system-ui,sans-serif;color:#222;background:#faf7f2}
header img{display:block;width:100%;max-height:360px;object-fit:cover}
h1{margin:0;padding:24px 16px;overflow-wrap:anywhere}
main{display:grid;gap:16px;padding:0 16px 32px;grid-template-columns:repeat(auto-fit,minmax(min(100%,300px),1fr))}
article{background:#fff;border-radius:12px;overflow:hidden;box-shadow:0 1px 4px #0002}
article img{display:block;width:100%;aspect-ratio:16/9;object-fit:cover}
article div{padding:16px;overflow-wrap:anywhere}
h2{margin:0 0 8px;font-size:20px}
small{color:#777}
";

/// Returns the page, with a sentence before it.
pub(super) fn answer(facts: &Facts) -> String {
    let title =
        escape(facts.text(&["title", "videoTitle", "video_title"]).unwrap_or("Travel guide"));
    let thumbnail = facts.text(&["thumbnailUrl", "thumbnail_url", "thumbnail"]);
    let thumbnail = thumbnail
        .filter(|url| !url.is_empty())
        .map(|url| format!("<header><img src=\"{}\" alt=\"{title}\"></header>\n", escape(url)));
    let images = facts.of_blocks("image_url");
    let blocks = facts.of_blocks("description");
    let articles: String = blocks.iter().map(|block| article(block, &images)).collect();
    format!(
        "Here is the handbook:\n```html\n<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}\
         <h1>{title}</h1>\n<main>\n{articles}</main>\n</body>\n</html>\n```\n",
        thumbnail.unwrap_or_default(),
    )
}

fn article(block: &Map<String, Value>, images: &[&Map<String, Value>]) -> String {
    let text = |object: &Map<String, Value>, key: &str| {
        escape(object.get(key).and_then(Value::as_str).unwrap_or_default())
    };
    let image = images.iter().find(|image| image["block_id"] == block["block_id"]);
    let image = image.map_or_else(String::new, |image| {
        let (url, alt) = (text(image, "image_url"), text(image, "alt"));
        format!("<img src=\"{url}\" alt=\"{alt}\" loading=\"lazy\">")
    });
    let credit = images.iter().find(|image| image["block_id"] == block["block_id"]);
    let credit = credit.map(|image| text(image, "credit")).filter(|credit| !credit.is_empty());
    let credit = credit.map_or_else(String::new, |credit| format!("<small>{credit}</small>"));
    let degrees = |key: &str| block.get("location")?.get(key)?.as_f64();
    let map = degrees("lat").zip(degrees("lng")).map_or_else(String::new, |(lat, lng)| {
        let url = format!("https://www.openstreetmap.org/?mlat={lat}&amp;mlon={lng}");
        format!("<p><a href=\"{url}\" target=\"_blank\" rel=\"noopener\">On the map</a></p>")
    });
    format!(
        "<article>{image}<div><h2>{}</h2><p>{}</p>{map}{credit}</div></article>\n",
        text(block, "title"),
        text(block, "description"),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::answer;
    use crate::standin::travel::facts::Facts;

    #[test]
    fn the_page_has_all_values_of_the_prompt() {
        let page = answer(&Facts::read(
            r#"{"title": "Tokyo & more", "thumbnailUrl": "https://i/t.jpg?a=1&b=2",
                "blocks": [{"block_id": "a", "title": "Tower", "description": "High <up>",
                            "location": {"lat": 35.6, "lng": 139.7}}],
                "images": [{"block_id": "a", "image_url": "/blobs/~/x", "alt": "it", "credit": "Jo"}]}"#,
        ));
        for part in [
            "```html\n<!DOCTYPE html>",
            "<img src=\"https://i/t.jpg?a=1&amp;b=2\"",
            "<h1>Tokyo &amp; more</h1>",
            "<img src=\"/blobs/~/x\" alt=\"it\"",
            "High &lt;up&gt;",
            "mlat=35.6&amp;mlon=139.7",
            "<small>Jo</small>",
            "</html>\n```",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
