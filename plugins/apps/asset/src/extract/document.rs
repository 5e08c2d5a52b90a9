//! The documents that a model returns, and their conversion into rows.

use serde_json::Number;
use wattle_plugin::prelude::{Deserialize, JsonSchema};

use crate::state::{Action, HoldingItem, OperationItem};
use crate::{date, number};

/// Warning if the model wrote something else than a date. `check_missing` sets the current date.
const UNREAD_DATE: &str = "未能识别交易日期，已填今天，请核对";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OperationParse {
    pub(crate) operations: Vec<Operation>,
}

/// One trade as a model reads it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation {
    ticker: Option<String>,
    name: Option<String>,
    action: Action,
    quantity: Option<Number>,
    quantity_unit: Option<Unit>,
    price: Option<Number>,
    traded_at: Option<String>,
    memo: Option<String>,
}

impl Operation {
    /// Returns a warning with the security and its date if the date cannot be parsed.
    pub(crate) fn date_warning(&self) -> Option<String> {
        let written = note(self.traded_at.clone())?;
        if date::normalize(&written).is_some() {
            return None;
        }
        let mut names = [&self.name, &self.ticker].into_iter().flatten().map(|name| name.trim());
        let warning = match names.find(|name| !name.is_empty()) {
            Some(name) => format!("{UNREAD_DATE}: {name} {written}"),
            None => format!("{UNREAD_DATE}: {written}"),
        };
        Some(warning)
    }
}

impl From<Operation> for OperationItem {
    fn from(read: Operation) -> Self {
        let (quantity, lots) = quantity(read.quantity, read.quantity_unit);
        Self {
            ticker: text(read.ticker),
            name: text(read.name),
            action: read.action,
            quantity,
            lots,
            price: number::normalize(read.price),
            currency: String::new(),
            traded_at: day(read.traded_at),
            memo: note(read.memo),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct HoldingParse {
    pub(crate) holdings: Vec<Holding>,
}

/// One holding as a model reads it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holding {
    ticker: Option<String>,
    name: Option<String>,
    quantity: Option<Number>,
    quantity_unit: Option<Unit>,
    cost_price: Option<Number>,
}

impl From<Holding> for HoldingItem {
    fn from(read: Holding) -> Self {
        let (quantity, lots) = quantity(read.quantity, read.quantity_unit);
        Self {
            ticker: text(read.ticker),
            name: text(read.name),
            quantity,
            lots,
            cost_price: number::normalize(read.cost_price),
            currency: String::new(),
        }
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
fn quantity(value: Option<Number>, unit: Option<Unit>) -> (Option<Number>, Option<Number>) {
    let value = number::normalize(value);
    if unit == Some(Unit::Lot) { (None, value) } else { (value, None) }
}

/// Returns a trimmed text, which is empty if the value is absent.
fn text(value: Option<String>) -> String {
    value.map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Returns a trimmed text, or `None` if it is absent or blank.
fn note(value: Option<String>) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

/// Returns a date as `YYYY-MM-DD`, or `None` if the value is absent or no date.
fn day(value: Option<String>) -> Option<String> {
    value.as_deref().and_then(date::normalize)
}
