//! Extraction of rows, shared by `ext_op` and `ext_hold`: input, request to the model, and update.
//! `document` has what the model returns.

pub(crate) mod document;

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, llm, prompt};

use crate::state::{InputType, ReviewPayload};
use crate::{date, picture};

const IMAGE_QUESTION: &str = include_str!("../prompts/ext.question.md");

const IMAGE_QUESTION_WITH_TEXT: &str = include_str!("../prompts/ext.question_with_text.md");

/// Warning if the model found no row. The user can add rows.
const NOTHING_FOUND: &str = "未提取到任何记录";

/// Input of both nodes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "named after the channels they read")]
pub(crate) struct Input {
    input_type: InputType,
    image_data: Option<String>,
    text_input: Option<String>,
    review_payload: Option<ReviewPayload>,
}

/// Prompts of a node, by type of the input.
pub(crate) struct Prompts {
    pub(crate) image: &'static str,
    pub(crate) text: &'static str,
}

/// Update of both nodes: the rows, and the review payload if the node adds a warning.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<Row> {
    extracted_data: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Requests a document from the model and converts the items that `list` takes from it into rows.
/// `list` also returns the warnings about the items. `schema` is the name of the document's schema.
pub(crate) fn extract<Document, Read, Row>(
    input: Input,
    prompts: &Prompts,
    schema: &str,
    list: impl FnOnce(Document) -> (Vec<Read>, Vec<String>),
) -> Result<Update<Row>, Failure>
where
    Document: DeserializeOwned + JsonSchema,
    Read: Into<Row>,
{
    let request = input.request(prompts)?.schema::<Document>(schema);
    let document: Document = request.complete()?.structured()?;
    let (items, mut warnings) = list(document);
    let extracted_data: Vec<Row> = items.into_iter().map(Into::into).collect();
    if extracted_data.is_empty() {
        warnings.push(NOTHING_FOUND.to_owned());
    }
    let review_payload = ReviewPayload::with_warnings(input.review_payload, warnings);
    Ok(Update { extracted_data, review_payload })
}

impl Input {
    /// Returns the request for the type of the input, without a schema. The prompt contains the
    /// current date, which relative dates such as "yesterday" need.
    fn request(&self, prompts: &Prompts) -> Result<llm::Request, Failure> {
        let today = date::today()?;
        let text = self.text_input.as_deref().unwrap_or_default();
        let request = match (self.input_type, &self.image_data) {
            (InputType::Image, Some(image)) => {
                let question = match text {
                    "" => prompt::fill(IMAGE_QUESTION, &[])?,
                    text => prompt::fill(IMAGE_QUESTION_WITH_TEXT, &[("text", text)])?,
                };
                llm::Request::route("vision")
                    .system(prompt::fill(prompts.image, &[("today", &today)])?)
                    .user(question)
                    .image(picture::part(image)?)
            }
            _ => llm::Request::route("chat")
                .system(prompt::fill(prompts.text, &[("today", &today)])?)
                .user(text),
        };
        Ok(request.temperature(0.0))
    }
}
