//! Reads a document token by token and collects the parts of a page.
//!
//! `lol_html` parses the document, but its output is not used: it passes superfluous end tags and
//! truncated tags through, and does not know how browsers read a tag once a tag before it has been
//! removed. Everything in [`Parts`] is written here. Each `<` in it begins a tag that `allow`
//! permits, with the attributes of `tag`, so a browser finds no other tags in it, in any state of
//! its parser.

use std::cell::RefCell;
use std::rc::Rc;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{HtmlRewriter, Settings, doc_text, element};

use crate::html::allow::{self, Fate};
use crate::html::error::HtmlError;
use crate::html::tag::{self, Attribute};
use crate::html::url::Pictures;
use crate::html::{css, entity};

/// Attribute of the link to the video.
pub(super) const ORIGIN_LINK: &str = "data-origin-video-link";

/// Maximum nesting of elements, which is also that of browsers. Every end tag is searched among
/// them.
const MAX_DEPTH: usize = 512;

/// The parts of a document that a page may have.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The start tag of `<html>`.
    pub(super) html: Option<String>,
    /// Elements of `<head>`.
    pub(super) head: Vec<String>,
    /// True if one of them describes the viewport.
    pub(super) has_viewport: bool,
    /// The start tag of `<body>`.
    pub(super) body: Option<String>,
    /// The content of `<body>`.
    pub(super) content: String,
    /// True if the content shows the thumbnail.
    pub(super) has_thumbnail: bool,
}

/// The requirements of a page, whatever the document has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The image at the top.
    pub(super) thumbnail: Option<&'a str>,
    /// The images that the page may show.
    pub(super) pictures: &'a Pictures,
    /// True if the link to the video is replaced.
    pub(super) replaces_link: bool,
}

/// Reads a document.
pub(super) fn parts(text: &str, wanted: Wanted<'_>) -> Result<Parts, HtmlError> {
    let reader = Rc::new(RefCell::new(Reader::new(wanted)));
    let settings = Settings {
        element_content_handlers: vec![element!("*", |element| Reader::start(&reader, element))],
        document_content_handlers: vec![doc_text!(|text| {
            reader.borrow_mut().text(text);
            Ok(())
        })],
        // A document that browsers read in another way is harmless, for the reason above.
        strict: false,
        ..Settings::new()
    };
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(text.as_bytes()).and_then(|()| rewriter.end()).map_err(unreadable)?;
    Ok(reader.borrow_mut().finish())
}

fn unreadable(error: RewritingError) -> HtmlError {
    match error {
        RewritingError::ContentHandlerError(error) if error.is::<HtmlError>() => HtmlError::TooDeep,
        error => HtmlError::Unreadable(error.to_string()),
    }
}

/// The position of the reader in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InsertionMode {
    /// Before `<html>`, where models write explanations.
    BeforeHtml,
    /// Between `<html>` and `</body>`.
    InHtml,
    /// After `</body>`, where browsers still add text to the body.
    AfterBody,
    /// After `</html>`.
    AfterHtml,
}

/// The treatment of the content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Written, with tags.
    Written,
    /// Written, without tags.
    Unwrapped,
    /// Left out.
    Hidden,
    /// Collected: the text of `<style>` and `<title>`, which contain no elements.
    Captured,
}

/// An open element.
#[derive(Debug)]
struct Open {
    /// Number of the start tag, in document order.
    number: u64,
    name: String,
    kind: Kind,
}

struct Reader {
    wanted: OwnedWanted,
    parts: Parts,
    mode: InsertionMode,
    /// Open elements, the innermost last.
    open: Vec<Open>,
    next: u64,
    /// Start tag and text of the collected element.
    captured: (String, String),
    has_title: bool,
}

/// Owned form of [`Wanted`], because handlers of end tags have a static lifetime.
struct OwnedWanted {
    /// The attribute that shows the thumbnail, as written.
    thumbnail: Option<String>,
    pictures: Pictures,
    replaces_link: bool,
}

