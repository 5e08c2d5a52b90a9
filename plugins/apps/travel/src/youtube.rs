//! Addresses of videos, found in texts and brought to one form.

/// Hosts of YouTube with the slash after them, without what may stand before.
const HOSTS: [&str; 3] = ["youtube.com/", "youtube-nocookie.com/", SHORT_HOST];

/// The host whose path is nothing but an id.
const SHORT_HOST: &str = "youtu.be/";

/// What may stand before a host.
const SUBDOMAINS: [&str; 3] = ["www.", "m.", "music."];

/// Folders whose next segment is an id.
const FOLDERS: [&str; 4] = ["shorts/", "embed/", "live/", "v/"];

/// Characters of an id: today's have 11, and shorter words after a slash are pages of YouTube.
const ID_CHARS: std::ops::RangeInclusive<usize> = 6..=64;

/// The one form of an address, if the text is one and nothing else.
pub(crate) fn normalize(url: &str) -> Option<String> {
    let url = url.trim();
    let lower = url.to_ascii_lowercase();
    let rest = ["https://", "http://"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    let rest = rest.unwrap_or(&lower);
    let rest = SUBDOMAINS.iter().find_map(|name| rest.strip_prefix(name)).unwrap_or(rest);
    let is_one =
        HOSTS.iter().any(|host| rest.starts_with(host)) && !url.contains(char::is_whitespace);
    if is_one { extract(url).into_iter().next() } else { None }
}

/// All addresses in a text, each once, in their order and in one form.
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

/// The address of a video.
pub(crate) fn address(id: &str) -> String {
    format!("https://www.youtube.com/watch?v={id}")
}

/// Whether a text has the form of an id.
pub(crate) fn is_id(text: &str) -> bool {
    ID_CHARS.contains(&text.len()) && text.bytes().all(is_id_byte)
}

/// The id in an address, whichever its form.
pub(crate) fn id(url: &str) -> Option<String> {
    let normalized = normalize(url)?;
    normalized.split_once("v=").map(|(_, id)| id.to_owned())
}

/// What a first message says: a bare address becomes a wish, any other text stays.
pub(crate) fn to_guide_prompt(text: &str) -> String {
    match normalize(text) {
        Some(url) => format!("Create a travel guide from this video: {url}"),
        None => text.to_owned(),
    }
}

/// The next host from a place on.
fn next_host(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    let place = |host: &&'static str| lower[from..].find(*host).map(|at| (from + at, *host));
    HOSTS.iter().filter_map(place).min_by_key(|(at, _)| *at)
}

/// Whether a host may begin after this text: not in the middle of another name or path.
fn begins(before: &str) -> bool {
    let before = SUBDOMAINS.iter().find_map(|name| before.strip_suffix(name)).unwrap_or(before);
    let inside = |c: char| c.is_ascii_alphanumeric() || "-._/@%".contains(c);
    before.ends_with("//") || !before.ends_with(inside)
}

/// The id after a host.
fn id_of<'a>(host: &str, rest: &'a str) -> Option<&'a str> {
    let id = if host == SHORT_HOST {
        rest
    } else if let Some(query) = rest.strip_prefix("watch") {
        id_in_query(query.strip_prefix('/').unwrap_or(query).strip_prefix('?')?)?
    } else {
        FOLDERS.iter().find_map(|folder| rest.strip_prefix(folder))?
    };
    let end = id.bytes().position(|byte| !is_id_byte(byte)).unwrap_or(id.len());
    Some(&id[..end]).filter(|id| is_id(id))
}

/// What the parameter `v` begins with. In HTML an `&` is written as `&amp;`.
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
    fn s3_02_every_form_becomes_one() {
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
    fn s3_02_other_addresses_are_none() {
        for text in [
            "",
            "https://www.youtube.com/",
            "https://www.youtube.com/watch?v=abc",
            "https://www.youtube.com/watch?list=PL1234567",
            "https://www.youtube.com/@channel",
            "https://youtu.be/short",
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
    fn s3_14_all_addresses_of_a_text_are_found_once_and_in_order() {
        let text = "去看看https://youtu.be/dQw4w9WgXcQ。还有(https://www.youtube.com/shorts/abc_DEF-123), \
            <a href=\"https://m.youtube.com/watch?t=1&amp;v=zzzzzz&x\">x</a> and again \
            youtube.com/watch?v=dQw4w9WgXcQ";
        let ids = ["dQw4w9WgXcQ", "abc_DEF-123", "zzzzzz"];
        assert_eq!(extract(text), ids.map(super::address));
        assert!(extract("no address, not even youtube.com or youtu.be/ here").is_empty());
    }

    #[test]
    fn s3_01_only_a_bare_address_becomes_a_wish() {
        let wish = format!("Create a travel guide from this video: {ONE}");
        assert_eq!(to_guide_prompt("https://youtu.be/dQw4w9WgXcQ?t=3"), wish);
        assert_eq!(to_guide_prompt(&wish), wish);
        let text = "  three days in Tokyo, as in https://youtu.be/dQw4w9WgXcQ ";
        assert_eq!(to_guide_prompt(text), text);
    }

    /// Whatever a text is made of, what is found is in the one form and found again in itself.
    #[test]
    fn s3_02_what_is_found_is_always_in_the_one_form() {
        let pieces = [
            "https://",
            "www.",
            "m.",
            "youtube.com/",
            "youtu.be/",
            "watch?",
            "v=",
            "&",
            "shorts/",
            "dQw4w9WgXcQ",
            "\u{4e1c}\u{4eac}",
            " ",
            "\"",
            "#",
            "-_-_-_",
            "?",
            "/",
            "\u{1f35c}",
        ];
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
