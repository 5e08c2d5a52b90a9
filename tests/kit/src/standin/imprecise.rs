//! Imprecise models: correct responses that are distorted, for example by codes that do not exist,
//! prose around JSON, quoted numbers or truncation.
//!
//! With [`Fault::Imprecise`](super::Fault) the stand-in first computes the regular response and
//! then distorts it. The distortion depends on the seed, on the request and on the number of equal
//! requests before it, but not on the order of different requests.

mod document;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    answer::Answer,
    call::Call,
    question::{Ask, Question},
    shape,
};

/// A way in which a response is distorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Imprecision {
    /// A code, id, URL or table does not exist.
    WrongCode,
    /// A field is missing: an optional field, if the schema has one.
    MissingField,
    /// Sentences precede and follow the response.
    Prose,
    /// The response is wrapped in a Markdown code fence.
    Fenced,
    /// A value of an enumeration has another case, or is replaced by a synonym.
    WrongLabel,
    /// The second half of the response is missing.
    CutOff,
    /// Numbers are strings.
    NumbersAsStrings,
    /// JSON objects have fields that were not requested.
    AdditionalFields,
    /// The response is empty.
    Empty,
}

impl Imprecision {
    /// All kinds of distortion.
    pub const ALL: [Self; 9] = [
        Self::WrongCode,
        Self::MissingField,
        Self::Prose,
        Self::Fenced,
        Self::WrongLabel,
        Self::CutOff,
        Self::NumbersAsStrings,
        Self::AdditionalFields,
        Self::Empty,
    ];
}

/// The distortions of a model's responses, with their rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imprecise {
    /// The seed that selects the distorted responses.
    pub seed: u64,
    /// Fraction of the responses that each kind distorts, from 0 to 1. The sum must be at most 1.
    pub rates: BTreeMap<Imprecision, f64>,
    /// Number of requests so far, by the digest of the body.
    #[serde(skip)]
    asked: BTreeMap<[u8; 32], u64>,
    /// The distortion of one response.
    #[serde(skip)]
    drawn: Option<(Imprecision, Draw)>,
}

/// A random number generator with a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Draw(u64);

impl Draw {
    /// Returns the next number below `end`, or zero if `end` is zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or_default()
    }

    fn share(&mut self) -> f64 {
        const BITS: u32 = 53;
        (self.next() >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
    }

    /// Returns the next number of `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Imprecise {
    /// Creates a model that is precise until [`Imprecise::rate`] sets a rate.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Distorts this fraction of the responses, from 0 to 1, in this way.
    pub fn rate(mut self, kind: Imprecision, share: f64) -> Self {
        self.rates.insert(kind, share);
        self
    }

    /// Draws the distortion of the response to one request. Returns `None` if the response is
    /// regular.
    pub(super) fn draw(&mut self, call: &Call) -> Option<Self> {
        call.model.as_ref()?;
        let request = *blake3::hash(&call.body).as_bytes();
        let times = self.asked.entry(request).or_default();
        *times += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes()).update(&request).update(&times.to_le_bytes());
        let mut start = [0; size_of::<u64>()];
        hasher.finalize_xof().fill(&mut start);
        let mut draw = Draw(u64::from_le_bytes(start));
        let mut share = draw.share();
        for (kind, rate) in &self.rates {
            if share < *rate {
                let drawn = Some((*kind, draw));
                return Some(Self { drawn, ..Self::new(self.seed) });
            }
            share -= rate;
        }
        None
    }

    /// Distorts a completion.
    pub(super) fn distort(&self, answer: Answer, question: &Question) -> Answer {
        let Some((kind, mut draw)) = self.drawn else { return answer };
        let Answer { content, asks, .. } = answer;
        let (content, asks) = if asks.is_empty() {
            let (_, schema) = shape::wanted(question);
            (bend(&content, schema.as_ref(), kind, &mut draw), asks)
        } else {
            bend_asks(content, asks, question, kind, &mut draw)
        };
        Answer { content, asks, ..answer }
    }
}

fn bend(content: &str, schema: Option<&Value>, kind: Imprecision, draw: &mut Draw) -> String {
    match kind {
        Imprecision::Prose => text::with_prose(content),
        Imprecision::Fenced => text::fenced(content),
        Imprecision::CutOff => text::first_half(content).to_owned(),
        Imprecision::Empty => String::new(),
        _ => match serde_json::from_str(content) {
            Ok(document @ (Value::Object(_) | Value::Array(_))) => {
                document::distort(document, schema, kind, draw).to_string()
            }
            _ => content.to_owned(),
        },
    }
}

