//! Values of channels: full values, and lists that are assembled from delta chains.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::checkpoint::{ChannelValue, ListDelta};
use wattle_graph::id::{ChannelName, CheckpointId};
use wattle_run::ports::store::StoreError;

use crate::codec::{unpack, unpacked_bytes};
use crate::error::corrupt;
use crate::postgres::database::PgTransaction;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::retry::sqlx_error;
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::thread_row::{checkpoint_id, unsigned, utf8};

/// Selects the delta chains of the wanted values. All list deltas of a chain have channel versions
/// between the version of its full value and the wanted version. Sends no values if the total
/// length of all values is more than `$4` bytes of JSON.
const CHAINS: &str = concat!(
    "SELECT channel, version, CASE WHEN bytes <= $4 THEN value END AS value, base, keep, items
    FROM (
        SELECT channel, version, value, base, keep, items, (sum(",
    record_bytes!("value"),
    ") OVER ())::bigint AS bytes
        FROM (
            SELECT value.channel, value.version, value.value, value.base, value.keep,
                value.items, ",
    record_start!("value.value"),
    " AS start
            FROM (
                SELECT channel, root, max(version) AS last
                FROM unnest($2::bytea[], $3::bigint[]) AS wanted (channel, version)
                JOIN channel_values USING (channel, version)
                WHERE thread = $1 GROUP BY channel, root) AS chain
            JOIN channel_values AS value ON value.thread = $1 AND value.channel = chain.channel
                AND value.version BETWEEN chain.root AND chain.last
            OFFSET 0) AS link) AS link"
);

const OPERATION: &str = "read values";

/// A channel and one of its versions.
pub(super) type Version = (ChannelName, CheckpointId);

/// Values by channel and version.
pub(super) type ValueMap = HashMap<Version, ChannelValue>;

/// Reads values of a thread. Omits versions without a value.
pub(super) async fn load(
    transaction: &mut PgTransaction,
    thread: i64,
    wanted: &BTreeSet<Version>,
) -> Result<ValueMap, StoreError> {
    let chains = Chains::read(transaction, thread, wanted, u64::MAX).await?;
    let chains = chains.ok_or_else(|| corrupt("value", "the server did not send it"))?;
    // Large values take long to decode.
    let wanted = wanted.clone();
    let decode = move || {
        let mut decoder = chains.decoder()?;
        decoder.decode(&wanted)?;
        Ok(decoder.into_values())
    };
    decode_on_blocking_pool(OPERATION, None, decode).await
}

/// The delta chains of values, not decoded.
#[derive(Default)]
pub(super) struct Chains {
    rows: Vec<PgRow>,
    /// The length in bytes of JSON and the base of each full value or list delta.
    parts: HashMap<Version, (u64, Option<CheckpointId>)>,
}

impl Chains {
    /// Reads the chains of values. Returns `None` if the chains have more than `max_bytes` bytes of
    /// JSON.
    pub(super) async fn read(
        transaction: &mut PgTransaction,
        thread: i64,
        wanted: &BTreeSet<Version>,
        max_bytes: u64,
    ) -> Result<Option<Self>, StoreError> {
        if wanted.is_empty() {
            return Ok(Some(Self::default()));
        }
        let rows = sqlx::query(CHAINS)
            .bind(thread)
            .bind(wanted.iter().map(|(channel, _)| channel.as_str().as_bytes()).collect::<Vec<_>>())
            .bind(wanted.iter().map(|(_, version)| version.0.cast_signed()).collect::<Vec<_>>())
            .bind(i64::try_from(max_bytes).unwrap_or(i64::MAX))
            .fetch_all(&mut **transaction)
            .await
            .map_err(sqlx_error(OPERATION))?;
        let mut parts = HashMap::with_capacity(rows.len());
        for row in &rows {
            let Some(ChainLink { packed, delta, .. }) = chain_link(row)? else { return Ok(None) };
            parts.insert(version(row)?, (unpacked_bytes(packed), delta.map(|delta| delta.base)));
        }
        Ok(Some(Self { rows, parts }))
    }

    /// Returns the length of a value in bytes of JSON. The length of a list is the length of its
    /// chain.
    pub(super) fn bytes(&self, version: &Version) -> u64 {
        let (mut at, mut sum) = (version.clone(), 0_u64);
        while let Some((bytes, base)) = self.parts.get(&at) {
            sum = sum.saturating_add(*bytes);
            // A base is older than its deltas. Otherwise the chain is damaged, and the loop ends.
            let Some(base) = base.filter(|base| *base < at.1) else { break };
            at.1 = base;
        }
        sum
    }

    /// Returns a decoder of the values.
    pub(super) fn decoder(&self) -> Result<ChainDecoder<'_>, StoreError> {
        let mut chain_links = HashMap::with_capacity(self.rows.len());
        for row in &self.rows {
            if let Some(chain_link) = chain_link(row)? {
                chain_links.insert(version(row)?, chain_link);
            }
        }
        Ok(ChainDecoder { chain_links, loaded: ValueMap::new() })
    }
}

/// Decodes values from their delta chains. A value that was decoded is kept, and is decoded only
/// once.
pub(super) struct ChainDecoder<'a> {
    chain_links: HashMap<Version, ChainLink<'a>>,
    loaded: ValueMap,
}

