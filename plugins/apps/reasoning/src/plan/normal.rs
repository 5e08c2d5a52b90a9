//! Normalizes the plan of a model: maps names to fields, maps words to those of the data service,
//! and limits numbers to their ranges. Only the model decides about conditions: normalization adds
//! none, and changes the meaning of none.

use wattle_plugin::prelude::{Failure, Value};

use crate::catalog::Catalog;
use crate::plan::operator::{Operator, Operators, unsupported};
use crate::plan::{Filter, Metric, Mode, Plan, Wanted, WantedFilter, WantedMetric};

/// Default number of rows in a page.
const PAGE_SIZE: i64 = 20;

/// Maximum number of rows in a page. A result is copied as a whole into state, database and
/// response.
const MAX_PAGE_SIZE: i64 = 200;

/// Normalizes a plan for the fields of a catalog and the operators of the data service.
///
/// # Errors
///
/// [`UNSUPPORTED`](super::UNSUPPORTED) if the data service cannot express a condition.
pub(crate) fn normalize(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    operators: &Operators,
) -> Result<Plan, Failure> {
    let mode = mode(wanted);
    let (filters, ignored) = filters(wanted, catalog, operators)?;
    let group_by = group_by(wanted, catalog, mode);
    let metrics = metrics(wanted, catalog, mode);
    let sort_field = sort_field(wanted, catalog, mode, &group_by, &metrics);
    Ok(Plan {
        mode,
        filters,
        ignored,
        sort_order: sort_order(wanted, mode),
        page: wanted.page.unwrap_or(1).max(1),
        page_size: wanted
            .page_size
            .filter(|size| *size > 0)
            .unwrap_or(PAGE_SIZE)
            .min(MAX_PAGE_SIZE),
        group_by,
        metrics,
        sort_field,
    })
}

fn mode(wanted: &Wanted) -> Mode {
    match wanted.mode.trim().to_lowercase().replace('_', "-").as_str() {
        "group-analysis" => Mode::GroupAnalysis,
        _ => Mode::Query,
    }
}

/// Returns the conditions on known fields, and those on unknown fields, which are reported.
fn filters(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    operators: &Operators,
) -> Result<(Vec<Filter>, Vec<WantedFilter>), Failure> {
    let (mut filters, mut ignored) = (Vec::new(), Vec::new());
    for wanted in wanted.filters.iter().flatten().filter(|filter| !is_open(filter)) {
        let Some(field) = catalog.field(&wanted.field) else {
            ignored.push(wanted.clone());
            continue;
        };
        let label = catalog.label(field);
        let Some(operator) = Operator::read(&wanted.op) else {
            return Err(unsupported(label, wanted.op.trim(), &wanted.value));
        };
        filters.extend(operators.express(field, label, operator, &wanted.value)?);
    }
    Ok((filters, ignored))
}

/// Returns true if a condition has no value, as a model writes it for a field that it leaves open.
/// A word that names no operator can be a condition without a value, such as `is_null`.
fn is_open(wanted: &WantedFilter) -> bool {
    !has_value(wanted) && Operator::read(&wanted.op).is_some()
}

