//! Replaces encoded files in results, such as images in Base64, by notes. A model would read the
//! data as meaningless text, and the state of the thread would keep it. The note of an image names
//! the blob as which the host keeps the image.
//!
//! Servers write data beside its media type, as a data URL, as a `Buffer` of Node.js, or as a bare
//! string, which the first bytes of its format identify. A text often repeats the structured
//! content, as JSON or in another notation, so texts are searched as well.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};
use wattle_graph::id::{BlobRef, Digest};
use wattle_graph::llm::{Image, ImageSource, picture_type};
use wattle_run::json::bounded::JsonBudget;

/// Minimum length of data that is recognized without its media type, and of data within a text.
/// Shorter data may be part of a sentence.
const MIN_DATA_CHARS: usize = 64;

/// Minimum length of a line of Base64 that continues on the next line. Encoders break lines after
/// 64 or 76 characters.
const MIN_LINE_CHARS: usize = 60;

/// Maximum length of a data URL before its data.
const MAX_URL_HEAD_BYTES: usize = 128;

/// Length of the data that shows whether it is an image.
const IMAGE_HEAD_CHARS: usize = 16;

/// Base64 encodes three bytes as four characters.
const BASE64_CHARS: usize = 4;
const BASE64_BYTES: usize = 3;

/// Names of fields with a media type.
const MEDIA_TYPES: [&str; 4] = ["mimeType", "mime_type", "media_type", "mediaType"];

/// Names of fields with data beside a media type.
const DATA: [&str; 3] = ["data", "blob", "base64"];

/// The start of a data URL.
const URL_SCHEME: &str = "data:";

/// The end of a data URL before its data.
const URL_HEAD_END: &str = ";base64,";

/// Base64 of the first bytes of a format, and the format.
const FORMATS: [(&str, &str); 10] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp or audio/wav"),
    ("SUkqA", "image/tiff"),
    ("TU0AK", "image/tiff"),
    ("PHN2Z", "image/svg+xml"),
    ("JVBERi0", "application/pdf"),
    ("UEsDB", "application/zip"),
    ("T2dnUw", "audio/ogg"),
];

/// Starts of escapes in JSON that stand for a character of Base64 or a line break, or that hide the
/// start of data behind a letter.
const ESCAPES: [&str; 5] = ["\\/", "\\u00", "\\n", "\\r", "\\t"];

/// Maximum number of images of a result that become blobs. A message of 16 MiB could have a hundred
/// thousand tiny ones.
const MAX_IMAGES: usize = 64;

/// The images of a result, each once, at most [`MAX_IMAGES`].
#[derive(Debug, Default)]
pub(crate) struct Images(Vec<(BlobRef, Image)>);

impl Images {
    /// Returns the images as data URLs.
    pub(crate) fn into_images(self) -> impl Iterator<Item = Image> {
        self.0.into_iter().map(|(_, image)| image)
    }

    /// Returns the note for Base64 data. `what` describes the data, such as its media type.
    pub(crate) fn note(&mut self, what: &str, base64: &str) -> String {
        let plain = base64.bytes().filter(|byte| is_base64(*byte)).map(|byte| match byte {
            b'-' => '+',
            b'_' => '/',
            other => char::from(other),
        });
        let plain: String = plain.collect();
        let Some((media_type, bytes)) = decode_image(&plain) else {
            return omitted(what, plain.len() * BASE64_BYTES / BASE64_CHARS);
        };
        let blob = BlobRef(Digest::of(&bytes));
        let note = format!("[{media_type} {} bytes, {blob}]", bytes.len());
        if self.0.iter().all(|(known, _)| *known != blob) {
            if self.0.len() >= MAX_IMAGES {
                return omitted(media_type, bytes.len());
            }
            let url = format!("data:{media_type};base64,{}", STANDARD.encode(bytes));
            let source = ImageSource::Url(url);
            self.0.push((blob, Image { source, media_type: media_type.to_owned() }));
        }
        note
    }
}

/// Decodes an image. Returns `None` for other data.
fn decode_image(base64: &str) -> Option<(&'static str, Vec<u8>)> {
    let head = STANDARD_NO_PAD.decode(base64.get(..IMAGE_HEAD_CHARS)?).ok()?;
    let media_type = picture_type(&head)?;
    Some((media_type, STANDARD_NO_PAD.decode(base64).ok()?))
}

fn omitted(what: &str, bytes: usize) -> String {
    format!("[{what} {bytes} bytes left out]")
}

