//! The schema knowledge base: which tables and fields the business database has, from the
//! database itself, and what they mean, from the setting `schema`.

mod read;
mod text;

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Deserialize, Failure, settings};

use crate::state::KbSummary;

/// Words about a table or a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Description {
    /// What it holds.
    pub(crate) description: String,
    /// What people call it.
    pub(crate) aliases: Vec<String>,
}

/// One field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The database's name of its type.
    pub(crate) kind: String,
    pub(crate) description: Description,
}

/// One table or view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) columns: Vec<Column>,
}

/// A foreign key, as `table.field` on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Everything that may be asked about: the white-list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Knowledge {
    pub(crate) tables: Vec<Table>,
    pub(crate) links: Vec<Link>,
    /// How a figure is computed, by its name.
    pub(crate) metrics: BTreeMap<String, String>,
}

/// The setting `schema`.
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

/// Reads the knowledge base. It is never older than the node that asks.
pub(crate) fn read() -> Result<Knowledge, Failure> {
    let mut knowledge = read::from_database()?;
    if let Some(descriptions) = settings::get::<Descriptions>("schema")? {
        knowledge.describe(descriptions);
    }
    Ok(knowledge)
}

impl Table {
    /// A field by its name, in any case.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

impl Knowledge {
    /// A table by its name, in any case.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// A field by `table.field`, with its table.
    pub(crate) fn field(&self, field: &str) -> Option<(&Table, &Column)> {
        let (table, column) = field.split_once('.')?;
        let table = self.table(table)?;
        Some((table, table.column(column)?))
    }

    /// What somebody may have meant by a field: itself, or the only field of this name or alias.
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

    /// How much there is.
    pub(crate) fn summary(&self) -> KbSummary {
        KbSummary {
            table_count: self.tables.len(),
            field_count: self.tables.iter().map(|table| table.columns.len()).sum(),
        }
    }

    fn describe(&mut self, mut descriptions: Descriptions) {
        for table in &mut self.tables {
            let Some(mut words) = descriptions.tables.remove(&table.name) else { continue };
            table.description =
                Description { description: words.description, aliases: words.aliases };
            for column in &mut table.columns {
                column.description = words.columns.remove(&column.name).unwrap_or_default();
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
    fn it_is_what_the_database_has() {
        let read = host().run(read).unwrap();
        assert_eq!(read, knowledge());
        assert_eq!((read.summary().table_count, read.summary().field_count), (3, 13));
    }

    #[test]
    fn only_chosen_tables_may_be_asked_about() {
        let host = host().setting("business_tables", json!(["customers"]));
        let read = host.run(read).unwrap();
        assert_eq!(read.tables.len(), 1);
        assert!(read.links.is_empty());
    }

    #[test]
    fn fields_are_found_by_what_people_call_them() {
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
    fn a_misspelled_description_is_refused() {
        let host = host().setting("schema", json!({"tabels": {}}));
        assert!(host.run(read).unwrap_err().message.contains("schema"));
    }
}
