//! Small valid PNG images that contain a text, padded to any size.
//!
//! The stand-in vision model "reads" such an image from its text chunk. A test therefore defines
//! the content in one line and still sends a real file of a realistic size. The stand-in image
//! models return a [`landscape`].

mod landscape;

pub use landscape::landscape;

/// Keyword of the text chunk.
pub const KEYWORD: &str = "wattle";

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];

/// Size of a chunk without its data, in bytes: length, type and checksum.
const CHUNK_FRAME: usize = 12;

/// Returns a one-pixel PNG whose `iTXt` chunk contains `text`, at least `min_bytes` long.
///
/// The padding is an ancillary private chunk, which decoders skip.
pub fn png_with_text(text: &str, min_bytes: usize) -> Vec<u8> {
    let mut png = SIGNATURE.to_vec();
    // One pixel, 8 bit gray, no interlace.
    push_chunk(&mut png, *b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
    push_chunk(&mut png, *b"iTXt", &international_text(text));
    let scanline = zlib_stored(&[0, 0xff]);
    let rest = scanline.len() + 2 * CHUNK_FRAME;
    if png.len() + rest < min_bytes {
        let missing = min_bytes - png.len() - rest;
        push_chunk(&mut png, *b"waPd", &vec![0; missing.saturating_sub(CHUNK_FRAME)]);
    }
    push_chunk(&mut png, *b"IDAT", &scanline);
    push_chunk(&mut png, *b"IEND", &[]);
    png
}

/// Returns the text of a `tEXt` or `iTXt` chunk with the keyword `wattle` or `Description`.
///
/// Returns `None` if the bytes are not a PNG, end before such a chunk, or contain compressed text.
pub fn text_of_png(png: &[u8]) -> Option<String> {
    let mut rest = png.strip_prefix(&SIGNATURE)?;
    loop {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let data = after.get(..length)?;
        let text = match kind {
            b"tEXt" => plain_text(data),
            b"iTXt" => uncompressed_text(data),
            b"IEND" => return None,
            _ => None,
        };
        if text.is_some() {
            return text;
        }
        rest = after.get(length + 4..)?;
    }
}

fn international_text(text: &str) -> Vec<u8> {
    let mut data = KEYWORD.as_bytes().to_vec();
    // End of keyword, not compressed, method 0, no language, no translated keyword.
    data.extend([0, 0, 0, 0, 0]);
    data.extend(text.as_bytes());
    data
}

fn is_ours(keyword: &[u8]) -> bool {
    keyword == KEYWORD.as_bytes() || keyword == b"Description"
}

/// Decodes a `tEXt` chunk. The standard requires Latin-1, but many tools write UTF-8.
fn plain_text(data: &[u8]) -> Option<String> {
    let end = data.iter().position(|byte| *byte == 0)?;
    if !is_ours(&data[..end]) {
        return None;
    }
    let bytes = &data[end + 1..];
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    })
}

fn uncompressed_text(data: &[u8]) -> Option<String> {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let keyword = parts.next()?;
    let (compressed, rest) = parts.next()?.split_first()?;
    if !is_ours(keyword) || *compressed != 0 {
        return None;
    }
    let (_method, rest) = rest.split_first()?;
    let text = rest.splitn(3, |byte| *byte == 0).nth(2)?;
    String::from_utf8(text.to_vec()).ok()
}

fn push_chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    // The data fits in memory in a test, so a chunk is shorter than 2^31 bytes.
    png.extend((data.len() as u32).to_be_bytes());
    let checked_from = png.len();
    png.extend(kind);
    png.extend(data);
    let checksum = crc32(&png[checked_from..]);
    png.extend(checksum.to_be_bytes());
}

/// Returns a zlib stream with one stored block. The small images need no compression library.
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let length = data.len() as u16;
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(data);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    stream.extend(((high << 16) | low).to_be_bytes());
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    let table = crc_table();
    !bytes
        .iter()
        .fold(!0, |crc: u32, byte| table[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8))
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0_u32; 256];
    let mut index = 0;
    while index < table.len() {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{crc32, plain_text, png_with_text, text_of_png};

    #[test]
    fn text_is_read_from_images_of_any_size() {
        for min_bytes in [0, 200, 4_096, 8 * 1024 * 1024] {
            let png = png_with_text("昨天买入腾讯 100 股 320", min_bytes);
            assert!(png.len() >= min_bytes, "{} < {min_bytes}", png.len());
            assert!(png.len() <= min_bytes.max(200) + 64);
            assert_eq!(text_of_png(&png).as_deref(), Some("昨天买入腾讯 100 股 320"));
        }
    }

    #[test]
    fn checksum_follows_the_standard() {
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn plain_text_chunks_are_read_in_both_encodings() {
        assert_eq!(plain_text(b"Description\0buy").as_deref(), Some("buy"));
        assert_eq!(plain_text(b"Description\0caf\xe9").as_deref(), Some("caf\u{e9}"));
        assert_eq!(plain_text(b"Author\0buy"), None);
    }

    #[test]
    fn other_bytes_have_no_text() {
        let png = png_with_text("buy", 0);
        assert_eq!(text_of_png(b"\xff\xd8\xff\xe0"), None);
        assert_eq!(text_of_png(&png[..png.len() / 2 - 8]), None);
        assert_eq!(text_of_png(&[]), None);
    }
}
