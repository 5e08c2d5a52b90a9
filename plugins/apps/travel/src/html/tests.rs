//! Pages that good, untidy and hostile documents become.

mod harmless;
mod soup;

use self::harmless::assert_harmless;
use super::{HtmlError, MAX_BYTES, Sources, made_page};
use crate::image::ImageAsset;

const THUMBNAIL: &str = "https://i.ytimg.com/vi/abc/hq.jpg?a=1&b=2";
const VIDEO: &str = "https://www.youtube.com/watch?v=abcdef";

/// Makes a page from an editor's text, with the services of the default settings.
fn page(raw: &str, thumbnail: Option<&str>, video_url: Option<&str>) -> Result<String, HtmlError> {
    super::page(raw, thumbnail, video_url, &Sources::default())
}

/// Returns a document with a body.
fn document(body: &str) -> String {
    format!("<!DOCTYPE html><html><head><title>T</title></head><body>{body}</body></html>")
}

/// Returns the body of the page that a document becomes, and checks what holds for every page.
fn body(document: &str) -> String {
    let made = page(document, None, None).unwrap();
    assert_harmless(&made);
    assert_eq!(page(&made, None, None).as_ref(), Ok(&made), "once more: {document}");
    let (_, body) = made.split_once("<body>\n").unwrap();
    body.strip_suffix("</body>\n</html>\n").unwrap().trim_end().to_owned()
}

fn check(hostile: &str, expected: &str) {
    assert_eq!(body(&document(hostile)), expected, "{hostile}");
}

#[test]
fn s3_35_a_good_page_is_kept_and_completed() {
    let good = "Sure!\n```html\n<html lang='en'><head><meta charset=latin1>\
        <title> A &amp; B </title><meta name=description content=x><style>p{color:red}</style>\
        <link rel=stylesheet href=https://a/b.css></head>\n<body class=x>\n<h1>Tokyo</h1>\n\
        <p>1 < 2<br/>\n</body></html>\n```\nEnjoy";
    let expected = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <title>A &amp; B</title>\n<meta name=\"description\" content=\"x\">\n\
        <style>p{color:red}</style>\n</head>\n<body class=\"x\">\n<h1>Tokyo</h1>\n\
        <p>1 &lt; 2<br>\n</body>\n</html>\n";
    assert_eq!(page(good, None, None).as_deref(), Ok(expected));
    assert_eq!(page(expected, None, None).as_deref(), Ok(expected));
}

#[test]
fn s3_36_a_text_without_a_document_is_an_error() {
    for (text, error) in [
        ("", HtmlError::NoHtml),
        ("I am sorry", HtmlError::NoHtml),
        ("<body>a</body>", HtmlError::NoHtml),
        ("<!-- <html><body> -->", HtmlError::NoHtml),
        ("<script><html><body></script>", HtmlError::NoHtml),
        ("<html><p>a</p></html>", HtmlError::NoBody),
        ("<html><template><body>a</body></template></html>", HtmlError::NoBody),
        ("<html><head><title><body></title></head></html>", HtmlError::NoBody),
    ] {
        assert_eq!(page(text, None, None), Err(error), "{text}");
    }
}

#[test]
fn page_size_and_nesting_are_limited() {
    let error = page(&document(&"x".repeat(5 << 20)), None, None).unwrap_err();
    assert!(error.to_string().contains(&format!("{MAX_BYTES} are allowed")), "{error}");
    // A page that grows over the limit is refused too, because it could not be read again.
    let grows = document(&"<".repeat(MAX_BYTES - 200));
    assert!(matches!(page(&grows, None, None), Err(HtmlError::TooLong(_))));
    assert_eq!(page(&document(&"<div>".repeat(9_000)), None, None), Err(HtmlError::TooDeep));
}

#[test]
fn s3_35_players_and_frames_are_removed() {
    check("a<video src=x controls><source src=y>No video</video>b", "ab");
    check("<iframe src=\"https://www.youtube.com/embed/x\"></iframe>a", "a");
    check("<iframe src=\"//youtu.be/x\" srcdoc=\"<script>x</script>\"></iframe>a", "a");
    check("<object data=x><embed src=y>z</object><embed src=z>a<audio></audio>", "a");
    check(
        "<form action=\"javascript:x\">a<input autofocus onfocus=x()><button>b</button></form>",
        "ab",
    );
}

