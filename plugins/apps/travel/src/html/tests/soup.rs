//! Documents made from pieces that break parsers and sanitizers. Each becomes a harmless page, and
//! that page does not change any more.

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, proptest};

use super::{THUMBNAIL, VIDEO, assert_harmless, page};

/// Pieces that open, close or confuse something, separated by bars.
const PIECES: &str = "<html>|</html>|<head>|</head>|<body>|</body>|<body onload=x()>\
    |<html lang=\"a\"b=c>|<title>|</title>|<style>|</style>|<style media=\"<x>\">|<script>\
    |</script>|<script src=//evil></script>|<noscript>|</noscript>|<template>|</template>\
    |<textarea>|</textarea>|<xmp>|</xmp>|<plaintext>|<iframe src=javascript:x>|</iframe>|<noembed>\
    |<noframes>|<frameset>|<select>|<option>|</select>|<table>|<tr>|<td>|</table>|<svg>|</svg>\
    |<svg/>|<math>|</math>|<mtext>|<desc>|<foreignObject>|</foreignObject>\
    |<annotation-xml encoding=text/html>|<mglyph>|<a href=javascript:x>\
    |<a href='https://a/?b=\"<c>'>|<a data-origin-video-link>|</a>|<a/>|<b>|</b>|<i>|</i>|<p>|</p>\
    |</br>|<br/>|<div>|</div>|<div |<ul><li>|</ul>|<img src=x onerror=alert(1)>\
    |<img src=\"https://i.ytimg.com/vi/abc/hq.jpg?a=1&amp;b=2\">|<img src=`javascript:x`>\
    |<img/src=/blobs/~/a.b/onerror=x>|<img |<input autofocus>|<form action=x>|</form>|<button>\
    |<meta charset=utf-7>|<base href=//evil>|<meta http-equiv=refresh content=0>\
    |<meta name=viewport content='a\"<b>'>|<link rel=stylesheet href=x>\
    |<section data-video-thumbnail-header>|</section>|<!--|-->|--!>|<!-->|<!|<?|<![CDATA[|]]>\
    |<!DOCTYPE x [|</|<|>|/>|\"|'|`|=| onclick=x() | style=a:url(//b) | href=|&lt;\
    |&#60;script&#62;|&amp|&|\0|\t|\n|\u{c}| |```|```html\n|a|@import url(x);|/*|\\3c \
    |\u{feff}\u{2028}é";

/// Generates documents of pieces and other text.
fn soup() -> impl Strategy<Value = String> {
    let pieces: Vec<&str> = PIECES.split('|').collect();
    let piece = prop::sample::select(pieces).prop_map(str::to_owned);
    let piece = proptest::prop_oneof![12 => piece, 1 => any::<String>()];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Checks what holds for every document.
fn check(document: &str, thumbnail: Option<&str>, video_url: Option<&str>) {
    let Ok(once) = page(document, thumbnail, video_url) else { return };
    assert_harmless(&once);
    let twice = page(&once, thumbnail, video_url);
    assert_eq!(twice.as_ref(), Ok(&once), "from {document:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn s3_39_soup_becomes_a_harmless_and_stable_page(
        before in soup(),
        inside in soup(),
        is_whole in any::<bool>(),
    ) {
        let document = if is_whole {
            format!("<html>{before}<body>{inside}</body></html>")
        } else {
            format!("{before}{inside}")
        };
        check(&document, None, None);
        check(&document, Some(THUMBNAIL), Some(VIDEO));
    }

    #[test]
    fn any_text_in_a_body_becomes_a_stable_page(text in any::<String>()) {
        let document = format!("<html><body>{text}</body></html>");
        check(&document, None, Some(VIDEO));
        prop_assert_eq!(page(&document, None, None).is_ok(), true);
    }
}
