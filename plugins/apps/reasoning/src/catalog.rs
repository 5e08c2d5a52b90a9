//! Catalog of an ontology's attributes, which maps names to fields of the data.

use std::collections::BTreeMap;

use wattle_plugin::prelude::Value;

use crate::ontology::Attribute;

/// The attributes of one ontology.
pub(crate) struct Catalog<'a> {
    attributes: &'a [Attribute],
}

impl<'a> Catalog<'a> {
    pub(crate) fn new(attributes: &'a [Attribute]) -> Self {
        Self { attributes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// Returns the field that a model names, by the field itself or by the code or the name of its
    /// attribute, ignoring case.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        let wanted = name.trim().to_lowercase();
        let is_meant = |attribute: &&Attribute| {
            [&attribute.field_name, &attribute.code, &attribute.name]
                .iter()
                .any(|known| !known.is_empty() && known.to_lowercase() == wanted)
        };
        self.attributes.iter().find(is_meant).map(field_of)
    }

    /// Returns the first field, which is the default.
    pub(crate) fn first_field(&self) -> Option<&'a str> {
        self.attributes.first().map(field_of)
    }

    /// Returns the name of a field for users, which is the field itself if its attribute has no
    /// name.
    pub(crate) fn label<'b>(&self, field: &'b str) -> &'b str
    where
        'a: 'b,
    {
        let named = self.attributes.iter().find(|known| field_of(known) == field);
        named.map_or(field, |known| if known.name.is_empty() { field } else { &known.name })
    }

    /// Returns the names of fields for users. Fields without a name are omitted.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let named = self.attributes.iter().filter(|known| !known.name.is_empty());
        named.map(|known| (field_of(known).to_owned(), known.name.clone())).collect()
    }

    /// Returns the attributes as JSON for the model.
    pub(crate) fn document(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self.attributes)
    }
}

/// Returns the field of an attribute, otherwise its code.
fn field_of(attribute: &Attribute) -> &str {
    if attribute.field_name.is_empty() { &attribute.code } else { &attribute.field_name }
}

#[cfg(test)]
mod tests {
    use super::Catalog;
    use crate::testing::attributes;

    #[test]
    fn field_is_found_by_each_of_its_names() {
        let attributes = attributes();
        let catalog = Catalog::new(&attributes);
        for name in ["phone", "customer_phone", "联系电话", " PHONE "] {
            assert_eq!(catalog.field(name), Some("phone"), "{name}");
        }
        assert_eq!(catalog.field("shoe_size"), None);
        assert_eq!(catalog.field(""), None);
        assert_eq!(catalog.first_field(), Some("customer_id"));
        assert_eq!((catalog.label("phone"), catalog.label("shoe")), ("联系电话", "shoe"));
        assert_eq!(catalog.labels()["region"], "客户区域");
    }
}
