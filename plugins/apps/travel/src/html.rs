//! Converts a model's HTML to the page that is stored and shown.
//!
//! A page is third-party text that a model turned into markup, so it is untrusted: it is parsed
//! (`read`) and rebuilt from allowlists (`allow`, `tag`, `url`, `css`). A rebuilt page runs
//! nothing, even without the content security policy under which it is served. Rebuilding it again
//! does not change it.

mod allow;
mod css;
mod entity;
mod error;
mod fence;
mod prompt;
mod read;
mod tag;
mod url;

use self::error::{HtmlError, MAX_BYTES};
pub(crate) use self::prompt::{WIDTHS, request, system};
use self::read::{ORIGIN_LINK, Parts, Wanted};
use self::url::Pictures;
pub(crate) use self::url::{Sources, is_blob, is_link};
use crate::image::ImageAsset;

/// Attribute of the section with the video's image.
const THUMBNAIL_HEADER: &str = "data-video-thumbnail-header";

/// Text of the link to the video.
const ORIGIN_TEXT: &str = "Watch Origin Video";

/// Viewport for small screens, for documents that have none.
const VIEWPORT: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";

/// Makes a page from an editor's text. The video's image is at the top, unless the page shows it
/// already, and the link to the video is at the end.
pub(crate) fn page(
    raw: &str,
    thumbnail: Option<&str>,
    video_url: Option<&str>,
    sources: &Sources,
) -> Result<String, HtmlError> {
    finish(raw, thumbnail, video_url, &Pictures::any(sources))
}

/// Makes a page from a model's text. The text that the model has read may have induced it to show
/// an image that reports the reader. From other origins the page may therefore show only `images`
/// and the video's image, which were prepared for it.
pub(crate) fn made_page(
    raw: &str,
    thumbnail: Option<&str>,
    video_url: Option<&str>,
    images: &[ImageAsset],
    sources: &Sources,
) -> Result<String, HtmlError> {
    let prepared = images.iter().map(|image| image.image_url.as_str());
    finish(raw, thumbnail, video_url, &Pictures::known(sources, prepared.chain(thumbnail)))
}

fn finish(
    raw: &str,
    thumbnail: Option<&str>,
    video_url: Option<&str>,
    pictures: &Pictures,
) -> Result<String, HtmlError> {
    fits(raw)?;
    let thumbnail = thumbnail.map(url::tidy).filter(|address| pictures.is_image(address));
    let video_url = video_url.map(url::tidy).filter(|address| is_link(address));
    let (thumbnail, replaces_link) = (thumbnail.as_deref(), video_url.is_some());
    // Browsers drop the character in text and keep it in tags, where it hides names.
    let text = raw.replace('\0', "");
    let parts = read::parts(fence::inside(&text), Wanted { thumbnail, pictures, replaces_link })?;
    let header = thumbnail.filter(|_| !parts.has_thumbnail).map(header);
    let page = put_together(&parts, header, video_url.map(|address| footer(&address)))?;
    fits(&page)?;
    Ok(page)
}

fn fits(text: &str) -> Result<(), HtmlError> {
    if text.len() > MAX_BYTES { Err(HtmlError::TooLong(text.len())) } else { Ok(()) }
}

fn put_together(
    parts: &Parts,
    header: Option<String>,
    footer: Option<String>,
) -> Result<String, HtmlError> {
    let html = parts.html.as_deref().ok_or(HtmlError::NoHtml)?;
    let body = parts.body.as_deref().ok_or(HtmlError::NoBody)?;
    // The encoding is the first element, so that a browser assumes no other.
    let mut lines = vec!["<!DOCTYPE html>", html, "<head>", "<meta charset=\"utf-8\">"];
    if !parts.has_viewport {
        lines.push(VIEWPORT);
    }
    lines.extend(parts.head.iter().map(String::as_str));
    lines.extend(["</head>", body]);
    lines.extend(header.as_deref());
    lines.extend(Some(parts.content.trim()).filter(|content| !content.is_empty()));
    lines.extend(footer.as_deref());
    lines.extend(["</body>", "</html>", ""]);
    Ok(lines.join("\n"))
}

fn header(thumbnail: &str) -> String {
    let source = entity::encode(thumbnail);
    format!(
        "<section {THUMBNAIL_HEADER}=\"\" style=\"margin:0 0 24px\">\
         <img src=\"{source}\" alt=\"Video thumbnail\" \
         style=\"display:block;width:100%;max-height:420px;object-fit:cover\"></section>"
    )
}

fn footer(video_url: &str) -> String {
    let address = entity::encode(video_url);
    format!(
        "<a {ORIGIN_LINK}=\"\" href=\"{address}\" target=\"_blank\" rel=\"noopener\" \
         style=\"display:block;margin:32px auto;text-align:center\">{ORIGIN_TEXT}</a>"
    )
}

#[cfg(test)]
mod tests;
