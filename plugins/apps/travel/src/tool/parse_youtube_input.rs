//! `parse_youtube_input`: finds the URLs of videos in a user's text.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, tool,
};

use crate::tool::output::{optional_fields, tool_output};
use crate::youtube;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    /// What the user wrote, word by word.
    user_text: String,
}

/// The output of `parse_youtube_input`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = optional_fields)]
pub(crate) struct ParsedInput {
    /// Normalized URLs, without duplicates.
    video_urls: Vec<String>,
    /// Number of URLs.
    count: usize,
}

/// Finds the addresses of YouTube videos in a text. Step 1 of a guide.
#[tool(read_only)]
pub(crate) fn parse_youtube_input(
    context: &ToolContext,
    input: Input,
) -> Result<ToolOutput, Failure> {
    let video_urls = youtube::extract(&input.user_text);
    let count = video_urls.len();
    tool_output(&context.tool, &ParsedInput { video_urls, count })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::prelude::ToolContext;
    use wattle_plugin::testing;

    use super::parse_youtube_input;

    fn parse(text: &str) -> (Value, Value) {
        let context = ToolContext { tool: "parse_youtube_input".to_owned(), ..Default::default() };
        let input = json!({ "userText": text });
        let output = testing::call_tool::<parse_youtube_input>(&context, &input).unwrap();
        (output.structured.unwrap(), output.updates[0].value.clone())
    }

    #[test]
    fn s3_14_urls_are_found_and_counted() {
        let (output, noted) =
            parse("https://youtu.be/dQw4w9WgXcQ and youtube.com/shorts/dQw4w9WgXcQ");
        let url = "https://www.youtube.com/watch?v=dQw4w9WgXcQ";
        assert_eq!(output, json!({"videoUrls": [url], "count": 1}));
        assert_eq!(noted, json!({ "parse_youtube_input": output }));
    }

    #[test]
    fn s3_14_a_text_without_a_url_is_no_error() {
        assert_eq!(parse("three days in Kyoto").0, json!({"videoUrls": [], "count": 0}));
    }
}
