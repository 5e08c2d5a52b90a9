//! Extraction of rows, shared by `ext_op` and `ext_hold`: input, request to the model, conversion
//! of values, and update.

use serde::de::DeserializeOwned;
use serde_json::Number;
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, llm, prompt};

use crate::state::{InputType, ReviewPayload};
use crate::{date, picture};

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

/// Update of both nodes: the rows, and a warning if there are none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<Row> {
    extracted_data: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Requests a document from the model and converts the items that `list` takes from it into rows.
/// `schema` is the name of the document's schema.
pub(crate) fn extract<Document, Read, Row>(
    input: Input,
    prompts: &Prompts,
    schema: &str,
    list: impl FnOnce(Document) -> Vec<Read>,
) -> Result<Update<Row>, Failure>
where
    Document: DeserializeOwned + JsonSchema,
    Read: Into<Row>,
{
    let request = input.request(prompts)?.schema::<Document>(schema);
    let document: Document = request.complete()?.structured()?;
    let extracted_data: Vec<Row> = list(document).into_iter().map(Into::into).collect();
    let review_payload = input.warning(extracted_data.len());
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
                    "" => "请提取图片中的内容。".to_owned(),
                    text => format!("请提取图片中的内容。用户的附加文字：{text}"),
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

    /// Returns the review payload with a warning if there are no rows.
    fn warning(self, rows: usize) -> Option<ReviewPayload> {
        (rows == 0).then(|| ReviewPayload::warned(self.review_payload, NOTHING_FOUND))
    }
}

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Share,
    Lot,
}

/// Returns a quantity as shares, or as lots, whose size depends on the security.
pub(crate) fn quantity(
    value: Option<Number>,
    unit: Option<Unit>,
) -> (Option<Number>, Option<Number>) {
    let value = number(value);
    if unit == Some(Unit::Lot) { (None, value) } else { (value, None) }
}

/// Returns a trimmed text, which is empty if the value is absent.
pub(crate) fn text(value: Option<String>) -> String {
    value.map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Returns a trimmed text, or `None` if it is absent or blank.
pub(crate) fn note(value: Option<String>) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

/// Returns a date as `YYYY-MM-DD`, or `None` if the value is absent or no date.
pub(crate) fn day(value: Option<String>) -> Option<String> {
    value.as_deref().and_then(date::normalize)
}

/// Converts floats without a fraction into integers, so that a number of shares is shown as `100`
/// and not as `100.0`.
pub(crate) fn number(value: Option<Number>) -> Option<Number> {
    let value = value?;
    match value.as_f64() {
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            Some(Number::from(float as i64))
        }
        _ => Some(value),
    }
}
