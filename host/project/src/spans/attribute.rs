//! Attributes of spans.

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Flag(bool),
    /// An array of strings.
    Texts(Vec<String>),
}

/// The attributes of a span, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(String, Attribute)>);

impl Attributes {
    /// Adds a string attribute.
    pub fn text(&mut self, key: &str, value: impl Into<String>) {
        self.put(key, Attribute::Text(value.into()));
    }

    /// Adds a string attribute if there is a value.
    pub fn optional_text(&mut self, key: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds an integer attribute. A value above `i64::MAX` becomes `i64::MAX`.
    pub fn number(&mut self, key: &str, value: u64) {
        self.put(key, Attribute::Number(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    /// Adds a floating-point attribute.
    pub fn float(&mut self, key: &str, value: f64) {
        self.put(key, Attribute::Float(value));
    }

    /// Adds a boolean attribute.
    pub fn flag(&mut self, key: &str, value: bool) {
        self.put(key, Attribute::Flag(value));
    }

    /// Adds an attribute with an array of strings.
    pub fn texts<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) {
        self.put(key, Attribute::Texts(values.into_iter().map(str::to_owned).collect()));
    }

    /// Adds the attributes by which Langfuse marks a failure. Adds nothing if `message` is `None`.
    pub(super) fn failed(&mut self, message: Option<&str>) {
        if let Some(message) = message {
            self.text("langfuse.observation.level", "ERROR");
            self.text("langfuse.observation.status_message", message);
        }
    }

    fn put(&mut self, key: &str, value: Attribute) {
        self.0.push((key.to_owned(), value));
    }
}

impl IntoIterator for Attributes {
    type Item = (String, Attribute);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
