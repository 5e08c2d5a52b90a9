//! The picture of the input. The state holds a reference, never the bytes.

use wattle_plugin::prelude::{BlobRef, Failure, Image, blob};

/// How a reference to the blob store begins.
const REFERENCE: &str = "blob:";

/// A reference for what came in: a run that was not started by the app's own endpoint may bring
/// the picture itself, as a data URL.
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

/// The picture as a part of a message.
pub(crate) fn part(reference: &str) -> Result<Image, Failure> {
    let info = blob::stat(&BlobRef(reference.to_owned()))?;
    Ok(Image::blob(info.blob, info.media_type))
}

pub(crate) fn is_image(media_type: &str) -> bool {
    media_type.to_ascii_lowercase().starts_with("image/")
}
