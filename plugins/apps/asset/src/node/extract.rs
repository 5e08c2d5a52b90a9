//! What `ext_op` and `ext_hold` have in common: the input, which model reads it, how a read value
//! becomes a field of a row, and what is written.

use serde::de::DeserializeOwned;
use serde_json::Number;
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, llm, prompt};

use crate::state::{InputType, ReviewPayload};
use crate::{date, picture};

/// Said when a model found no row; the user may add some.
const NOTHING_FOUND: &str = "未提取到任何记录";

/// What both nodes read.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "named after the channels they read")]
pub(crate) struct Input {
    input_type: InputType,
    image_data: Option<String>,
    text_input: Option<String>,
    review_payload: Option<ReviewPayload>,
}

/// The prompts of one node, for either input.
pub(crate) struct Prompts {
    pub(crate) image: &'static str,
    pub(crate) text: &'static str,
}

/// What both nodes write: rows, and the working copy with a warning if there is none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<Row> {
    extracted_data: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Asks the model for a document whose schema has this name, and makes rows of what `list` finds
/// in it.
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
    /// The request to the model that fits the input, without a schema yet. Relative dates such as
    /// yesterday need today.
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

    /// The working copy with a warning, if nothing was found.
    fn warning(self, rows: usize) -> Option<ReviewPayload> {
        (rows == 0).then(|| ReviewPayload::warned(self.review_payload, NOTHING_FOUND))
    }
}

/// What a quantity counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Share,
    Lot,
}

/// A quantity as shares, or as lots whose size depends on the security.
pub(crate) fn quantity(
    value: Option<Number>,
    unit: Option<Unit>,
) -> (Option<Number>, Option<Number>) {
    let value = number(value);
    if unit == Some(Unit::Lot) { (None, value) } else { (value, None) }
}

/// A text that may be absent.
pub(crate) fn text(value: Option<String>) -> String {
    value.map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// A text that is left out if it is absent.
pub(crate) fn note(value: Option<String>) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

/// A date in the form that the app uses; nothing if it is none.
pub(crate) fn day(value: Option<String>) -> Option<String> {
    value.as_deref().and_then(date::normalize)
}

/// Whole numbers stay whole: a share count is shown as `100`, not `100.0`.
pub(crate) fn number(value: Option<Number>) -> Option<Number> {
    let value = value?;
    match value.as_f64() {
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            Some(Number::from(float as i64))
        }
        _ => Some(value),
    }
}
