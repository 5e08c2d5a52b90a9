//! `ingest`: which input is parsed. A picture goes before a text, which then explains it.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::picture;
use crate::state::InputType;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    image_data: Option<String>,
    text_input: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    input_type: InputType,
    image_data: Option<String>,
    text_input: Option<String>,
}

/// Decides which input is parsed: the picture if there is one, else the text.
#[node]
pub(crate) fn ingest(_context: &Context, input: Input) -> Result<Update, Failure> {
    let image_data = present(input.image_data);
    let input_type = if image_data.is_some() { InputType::Image } else { InputType::Text };
    let image_data = image_data.as_deref().map(picture::reference).transpose()?;
    Ok(Update { input_type, image_data, text_input: present(input.text_input) })
}

/// Blank is absent.
fn present(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::ingest;

    fn check(input: Value, expected: [Value; 3]) {
        let host = FakeHost::new();
        let decision = host.run(|| run_node::<ingest>(&Context::default(), &input)).unwrap();
        let written = ["inputType", "imageData", "textInput"]
            .map(|channel| decision.update(channel).cloned().unwrap());
        assert_eq!(written, expected, "{input}");
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn a_picture_goes_before_a_text() {
        let image = json!("blob:00");
        check(json!({"imageData": image}), [json!("image"), image.clone(), json!(null)]);
        check(
            json!({"imageData": image, "textInput": " 昨天的 "}),
            [json!("image"), image, json!("昨天的")],
        );
    }

    #[test]
    fn blank_is_absent() {
        for blank in [json!(""), json!("  "), json!(null)] {
            check(
                json!({"imageData": blank, "textInput": "买入"}),
                [json!("text"), json!(null), json!("买入")],
            );
        }
        check(json!({}), [json!("text"), json!(null), json!(null)]);
    }

    #[test]
    fn bytes_go_to_the_blob_store() {
        let host = FakeHost::new();
        let run = |url: &str| {
            let input = json!({"imageData": url});
            host.run(|| run_node::<ingest>(&Context::default(), &input))
        };
        let decision = run("data:image/png;base64,iVBORw==").unwrap();
        let reference = decision.update("imageData").and_then(Value::as_str).unwrap().to_owned();
        assert!(reference.starts_with("blob:"), "{reference}");
        assert_eq!(run("data:text/plain;base64,aGk=").unwrap_err().code, "invalid");
    }
}