impl ChainDecoder<'_> {
    /// Decodes values. Omits versions without a value.
    pub(super) fn decode(&mut self, wanted: &BTreeSet<Version>) -> Result<(), StoreError> {
        assemble_into(&self.chain_links, wanted, &mut self.loaded)
    }

    /// Returns a value that was decoded.
    pub(super) fn value(&self, version: &Version) -> Option<&ChannelValue> {
        self.loaded.get(version)
    }

    /// Returns all values that were decoded.
    fn into_values(self) -> ValueMap {
        self.loaded
    }
}

/// A stored full value or list delta.
pub(super) struct ChainLink<'a> {
    pub(super) packed: &'a [u8],
    pub(super) delta: Option<ListDelta>,
    /// Items of the list at this version.
    pub(super) items: Option<u64>,
}

fn version(row: &PgRow) -> Result<Version, StoreError> {
    let read = || {
        let channel = ChannelName::new(utf8(row.try_get("channel")?)?)
            .map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok((channel, CheckpointId(unsigned(row, "version")?)))
    };
    read().map_err(|error: sqlx::Error| corrupt("value", error))
}

/// Decodes a full value or a list delta. Returns `None` if the server did not send it.
fn chain_link(row: &PgRow) -> Result<Option<ChainLink<'_>>, StoreError> {
    let read = || {
        let packed: Option<&[u8]> = row.try_get("value")?;
        let Some(packed) = packed else { return Ok(None) };
        let base = checkpoint_id(row, "base")?;
        let keep: Option<i64> = row.try_get("keep")?;
        let keep = keep.map(u32::try_from).transpose();
        let keep = keep.map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok(Some(ChainLink {
            packed,
            delta: base.zip(keep).map(|(base, keep)| ListDelta { base, prefix_len: keep }),
            items: row.try_get::<Option<i64>, _>("items")?.map(i64::cast_unsigned),
        }))
    };
    read().map_err(|error: sqlx::Error| corrupt("value", error))
}

/// Assembles the wanted values, older versions first, because newer versions build on older
/// versions.
pub(super) fn assemble(
    chain_links: &HashMap<Version, ChainLink<'_>>,
    wanted: &BTreeSet<Version>,
) -> Result<ValueMap, StoreError> {
    let mut loaded = ValueMap::new();
    assemble_into(chain_links, wanted, &mut loaded)?;
    Ok(loaded)
}