/// Distorts requested tool calls: one of them gets other arguments, or all are dropped.
fn bend_asks(
    content: String,
    mut asks: Vec<Ask>,
    question: &Question,
    kind: Imprecision,
    draw: &mut Draw,
) -> (String, Vec<Ask>) {
    match kind {
        Imprecision::Empty => return (String::new(), Vec::new()),
        Imprecision::Prose | Imprecision::Fenced => return (text::with_prose(&content), asks),
        _ => {}
    }
    let index = draw.below(asks.len());
    if let Some(ask) = asks.get_mut(index) {
        let offer = question.tools.iter().find(|offer| offer.name == ask.name);
        ask.arguments = bend(&ask.arguments, offer.map(|offer| &offer.schema), kind, draw);
    }
    (content, asks)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(mode: &mut Imprecise, text: &str) -> Option<Imprecision> {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        let call = Call::sample("POST", "/v1/chat/completions", &body);
        mode.draw(&call).and_then(|mode| mode.drawn).map(|(kind, _)| kind)
    }

    #[test]
    fn distortions_depend_on_seed_and_request_but_not_on_order() {
        let mode = || Imprecise::new(7).rate(Imprecision::Empty, 0.3).rate(Imprecision::Prose, 0.2);
        let texts: Vec<String> = (0..200).map(|number| format!("question {number}")).collect();
        let (mut forward, mut backward, mut other) = (mode(), mode(), mode());
        other.seed = 8;
        let first: Vec<_> = texts.iter().map(|text| drawn(&mut forward, text)).collect();
        let mut second: Vec<_> =
            texts.iter().rev().map(|text| drawn(&mut backward, text)).collect();
        second.reverse();
        assert_eq!(first, second);
        assert_ne!(first, texts.iter().map(|text| drawn(&mut other, text)).collect::<Vec<_>>());
        let count = |kind| first.iter().filter(|drawn| **drawn == kind).count();
        assert!((40..=80).contains(&count(Some(Imprecision::Empty))), "{first:?}");
        assert!((20..=60).contains(&count(Some(Imprecision::Prose))), "{first:?}");
    }

    #[test]
    fn a_repeated_request_may_get_another_distortion() {
        let mut mode = Imprecise::new(1).rate(Imprecision::Empty, 0.5);
        let asked: Vec<_> = (0..20).map(|_| drawn(&mut mode, "again")).collect();
        assert!(asked.contains(&None) && asked.contains(&Some(Imprecision::Empty)), "{asked:?}");
    }

    #[test]
    fn requests_to_other_services_are_not_distorted() {
        let mut mode = Imprecise::new(1).rate(Imprecision::Empty, 1.0);
        assert_eq!(mode.draw(&Call::sample("GET", "/search", &Value::Null)), None);
    }

    #[test]
    fn one_of_the_tool_calls_is_distorted() {
        let ask = |amount: u32| Ask {
            id: "c".to_owned(),
            name: "save".to_owned(),
            arguments: json!({"amount": amount, "type": "consume"}).to_string(),
        };
        let bend = |kind| {
            let question = Question::default();
            bend_asks(String::new(), vec![ask(1)], &question, kind, &mut Draw(3))
        };
        assert_eq!(bend(Imprecision::Empty), (String::new(), Vec::new()));
        let (_, asks) = bend(Imprecision::NumbersAsStrings);
        assert_eq!(asks[0].arguments, r#"{"amount":"1","type":"consume"}"#);
        let (_, asks) = bend(Imprecision::CutOff);
        assert_eq!(asks[0].arguments, r#"{"amount":1,"typ"#[..14]);
        let (said, asks) = bend(Imprecision::Prose);
        assert!(!said.is_empty() && asks == [ask(1)], "{said}");
    }

    #[test]
    fn kinds_and_rates_are_parsed_from_json() {
        let document = json!({"seed": 3, "rates": {"wrong_code": 0.25, "cut_off": 0.5}});
        let mode: Imprecise = serde_json::from_value(document).unwrap();
        let expected =
            Imprecise::new(3).rate(Imprecision::WrongCode, 0.25).rate(Imprecision::CutOff, 0.5);
        assert_eq!(mode, expected);
        serde_json::from_value::<Imprecise>(json!({"seed": 3, "rates": {"vague": 1}})).unwrap_err();
    }
}
