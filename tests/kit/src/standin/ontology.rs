//! The ontology of a company with its data, for two MCP servers: `graph` searches and describes
//! classes, `data` queries rows. All results are computed from tables.

mod classes;
mod data;
mod graph;
mod relations;
mod rows;
mod search;

use serde_json::{Value, json};

use super::mcp::{McpAnswer, McpTool, McpTools};

/// The tools of the MCP server `graph`.
#[derive(Debug)]
pub(super) struct Graph;

/// The tools of the MCP server `data`.
#[derive(Debug)]
pub(super) struct Data;

impl McpTools for Graph {
    fn list(&self) -> Vec<McpTool> {
        let text = json!({ "type": "string" });
        let codes = json!({ "type": "array", "items": { "type": "string" } });
        let number = json!({ "type": "number" });
        let search = json!({ "query": text, "top_n": { "type": "integer" }, "score_gap": number,
            "relative_diff": number, "w_sparse": number, "w_dense": number });
        let by = |name: &str, doc: &str, key: &str| {
            McpTool::reading(name, doc, &json!({ key: codes })).requiring(&[key])
        };
        vec![
            McpTool::reading("graph.list_data_attributes", "Finds data attributes.", &search)
                .requiring(&["query"]),
            by(
                "graph.get_data_attribute_related_ontologies",
                "Finds the ontologies that have data attributes.",
                "attributeCodes",
            ),
            McpTool::reading("graph.list_ontologies", "Finds ontologies.", &search)
                .requiring(&["query"]),
            by("graph.get_ontology_details", "Describes ontologies.", "ontologyCodes"),
            by("graph.get_capability_details", "Describes capabilities.", "capabilityCodes"),
            by(
                "graph.get_object_property_details",
                "Describes object properties.",
                "objectPropertyCodes",
            ),
        ]
    }

    fn call(&self, name: &str, arguments: &Value) -> McpAnswer {
        answer(graph::call(name, arguments))
    }
}

impl McpTools for Data {
    fn list(&self) -> Vec<McpTool> {
        let (text, whole) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        let filters = json!({ "type": "array", "items": { "type": "object",
            "required": ["field", "op", "value"],
            "properties": { "field": text, "op": { "enum": data::OPERATORS }, "value": {} } } });
        let query = json!({ "class_id": text, "filters": filters, "page": whole,
            "page_size": whole, "sort_field": text, "sort_order": { "enum": ["asc", "desc"] } });
        let metrics = json!({ "type": "array", "items": { "type": "object",
            "required": ["agg", "alias"],
            "properties": { "agg": { "enum": ["count", "sum", "avg", "min", "max"] },
                            "field": text, "alias": text } } });
        let analysis = json!({ "class_id": text, "filters": filters, "page": whole,
            "page_size": whole, "metrics": metrics, "sort_by": text,
            "group_by": { "type": "array", "items": text },
            "sort_order": { "enum": ["asc", "desc"] } });
        vec![
            McpTool::reading("mcp.data.query", "Reads rows of a class.", &query)
                .requiring(&["class_id"]),
            McpTool::reading("mcp.data.group-analysis", "Counts and sums by groups.", &analysis)
                .requiring(&["class_id", "group_by", "metrics"]),
        ]
    }

    fn call(&self, name: &str, arguments: &Value) -> McpAnswer {
        answer(data::call(name, arguments))
    }
}

fn answer(result: Result<Value, String>) -> McpAnswer {
    match result {
        Ok(document) => McpAnswer::Data(document),
        Err(reason) => McpAnswer::Failed(reason),
    }
}