fn has_value(wanted: &WantedFilter) -> bool {
    match &wanted.value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn group_by(wanted: &Wanted, catalog: &Catalog<'_>, mode: Mode) -> Vec<String> {
    if mode == Mode::Query {
        return Vec::new();
    }
    let known = wanted.group_by.iter().filter_map(|name| catalog.field(name));
    let mut fields: Vec<String> = known.map(str::to_owned).collect();
    fields.dedup();
    if fields.is_empty() {
        fields.extend(catalog.first_field().map(str::to_owned));
    }
    fields
}

fn metrics(wanted: &Wanted, catalog: &Catalog<'_>, mode: Mode) -> Vec<Metric> {
    if mode == Mode::Query {
        return Vec::new();
    }
    let metrics: Vec<Metric> =
        wanted.metrics.iter().map(|wanted| metric(wanted, catalog)).collect();
    if metrics.is_empty() { vec![metric(&WantedMetric::default(), catalog)] } else { metrics }
}

/// Returns a metric. Every aggregation except `count` requires a field; without one, rows are
/// counted.
fn metric(wanted: &WantedMetric, catalog: &Catalog<'_>) -> Metric {
    let field = wanted.field.as_deref().and_then(|name| catalog.field(name));
    let agg = ["sum", "avg", "min", "max"]
        .into_iter()
        .find(|agg| wanted.agg.trim().eq_ignore_ascii_case(agg) && field.is_some())
        .unwrap_or("count");
    let field = field.filter(|_| agg != "count");
    let alias = wanted.alias.as_deref().map(str::trim).filter(|alias| !alias.is_empty());
    let alias = alias.map_or_else(
        || field.map_or_else(|| agg.to_owned(), |field| format!("{agg}_{field}")),
        str::to_owned,
    );
    Metric { agg, field: field.map(str::to_owned), alias }
}

fn sort_field(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    mode: Mode,
    group_by: &[String],
    metrics: &[Metric],
) -> Option<String> {
    let name = wanted.sort_field.as_deref().unwrap_or_default().trim();
    let field = catalog.field(name).map(str::to_owned);
    if mode == Mode::Query {
        return field;
    }
    let alias = metrics.iter().find(|metric| metric.alias == name).map(|m| m.alias.clone());
    let group = field.filter(|field| group_by.contains(field));
    alias.or(group).or_else(|| metrics.first().map(|metric| metric.alias.clone()))
}

/// Returns the sort order, which by default is ascending for rows and descending for groups.
fn sort_order(wanted: &Wanted, mode: Mode) -> &'static str {
    match wanted.sort_order.as_deref().unwrap_or_default().trim().to_lowercase().as_str() {
        "asc" => "asc",
        "desc" => "desc",
        _ if mode == Mode::Query => "asc",
        _ => "desc",
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::normalize;
    use crate::catalog::Catalog;
    use crate::plan::operator::Operators;
    use crate::plan::{Plan, UNSUPPORTED, Wanted};
    use crate::testing::attributes;

    fn plan(wanted: Value) -> Plan {
        let wanted: Wanted = serde_json::from_value(wanted).unwrap();
        let attributes = attributes();
        normalize(&wanted, &Catalog::new(&attributes), &Operators::usual()).unwrap()
    }

    /// Returns the arguments of the normalized plan.
    fn check(wanted: Value) -> Value {
        plan(wanted).arguments("customer")
    }

    #[test]
    fn empty_plan_requests_the_first_page_of_rows() {
        assert_eq!(
            check(json!({})),
            json!({"class_id": "customer", "filters": [], "page": 1, "page_size": 20,
                   "sort_order": "asc"})
        );
    }

    #[test]
    fn page_and_page_size_are_limited() {
        for (page, size, expected) in [
            (json!(0), json!(0), (1, 20)),
            (json!(-3), json!(9_999), (1, 200)),
            (json!(3), json!(5), (3, 5)),
        ] {
            let plan = check(json!({"page": page, "page_size": size}));
            assert_eq!(
                (plan["page"].as_i64(), plan["page_size"].as_i64()),
                (Some(expected.0), Some(expected.1))
            );
        }
    }

    #[test]
    fn filters_have_known_fields_and_operators() {
        let filters = json!([
            {"field": "联系电话", "op": "=", "value": "13800138000"},
            {"field": "customer_region", "op": "LIKE", "value": "华"},
            {"field": "level", "op": "in", "value": "A"},
            {"field": "level", "op": "eq", "value": ["A", "B"]},
            {"field": "shoe_size", "op": "eq", "value": 42},
            {"field": "region", "op": "eq", "value": " "},
            {"field": "region", "op": "eq", "value": null},
        ]);
        assert_eq!(
            check(json!({"filters": filters}))["filters"],
            json!([
                {"field": "phone", "op": "eq", "value": "13800138000"},
                {"field": "region", "op": "like", "value": "华"},
                {"field": "level", "op": "in", "value": ["A"]},
                {"field": "level", "op": "in", "value": ["A", "B"]},
            ])
        );
    }

    #[test]
    fn s1_48_the_refusal_of_an_unknown_operator_quotes_the_operator_and_value_of_the_model() {
        let refused = |op: &str, value: Value| {
            let filter = json!({"field": "customer_phone", "op": op, "value": value});
            let wanted = serde_json::from_value(json!({"filters": [filter]})).unwrap();
            let attributes = attributes();
            let catalog = Catalog::new(&attributes);
            let failure = normalize(&wanted, &catalog, &Operators::usual()).unwrap_err();
            assert_eq!(failure.code.as_str(), UNSUPPORTED);
            failure.details.unwrap()["condition"].clone()
        };
        assert_eq!(refused(" exclude ", json!("1")), "联系电话 exclude 1");
        assert_eq!(refused("between", json!([1, 5])), "联系电话 between 1、5");
        assert_eq!(refused("is_null", Value::Null), "联系电话 is_null");
        let unknown_field = json!([{"field": "shoe_size", "op": "exclude", "value": 42}]);
        assert_eq!(plan(json!({"filters": unknown_field})).ignored[0].op, "exclude");
    }

    #[test]
    fn s1_48_conditions_are_those_of_the_model() {
        let said = json!({"filters": [{"field": "电话", "op": "eq", "value": "1"},
                                      {"field": "联系电话", "op": "eq", "value": "13800138000"}]});
        let plan = plan(said);
        assert_eq!(plan.filters.len(), 1);
        assert_eq!((&*plan.filters[0].field, plan.filters[0].op), ("phone", "eq"));
        assert_eq!(plan.ignored[0].field, "电话", "what is not executed is reported");
        assert!(check(json!({}))["filters"].as_array().unwrap().is_empty(), "nothing is added");
    }

    #[test]
    fn groups_count_by_the_first_field_by_default() {
        let plan = check(json!({"mode": "group_analysis"}));
        assert_eq!(plan["group_by"], json!(["customer_id"]));
        assert_eq!(plan["metrics"], json!([{"agg": "count", "alias": "count"}]));
        assert_eq!((&plan["sort_by"], &plan["sort_order"]), (&json!("count"), &json!("desc")));
    }

    #[test]
    fn groups_and_metrics_are_normalized() {
        let plan = check(json!({"mode": "group-analysis", "group_by": ["客户区域", "color"],
                   "metrics": [{"agg": "SUM", "field": "累计金额"}, {"agg": "sum", "field": "color"},
                               {"agg": "median", "field": "amount", "alias": "m"}],
                   "sort_field": "region", "sort_order": "ASC"}));
        assert_eq!(plan["group_by"], json!(["region"]));
        assert_eq!(
            plan["metrics"],
            json!([{"agg": "sum", "field": "amount", "alias": "sum_amount"},
                   {"agg": "count", "alias": "count"}, {"agg": "count", "alias": "m"}])
        );
        assert_eq!((&plan["sort_by"], &plan["sort_order"]), (&json!("region"), &json!("asc")));
    }
}