impl Reader {
    fn new(wanted: Wanted<'_>) -> Self {
        let Wanted { thumbnail, pictures, replaces_link } = wanted;
        let thumbnail = thumbnail.map(|address| format!(" src=\"{}\"", entity::encode(address)));
        Self {
            wanted: OwnedWanted { thumbnail, pictures: pictures.clone(), replaces_link },
            parts: Parts::default(),
            mode: InsertionMode::BeforeHtml,
            open: Vec::new(),
            next: 0,
            captured: Default::default(),
            has_title: false,
        }
    }

    /// Handles a start tag, and registers a handler for its end tag.
    fn start(
        reader: &Rc<RefCell<Self>>,
        element: &mut Element<'_, '_>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let name = element.tag_name();
        let attributes = element.attributes().iter();
        let attributes: Vec<Attribute> =
            attributes.map(|attribute| (attribute.name(), attribute.value())).collect();
        let kind = reader.borrow_mut().begin(&name, &attributes);
        let Some(handlers) = element.end_tag_handlers() else {
            // In foreign content `<a/>` is a whole element; in a page it would stay open.
            if kind == Kind::Written && !allow::is_void(&name) {
                reader.borrow_mut().write_end(&name);
            }
            return Ok(());
        };
        let number = reader.borrow_mut().push(name, kind)?;
        let reader = Rc::clone(reader);
        handlers.push(Box::new(move |end| {
            reader.borrow_mut().end(number, &end.name());
            Ok(())
        }));
        Ok(())
    }

