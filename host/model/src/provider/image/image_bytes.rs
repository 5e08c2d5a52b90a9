//! The bytes of an image.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wattle_graph::llm::picture_type;

use crate::chat::MAX_IMAGES_BYTES;
use crate::provider::image::ImageError;

/// The types of images that providers generate.
const MEDIA_TYPES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// A generated image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) media_type: &'static str,
}

impl ImageBytes {
    /// Decodes an image from base64. The media type is detected from the bytes, because code that
    /// reads the image later trusts the media type.
    pub(super) fn decode(base64: &str) -> Result<Self, ImageError> {
        let bytes = STANDARD.decode(base64).map_err(|error| {
            ImageError::Malformed(format!("an image in it is not base64: {error}"))
        })?;
        if bytes.len() as u64 > MAX_IMAGES_BYTES {
            let reason = format!("an image in it has more than {MAX_IMAGES_BYTES} bytes");
            return Err(ImageError::Malformed(reason));
        }
        match picture_type(&bytes).filter(|it| MEDIA_TYPES.contains(it)) {
            Some(media_type) => Ok(Self { bytes, media_type }),
            None => Err(ImageError::malformed("an image in it is neither png nor jpeg nor webp")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<&'static str, ImageError> {
        ImageBytes::decode(&STANDARD.encode(bytes)).map(|picture| picture.media_type)
    }

    #[test]
    fn image_type_is_detected_from_the_bytes() {
        assert_eq!(read(b"\x89PNG\r\n\x1a\nrest"), Ok("image/png"));
        assert_eq!(read(b"\xff\xd8\xff\xe0"), Ok("image/jpeg"));
        assert_eq!(read(b"RIFF\x04\0\0\0WEBPVP8 "), Ok("image/webp"));
        for bytes in [b"".as_slice(), b"<svg>", b"GIF89a", b"RIFF\x04\0\0\0WAVE", b"\x89PNG"] {
            assert!(matches!(read(bytes), Err(ImageError::Malformed(_))), "{bytes:?}");
        }
        assert!(matches!(ImageBytes::decode("not base64!"), Err(ImageError::Malformed(_))));
    }

    #[test]
    fn too_large_image_is_refused() {
        let mut bytes = b"\xff\xd8\xff".to_vec();
        bytes.resize(MAX_IMAGES_BYTES as usize + 1, 0);
        let Err(ImageError::Malformed(reason)) = read(&bytes) else { panic!("it was taken") };
        assert!(reason.contains("more than"), "{reason}");
    }
}