/// Adds the wanted values to the values that were assembled before.
fn assemble_into(
    chain_links: &HashMap<Version, ChainLink<'_>>,
    wanted: &BTreeSet<Version>,
    loaded: &mut ValueMap,
) -> Result<(), StoreError> {
    for version in wanted {
        if chain_links.contains_key(version) && !loaded.contains_key(version) {
            let value = build(chain_links, loaded, version)?;
            loaded.insert(version.clone(), value.into());
        }
    }
    Ok(())
}

fn build(
    chain_links: &HashMap<Version, ChainLink<'_>>,
    loaded: &ValueMap,
    version: &Version,
) -> Result<Value, StoreError> {
    let what = || format!("value of channel `{}`", version.0);
    let mut deltas = Vec::new();
    let mut at = version.clone();
    let mut value = loop {
        if let Some(value) = loaded.get(&at) {
            break value.value().into_owned();
        }
        let chain_link = chain_links.get(&at).ok_or_else(|| {
            corrupt(what(), format!("the value of checkpoint {} is missing", at.1))
        })?;
        let Some(delta) = chain_link.delta else { break unpack(&what(), chain_link.packed)? };
        if delta.base >= at.1 {
            return Err(corrupt(
                what(),
                format!("the base of the list delta of checkpoint {} is not older", at.1),
            ));
        }
        deltas.push((delta, chain_link));
        at.1 = delta.base;
    };
    for (delta, chain_link) in deltas.into_iter().rev() {
        let rest: Vec<Value> = unpack(&what(), chain_link.packed)?;
        let items = value.as_array_mut().filter(|items| items.len() >= delta.prefix_len as usize);
        let items = items.ok_or_else(|| {
            corrupt(what(), "the base of a list delta has fewer items than the delta keeps of it")
        })?;
        items.truncate(delta.prefix_len as usize);
        items.extend(rest);
        if chain_link.items != Some(items.len() as u64) {
            return Err(corrupt(
                what(),
                format!("its number of items, {}, differs from the stored number", items.len()),
            ));
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(version: u64) -> Version {
        (ChannelName::new("list").unwrap(), CheckpointId(version))
    }

    fn packed(value: &Value) -> Vec<u8> {
        crate::codec::Packer::default().pack(value).unwrap()
    }

    #[test]
    fn delta_chains_are_assembled_and_checked() {
        let (full, delta_1, delta_2) =
            (packed(&json!([1, 2, 3])), packed(&json!([4])), packed(&json!([5, 6])));
        let delta = |base, keep| Some(ListDelta { base: CheckpointId(base), prefix_len: keep });
        let chain_link = |packed, delta, items| ChainLink { packed, delta, items: Some(items) };
        let mut chain_links = HashMap::from([
            (at(1), chain_link(full.as_slice(), None, 3)),
            (at(2), chain_link(delta_1.as_slice(), delta(1, 3), 4)),
            (at(3), chain_link(delta_2.as_slice(), delta(2, 1), 3)),
        ]);
        let read = |chain_links: &HashMap<Version, ChainLink<'_>>, version| {
            assemble(chain_links, &BTreeSet::from([at(version)]))
                .map(|loaded| loaded[&at(version)].clone())
        };
        assert_eq!(read(&chain_links, 3).unwrap(), json!([1, 5, 6]));
        assert_eq!(read(&chain_links, 2).unwrap(), json!([1, 2, 3, 4]));
        for broken in [
            chain_link(delta_1.as_slice(), delta(1, 4), 5),
            chain_link(delta_1.as_slice(), delta(1, 3), 9),
            chain_link(delta_1.as_slice(), delta(2, 3), 4),
            chain_link(delta_1.as_slice(), delta(0, 3), 4),
            chain_link(&delta_1[..2], delta(1, 3), 4),
        ] {
            chain_links.insert(at(2), broken);
            assert!(matches!(read(&chain_links, 2), Err(StoreError::Corrupt { .. })));
        }
    }
}
