//! Files in blocks: images, text and others, in the formats of many clients and providers.

use serde_json::{Map, Value, json};

use super::encoded;

/// Types of blocks that contain an image, independent of their media type.
const PICTURE_BLOCKS: &[&str] = &["image", "image_url", "input_image"];

/// Names of the field with the media type of a file.
const MEDIA_TYPES: &[&str] = &["mime_type", "mimeType", "media_type", "mediaType"];

/// Names of the field with the data or the URL of a file, in order of precedence.
const SOURCE_FIELDS: &[&str] = &[
    "data",
    "base64",
    "bytes",
    "blob",
    "file_data",
    "image",
    "image_url",
    "url",
    "uri",
    "file_url",
    "file_uri",
    "fileUri",
];

/// Names of the object in a block that contains the fields above.
const HOLDERS: &[&str] = &[
    "source",
    "file",
    "image",
    "image_url",
    "inline_data",
    "inlineData",
    "file_data",
    "fileData",
    "resource",
];

/// Names of the field with the file name.
const FILE_NAMES: &[&str] = &["filename", "file_name", "fileName", "title"];

/// Media types of images that models accept.
const PICTURES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/avif",
    "image/bmp",
    "image/tiff",
];

/// Media type of the images that are converted to text.
const DRAWING: &str = "image/svg+xml";

/// Media type of an image for which a client gives only a URL.
const ANY_PICTURE: &str = "image/*";

/// Schemes of URLs that providers fetch.
const SCHEMES: &[&str] = &["https", "http", "gs"];

/// Where the data of a file is.
#[derive(Clone, Copy)]
enum FileSource<'b> {
    /// In the block, as base64.
    Base64(&'b str),
    /// At a URL.
    Url(&'b str),
    /// In a data URL without base64.
    EscapedDataUrl,
    /// Not in the block.
    Missing,
}

/// Converts a block with a file to an image or text part. Returns `None` for a file that models
/// cannot read.
///
/// # Errors
///
/// Returns an error message if the block has an invalid image.
pub(super) fn read(kind: &str, block: &Map<String, Value>) -> Result<Option<Value>, String> {
    let (source, own_type) = file_source(block);
    let is_picture_block = PICTURE_BLOCKS.contains(&kind);
    let declared = || essence(find(block, MEDIA_TYPES)?);
    let format = || is_picture_block.then(|| find(block, &["format"])).flatten();
    let media_type = own_type.or_else(declared);
    let media_type = media_type.or_else(|| essence(&format!("image/{}", format()?)));
    let is_of = |types: &[&str]| media_type.as_deref().is_some_and(|it| types.contains(&it));
    if (is_picture_block || is_of(PICTURES)) && !is_of(&[DRAWING]) {
        return match source {
            FileSource::Missing if !is_picture_block || is_stored_by_provider(block) => Ok(None),
            FileSource::Url(url) if !is_picture_block && !is_reachable(url) => Ok(None),
            source => picture(source, media_type).map(Some),
        };
    }
    Ok(text(block, source, media_type.as_deref()).map(|text| json!({ "text": text })))
}

/// Returns where the data of a file is, and the media type that its data URL names.
fn file_source(block: &Map<String, Value>) -> (FileSource<'_>, Option<String>) {
    let Some(text) = find(block, SOURCE_FIELDS).map(str::trim) else {
        return (FileSource::Missing, None);
    };
    let is_data = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        let is_url = text.contains("://");
        let source = if is_url { FileSource::Url(text) } else { FileSource::Base64(text) };
        return (source, None);
    }
    let (head, data) = text[5..].split_once(',').unwrap_or_default();
    let source = if head.ends_with(";base64") {
        FileSource::Base64(data)
    } else {
        FileSource::EscapedDataUrl
    };
    (source, essence(head))
}

/// Returns the first string among the fields `names` of the block and of the objects that contain
/// its file.
fn find<'b>(block: &'b Map<String, Value>, names: &[&str]) -> Option<&'b str> {
    let own = names.iter().find_map(|name| block.get(*name)?.as_str());
    own.or_else(|| HOLDERS.iter().find_map(|name| find(block.get(*name)?.as_object()?, names)))
}

/// Returns a media type without parameters; `None` if the type is a wildcard or
/// `application/octet-stream`.
fn essence(text: &str) -> Option<String> {
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "" | "*/*" | ANY_PICTURE | "application/octet-stream" => None,
        "image/jpg" => Some("image/jpeg".to_owned()),
        _ => Some(essence),
    }
}

/// Returns true if the block refers to a file that a provider stores.
fn is_stored_by_provider(block: &Map<String, Value>) -> bool {
    find(block, &["file_id", "fileId"]).is_some() || find(block, &["source_type"]) == Some("id")
}

fn is_reachable(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

fn picture(source: FileSource<'_>, media_type: Option<String>) -> Result<Value, String> {
    let (url, media_type) = match source {
        FileSource::Base64(data) => {
            let damaged = "the data is not base64; give the bytes of the image, or its URL";
            let data = encoded::standard(data).ok_or(damaged)?;
            let by_bytes = || encoded::picture_type(&data).map(str::to_owned);
            let nameless = "the block has no media type; give one such as `image/png`";
            let media_type = by_bytes().or(media_type).ok_or(nameless)?;
            (format!("data:{media_type};base64,{data}"), media_type)
        }
        FileSource::Url(url) if is_reachable(url) => {
            (url.to_owned(), media_type.unwrap_or_else(|| ANY_PICTURE.to_owned()))
        }
        FileSource::Url(url) => {
            return Err(format!(
                "models cannot fetch `{url:.80}`; give a URL that begins with `https://`, or \
                 the bytes as base64"
            ));
        }
        FileSource::EscapedDataUrl => {
            let why = "the data URL must have the form `data:image/png;base64,...`";
            return Err(why.to_owned());
        }
        FileSource::Missing => {
            let why = "the block has neither data nor a URL; give the bytes of the image as base64";
            return Err(why.to_owned());
        }
    };
    if media_type != ANY_PICTURE && !PICTURES.contains(&media_type.as_str()) {
        return Err(format!(
            "`{media_type:.80}` is not the media type of an image that models accept; give for \
             example `image/png`"
        ));
    }
    Ok(json!({ "image": { "source": { "url": url }, "media_type": media_type } }))
}

/// Returns the text of a file. If the file has a name, the name precedes the text on a separate
/// line.
fn text(
    block: &Map<String, Value>,
    source: FileSource<'_>,
    media_type: Option<&str>,
) -> Option<String> {
    let decoded = || match source {
        FileSource::Base64(data) if media_type.is_some_and(is_text) => encoded::text(data),
        _ => None,
    };
    let text = plain(block).map(str::to_owned).or_else(decoded)?;
    match find(block, FILE_NAMES) {
        Some(name) => Some(format!("[file {name}]\n{text}")),
        None => Some(text),
    }
}

/// Returns the text of a file that a block contains unencoded.
fn plain(block: &Map<String, Value>) -> Option<&str> {
    let source = block.get("source").and_then(Value::as_object);
    let source = source.filter(|it| it.get("type").and_then(Value::as_str) == Some("text"));
    let data = source.and_then(|source| source.get("data")?.as_str());
    data.or_else(|| find(block, &["text"]))
}

/// Returns true if files of a media type are converted to text.
fn is_text(media_type: &str) -> bool {
    let types = ["application/json", "application/xml", "application/yaml", "application/toml"];
    media_type.starts_with("text/")
        || types.contains(&media_type)
        || ["+json", "+xml", "+yaml"].iter().any(|ending| media_type.ends_with(ending))
}
