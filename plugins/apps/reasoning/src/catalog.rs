//! The attribute catalogue of an ontology: which field of the data a name means.

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

    /// The field that a model means: it may say the field, the attribute's code or its name.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        let wanted = name.trim().to_lowercase();
        let is_meant = |attribute: &&Attribute| {
            [&attribute.field_name, &attribute.code, &attribute.name]
                .iter()
                .any(|known| !known.is_empty() && known.to_lowercase() == wanted)
        };
        self.attributes.iter().find(is_meant).map(field_of)
    }

    /// The first field, for lack of a better choice.
    pub(crate) fn first_field(&self) -> Option<&'a str> {
        self.attributes.first().map(field_of)
    }

    /// What people call a field.
    pub(crate) fn label<'b>(&self, field: &'b str) -> &'b str
    where
        'a: 'b,
    {
        let named = self.attributes.iter().find(|known| field_of(known) == field);
        named.map_or(field, |known| if known.name.is_empty() { field } else { &known.name })
    }

    /// What people call the fields, as far as they have names.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let named = self.attributes.iter().filter(|known| !known.name.is_empty());
        named.map(|known| (field_of(known).to_owned(), known.name.clone())).collect()
    }

    /// The catalogue as a model reads it.
    pub(crate) fn document(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self.attributes)
    }
}

/// An attribute without a field is its own field.
fn field_of(attribute: &Attribute) -> &str {
    if attribute.field_name.is_empty() { &attribute.code } else { &attribute.field_name }
}

#[cfg(test)]
mod tests {
    use super::Catalog;
    use crate::testing::attributes;

    #[test]
    fn a_field_is_found_by_any_of_its_names() {
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
