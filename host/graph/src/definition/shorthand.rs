//! Shorthands in documents: `"a"` for `["a"]`, `"*"` for all nodes, and names of reducers.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{self, MapAccessDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::definition::{
    BuiltInReducer, DetailedTimeoutDef, HumanDuration, NodeSet, PluginReducer, ReducerDef,
    RetryDef, TimeoutDef,
};
use crate::id::{IdError, NodeName};

/// Deserializes one node name or a list of node names.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<NodeName>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<NodeName>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a node name or a list of node names")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            NodeName::new(text).map(|name| vec![name]).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(name) = names.next_element()? {
                all.push(name);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_any(OneOrMany)
}

/// Deserializes the name of a reducer of the host, or a table for a reducer of a plugin.
impl<'de> Deserialize<'de> for ReducerDef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;

        impl<'de> Visitor<'de> for NameOrTable {
            type Value = ReducerDef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a reducer, or `{ plugin, reducer }`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let name = IntoDeserializer::<value::Error>::into_deserializer(text);
                BuiltInReducer::deserialize(name)
                    .map(ReducerDef::BuiltIn)
                    .map_err(|error| E::custom(format!("{error} or `{{ plugin, reducer }}`")))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
                PluginReducer::deserialize(MapAccessDeserializer::new(fields))
                    .map(ReducerDef::Plugin)
            }
        }

        deserializer.deserialize_any(NameOrTable)
    }
}

/// The serialized forms of a [`NodeSet`]: `"*"`, one name, or a list of names.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected `\"*\"`, a node name or a list of node names")]
pub(super) enum NodeSetRepr {
    Text(String),
    Names(BTreeSet<NodeName>),
}

impl TryFrom<NodeSetRepr> for NodeSet {
    type Error = IdError;

    fn try_from(text: NodeSetRepr) -> Result<Self, IdError> {
        match text {
            NodeSetRepr::Text(star) if star == "*" => Ok(Self::All),
            NodeSetRepr::Text(name) => Ok(Self::Named(BTreeSet::from([NodeName::new(name)?]))),
            NodeSetRepr::Names(names) => Ok(Self::Named(names)),
        }
    }
}

impl From<NodeSet> for NodeSetRepr {
    fn from(nodes: NodeSet) -> Self {
        match nodes {
            NodeSet::All => Self::Text("*".to_owned()),
            NodeSet::Named(names) => Self::Names(names),
        }
    }
}

/// Deserializes an optional JSON value. A `null` counts as a value, and not as a missing field.
pub(super) fn present_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Deserializes a duration, or a table with the fields of [`DetailedTimeoutDef`].
pub(super) fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeoutDef, D::Error> {
    struct Timeout;

    impl<'de> Visitor<'de> for Timeout {
        type Value = TimeoutDef;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration with its unit, such as \"30m\", or `{ run, idle, refresh }`")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            HumanDuration::deserialize(text.into_deserializer()).map(TimeoutDef::Run)
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
            DetailedTimeoutDef::deserialize(MapAccessDeserializer::new(fields))
                .map(TimeoutDef::Detailed)
        }
    }

    deserializer.deserialize_any(Timeout)
}

/// Serialization of retry policies: one policy without a list, or a list of policies.
pub(super) mod policies {
    use std::fmt;

    use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
    use serde::de::{MapAccess, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RetryDef;

    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<RetryDef>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a retry policy or a list of them")
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
            RetryDef::deserialize(MapAccessDeserializer::new(fields)).map(|policy| vec![policy])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, policies: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(policies))
        }
    }

    pub(in crate::definition) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<RetryDef>, D::Error> {
        deserializer.deserialize_any(OneOrMany)
    }

    /// Serializes a single policy without a list, so that older definitions keep their digests.
    pub(in crate::definition) fn serialize<S: Serializer>(
        policies: &[RetryDef],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match policies {
            [only] => only.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}
