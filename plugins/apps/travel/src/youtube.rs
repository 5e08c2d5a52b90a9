//! URLs of videos: their extraction from texts, and their normalization.

/// Hosts of YouTube with the slash after them, without subdomains.
const HOSTS: [&str; 3] = ["youtube.com/", "youtube-nocookie.com/", SHORT_HOST];

/// The host whose path is only an id, or one of [`PAGES`].
const SHORT_HOST: &str = "youtu.be/";

/// Pages at the place of an id whose names have the form of an id: those of the short host, and the
/// players of a playlist and of a channel.
const PAGES: [&str; 5] = ["channel", "playlist", "shorts", "videoseries", "live_stream"];

/// Subdomains of the hosts.
const SUBDOMAINS: [&str; 3] = ["www.", "m.", "music."];

/// Path prefixes before an id.
const FOLDERS: [&str; 4] = ["shorts/", "embed/", "live/", "v/"];

/// Permitted lengths of an id, in characters. Current ids have 11. A word of fewer than 6 after a
/// slash is a page of YouTube.
const ID_CHARS: std::ops::RangeInclusive<usize> = 6..=64;

/// Normalizes a URL; `None` if the text is not one URL of a video and nothing else.
pub(crate) fn normalize(url: &str) -> Option<String> {
    let url = url.trim();
    let lower = url.to_ascii_lowercase();
    let rest = ["https://", "http://"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    let rest = rest.unwrap_or(&lower);
    let rest = SUBDOMAINS.iter().find_map(|name| rest.strip_prefix(name)).unwrap_or(rest);
    // Chinese words follow a URL without a space.
    let is_url = HOSTS.iter().any(|host| rest.starts_with(host))
        && url.bytes().all(|byte| byte.is_ascii_graphic());
    match extract(url).as_slice() {
        [only] if is_url => Some(only.clone()),
        _ => None,
    }
}

/// Returns all URLs in a text, normalized, in order and without duplicates.
pub(crate) fn extract(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((start, host)) = next_host(&lower, from) {
        from = start + host.len();
        if !begins(&lower[..start]) {
            continue;
        }
        if let Some(url) = id_of(host, &text[from..]).map(address)
            && !found.contains(&url)
        {
            found.push(url);
        }
    }
    found
}

/// Returns the URL of a video.
pub(crate) fn address(id: &str) -> String {
    format!("https://www.youtube.com/watch?v={id}")
}

/// Returns true if a text has the form of an id.
pub(crate) fn is_id(text: &str) -> bool {
    ID_CHARS.contains(&text.len()) && text.bytes().all(is_id_byte)
}

/// Returns the id in a URL of any form.
pub(crate) fn id(url: &str) -> Option<String> {
    let normalized = normalize(url)?;
    normalized.split_once("v=").map(|(_, id)| id.to_owned())
}

/// Returns the text of a first message: a bare URL becomes a request, any other text is unchanged.
pub(crate) fn to_guide_prompt(text: &str) -> String {
    match normalize(text) {
        Some(url) => format!("Create a travel guide from this video: {url}"),
        None => text.to_owned(),
    }
}

/// Returns the next host at or after an offset.
fn next_host(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    let place = |host: &&'static str| lower[from..].find(*host).map(|at| (from + at, *host));
    HOSTS.iter().filter_map(place).min_by_key(|(at, _)| *at)
}

/// Returns true if a host may begin after this text, which is not in the middle of a name or path.
fn begins(before: &str) -> bool {
    let before = SUBDOMAINS.iter().find_map(|name| before.strip_suffix(name)).unwrap_or(before);
    let inside = |c: char| c.is_ascii_alphanumeric() || "-._/@%".contains(c);
    before.ends_with("//") || !before.ends_with(inside)
}

/// Returns the id after a host.
fn id_of<'a>(host: &str, rest: &'a str) -> Option<&'a str> {
    let id = if host == SHORT_HOST {
        rest
    } else if let Some(query) = rest.strip_prefix("watch") {
        id_in_query(query.strip_prefix('/').unwrap_or(query).strip_prefix('?')?)?
    } else {
        FOLDERS.iter().find_map(|folder| rest.strip_prefix(folder))?
    };
    let end = id.bytes().position(|byte| !is_id_byte(byte)).unwrap_or(id.len());
    Some(&id[..end]).filter(|id| is_id(id) && !PAGES.contains(id))
}

