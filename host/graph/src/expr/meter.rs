//! The step limit of evaluations, and the functions that count steps.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::types::{
    BOOL_TYPE, CelBool, CelInt, CelList, CelMap, CelMapKey, CelString, DYN_TYPE, INT_TYPE, Kind,
    Type,
};
use cel::common::value::{BuiltinRef, CowVal, StaticVal, Val};
use cel::{Env, ExecutionError};

use crate::limit::{CONDITION_STEPS, Exceeded};

/// Name of the variable that holds the [`Meter`]. No expression can refer to it.
pub(super) const METER: &str = "@meter";

/// `@use(meter, x)` counts the size of `x` and returns `x`.
pub(super) const USE: &str = "@use";

/// `@size(meter, x)` counts the time that `size(x)` takes and returns `x`.
pub(super) const SIZE: &str = "@size";

/// `@same(meter, x, y, wanted)` counts the smaller size and returns `(x == y) == wanted`.
pub(super) const SAME: &str = "@same";

/// `@loop(meter, x, n)` counts the size of `x` and `n` steps for each of its items. It returns the
/// sorted keys of an object, and any other `x` itself.
pub(super) const LOOP: &str = "@loop";

/// CEL's standard functions and the counting functions, built once.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(environment()));

static METER_TYPE: Type = Type::new_unspecified_type("@meter");

/// Steps that the conditions of a superstep, or one expression, may still take. Clones share them.
#[derive(Clone)]
pub struct ConditionBudget(Arc<AtomicU64>);

impl fmt::Debug for ConditionBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConditionBudget").field(&self.0.load(Ordering::Relaxed)).finish()
    }
}

impl Default for ConditionBudget {
    /// Creates the budget of all conditions of one superstep, [`CONDITION_STEPS`].
    fn default() -> Self {
        Self::of(CONDITION_STEPS)
    }
}

impl ConditionBudget {
    /// Creates a budget of `steps` steps.
    pub(crate) fn of(steps: u64) -> Self {
        // The budget is one step more than the limit, so that zero means that the limit was
        // exceeded.
        Self(Arc::new(AtomicU64::new(steps.saturating_add(1))))
    }

    /// Returns the number of steps that were taken of the budget, which was created with `steps`
    /// steps. The number is `steps + 1` if the limit was exceeded.
    pub(crate) fn taken_of(&self, steps: u64) -> u64 {
        steps.saturating_add(1).saturating_sub(self.0.load(Ordering::Relaxed))
    }

    /// Takes steps from the budget. Returns an error once it is used up.
    pub(super) fn take(&self, steps: u64) -> Result<(), ExecutionError> {
        let left = self.0.load(Ordering::Relaxed).saturating_sub(steps);
        self.0.store(left, Ordering::Relaxed);
        if left > 0 {
            return Ok(());
        }
        Err(ExecutionError::function_error("evaluation", "out of steps"))
    }

    /// Returns the number of steps that were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken_of(CONDITION_STEPS)
    }

    /// Returns an error if the limit was exceeded. The result of the evaluation must then be
    /// discarded, because operators such as `||` swallow errors.
    pub(super) fn check(&self, text: &str) -> Result<(), Exceeded> {
        if self.0.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        let message = format!(
            "`{text}` takes more than {CONDITION_STEPS} steps, together with the conditions that \
             were evaluated before in the same superstep: read less of the state"
        );
        Err(Exceeded::new("condition_steps", CONDITION_STEPS, message))
    }
}

/// The step budget as a CEL value, for the counting functions.
#[derive(Clone, Debug)]
pub(super) struct Meter(pub(super) ConditionBudget);

impl Val for Meter {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &METER_TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Meter {}

fn environment() -> Env {
    let mut environment = Env::stdlib();
    let functions: [(&str, Vec<Type>, cel::common::functions::Function); 4] = [
        (USE, vec![METER_TYPE.to_owned(), DYN_TYPE], used),
        (SIZE, vec![METER_TYPE.to_owned(), DYN_TYPE], sized),
        (SAME, vec![METER_TYPE.to_owned(), DYN_TYPE, DYN_TYPE, BOOL_TYPE], same),
        (LOOP, vec![METER_TYPE.to_owned(), DYN_TYPE, INT_TYPE], looped),
    ];
    for (name, arguments, function) in functions {
        let declared = environment.add_overload(name, name, arguments, function);
        assert!(declared.is_ok(), "no standard function begins with @");
    }
    environment
}

fn used<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let budget = budget_of(&arguments)?;
    budget.take(size(arguments[1].as_ref()))?;
    Ok(arguments.swap_remove(1))
}

