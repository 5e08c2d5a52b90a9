//! Detection of image formats.

/// Returns the media type of an image, detected from its first twelve bytes; `None` for an unknown
/// format.
pub fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        // Bytes 4 to 7 hold the file size.
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Some("image/tiff"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::picture_type;

    #[test]
    fn image_formats_are_detected_from_the_first_bytes() {
        for (bytes, expected) in [
            (b"\x89PNG\r\n\x1a\nrest".as_slice(), Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF87a", Some("image/gif")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x04\0\0\0WEBP", Some("image/webp")),
            (b"II*\0", Some("image/tiff")),
            (b"MM\0*", Some("image/tiff")),
            (b"RIFF\x04\0\0\0WAVE", None),
            (b"\x89PNG", None),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(picture_type(bytes), expected, "{bytes:?}");
        }
    }
}