/// Replaces data in a document. Returns whether there was any.
pub(crate) fn replace_in_document(value: &mut Value, images: &mut Images) -> bool {
    match value {
        Value::String(text) => {
            let note = data_url_note(text, images);
            match note.or_else(|| replaced_in_text(text, images)) {
                Some(replaced) => {
                    *text = replaced;
                    true
                }
                None => false,
            }
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |found, item| replace_in_document(item, images) | found)
        }
        Value::Object(fields) => {
            let found = replace_in_fields(fields, images);
            let fields = fields.values_mut();
            fields.fold(found, |found, field| replace_in_document(field, images) | found)
        }
        _ => false,
    }
}

/// Replaces data that the other fields of an object describe.
fn replace_in_fields(fields: &mut Map<String, Value>, images: &mut Images) -> bool {
    if fields.get("type").is_some_and(|kind| kind == "Buffer")
        && let Some(Value::Array(bytes)) = fields.get("data")
        && let Some(bytes) = bytes.iter().map(to_byte).collect::<Option<Vec<u8>>>()
    {
        let note = images.note("buffer", &STANDARD.encode(bytes));
        fields.insert("data".to_owned(), note.into());
        return true;
    }
    let media_type = MEDIA_TYPES.into_iter().find_map(|name| fields.get(name)?.as_str());
    let Some(media_type) = media_type.filter(|it| is_binary(it)).map(str::to_owned) else {
        return false;
    };
    let mut found = false;
    for name in DATA {
        if let Some(Value::String(text)) = fields.get_mut(name)
            && is_encoded(text)
        {
            *text = images.note(&media_type, text);
            found = true;
        }
    }
    found
}

fn to_byte(number: &Value) -> Option<u8> {
    u8::try_from(number.as_u64()?).ok()
}

/// Returns true if data of a media type is no text. A field with the name of a media type may have
/// another meaning, such as `movie`.
fn is_binary(media_type: &str) -> bool {
    media_type.contains('/') && !media_type.starts_with("text/") && !media_type.contains("json")
}

/// Returns true if a text has the form of Base64.
fn is_encoded(text: &str) -> bool {
    let data = text.trim_end().trim_end_matches('=');
    let chars = data.bytes().filter(|byte| is_base64(*byte)).count();
    let breaks = data.bytes().filter(|byte| matches!(byte, b'\r' | b'\n')).count();
    chars > 0 && chars + breaks == data.len() && chars % BASE64_CHARS != 1
}

/// Returns the note for a text that is a data URL.
fn data_url_note(text: &str, images: &mut Images) -> Option<String> {
    let (head, data) = text.trim().strip_prefix(URL_SCHEME)?.split_once(URL_HEAD_END)?;
    (is_url_head(head) && is_encoded(data)).then(|| images.note(media_type_of(head), data))
}

/// Replaces data in a text block, which may be JSON.
pub(crate) fn replace_in_text(text: String, images: &mut Images) -> String {
    if let Some(note) = data_url_note(&text, images) {
        return note;
    }
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    if is_json
        && may_hide_data(&text)
        && let Ok(mut document) = JsonBudget::default().parse::<Value>(&text)
        && replace_in_document(&mut document, images)
    {
        return document.to_string();
    }
    replaced_in_text(&text, images).unwrap_or(text)
}

/// Returns true if the document of a JSON text may have data that is not found in the text: data
/// beside its media type, and data with characters that JSON escapes. Any other text is not parsed,
/// because printing a document changes long numbers and repeated keys.
fn may_hide_data(text: &str) -> bool {
    let has = |part: &&str| text.contains(*part);
    MEDIA_TYPES.iter().chain(&[URL_HEAD_END, "Buffer"]).chain(&ESCAPES).any(has)
}

/// Replaces data URLs and bare data in a text. Returns `None` if there are none.
fn replaced_in_text(text: &str, images: &mut Images) -> Option<String> {
    let (mut kept, mut rest, mut found) = (String::new(), text, false);
    while let Some(at) = rest.find(is_base64_char) {
        let (before, data) = rest.split_at(at);
        kept.push_str(before);
        let (data, after) = data.split_at(data_len(data));
        rest = after;
        if data.len() < MIN_DATA_CHARS {
            kept.push_str(data);
        } else if let Some(start) = url_head(&kept) {
            let note = images.note(media_type_of(&kept[start + URL_SCHEME.len()..]), data);
            kept.truncate(start);
            kept.push_str(&note);
            found = true;
        } else if let Some((_, format)) = FORMATS.iter().find(|(start, _)| data.starts_with(start))
        {
            kept.push_str(&images.note(format, data));
            found = true;
        } else {
            kept.push_str(data);
        }
    }
    kept.push_str(rest);
    found.then_some(kept)
}

