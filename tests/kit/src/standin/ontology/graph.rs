//! The tools that search and describe.

use serde_json::{Value, json};

use super::classes::{ATTRIBUTES, CLASSES, Capability, Class, attribute_of, class};
use super::relations::{self, PROPERTIES, Property};
use super::search::SearchParams;

/// Calls a tool.
pub(super) fn call(name: &str, arguments: &Value) -> Result<Value, String> {
    let items = match name {
        "graph.list_data_attributes" => attributes(&SearchParams::read(arguments)?),
        "graph.get_data_attribute_related_ontologies" => {
            codes(arguments, "attributeCodes")?.iter().map(|code| related(code)).collect()
        }
        "graph.list_ontologies" => ontologies(&SearchParams::read(arguments)?),
        "graph.get_ontology_details" => {
            let known = codes(arguments, "ontologyCodes")?;
            known.iter().filter_map(|code| class(code)).map(details).collect()
        }
        "graph.get_capability_details" => capabilities(&codes(arguments, "capabilityCodes")?),
        "graph.get_object_property_details" => {
            let wanted = codes(arguments, "objectPropertyCodes")?;
            let known = PROPERTIES.iter().filter(|known| wanted.iter().any(|w| w == known.code));
            known.map(property).collect()
        }
        _ => return Err(format!("there is no tool `{name}`")),
    };
    Ok(json!({ "items": Value::Array(items) }))
}

fn codes(arguments: &Value, name: &str) -> Result<Vec<String>, String> {
    let list = arguments[name].as_array().ok_or_else(|| format!("`{name}` is missing"))?;
    Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn attributes(params: &SearchParams) -> Vec<Value> {
    let found = params.best(ATTRIBUTES, |known| (known.name, known.description));
    let item = |(score, known): (f64, &super::classes::Attribute)| {
        json!({ "code": known.code, "name": known.name, "description": known.description,
                "score": score })
    };
    found.into_iter().map(item).collect()
}

fn ontologies(params: &SearchParams) -> Vec<Value> {
    let found = params.best(CLASSES, |known| (known.name, known.description));
    let item = |(score, known): (f64, &Class)| {
        let mut item = brief(known.code, known.name, known.description);
        item["score"] = json!(score);
        item
    };
    found.into_iter().map(item).collect()
}

fn related(attribute: &str) -> Value {
    let has = |class: &&Class| class.fields.iter().any(|(code, _)| *code == attribute);
    let classes: Vec<Value> = CLASSES
        .iter()
        .filter(has)
        .map(|class| brief(class.code, class.name, class.description))
        .collect();
    json!({ "attributeCode": attribute, "ontologies": classes })
}

fn details(class: &'static Class) -> Value {
    let attributes: Vec<Value> = class
        .fields
        .iter()
        .filter_map(|(code, field)| {
            let known = attribute_of(code)?;
            Some(json!({ "code": known.code, "name": known.name, "field_name": field,
                         "description": known.description, "data_type": data_type(field) }))
        })
        .collect();
    let mut item = brief(class.code, class.name, class.description);
    item["class_id"] = json!(class.code);
    item["attributes"] = json!(attributes);
    item["capabilities"] =
        class.capabilities.iter().map(|known| capability(class, known)).collect();
    item["object_properties"] = relations::of_class(class.code).map(property).collect();
    item
}

fn capabilities(wanted: &[String]) -> Vec<Value> {
    let all = CLASSES
        .iter()
        .flat_map(|class| class.capabilities.iter().map(move |capability| (class, capability)));
    all.filter(|(_, known)| wanted.iter().any(|code| code == known.code))
        .map(|(class, known)| capability(class, known))
        .collect()
}

fn capability(class: &Class, known: &Capability) -> Value {
    let mut item = brief(known.code, known.name, known.description);
    item["ontology_code"] = json!(class.code);
    item["mode"] = json!(known.mode);
    item["guide"] = json!(known.guide);
    item
}

fn property(known: &Property) -> Value {
    let mut item = brief(known.code, known.name, known.description);
    item["domain"] = json!(known.domain);
    item["range"] = json!(known.range);
    item["join"] = json!(known.join);
    item
}

fn data_type(field: &str) -> &'static str {
    match field {
        "amount" => "number",
        field if field.ends_with("_on") => "date",
        _ => "string",
    }
}

fn brief(code: &str, name: &str, description: &str) -> Value {
    json!({ "code": code, "name": name, "description": description })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::call;

    #[test]
    fn shared_attributes_have_several_classes() {
        let arguments = json!({"attributeCodes": ["customer_phone", "nothing"]});
        let found = call("graph.get_data_attribute_related_ontologies", &arguments).unwrap();
        let codes: Vec<&str> = found["items"][0]["ontologies"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|class| class["code"].as_str())
            .collect();
        assert_eq!(codes, ["customer", "order", "ticket"]);
        assert_eq!(found["items"][1]["ontologies"], json!([]));
    }

    #[test]
    fn details_have_fields_and_relations() {
        let arguments = json!({"ontologyCodes": ["order", "nothing"]});
        let found = call("graph.get_ontology_details", &arguments).unwrap();
        assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
        let order = &found["items"][0];
        assert_eq!(order["object_properties"][0]["code"], "customer_places_order");
        assert_eq!(order["attributes"][2]["field_name"], "customer_phone");
        let arguments = json!({"capabilityCodes": ["order_statistics"]});
        let found = call("graph.get_capability_details", &arguments).unwrap();
        assert_eq!(found["items"][0]["mode"], "group-analysis");
    }

    #[test]
    fn missing_arguments_are_named() {
        assert_eq!(call("graph.list_ontologies", &json!({})).unwrap_err(), "`query` is missing");
    }
}
