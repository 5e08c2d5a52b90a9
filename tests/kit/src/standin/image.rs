//! The text that a stand-in model "sees" in an image.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::picture;

/// Decodes a `data:` URL or plain Base64. Any other string decodes to an empty image.
pub(super) fn decode(url: &str) -> Vec<u8> {
    let data = match url.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,").map_or("", |(_, data)| data),
        None => url,
    };
    STANDARD.decode(data.trim()).unwrap_or_default()
}

/// Returns the text of an image: from the table of known digests, or from its own text chunk.
pub(super) fn read(picture: &[u8], known: &BTreeMap<String, String>) -> Option<String> {
    let digest = blake3::hash(picture).to_hex();
    known.get(digest.as_str()).cloned().or_else(|| picture::text_of_png(picture))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::{decode, read};
    use crate::picture::png_with_text;

    #[test]
    fn data_urls_are_decoded() {
        let png = png_with_text("buy", 0);
        let base64 = STANDARD.encode(&png);
        assert_eq!(decode(&format!("data:image/png;base64,{base64}")), png);
        assert_eq!(decode(&base64), png);
        assert_eq!(decode("https://example.invalid/a.png"), Vec::<u8>::new());
    }

    #[test]
    fn table_and_text_chunk_are_read() {
        let jpeg = b"\xff\xd8\xff\xe0 a photograph";
        let digest = blake3::hash(jpeg).to_hex().to_string();
        let known = BTreeMap::from([(digest, "持有腾讯".to_owned())]);
        assert_eq!(read(jpeg, &known).as_deref(), Some("持有腾讯"));
        assert_eq!(read(jpeg, &BTreeMap::new()), None);
        assert_eq!(read(&png_with_text("buy", 0), &known).as_deref(), Some("buy"));
    }
}
