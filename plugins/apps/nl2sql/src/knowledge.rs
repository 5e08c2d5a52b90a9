//! The schema knowledge base: the tables and fields of the business database, read from the
//! database, and their meaning, from the setting `schema`.

mod read;
mod text;

use std::collections::BTreeMap;
use std::mem::take;

use wattle_plugin::prelude::{Deserialize, Failure, settings};

use crate::state::KbSummary;

/// Description of a table or a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Description {
    pub(crate) description: String,
    /// Other names that users have for it.
    pub(crate) aliases: Vec<String>,
}

/// A field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Type, as the database names it.
    pub(crate) kind: String,
    pub(crate) description: Description,
}

/// A table or a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) columns: Vec<Column>,
}

/// A foreign key. Both sides are `table.field`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The tables that questions may be about: the allowlist of statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Knowledge {
    pub(crate) tables: Vec<Table>,
    pub(crate) links: Vec<Link>,
    /// Formulas of metrics, by name.
    pub(crate) metrics: BTreeMap<String, String>,
}

/// Value of the setting `schema`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Descriptions {
    tables: BTreeMap<String, TableDescription>,
    metrics: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TableDescription {
    description: String,
    aliases: Vec<String>,
    columns: BTreeMap<String, Description>,
}

/// Reads the knowledge base. Nothing is cached, so it is never older than the calling node.
pub(crate) fn read() -> Result<Knowledge, Failure> {
    let mut knowledge = read::from_database()?;
    if let Some(descriptions) = settings::get::<Descriptions>("schema")? {
        knowledge.describe(descriptions);
    }
    Ok(knowledge)
}

impl Table {
    /// Returns a field by its name, in any case.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

impl Knowledge {
    /// Returns a table by its name, in any case.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Returns a field, given as `table.field`, with its table.
    pub(crate) fn field(&self, field: &str) -> Option<(&Table, &Column)> {
        let (table, column) = field.split_once('.')?;
        let table = self.table(table)?;
        Some((table, table.column(column)?))
    }

    /// Resolves a name to `table.field`: the field itself, or the only field with this name or
    /// alias.
    pub(crate) fn resolve(&self, field: &str) -> Option<String> {
        if let Some((table, column)) = self.field(field) {
            return Some(format!("{}.{}", table.name, column.name));
        }
        let (table, name) = match field.split_once('.') {
            Some((table, name)) => (Some(table), name),
            None => (None, field),
        };
        let mut fits = self.tables.iter().filter(|it| table.is_none_or(|name| it.is_called(name)));
        let found = fits.clone().flat_map(|table| {
            let columns = table.columns.iter().filter(|column| column.is_called(name));
            columns.map(|column| format!("{}.{}", table.name, column.name))
        });
        let mut found = found.collect::<Vec<_>>();
        fits.next()?;
        if found.len() == 1 { found.pop() } else { None }
    }

    /// Counts tables and fields.
    pub(crate) fn summary(&self) -> KbSummary {
        KbSummary {
            table_count: self.tables.len(),
            field_count: self.tables.iter().map(|table| table.columns.len()).sum(),
        }
    }

    fn describe(&mut self, mut descriptions: Descriptions) {
        for table in &mut self.tables {
            let Some(words) = descriptions.tables.get_mut(&table.name) else { continue };
            let (description, aliases) = (take(&mut words.description), take(&mut words.aliases));
            table.description = Description { description, aliases };
            for column in &mut table.columns {
                let words = words.columns.get_mut(&column.name);
                column.description = words.map(take).unwrap_or_default();
            }
        }
        self.metrics = descriptions.metrics;
    }
}

impl Table {
    fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, &self.description, name)
    }
}

impl Column {
    fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, &self.description, name)
    }
}

fn is_called(own: &str, description: &Description, name: &str) -> bool {
    own.eq_ignore_ascii_case(name)
        || description.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::read;
    use crate::testing::{host, knowledge};

    #[test]
    fn knowledge_base_matches_the_database() {
        let read = host().run(read).unwrap();
        assert_eq!(read, knowledge());
        assert_eq!((read.summary().table_count, read.summary().field_count), (3, 13));
    }

    #[test]
    fn only_configured_tables_are_included() {
        let host = host().setting("business_tables", json!(["customers"]));
        let read = host.run(read).unwrap();
        assert_eq!(read.tables.len(), 1);
        assert!(read.links.is_empty());
    }

    #[test]
    fn fields_are_resolved_by_alias() {
        let schema = json!({"tables": {"orders": {"aliases": ["订单"], "columns": {
            "total_amount": {"description": "总金额", "aliases": ["金额"]}}}}});
        let knowledge = host().setting("schema", schema).run(read).unwrap();
        for (field, resolved) in [
            ("orders.status", Some("orders.status")),
            ("ORDERS.Status", Some("orders.status")),
            ("city", Some("customers.city")),
            ("订单.金额", Some("orders.total_amount")),
            ("金额", Some("orders.total_amount")),
            ("id", None),
            ("orders.city", None),
        ] {
            assert_eq!(knowledge.resolve(field).as_deref(), resolved, "{field}");
        }
    }

    #[test]
    fn unknown_key_of_the_schema_setting_is_rejected() {
        let host = host().setting("schema", json!({"tabels": {}}));
        assert!(host.run(read).unwrap_err().message.contains("schema"));
    }
}
