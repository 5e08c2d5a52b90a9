//! Responses of an MCP server, as a tool list and as a tool result. Names and descriptions are
//! clean, and lists and results stay within their limits.

use wattle_graph::llm::{Image, ImageSource, Part};
use wattle_graph::tool::ToolOutput;
use wattle_mcp::parse;
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::text::is_escaped;

use super::is_clean;

/// Maximum size of the texts of a tool result, in bytes, without the notes that the host appends.
const OUTPUT_BYTES: usize = 2_000;

/// Maximum size of these notes, in bytes: that a text is cut, and what to set so that the server can
/// ask people.
const NOTE_BYTES: usize = 200;

/// Maximum number of tools of a server.
const TOOLS: usize = 1_000;

/// Maximum sizes of names and descriptions of tools.
const NAME_BYTES: usize = 128;
const DESCRIPTION_BYTES: usize = 4_096;

/// Maximum number of images of a result.
const IMAGES: usize = 64;

/// Maximum size of the data URL of an image without the data that the response has.
const URL_HEAD_BYTES: usize = 64;

/// Parses a response.
pub fn run(bytes: &[u8]) {
    clean(&parse::tools("server", bytes).unwrap_or_default());
    let Ok(Ok(output)) = parse::output("server", bytes, OUTPUT_BYTES) else { return };
    check_content(&output, OUTPUT_BYTES, bytes.len());
}

/// Checks that a result has only texts and images. `output_bytes` limits the texts without notes. The
/// images come from messages of `message_bytes` together.
pub(super) fn check_content(output: &ToolOutput, output_bytes: usize, message_bytes: usize) {
    let (mut text_bytes, mut images, mut image_bytes) = (0, 0, 0);
    for part in &output.content {
        match part {
            Part::Text(text) => text_bytes += text.len(),
            Part::Image(Image { source: ImageSource::Url(url), .. }) => {
                images += 1;
                image_bytes += url.len();
            }
            part => panic!("only texts and images are allowed: {part:?}"),
        }
    }
    assert!(text_bytes <= output_bytes + NOTE_BYTES, "{text_bytes} bytes of text");
    assert!(images <= IMAGES, "{images} images");
    assert!(
        image_bytes <= message_bytes + images * URL_HEAD_BYTES,
        "{image_bytes} bytes of images"
    );
}

/// Checks that the tools of a server are clean, and that their number is limited.
pub(super) fn clean(tools: &[ToolInfo]) {
    assert!(tools.len() <= TOOLS, "{} tools", tools.len());
    for tool in tools {
        let unfit = |char: char| is_escaped(char) || (char.is_whitespace() && char != ' ');
        assert!(!tool.name.is_empty() && tool.name.len() <= NAME_BYTES);
        assert!(!tool.name.contains(unfit), "{:?}", tool.name);
        assert!(tool.name.split(' ').all(|word| !word.is_empty()), "{:?}", tool.name);
        assert!(tool.description.len() <= DESCRIPTION_BYTES);
        assert!(is_clean(&tool.description), "{:?}", tool.description);
        assert!(tool.arguments_schema.is_object());
    }
}
