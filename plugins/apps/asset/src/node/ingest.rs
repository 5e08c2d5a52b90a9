//! `ingest`: chooses the input to parse. An image takes precedence over a text, which is then sent
//! along with it.

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

/// Chooses the input to parse: the image if there is one, otherwise the text.
#[node]
pub(crate) fn ingest(_context: &Context, input: Input) -> Result<Update, Failure> {
    let image_data = present(input.image_data);
    let input_type = if image_data.is_some() { InputType::Image } else { InputType::Text };
    let image_data = image_data.as_deref().map(picture::reference).transpose()?;
    Ok(Update { input_type, image_data, text_input: present(input.text_input) })
}

/// Returns the trimmed text, or `None` if it is absent or blank.
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
    fn image_takes_precedence_over_text() {
        let image = json!("blob:00");
        check(json!({"imageData": image}), [json!("image"), image.clone(), json!(null)]);
        check(
            json!({"imageData": image, "textInput": " 昨天的 "}),
            [json!("image"), image, json!("昨天的")],
        );
    }

    #[test]
    fn blank_inputs_are_absent() {
        for blank in [json!(""), json!("  "), json!(null)] {
            check(
                json!({"imageData": blank, "textInput": "买入"}),
                [json!("text"), json!(null), json!("买入")],
            );
        }
        check(json!({}), [json!("text"), json!(null), json!(null)]);
    }

    #[test]
    fn image_bytes_are_stored_as_a_blob() {
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
