//! Decodes events in one pass.
//!
//! The JSON object of an event contains both the fields that all events have and the fields of the
//! payload, whose type the field `type` selects. Hosts write `type` before the payload, so the
//! payload is decoded directly from the input. Other programs may write fields of the payload
//! before `type`; the decoder buffers these fields until it has read the type.

use std::fmt;
use std::vec::IntoIter;

use serde::de::value::{MapAccessDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use strum::VariantArray;

use super::{Event, EventKind, EventType};
use crate::id::{Namespace, RunId};

/// The field with the name of the kind.
const TYPE: &str = "type";

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let (mut own, mut early, mut name) = (OwnFields::default(), Vec::new(), String::new());
        while map.next_key_seed(Text(&mut name))?.is_some() {
            if name == TYPE {
                map.next_value_seed(Text(&mut name))?;
                let early = early.into_iter();
                let rest = Payload { map, own: &mut own, early, value: None, name: String::new() };
                let kind = decode(&name, MapAccessDeserializer::new(rest))?;
                return own.finish(kind);
            }
            if !own.read(&name, &mut map)? {
                early.push((name.clone(), map.next_value()?));
            }
        }
        Err(A::Error::missing_field(TYPE))
    }
}

impl EventType {
    /// Returns the type with the given name.
    fn of(name: &str) -> Option<Self> {
        let mut types = EventKind::NAMES.iter().zip(Self::VARIANTS);
        types.find(|(known, _)| **known == name).map(|(_, kind)| *kind)
    }
}

/// Decodes the payload of a kind.
fn decode<'de, D: Deserializer<'de>>(name: &str, payload: D) -> Result<EventKind, D::Error> {
    let Some(kind) = EventType::of(name) else {
        return Err(D::Error::unknown_variant(name, EventKind::NAMES));
    };
    Ok(match kind {
        EventType::RunStarted => EventKind::RunStarted(Deserialize::deserialize(payload)?),
        EventType::RunEnded => EventKind::RunEnded(Deserialize::deserialize(payload)?),
        EventType::TaskStarted => EventKind::TaskStarted(Deserialize::deserialize(payload)?),
        EventType::TaskFinished => EventKind::TaskFinished(Deserialize::deserialize(payload)?),
        EventType::TaskFailed => EventKind::TaskFailed(Deserialize::deserialize(payload)?),
        EventType::CallStarted => EventKind::CallStarted(Deserialize::deserialize(payload)?),
        EventType::Streamed => EventKind::Streamed(Deserialize::deserialize(payload)?),
        EventType::Called => EventKind::Called(Deserialize::deserialize(payload)?),
        EventType::InterruptRaised => {
            EventKind::InterruptRaised(Deserialize::deserialize(payload)?)
        }
        EventType::Answered => EventKind::Answered(Deserialize::deserialize(payload)?),
        EventType::Checkpointed => EventKind::Checkpointed(Deserialize::deserialize(payload)?),
        EventType::Reopened => EventKind::Reopened(Deserialize::deserialize(payload)?),
        EventType::Forked => EventKind::Forked(Deserialize::deserialize(payload)?),
        EventType::Settled => EventKind::Settled(Deserialize::deserialize(payload)?),
        EventType::Migrated => EventKind::Migrated(Deserialize::deserialize(payload)?),
        EventType::Custom => EventKind::Custom(Deserialize::deserialize(payload)?),
        EventType::Progress => EventKind::Progress(Deserialize::deserialize(payload)?),
        EventType::Log => EventKind::Log(Deserialize::deserialize(payload)?),
    })
}

/// The fields that events of all kinds have.
#[derive(Default)]
struct OwnFields {
    seq: Option<u64>,
    at_ms: Option<i64>,
    run: Option<RunId>,
    namespace: Option<Namespace>,
}

impl OwnFields {
    /// Reads the value of a field, if events of all kinds have it. Returns false for a field of the
    /// payload, whose value is not read.
    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "seq" => set(&mut self.seq, "seq", map)?,
            "at_ms" => set(&mut self.at_ms, "at_ms", map)?,
            "run" => set(&mut self.run, "run", map)?,
            "namespace" => set(&mut self.namespace, "namespace", map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish<E: Error>(self, kind: EventKind) -> Result<Event, E> {
        Ok(Event {
            seq: self.seq.ok_or_else(|| E::missing_field("seq"))?,
            at_ms: self.at_ms.ok_or_else(|| E::missing_field("at_ms"))?,
            run: self.run.ok_or_else(|| E::missing_field("run"))?,
            namespace: self.namespace.unwrap_or_default(),
            kind,
        })
    }
}

fn set<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = Some(map.next_value()?);
    Ok(())
}

/// A [`MapAccess`] with the fields of the payload only. It stores the fields that events of all
/// kinds have in `own`.
struct Payload<'o, A> {
    map: A,
    own: &'o mut OwnFields,
    /// The fields of the payload that precede the type.
    early: IntoIter<(String, Value)>,
    /// The value of the last field, if the field precedes the type.
    value: Option<Value>,
    /// The name of the last field, if the field follows the type.
    name: String,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Payload<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        if let Some((name, value)) = self.early.next() {
            self.value = Some(value);
            return seed.deserialize(StringDeserializer::new(name)).map(Some);
        }
        while self.map.next_key_seed(Text(&mut self.name))?.is_some() {
            if self.name == TYPE {
                return Err(A::Error::duplicate_field(TYPE));
            }
            if !self.own.read(&self.name, &mut self.map)? {
                return seed.deserialize(StrDeserializer::new(&self.name)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(A::Error::custom),
            None => self.map.next_value_seed(seed),
        }
    }
}

/// Reads a string into a reused buffer, so that the names of fields need no allocations.
struct Text<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
}
