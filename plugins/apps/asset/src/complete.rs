//! Completes rows with the securities that the lookup found, and collects the warnings about them.

use serde_json::{Number, Value};

use crate::lookup::{Doubt, Resolved};
use crate::state::{Row, UNKNOWN_TICKER};
use crate::{currency, lot, number, ticker};

/// Warning about a ticker of another country if no service names its currency.
const ASSUMED: &str = "未能确定币种，请核对";

/// Warning about tickers whose form was changed, followed by the changes.
const USUAL_FORM: &str = "股票代码已改为通用写法";

/// Writes the security of each row, and its number of shares. Returns the warnings in the order of
/// the rows, and a last one about all tickers whose form was changed.
pub(crate) fn rows(rows: &mut [Row], resolved: &[Resolved]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut forms: Vec<String> = Vec::new();
    for (row, resolved) in rows.iter_mut().zip(resolved) {
        let written = row.text("ticker").to_owned();
        write(row, resolved, &written);
        warnings.extend(resolved.doubt.and_then(|doubt| doubt_warning(doubt, row, &written)));
        warnings.extend(currency_warning(row, resolved));
        warnings.extend(count_shares(row));
        forms.extend(changed_form(row, &written).filter(|form| !forms.contains(form)));
    }
    if !forms.is_empty() {
        warnings.push(format!("{USUAL_FORM}: {}", forms.join("、")));
    }
    warnings
}

/// Writes the security into the row. Words that were given as a ticker and have no security become
/// the name of a row without a name.
fn write(row: &mut Row, resolved: &Resolved, written: &str) {
    let Some(security) = &resolved.security else {
        if resolved.doubt == Some(Doubt::Unread) && row.is_empty("name") {
            row.set("name", written);
        }
        row.set("ticker", UNKNOWN_TICKER);
        row.set("currency", "");
        return;
    };
    row.set("currency", currency::of(&security.ticker, security.currency.as_deref()));
    row.set("ticker", security.ticker.as_str());
    if row.is_empty("name") {
        row.set("name", security.name.as_str());
    }
}

fn doubt_warning(doubt: Doubt, row: &Row, written: &str) -> Option<String> {
    let (ticker, name) = (row.text("ticker"), row.text("name"));
    Some(match doubt {
        Doubt::Conflict => format!("股票代码与名称不一致，请核对: {ticker} {name}"),
        Doubt::Unverified => format!("未能核实股票代码，请核对: {ticker}"),
        Doubt::Guessed => format!("股票代码不明确，请核对: {written} → {ticker}"),
        // `check_missing` adds a warning with this text.
        Doubt::Unread if name == written => return None,
        Doubt::Unread => format!("未能识别股票代码: {written}"),
    })
}

/// Returns a warning if the currency is an assumption.
fn currency_warning(row: &Row, resolved: &Resolved) -> Option<String> {
    let security = resolved.security.as_ref()?;
    let is_assumed = currency::is_assumed(&security.ticker, security.currency.as_deref());
    let (ticker, currency) = (row.text("ticker"), row.text("currency"));
    is_assumed.then(|| format!("{ASSUMED}: {ticker} {currency}"))
}

/// Returns the given form and the usual form of a ticker if they differ in more than case.
fn changed_form(row: &Row, written: &str) -> Option<String> {
    let ticker = row.text("ticker");
    let is_changed = ticker::normalize(written) == ticker && !written.eq_ignore_ascii_case(ticker);
    is_changed.then(|| format!("{written} → {ticker}"))
}

/// Converts lots into shares. Returns a warning that asks the user for the number of shares if the
/// lot size is unknown.
fn count_shares(row: &mut Row) -> Option<String> {
    let lots = row.take_number("lots")?;
    let size = lot::size(row.text("ticker")).map(f64::from);
    let shares = size.zip(lots.as_f64()).and_then(|(size, lots)| Number::from_f64(size * lots));
    if let Some(shares) = number::normalize(shares) {
        row.set("quantity", Value::Number(shares));
        return None;
    }
    let name = if row.has("name") { row.text("name") } else { row.text("ticker") };
    Some(format!("每手股数不确定，请填写股数: {name} {lots} 手"))
}