    fn push(&mut self, name: String, kind: Kind) -> Result<u64, HtmlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(HtmlError::TooDeep);
        }
        let number = self.next;
        self.next += 1;
        self.open.push(Open { number, name, kind });
        Ok(number)
    }

    /// Returns true if the content of the innermost open element is left out, or is collected as
    /// text (`<style>`, `<title>`): elements in it are not written.
    fn is_closed(&self) -> bool {
        let kind = self.open.last().map(|open| open.kind);
        matches!(kind, Some(Kind::Hidden | Kind::Captured))
    }

    /// Processes a start tag.
    fn begin(&mut self, name: &str, attributes: &[Attribute]) -> Kind {
        match (name, self.mode) {
            _ if self.is_closed() => Kind::Hidden,
            ("html", InsertionMode::BeforeHtml) => {
                self.mode = InsertionMode::InHtml;
                self.parts.html = Some(self.tag(name, attributes));
                Kind::Unwrapped
            }
            (_, InsertionMode::BeforeHtml | InsertionMode::AfterHtml) | ("html" | "head", _) => {
                Kind::Unwrapped
            }
            ("body", _) => {
                if self.parts.body.is_none() {
                    self.parts.body = Some(self.tag(name, attributes));
                }
                Kind::Unwrapped
            }
            ("title", _) if self.is_in_head() && !self.has_title => {
                self.captured = (self.tag(name, &[]), String::new());
                Kind::Captured
            }
            ("title", _) => Kind::Hidden,
            ("style", _) => {
                self.captured = (self.tag(name, attributes), String::new());
                Kind::Captured
            }
            ("meta", _) => {
                self.meta(attributes);
                Kind::Unwrapped
            }
            _ => self.content(name, attributes),
        }
    }

    /// Returns true if nothing of the body has been read.
    fn is_in_head(&self) -> bool {
        self.parts.body.is_none() && self.parts.content.is_empty()
    }

    fn meta(&mut self, attributes: &[Attribute]) {
        let name = tag::read(attributes, "name").map(|name| name.trim().to_ascii_lowercase());
        let content = attributes.iter().find(|(name, _)| name == "content");
        if let (Some(name), Some((_, content)), true) = (name, content, self.is_in_head())
            && allow::is_meta_name(&name)
        {
            let content = entity::quote(content);
            self.parts.head.push(format!("<meta name=\"{name}\" content=\"{content}\">"));
            self.parts.has_viewport |= name == "viewport";
        }
    }

    fn content(&mut self, name: &str, attributes: &[Attribute]) -> Kind {
        let is_link = attributes.iter().any(|(name, _)| name == ORIGIN_LINK);
        match allow::fate(name) {
            Fate::Written if is_link && self.wanted.replaces_link => Kind::Hidden,
            Fate::Written => {
                let tag = self.tag(name, attributes);
                self.parts.has_thumbnail |= name == "img" && self.is_thumbnail(&tag);
                self.parts.content.push_str(&tag);
                Kind::Written
            }
            Fate::Unwrapped => Kind::Unwrapped,
            Fate::Hidden => Kind::Hidden,
        }
    }

    fn is_thumbnail(&self, tag: &str) -> bool {
        self.wanted.thumbnail.as_ref().is_some_and(|shown| tag.contains(shown))
    }

    fn tag(&self, name: &str, attributes: &[Attribute]) -> String {
        tag::start(name, attributes, &self.wanted.pictures)
    }

    /// Processes a piece of text.
    fn text(&mut self, text: &TextChunk<'_>) {
        let is_plain = matches!(text.text_type(), TextType::Data | TextType::CDataSection);
        let text = text.as_str();
        let is_between = match self.mode {
            InsertionMode::InHtml => self.parts.body.is_none(),
            InsertionMode::AfterBody => true,
            InsertionMode::BeforeHtml | InsertionMode::AfterHtml => return,
        };
        match self.open.last().map(|open| open.kind) {
            Some(Kind::Captured) => self.captured.1.push_str(text),
            Some(Kind::Hidden) => {}
            _ if !is_plain || is_between && text.trim().is_empty() => {}
            _ => self.parts.content.push_str(&text.replace('<', "&lt;")),
        }
    }

    /// Closes an element and all elements in it. The parser calls this for each of them, in any
    /// order, with the name of the one end tag.
    fn end(&mut self, number: u64, name: &str) {
        let Ok(at) = self.open.binary_search_by_key(&number, |open| open.number) else {
            return;
        };
        while self.open.len() > at {
            let Some(open) = self.open.pop() else {
                return;
            };
            let is_meant = open.number == number && open.name == name;
            self.close(&open, is_meant);
        }
    }

    /// Closes an element. `is_meant` is true if the end tag is its own.
    fn close(&mut self, open: &Open, is_meant: bool) {
        match open.kind {
            Kind::Captured => self.put_captured(&open.name),
            Kind::Written if allow::is_void(&open.name) => {}
            Kind::Written if is_meant || !allow::is_open_ended(&open.name) => {
                self.write_end(&open.name);
            }
            Kind::Unwrapped if is_meant => self.leave(&open.name),
            _ => {}
        }
    }

    fn write_end(&mut self, name: &str) {
        self.parts.content.push_str(&format!("</{name}>"));
    }

    fn leave(&mut self, name: &str) {
        match (name, self.mode) {
            ("body", InsertionMode::InHtml) => self.mode = InsertionMode::AfterBody,
            ("html", InsertionMode::InHtml | InsertionMode::AfterBody) => {
                self.mode = InsertionMode::AfterHtml;
            }
            _ => {}
        }
    }

    /// Writes a collected style or title.
    fn put_captured(&mut self, name: &str) {
        let (start, text) = std::mem::take(&mut self.captured);
        let is_title = name == "title";
        let text = if is_title {
            entity::quote(text.trim())
        } else {
            css::clean(&text, &self.wanted.pictures)
        };
        if text.trim().is_empty() {
            return;
        }
        let whole = format!("{start}{text}</{name}>");
        if is_title || self.is_in_head() {
            self.has_title |= is_title;
            self.parts.head.push(whole);
        } else {
            self.parts.content.push_str(&whole);
        }
    }

    /// Closes the elements that the end of the document leaves open.
    fn finish(&mut self) -> Parts {
        while let Some(open) = self.open.pop() {
            self.close(&open, false);
        }
        std::mem::take(&mut self.parts)
    }
}
