//! The image of the input. The state holds a blob reference and never the bytes.

use wattle_plugin::prelude::{BlobRef, Failure, Image, blob};

/// Prefix of a blob reference.
const REFERENCE: &str = "blob:";

/// Returns the blob reference of an image. A run that was not started by the app's endpoints can
/// have the image itself as a data URL; it is then stored as a blob.
pub(crate) fn reference(image_data: &str) -> Result<String, Failure> {
    if image_data.starts_with(REFERENCE) {
        return Ok(image_data.to_owned());
    }
    let data = blob::parse_data_url(image_data)?;
    if !is_image(&data.media_type) {
        return Err(Failure::invalid(
            "`imageData` is no picture; send a data URL of type `image/*`",
        ));
    }
    blob::put(&data.bytes, &data.media_type).map(|blob| blob.0)
}

/// Returns the image as a part of a message.
pub(crate) fn part(reference: &str) -> Result<Image, Failure> {
    let info = blob::stat(&BlobRef(reference.to_owned()))?;
    Ok(Image::blob(info.blob, info.media_type))
}

pub(crate) fn is_image(media_type: &str) -> bool {
    media_type.to_ascii_lowercase().starts_with("image/")
}