/// Returns the text after the parameter name `v`. HTML writes an `&` as `&amp;`.
fn id_in_query(query: &str) -> Option<&str> {
    let ends = |c: char| c.is_whitespace() || "\"'<>#".contains(c);
    let query = query.split(ends).next().unwrap_or_default();
    query.split('&').find_map(|pair| {
        let pair = pair.strip_prefix("amp;").unwrap_or(pair);
        pair.strip_prefix("v=")
    })
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::{extract, id, normalize, to_guide_prompt};

    const ONE: &str = "https://www.youtube.com/watch?v=dQw4w9WgXcQ";

    #[test]
    fn s3_02_every_form_is_normalized() {
        for url in [
            "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
            "http://youtube.com/watch?v=dQw4w9WgXcQ",
            "youtube.com/watch?v=dQw4w9WgXcQ",
            "www.youtube.com/watch/?v=dQw4w9WgXcQ",
            "https://m.youtube.com/watch?app=desktop&v=dQw4w9WgXcQ&t=42s#here",
            "https://music.youtube.com/watch?v=dQw4w9WgXcQ&list=PL1",
            "https://youtu.be/dQw4w9WgXcQ?si=abcdef",
            "https://www.youtube.com/shorts/dQw4w9WgXcQ?feature=share",
            "https://www.youtube.com/embed/dQw4w9WgXcQ",
            "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ",
            "https://youtube.com/live/dQw4w9WgXcQ",
            "HTTPS://WWW.YouTube.COM/watch?v=dQw4w9WgXcQ",
            "  https://youtu.be/dQw4w9WgXcQ\n",
        ] {
            assert_eq!(normalize(url).as_deref(), Some(ONE), "{url}");
            assert_eq!(id(url).as_deref(), Some("dQw4w9WgXcQ"));
        }
    }

    #[test]
    fn s3_02_other_urls_are_not_videos() {
        for text in [
            "",
            "https://www.youtube.com/",
            "https://www.youtube.com/watch?v=abc",
            "https://www.youtube.com/watch?list=PL1234567",
            "https://www.youtube.com/@channel",
            "https://youtu.be/short",
            "https://youtu.be/playlist?list=PL1234567",
            "https://youtu.be/channel/UC1234567",
            "https://www.youtube.com/embed/videoseries?list=PL1234567",
            "https://www.youtube.com/embed/live_stream?channel=UC1234567",
            "https://notyoutube.com/watch?v=dQw4w9WgXcQ",
            "https://youtube.com.evil.example/watch?v=dQw4w9WgXcQ",
            "https://evil.example/youtube.com/watch?v=dQw4w9WgXcQ",
            "https://user@youtube.com/watch?v=dQw4w9WgXcQ",
            "https://vimeo.com/123456789",
        ] {
            assert_eq!(normalize(text), None, "{text}");
            assert!(extract(text).is_empty(), "{text}");
        }
        assert_eq!(normalize(&format!("{ONE} and more")), None);
        assert_eq!(normalize(&format!("see:{ONE}")), None);
    }

    #[test]
    fn s3_14_all_urls_of_a_text_are_found_once_and_in_order() {
        let text = "去看看https://youtu.be/dQw4w9WgXcQ。还有(https://www.youtube.com/shorts/abc_DEF-123), \
            <a href=\"https://m.youtube.com/watch?t=1&amp;v=zzzzzz&x\">x</a> and again \
            youtube.com/watch?v=dQw4w9WgXcQ";
        let ids = ["dQw4w9WgXcQ", "abc_DEF-123", "zzzzzz"];
        assert_eq!(extract(text), ids.map(super::address));
        assert!(extract("no address, not even youtube.com or youtu.be/ here").is_empty());
    }

    #[test]
    fn s3_01_only_a_bare_url_becomes_a_request() {
        let wish = format!("Create a travel guide from this video: {ONE}");
        assert_eq!(to_guide_prompt("https://youtu.be/dQw4w9WgXcQ?t=3"), wish);
        assert_eq!(to_guide_prompt(&wish), wish);
        for text in [
            "  three days in Tokyo, as in https://youtu.be/dQw4w9WgXcQ ",
            "https://youtu.be/dQw4w9WgXcQ做一份三天的攻略",
            "https://youtu.be/dQw4w9WgXcQ，https://youtu.be/abc_DEF-123",
            "https://youtu.be/dQw4w9WgXcQ,https://youtu.be/abc_DEF-123",
        ] {
            assert_eq!(to_guide_prompt(text), text);
        }
    }

    /// For any text, the found URLs are normalized, and are found again in their own text.
    #[test]
    fn s3_02_found_urls_are_always_normalized() {
        let pieces = "https://|www.|m.|youtube.com/|youtu.be/|watch?|v=|&|shorts/|dQw4w9WgXcQ\
            |\u{4e1c}\u{4eac}| |\"|#|-_-_-_|?|/|\u{1f35c}";
        let pieces: Vec<&str> = pieces.split('|').collect();
        let mut seed = 7_usize;
        for _ in 0..5_000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(seed >> 33) % pieces.len()]);
            }
            let found = extract(&text);
            for url in &found {
                assert_eq!(normalize(url).as_ref(), Some(url), "{text}");
            }
            assert_eq!(extract(&found.join(" ")), found, "{text}");
        }
    }
}