/// Returns the length of the data at the start of a text, with its padding and its line breaks.
fn data_len(text: &str) -> usize {
    let mut length = 0;
    loop {
        let line = line_len(&text[length..]);
        length += line;
        let rest = &text[length..];
        let line_break =
            if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        let next = line_len(&rest[line_break..]);
        let goes_on = line >= MIN_LINE_CHARS
            && line_break > 0
            && next > 0
            && next.is_multiple_of(BASE64_CHARS)
            && !text[..length].ends_with('=');
        if !goes_on {
            return length;
        }
        length += line_break;
    }
}

fn line_len(text: &str) -> usize {
    let chars = text.bytes().take_while(|byte| is_base64(*byte)).count();
    chars + text[chars..].bytes().take_while(|byte| *byte == b'=').take(2).count()
}

/// Returns the start of a data URL without its data at the end of a text.
fn url_head(text: &str) -> Option<usize> {
    if !text.ends_with(URL_HEAD_END) {
        return None;
    }
    let from = text.floor_char_boundary(text.len().saturating_sub(MAX_URL_HEAD_BYTES));
    let start = from + text[from..].rfind(URL_SCHEME)?;
    is_url_head(&text[start + URL_SCHEME.len()..]).then_some(start)
}

/// Returns true if a text can be a media type with parameters.
fn is_url_head(head: &str) -> bool {
    head.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+.-_;=,".contains(&byte))
}

/// Returns the media type of a data URL without its scheme.
fn media_type_of(head: &str) -> &str {
    match head.split(';').next() {
        Some(media_type) if !media_type.is_empty() => media_type,
        _ => "data",
    }
}

/// Returns true for a character of Base64, of either alphabet.
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