#[test]
fn scripts_and_handlers_are_removed_everywhere() {
    check("<script>alert(1)</script>a", "a");
    check("<scr\0ipt>alert(1)</scr\0ipt>a", "a");
    check("<SCRIPT/x>alert(1)</SCRIPT >a", "a");
    check("<p onclick=\"x()\" ONLOAD='x()' /onfocus=x>a</p>", "<p>a</p>");
    check("<img src=x onerror=alert(1)>", "<img>");
    check("<a href=\"java&#x0A;script&colon;x\" style=\"x:url('javascript:y')\">a</a>", {
        "<a style=\"x:none\">a</a>"
    });
    check("<svg onload=x()><script>y</script><a xlink:href=\"javascript:z\">b</a></svg>a", "a");
    check("<math><mtext><img src=x onerror=y></mtext></math>a", "a");
    check("<base href=\"//evil\"><meta http-equiv=refresh content=\"0;url=//evil\">a", "a");
    check("<noscript><p title=\"</noscript><img src=x onerror=y>\">b</noscript>a", {
        "<img>\">ba"
    });
    check("<template><img src=x onerror=y></template>a", "a");
    check("<xmp><img src=x onerror=y></xmp>a<textarea></textarea>", "a");
    check("<custom-tag onclick=x>a</custom-tag>", "a");
}

#[test]
fn remains_of_a_tag_are_text() {
    check("a<!-- <script>x</script> -->b<!--[if IE]><script>x</script><![endif]-->", "ab");
    check("a<![CDATA[<script>x</script>]]>", "ax]]>");
    check("a<?php echo '<script>x'?>", "ax'?>");
    check("</p></xmp x=\"<img src=x onerror=y>\">a", "a");
    check("<p title=\"<img src=x onerror=y>\">a</p>", {
        "<p title=\"&lt;img src=x onerror=y&gt;\">a</p>"
    });
    check("&lt;script&gt;<<b>a</b>", "&lt;script&gt;&lt;<b>a</b>");
    let cut = "<html><body>a<img src=x onerror=\"y";
    assert_eq!(body(cut), "a");
}

#[test]
fn text_in_style_and_title_cannot_end_the_element_and_begin_another() {
    check("<style>a{}</style/x><script>y</script></style>a", "<style>a{}</style>a");
    check("<style>a{b:'<img src=x onerror=y>'}</style>", {
        "<style>a{b:'\\3c img src=x onerror=y>'}</style>"
    });
    assert_eq!(body("<html><body>a<style>b{}"), "a<style>b{}</style>");
    check("<svg><style><img src=x onerror=y></style></svg>a", "a");
    let title = "<html><head><title></b x=\"</title><img src=x onerror=y>\"></title><body>a";
    assert_eq!(body(title), "<img>\">a");
}

#[test]
fn broken_nesting_is_closed_as_in_browsers() {
    check("<b><i>a</b>b</i>", "<b><i>a</i></b>b");
    check("<div><p>a<p>b</div>c", "<div><p>a<p>b</div>c");
    check("<ul><li>a<li>b</ul>", "<ul><li>a<li>b</ul>");
    check("<section><div><b>a", "<section><div><b>a</b></div></section>");
    check("<video>a<p>b", "");
    check("<div><video>a</div>b", "<div></div>b");
}

#[test]
fn external_links_open_a_window_without_an_opener() {
    check("<a href=https://a target=_top rel=opener>a</a>", {
        "<a href=\"https://a\" target=\"_blank\" rel=\"noopener\">a</a>"
    });
    check("<a href='https://www.openstreetmap.org/?mlat=1&mlon=2'>a</a>", {
        "<a href=\"https://www.openstreetmap.org/?mlat=1&amp;mlon=2\" target=\"_blank\" \
         rel=\"noopener\">a</a>"
    });
}

#[test]
fn s3_35_s3_39_the_thumbnail_and_the_link_are_added_once() {
    let page_of = |text: &str| page(text, Some(THUMBNAIL), Some(VIDEO)).unwrap();
    let once = page_of(&document("<p>a</p>"));
    assert_harmless(&once);
    let count = |what: &str| once.matches(what).count();
    assert_eq!(count("data-video-thumbnail-header"), 1);
    assert_eq!(count("src=\"https://i.ytimg.com/vi/abc/hq.jpg?a=1&amp;b=2\""), 1);
    assert!(once.contains("<body>\n<section data-video-thumbnail-header"), "{once}");
    let link = "<a data-origin-video-link=\"\" href=\"https://www.youtube.com/watch?v=abcdef\" \
                target=\"_blank\" rel=\"noopener\"";
    assert!(once.contains(link) && once.ends_with("Watch Origin Video</a>\n</body>\n</html>\n"));
    assert_eq!(page_of(&once), once);
    let edited = once.replace("<p>a</p>", "<p>b</p>");
    assert_eq!(page_of(&edited), edited);
}

