//! Normalizes the plan of a model: maps names to fields, maps words to those of the data service,
//! and limits numbers to their ranges. Only the model decides about conditions: normalization adds
//! none, and changes the meaning of none.

use wattle_plugin::prelude::{Failure, Value};

use crate::catalog::Catalog;
use crate::plan::operator::{Operator, Operators, unsupported};
use crate::plan::unknown::{Part, Unknown};
use crate::plan::{Filter, IgnoredFilter, Metric, Mode, Plan, Wanted, WantedFilter, WantedMetric};

/// Default number of rows in a page.
const PAGE_SIZE: i64 = 20;

/// Maximum number of rows in a page. A result is copied as a whole into state, database and
/// response.
const MAX_PAGE_SIZE: i64 = 200;

/// The aggregation that requires no field.
const COUNT: &str = "count";

/// Each aggregation with the other forms that models write.
const AGGREGATIONS: &[(&str, &[&str])] = &[
    (COUNT, &["", "count(*)"]),
    ("sum", &["total"]),
    ("avg", &["average", "mean"]),
    ("min", &["minimum"]),
    ("max", &["maximum"]),
];

/// Normalizes a plan for the fields of a catalog and the operators of the data service.
///
/// # Errors
///
/// [`UNSUPPORTED`](super::UNSUPPORTED) if the data service cannot express a condition,
/// [`UNKNOWN_WORD`](super::UNKNOWN_WORD) for each plan of which [`unknown_words`] returns a word.
pub(crate) fn normalize(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    operators: &Operators,
) -> Result<Plan, Failure> {
    let refused = |unknown: Unknown| unknown.failure();
    let mode = mode(wanted).map_err(refused)?;
    let (filters, ignored) = filters(wanted, catalog, operators)?;
    let group_by = group_by(wanted, catalog, mode).map_err(refused)?;
    let metrics = metrics(wanted, catalog, mode).map_err(refused)?;
    let sort_field = sort_field(wanted, catalog, mode, &group_by, &metrics).map_err(refused)?;
    Ok(Plan {
        mode,
        filters,
        ignored,
        sort_order: sort_order(wanted, mode).map_err(refused)?,
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

/// Returns the words of a plan that name nothing, apart from those of conditions. The mode decides
/// which other words the plan needs, so they are omitted if the mode is unknown. The sort field is
/// omitted if the groups or metrics, which it may name, are unknown.
pub(crate) fn unknown_words(wanted: &Wanted, catalog: &Catalog<'_>) -> Vec<Unknown> {
    let mode = match mode(wanted) {
        Ok(mode) => mode,
        Err(unknown) => return vec![unknown],
    };
    let group_by = group_by(wanted, catalog, mode);
    let metrics = metrics(wanted, catalog, mode);
    let sort_field = match (&group_by, &metrics) {
        (Ok(group_by), Ok(metrics)) => sort_field(wanted, catalog, mode, group_by, metrics).err(),
        _ => None,
    };
    let unknown = [group_by.err(), metrics.err(), sort_field, sort_order(wanted, mode).err()];
    unknown.into_iter().flatten().collect()
}

fn mode(wanted: &Wanted) -> Result<Mode, Unknown> {
    let word = wanted.mode.trim();
    match word.to_lowercase().replace(['_', ' '], "-").as_str() {
        "" | "query" => Ok(Mode::Query),
        "group-analysis" => Ok(Mode::GroupAnalysis),
        _ => Err(Unknown::new(Part::Mode, word)),
    }
}

/// Returns the conditions on known fields, and those on unknown fields, which are reported.
fn filters(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    operators: &Operators,
) -> Result<(Vec<Filter>, Vec<IgnoredFilter>), Failure> {
    let (mut filters, mut ignored) = (Vec::new(), Vec::new());
    for wanted in wanted.filters.iter().flatten().filter(|filter| !is_open(filter)) {
        let Some(field) = catalog.field(&wanted.field) else {
            ignored.push(IgnoredFilter::from(wanted));
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

fn group_by(wanted: &Wanted, catalog: &Catalog<'_>, mode: Mode) -> Result<Vec<String>, Unknown> {
    if mode == Mode::Query {
        return Ok(Vec::new());
    }
    let (mut fields, mut unknown) = (Vec::<String>::new(), Vec::new());
    for name in wanted.group_by.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        match catalog.field(name) {
            Some(field) if fields.iter().any(|known| known == field) => {}
            Some(field) => fields.push(field.to_owned()),
            None => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        return Err(Unknown::new(Part::Groups, unknown.join("、")));
    }
    if fields.is_empty() {
        fields.extend(catalog.first_field().map(str::to_owned));
    }
    Ok(fields)
}

fn metrics(wanted: &Wanted, catalog: &Catalog<'_>, mode: Mode) -> Result<Vec<Metric>, Unknown> {
    if mode == Mode::Query {
        return Ok(Vec::new());
    }
    let (mut metrics, mut unknown) = (Vec::new(), Vec::new());
    for wanted in &wanted.metrics {
        match metric(wanted, catalog) {
            Ok(metric) => add(&mut metrics, metric),
            Err(words) => unknown.push(words),
        }
    }
    if !unknown.is_empty() {
        return Err(Unknown::new(Part::Metrics, unknown.join("、")));
    }
    if metrics.is_empty() {
        metrics.push(Metric { agg: COUNT, field: None, alias: COUNT.to_owned() });
    }
    Ok(metrics)
}

/// Adds a metric unless the plan has it. A result has one value per alias, so a metric with the
/// alias of another one gets its default alias, with a number if another metric has that one.
fn add(metrics: &mut Vec<Metric>, mut metric: Metric) {
    let default = default_alias(metric.agg, metric.field.as_deref());
    let is_other = |known: &Metric| known.agg != metric.agg || known.field != metric.field;
    let is_free =
        |alias: &String| !metrics.iter().any(|known| known.alias == *alias && is_other(known));
    let numbered = (2..).map(|number| format!("{default}_{number}"));
    let mut aliases = [metric.alias.clone(), default.clone()].into_iter().chain(numbered);
    if let Some(alias) = aliases.find(is_free) {
        metric.alias = alias;
    }
    if !metrics.contains(&metric) {
        metrics.push(metric);
    }
}

/// Returns a metric. Every aggregation except `count` requires a field.
///
/// # Errors
///
/// The field and the aggregation, as words for the user, if the aggregation is unknown or lacks its
/// field.
fn metric(wanted: &WantedMetric, catalog: &Catalog<'_>) -> Result<Metric, String> {
    let name = wanted.field.as_deref().unwrap_or_default().trim();
    let field = catalog.field(name);
    let agg = aggregation(&wanted.agg).filter(|agg| *agg == COUNT || field.is_some());
    let Some(agg) = agg else {
        let label = field.map_or(name, |field| catalog.label(field));
        return Err(format!("{label} {}", wanted.agg.trim()).trim_start().to_owned());
    };
    let field = field.filter(|_| agg != COUNT);
    let alias = wanted.alias.as_deref().map(str::trim).filter(|alias| !alias.is_empty());
    let alias = alias.map_or_else(|| default_alias(agg, field), str::to_owned);
    Ok(Metric { agg, field: field.map(str::to_owned), alias })
}

/// Returns the alias of a metric for which the plan has none.
fn default_alias(agg: &str, field: Option<&str>) -> String {
    field.map_or_else(|| agg.to_owned(), |field| format!("{agg}_{field}"))
}

/// Returns the aggregation that a word names, or `None` if it names none. An empty word is `count`.
fn aggregation(word: &str) -> Option<&'static str> {
    let word = word.trim().to_lowercase();
    let is_meant =
        |(name, others): &&(&str, &[&str])| *name == word || others.contains(&word.as_str());
    AGGREGATIONS.iter().find(is_meant).map(|(name, _)| *name)
}

/// Returns the field by which rows are sorted, or the alias or field by which groups are sorted. A
/// field of a metric means the alias of the metric.
fn sort_field(
    wanted: &Wanted,
    catalog: &Catalog<'_>,
    mode: Mode,
    group_by: &[String],
    metrics: &[Metric],
) -> Result<Option<String>, Unknown> {
    let name = wanted.sort_field.as_deref().unwrap_or_default().trim();
    if name.is_empty() {
        return Ok(metrics.first().map(|metric| metric.alias.clone()));
    }
    let field = catalog.field(name).map(str::to_owned);
    let found = match mode {
        Mode::Query => field,
        Mode::GroupAnalysis => {
            let named = metrics.iter().find(|metric| metric.alias == name);
            let group = field.clone().filter(|field| group_by.contains(field));
            let of_field = metrics.iter().find(|metric| field.is_some() && metric.field == field);
            let alias = |metric: &Metric| metric.alias.clone();
            named.map(alias).or(group).or_else(|| of_field.map(alias))
        }
    };
    found.map(Some).ok_or_else(|| Unknown::new(Part::SortField, name))
}

/// Returns the sort order, which by default is ascending for rows and descending for groups.
fn sort_order(wanted: &Wanted, mode: Mode) -> Result<&'static str, Unknown> {
    let word = wanted.sort_order.as_deref().unwrap_or_default().trim();
    match word.to_lowercase().as_str() {
        "asc" | "ascending" => Ok("asc"),
        "" if mode == Mode::Query => Ok("asc"),
        "desc" | "descending" | "" => Ok("desc"),
        _ => Err(Unknown::new(Part::SortOrder, word)),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{normalize, unknown_words};
    use crate::catalog::Catalog;
    use crate::plan::operator::Operators;
    use crate::plan::unknown::{UNKNOWN_WORD, Unknown};
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
            assert_eq!(plan["page"].as_i64(), Some(expected.0));
            assert_eq!(plan["page_size"].as_i64(), Some(expected.1));
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
    fn s1_48_an_ignored_condition_without_a_value_fits_the_described_schema() {
        let said = json!({"filters": [{"field": "shoe_size", "op": "is_null"}]});
        assert_eq!(plan(said).ignored[0].value, Value::Null);
        let document = include_str!("../../openapi.json");
        let document: Value = serde_json::from_str(document).unwrap();
        let plan = &document["components"]["schemas"]["Plan"]["properties"]["ignored"];
        assert_eq!(plan["items"], json!({"$ref": "#/components/schemas/IgnoredFilter"}));
        let value = document.pointer("/components/schemas/IgnoredFilter/properties/value/type");
        assert!(value.unwrap().as_array().unwrap().contains(&json!("null")), "{value:?}");
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
        let plan = check(json!({"mode": "group-analysis", "group_by": ["客户区域", " "],
                   "metrics": [{"agg": "SUM", "field": "累计金额"}, {"agg": "average", "field": "amount"},
                               {"agg": "", "field": "amount"}, {"agg": "count(*)", "alias": "n"}],
                   "sort_field": "region", "sort_order": "ASC"}));
        assert_eq!(plan["group_by"], json!(["region"]));
        assert_eq!(
            plan["metrics"],
            json!([{"agg": "sum", "field": "amount", "alias": "sum_amount"},
                   {"agg": "avg", "field": "amount", "alias": "avg_amount"},
                   {"agg": "count", "alias": "count"}, {"agg": "count", "alias": "n"}])
        );
        assert_eq!((&plan["sort_by"], &plan["sort_order"]), (&json!("region"), &json!("asc")));
    }

    #[test]
    fn each_metric_has_an_alias_of_its_own() {
        let plan = check(json!({"mode": "group-analysis", "group_by": ["region"],
                   "metrics": [{"agg": "sum", "field": "amount", "alias": "x"},
                               {"agg": "avg", "field": "累计金额", "alias": "x"},
                               {"agg": "total", "field": "customer_amount", "alias": "x"}]}));
        assert_eq!(
            plan["metrics"],
            json!([{"agg": "sum", "field": "amount", "alias": "x"},
                   {"agg": "avg", "field": "amount", "alias": "avg_amount"}])
        );
    }

    #[test]
    fn default_alias_of_another_metric_gets_a_number() {
        let plan = check(json!({"mode": "group-analysis", "group_by": ["region"],
                   "metrics": [{"agg": "sum", "field": "amount", "alias": "avg_amount"},
                               {"agg": "avg", "field": "amount"}]}));
        assert_eq!(
            plan["metrics"],
            json!([{"agg": "sum", "field": "amount", "alias": "avg_amount"},
                   {"agg": "avg", "field": "amount", "alias": "avg_amount_2"}])
        );
    }

    #[test]
    fn groups_are_by_each_field_once() {
        let plan =
            check(json!({"mode": "group-analysis", "group_by": ["region", "level", "客户区域"]}));
        assert_eq!(plan["group_by"], json!(["region", "level"]));
    }

    #[test]
    fn groups_are_sorted_by_the_metric_of_a_field() {
        let plan = check(json!({"mode": "group-analysis", "group_by": ["region"],
                   "metrics": [{"agg": "count"}, {"agg": "sum", "field": "amount", "alias": "sum"}],
                   "sort_field": "累计金额"}));
        assert_eq!(plan["sort_by"], "sum");
    }

    #[test]
    fn s1_50_unknown_words_are_refused_and_never_a_default() {
        let groups = |field: &str, value: Value| {
            let mut plan = json!({"mode": "group-analysis"});
            plan[field] = value;
            plan
        };
        let metric =
            |agg: &str, field: &str| groups("metrics", json!([{"agg": agg, "field": field}]));
        for (plan, part, words) in [
            (json!({"mode": "pivot", "sort_order": "up"}), "查询方式", "pivot"),
            (groups("group_by", json!(["color", "region", "size"])), "分组", "color、size"),
            (metric("median", "amount"), "指标", "累计金额 median"),
            (metric("sum", "color"), "指标", "color sum"),
            (metric("max", ""), "指标", "max"),
            (metric("", "color"), "", ""),
            (groups("sort_field", json!("level")), "排序", "level"),
            (groups("sort_order", json!("up")), "排序", "up"),
            (json!({"sort_field": "color"}), "排序", "color"),
        ] {
            let attributes = attributes();
            let catalog = Catalog::new(&attributes);
            let wanted: Wanted = serde_json::from_value(plan.clone()).unwrap();
            let corrections = unknown_words(&wanted, &catalog);
            let refused = normalize(&wanted, &catalog, &Operators::usual()).err();
            assert_eq!(corrections.len(), usize::from(!words.is_empty()), "{plan}");
            let Some(failure) = refused else {
                assert!(words.is_empty(), "{plan}");
                continue;
            };
            assert_eq!(failure.code.as_str(), UNKNOWN_WORD, "{plan}");
            let details = json!({"part": part, "words": words});
            assert_eq!(failure.details.as_deref(), Some(&details), "{plan}");
            assert!(corrections[0].correction().contains(words), "{plan}");
        }
    }

    #[test]
    fn s1_50_each_unknown_word_is_listed() {
        let wanted = json!({"mode": "group-analysis", "group_by": ["color"], "sort_field": "size",
                            "metrics": [{"agg": "median", "field": "amount"}], "sort_order": "up"});
        let attributes = attributes();
        let wanted: Wanted = serde_json::from_value(wanted).unwrap();
        let unknown = unknown_words(&wanted, &Catalog::new(&attributes));
        let corrections: Vec<String> = unknown.iter().map(Unknown::correction).collect();
        assert_eq!(corrections.len(), 3, "the metric may be what the order names: {corrections:?}");
    }
}