fn is_base64_char(sign: char) -> bool {
    u8::try_from(sign).is_ok_and(is_base64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An image with one pixel, in 96 characters.
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA\
                         WjR9awAAAABJRU5ErkJggg==";

    /// Returns the note for the image.
    fn note() -> String {
        let blob = BlobRef(Digest::of(&STANDARD.decode(PIXEL).unwrap()));
        format!("[image/png 70 bytes, {blob}]")
    }

    fn in_text(text: &str) -> String {
        replace_in_text(text.to_owned(), &mut Images::default())
    }

    #[test]
    fn the_images_of_a_result_are_limited() {
        let mut images = Images::default();
        let mut note = |number: usize| images.note("data", &format!("{}{number:04}", &PIXEL[..64]));
        for number in 0..MAX_IMAGES {
            assert!(note(number).contains("blob:"), "{number}");
        }
        assert_eq!(note(MAX_IMAGES), "[image/png 51 bytes left out]");
        assert!(note(0).contains("blob:"), "the first image is known");
        assert_eq!(images.into_images().count(), MAX_IMAGES);
    }

    #[test]
    fn the_texts_and_the_document_of_a_result_share_the_limit() {
        let image = |number: usize| format!("{}{number:04}", &PIXEL[..64]);
        let text = |first: usize| (first..first + 40).map(image).collect::<Vec<_>>().join(" ");
        let mut images = Images::default();
        for (first, kept) in [(0, 40), (40, MAX_IMAGES - 40), (0, 40)] {
            let replaced = replace_in_text(text(first), &mut images);
            assert_eq!(replaced.matches("blob:").count(), kept, "{first}");
        }
        let mut document = json!({ "new": image(80), "known": image(0) });
        assert!(replace_in_document(&mut document, &mut images));
        assert_eq!(document["new"], "[image/png 51 bytes left out]");
        assert!(document["known"].as_str().unwrap().contains("blob:"));
        assert_eq!(images.into_images().count(), MAX_IMAGES);
    }

    #[test]
    fn data_in_texts_is_replaced() {
        let url = format!("data:image/png;base64,{PIXEL}");
        let note = note();
        let wrapped = format!("{}\n{}", &PIXEL[..76], &PIXEL[76..]);
        for (text, expected) in [
            (PIXEL.to_owned(), note.clone()),
            (url.clone(), note.clone()),
            ("data:image/gif;base64,aGk=".to_owned(), "[image/gif 2 bytes left out]".to_owned()),
            (format!("![chart]({url}) above"), format!("![chart]({note}) above")),
            (format!("<img src=\"{url}\">"), format!("<img src=\"{note}\">")),
            (format!("{{'image': '{PIXEL}', 'n': 1}}"), format!("{{'image': '{note}', 'n': 1}}")),
            (format!("Here:\n{wrapped}\nDone"), format!("Here:\n{note}\nDone")),
            (format!("{PIXEL} and {PIXEL}"), format!("{note} and {note}")),
            (
                format!("{{\"a\": \"{}\"}}", PIXEL.replace('+', "\\u002B")),
                format!("{{\"a\":\"{note}\"}}"),
            ),
            (
                "{\"mimeType\": \"audio/mp3\", \"data\": \"aGVsbG8=\"}".to_owned(),
                "{\"mimeType\":\"audio/mp3\",\"data\":\"[audio/mp3 5 bytes left out]\"}".to_owned(),
            ),
        ] {
            assert_eq!(in_text(&text), expected, "{text}");
        }
    }

    #[test]
    fn json_texts_are_printed_anew_only_if_they_hide_data() {
        let note = note();
        let (start, end) = PIXEL.split_at(76);
        for (text, expected) in [
            (
                format!("{{ \"n\": 1000000000000000000001, \"shot\": \"{PIXEL}\" }}"),
                format!("{{ \"n\": 1000000000000000000001, \"shot\": \"{note}\" }}"),
            ),
            (
                format!("{{ \"a\": 1, \"a\": \"{PIXEL}\" }}"),
                format!("{{ \"a\": 1, \"a\": \"{note}\" }}"),
            ),
            (format!("{{ \"shot\": \"{start}\\n{end}\" }}"), format!("{{\"shot\":\"{note}\"}}")),
            (format!("[ \"Here:\\r\\n{PIXEL}\" ]"), format!("[\"Here:\\r\\n{note}\"]")),
        ] {
            assert_eq!(in_text(&text), expected, "{text}");
        }
        let lines = "{ \"n\": 1000000000000000000001, \"text\": \"one\\ntwo\" }";
        assert_eq!(in_text(lines), lines);
    }

    #[test]
    fn other_texts_are_unchanged() {
        for text in [
            String::new(),
            "an image/png file, data:text/plain;base64,aGk= in short".to_owned(),
            "x".repeat(5000),
            "0123456789abcdef".repeat(64),
            format!("/9j/{}", "é".repeat(100)),
            PIXEL[..60].to_owned(),
            "{ \"mimeType\": \"text/plain\",  \"data\": \"hello\" }".to_owned(),
            "{ \"mimeType\": \"image/svg+xml\",  \"data\": \"<svg/>\" }".to_owned(),
            "[1, {\"Buffer\": \"\\u0041\"".to_owned(),
        ] {
            assert_eq!(in_text(&text), text);
        }
    }

    #[test]
    fn data_in_documents_is_replaced() {
        let note = note();
        for (mut document, expected) in [
            (json!({ "shot": PIXEL }), json!({ "shot": note })),
            (json!([{ "b64_json": PIXEL }]), json!([{ "b64_json": note }])),
            (
                json!({ "html": format!("<p>{PIXEL}</p>") }),
                json!({ "html": format!("<p>{note}</p>") }),
            ),
            (
                json!({ "mimeType": "image/png", "data": "aGVsbG8=", "n": 1 }),
                json!({ "mimeType": "image/png", "data": "[image/png 5 bytes left out]", "n": 1 }),
            ),
            (
                json!({ "media_type": "image/png", "base64": "aGVs\nbG8" }),
                json!({ "media_type": "image/png", "base64": "[image/png 5 bytes left out]" }),
            ),
            (
                json!({ "type": "Buffer", "data": [137, 80, 78, 71] }),
                json!({ "type": "Buffer", "data": "[buffer 4 bytes left out]" }),
            ),
        ] {
            assert!(replace_in_document(&mut document, &mut Images::default()));
            assert_eq!(document, expected);
        }
        for mut document in [
            json!({ "mimeType": "text/csv", "data": "a,b" }),
            json!({ "media_type": "movie", "data": "Vertigo1" }),
            json!({ "mimeType": "image/png", "data": "not there" }),
            json!({ "type": "Buffer", "data": [1, 300] }),
            json!({ "type": "series", "data": [1, 2] }),
        ] {
            let before = document.clone();
            assert!(!replace_in_document(&mut document, &mut Images::default()));
            assert_eq!(document, before);
        }
    }

    #[test]
    fn every_image_is_collected_once() {
        let mut images = Images::default();
        let escaped = PIXEL.replace('+', "\\u002B");
        replace_in_text(format!("{PIXEL} and {PIXEL}"), &mut images);
        replace_in_text(format!("{{\"a\": \"{escaped}\"}}"), &mut images);
        let jpeg = STANDARD.encode([0xff_u8, 0xd8, 0xff, 0xe0].repeat(20));
        replace_in_document(&mut json!({ "a": PIXEL, "b": jpeg, "c": "aGVsbG8=" }), &mut images);
        let found: Vec<Image> = images.into_images().collect();
        let types: Vec<&str> = found.iter().map(|image| image.media_type.as_str()).collect();
        assert_eq!(types, ["image/png", "image/jpeg"]);
        let url = format!("data:image/png;base64,{PIXEL}");
        assert_eq!(found[0].source, ImageSource::Url(url));
    }
}