#[test]
fn s3_39_a_thumbnail_in_the_page_is_not_added() {
    for shown in [
        "<header><img src=\"https://i.ytimg.com/vi/abc/hq.jpg?a=1&amp;b=2\"></header>",
        "<img alt=x src='https://i.ytimg.com/vi/abc/hq.jpg?a=1&b=2 '>",
        "<img src=https&#58;//i.ytimg.com/vi/abc/hq.jpg?a=1&#x26;b=2>",
    ] {
        let page = page(&document(shown), Some(THUMBNAIL), None).unwrap();
        assert!(!page.contains("data-video-thumbnail-header"), "{page}");
    }
    for other in [
        "<video poster=\"https://i.ytimg.com/vi/abc/hq.jpg?a=1&amp;b=2\"></video>",
        "<template><img src=\"https://i.ytimg.com/vi/abc/hq.jpg?a=1&amp;b=2\"></template>",
        "<img src=\"https://i.ytimg.com/vi/abc/hq.jpg\">",
        "<p data-video-thumbnail-header>a</p>",
    ] {
        let page = page(&document(other), Some(THUMBNAIL), None).unwrap();
        assert!(page.contains("<section data-video-thumbnail-header"), "{page}");
    }
}

#[test]
fn invalid_urls_of_the_video_are_left_out() {
    let plain = page(&document("a"), Some("javascript:x"), Some("javascript:y")).unwrap();
    assert!(!plain.contains("<img") && !plain.contains("<a"), "{plain}");
    let quoted = page(&document("a"), Some("https://a/\"onerror=\"x"), Some("")).unwrap();
    assert!(!quoted.contains("<img") && !quoted.contains("<a"), "{quoted}");
}

#[test]
fn link_to_another_video_is_replaced() {
    let own = document("<a data-origin-video-link href=https://evil>x</a>b");
    let made = page(&own, None, Some(VIDEO)).unwrap();
    assert!(!made.contains("evil") && made.matches("data-origin-video-link").count() == 1);
    assert!(page(&made, None, None).unwrap().contains("data-origin-video-link"));
}

#[test]
fn page_of_a_model_shows_only_prepared_images() {
    let prepared: ImageAsset = serde_json::from_value(serde_json::json!({"block_id": "a",
        "block_title": "t", "query": "q", "alt": "a", "source": "unsplash",
        "image_url": "https://images.unsplash.com/a?x=1&y=2"}))
    .unwrap();
    let made = |text: &str| {
        let prepared = std::slice::from_ref(&prepared);
        made_page(text, Some(THUMBNAIL), None, prepared, &Sources::default()).unwrap()
    };
    let document = document(
        "<img src=\"https://images.unsplash.com/a?x=1&amp;y=2\"><img src=https://evil/1>\
         <img src=/blobs/~/b.c><p style=\"background:url(https://evil/2)\">a</p>\
         <style>p{background:url(https://evil/3);content:image-set('https://evil/4' 1x)}</style>",
    );
    let once = made(&document);
    assert!(!once.contains("evil"), "{once}");
    for shown in ["images.unsplash.com/a?x=1&amp;y=2", "i.ytimg.com", "/blobs/~/b.c"] {
        assert_eq!(once.matches(shown).count(), 1, "{shown}: {once}");
    }
    assert_eq!(made(&once), once);
    assert_eq!(page(&once, Some(THUMBNAIL), None).as_ref(), Ok(&once), "as when it is edited");
    assert!(page(&document, None, None).unwrap().contains("https://evil/1"), "a person's page");
}

#[test]
fn elements_with_many_attributes_are_stable() {
    let many: String = (0..200).map(|n| format!(" data-a{n}=x")).collect();
    let once = body(&document(&format!("<a href=https://a{many}>a</a><img{many} src=/blobs/a>")));
    assert!(once.contains("data-a62=") && !once.contains("data-a64="), "{once}");
}
