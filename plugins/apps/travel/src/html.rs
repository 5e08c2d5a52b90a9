//! From what a model calls HTML to the page that is kept and shown.
//!
//! The page is third-party text that a model turned into markup, so nothing in it is trusted: it is
//! parsed (`read`) and rebuilt from allowlists (`allow`, `tag`, `url`,
//! `css`). It runs nothing, even without the content security policy under which it is served.
//! A page that went through once stays as it is when it goes through again.

mod allow;
mod css;
mod entity;
mod fence;
mod prompt;
mod read;
mod tag;
mod url;

use std::fmt;

pub(crate) use self::prompt::{Ask, WIDTHS, system};
use self::read::{Parts, Wanted};
use self::url::Pictures;
pub(crate) use self::url::{Sources, is_blob, is_link};
use crate::image::ImageAsset;

/// Bytes of a page. Text and styles are far below it; what is above carries data.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Attribute of the section with the video's picture.
const THUMBNAIL_HEADER: &str = "data-video-thumbnail-header";

/// Attribute of the link to the video.
const ORIGIN_LINK: &str = "data-origin-video-link";

/// What the link to the video says.
const ORIGIN_TEXT: &str = "Watch Origin Video";

/// Makes a page fit for small screens, if the document does not say how.
const VIEWPORT: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";

/// Why a text is no page. Models read it, and do better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HtmlError {
    /// More than [`MAX_BYTES`].
    TooLong(usize),
    /// Elements inside of elements without end.
    TooDeep,
    /// No `<html>`.
    NoHtml,
    /// No `<body>`.
    NoBody,
    /// The parser gave up.
    Unreadable(String),
}

impl fmt::Display for HtmlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(
                formatter,
                "the page has {bytes} bytes, {MAX_BYTES} are allowed; refer to pictures by their \
                 addresses instead of embedding them"
            ),
            Self::TooDeep => formatter.write_str(
                "the page has too many elements inside of each other; close what is opened",
            ),
            Self::NoHtml => formatter.write_str(
                "the page has no `<html>` tag; write one complete HTML document and nothing else",
            ),
            Self::NoBody => formatter.write_str(
                "the page has no `<body>` tag; write one complete HTML document and nothing else",
            ),
            Self::Unreadable(reason) => write!(formatter, "the page cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for HtmlError {}

/// Makes a page of an editor's text. The video's picture stands on top unless the page shows it
/// already, the link to the video at the end.
pub(crate) fn page(
    raw: &str,
    thumbnail: Option<&str>,
    video_url: Option<&str>,
    sources: &Sources,
) -> Result<String, HtmlError> {
    finish(raw, thumbnail, video_url, &Pictures::any(sources))
}

/// The same for a model's text. Who wrote what the model has read may have talked it into a picture
/// that tells somebody who looks at the page, so of pictures from elsewhere only `images` and the
/// video's may be shown, which were prepared for it.
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
    // Browsers drop the character in text and keep it in tags, which hides names.
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
    // The first that a browser reads, so that it takes no other encoding for granted.
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