/// Implements [`SIZE`]. The size of a list or an object is known, so only the characters of a
/// string count.
fn sized<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let budget = budget_of(&arguments)?;
    if !is_container(arguments[1].as_ref()) {
        budget.take(size(arguments[1].as_ref()))?;
    }
    Ok(arguments.swap_remove(1))
}

fn same<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let budget = budget_of(&arguments)?;
    let [_, one, other, wanted] = arguments.as_slice() else { return Err(misused()) };
    // The comparison of a container with a value of another type does not read its items.
    let work = match (is_container(one.as_ref()), is_container(other.as_ref())) {
        (true, false) => size(other.as_ref()),
        (false, true) => size(one.as_ref()),
        _ => size(one.as_ref()).min(size(other.as_ref())),
    };
    budget.take(work)?;
    let wanted = wanted.downcast_ref::<CelBool>().map(|wanted| *wanted.inner());
    Ok(CowVal::owned(CelBool::from((one == other) == (wanted == Some(true)))))
}

fn looped<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let budget = budget_of(&arguments)?;
    let range = arguments[1].as_ref();
    let items = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    let each = arguments[2].downcast_ref::<CelInt>().map_or(1, |each| *each.inner());
    let rounds = items.saturating_mul(each);
    budget.take(size(range).saturating_add(u64::try_from(rounds).unwrap_or_default()))?;
    // The interpreter's order of iteration differs between equal objects.
    if let BuiltinRef::Map(map) = range.as_builtin() {
        return Ok(CowVal::owned(keys_in_order(map)));
    }
    Ok(arguments.swap_remove(1))
}

/// Returns the sorted keys of an object, which are the items of a loop over it.
fn keys_in_order<'v>(map: &CelMap<'v>) -> CelList<'v> {
    let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
    keys.sort_unstable_by_key(|key| match *key {
        CelMapKey::Bool(flag) => (0, i128::from(*flag.inner()), ""),
        CelMapKey::Int(number) => (1, i128::from(*number.inner()), ""),
        CelMapKey::UInt(number) => (2, i128::from(*number.inner()), ""),
        CelMapKey::String(text) => (3, 0, text.inner()),
    });
    let value = |key: &CelMapKey<'v>| -> Box<dyn Val + 'v> {
        match key {
            CelMapKey::Bool(flag) => Box::new(*flag),
            CelMapKey::Int(number) => Box::new(*number),
            CelMapKey::UInt(number) => Box::new(*number),
            CelMapKey::String(text) => Box::new(text.clone()),
        }
    };
    CelList::from(keys.into_iter().map(value).collect::<Vec<_>>())
}

/// Returns the step budget, after taking one step. Fails if the budget is used up: a loop that
/// swallows errors would otherwise continue and read a value for every item.
fn budget_of(arguments: &[CowVal<'_, '_>]) -> Result<ConditionBudget, ExecutionError> {
    let meter = arguments.first().and_then(|meter| meter.downcast_ref::<Meter>());
    let budget = meter.map(|meter| meter.0.clone()).ok_or_else(misused)?;
    budget.take(1)?;
    Ok(budget)
}

fn misused() -> ExecutionError {
    ExecutionError::function_error("evaluation", "the meter is missing")
}

fn is_container(value: &dyn Val) -> bool {
    // Viewing a list or an object as a built-in value would convert it.
    match value.get_type().kind() {
        Kind::List | Kind::Map => true,
        _ => matches!(value.as_builtin(), BuiltinRef::Optional(_)),
    }
}

/// Returns the number of steps that it takes to copy, compare or read a value once.
fn size(value: &dyn Val) -> u64 {
    match value.as_builtin() {
        BuiltinRef::String(text) => text_size(text.inner().len()),
        BuiltinRef::Bytes(bytes) => text_size(bytes.inner().len()),
        BuiltinRef::List(list) => {
            1 + list.inner().iter().map(|item| size(item.as_ref())).sum::<u64>()
        }
        BuiltinRef::Map(map) => {
            let mut work = 1;
            for (key, value) in map.inner() {
                work += key_size(key) + size(value.as_ref());
            }
            work
        }
        BuiltinRef::Optional(inner) => 1 + inner.inner().map_or(0, size),
        _ => 1,
    }
}

fn key_size(key: &CelMapKey<'_>) -> u64 {
    match key {
        CelMapKey::String(text) => text_size(CelString::inner(text).len()),
        _ => 1,
    }
}

/// Returns the number of steps that it takes to read a string of `bytes` bytes once.
pub(super) fn text_size(bytes: usize) -> u64 {
    /// Bytes of text that count as one step.
    const STEP: u64 = 16;
    1 + bytes as u64 / STEP
}
