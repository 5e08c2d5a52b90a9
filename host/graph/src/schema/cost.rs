//! The cost of a validation, counted before the validation.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::limit::{Exceeded, SCHEMA_RECURSION};
use crate::schema::budget::StepBudget;
use crate::schema::json_pointer::JsonPointer;
use crate::schema::outline::{Id, Outline, Part, steps_of, text_steps};
use crate::schema::{pattern, regex_format};

/// Counts the steps of a validation, and fails if the budget has fewer steps left. The counting
/// itself takes at most as many steps as the budget has.
///
/// The budget applies to the steps of deciding whether the value is valid, in which the validator
/// caches the results of references. The return value is the number of steps of describing all
/// violations, in which the validator caches nothing.
pub(super) fn count(
    outline: &Outline,
    value: &Value,
    budget: &StepBudget,
) -> Result<u64, Exceeded> {
    let mut count = Count { outline, budget, known: HashMap::new() };
    count.apply(0, value, &JsonPointer::ROOT, 0)
}

struct Count<'o> {
    outline: &'o Outline,
    budget: &'o StepBudget,
    /// Numbers of steps that describing the violations takes, by part and value. As in the
    /// validator, only results of parts to which references point are cached, and only for lists
    /// and objects.
    known: HashMap<(Id, *const Value), u64>,
}

impl Count<'_> {
    /// Counts the steps of a part of the schema at a location, and returns the number of steps that
    /// describing its violations takes.
    fn apply(
        &mut self,
        id: Id,
        value: &Value,
        pointer: &JsonPointer<'_>,
        depth: u64,
    ) -> Result<u64, Exceeded> {
        let part = &self.outline.parts[id];
        let key = (id, std::ptr::from_ref(value));
        let remembers = part.shared && (value.is_object() || value.is_array());
        if let Some(steps) = self.known.get(&key).filter(|_| remembers).copied() {
            self.budget.take(1, pointer)?;
            return Ok(steps);
        }
        if depth > SCHEMA_RECURSION {
            let message = format!(
                "the schema is applied more than {SCHEMA_RECURSION} levels deep at `{pointer}`: \
                 flatten the value, or the schema"
            );
            return Err(Exceeded::new("schema_recursion", SCHEMA_RECURSION, message));
        }
        let own = own_steps(part, value);
        self.budget.take(own, pointer)?;
        let mut steps = own;
        for _ in 0..part.looks {
            for same in &part.same {
                steps = steps.saturating_add(self.apply(*same, value, pointer, depth + 1)?);
            }
        }
        let inner = match value {
            Value::Object(fields) => self.members(part, fields, pointer, depth + 1)?,
            Value::Array(items) => self.items(part, items, pointer, depth + 1)?,
            _ => 0,
        };
        steps = steps.saturating_add(inner);
        if remembers {
            self.known.insert(key, steps);
        }
        Ok(steps)
    }

    fn members(
        &mut self,
        part: &Part,
        fields: &Map<String, Value>,
        pointer: &JsonPointer<'_>,
        depth: u64,
    ) -> Result<u64, Exceeded> {
        let mut steps = 0_u64;
        let every = !part.by_pattern.is_empty() || !part.other_members.is_empty();
        if every || part.names.is_some() {
            for (name, value) in fields {
                let pointer = pointer.key(name);
                let own = 1 + pattern::steps(name, part.member_patterns);
                self.budget.take(own, &pointer)?;
                steps = steps.saturating_add(own);
                let has_own = part.members.contains_key(name);
                let others = if has_own { &[][..] } else { &part.other_members };
                for id in part.by_pattern.iter().chain(others) {
                    steps = steps.saturating_add(self.apply(*id, value, &pointer, depth)?);
                }
                if let Some(id) = part.names {
                    let name = Value::String(name.clone());
                    steps = steps.saturating_add(self.apply(id, &name, &pointer, depth)?);
                }
            }
        }
        // Iterates over the smaller set: the properties of the value, or the properties that the
        // schema names.
        if part.members.len() < fields.len() {
            for (name, id) in &part.members {
                if let Some(value) = fields.get(name) {
                    let inner = self.apply(*id, value, &pointer.key(name), depth)?;
                    steps = steps.saturating_add(inner);
                }
            }
        } else {
            for (name, value) in fields {
                if let Some(id) = part.members.get(name) {
                    let inner = self.apply(*id, value, &pointer.key(name), depth)?;
                    steps = steps.saturating_add(inner);
                }
            }
        }
        Ok(steps)
    }

    fn items(
        &mut self,
        part: &Part,
        items: &[Value],
        pointer: &JsonPointer<'_>,
        depth: u64,
    ) -> Result<u64, Exceeded> {
        let mut steps = 0_u64;
        for (index, value) in items.iter().enumerate() {
            let prefix = part.prefix.get(index);
            if prefix.is_none() && part.items.is_empty() {
                break;
            }
            let pointer = pointer.index(index);
            for id in prefix.into_iter().chain(&part.items) {
                steps = steps.saturating_add(self.apply(*id, value, &pointer, depth)?);
            }
        }
        Ok(steps)
    }
}

/// Returns the number of steps of applying a part to a value, without the steps of its subschemas.
fn own_steps(part: &Part, value: &Value) -> u64 {
    let more = match value {
        Value::String(text) => {
            let regex = if part.regex { regex_format::steps(text) } else { 0 };
            text_steps(text) + pattern::steps(text, part.patterns) + regex
        }
        Value::Array(_) if part.whole => steps_of(value),
        _ => 0,
    };
    part.steps.saturating_add(more)
}
