//! Blocks: the parts of a guide, one place or hint each.

mod draft;
mod id;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

pub(crate) use self::draft::{BLOCKS, Draft, check, sanitize};

/// The subject of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BlockType {
    /// Food or drink.
    Food,
    /// A place to see. Only spots get coordinates.
    Spot,
    /// Transport.
    Transport,
    /// Shopping.
    Shopping,
    /// Anything else.
    Other,
}

impl BlockType {
    /// All types.
    pub(crate) const ALL: [Self; 5] =
        [Self::Food, Self::Spot, Self::Transport, Self::Shopping, Self::Other];

    /// Returns the name that documents use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Food => "food",
            Self::Spot => "spot",
            Self::Transport => "transport",
            Self::Shopping => "shopping",
            Self::Other => "other",
        }
    }
}

impl JsonSchema for BlockType {
    fn schema_name() -> Cow<'static, str> {
        "BlockType".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // The derived schema has a `const` for each documented variant, which some providers reject.
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "enum": Self::ALL.map(Self::name),
        })
    }
}

/// Coordinates in degrees (WGS 84).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Location {
    /// Latitude, -90 to 90.
    pub(crate) lat: f64,
    /// Longitude, -180 to 180.
    pub(crate) lng: f64,
}

impl Location {
    /// Returns true if the coordinates are in the valid range.
    pub(crate) fn is_on_globe(self) -> bool {
        (-90.0..=90.0).contains(&self.lat) && (-180.0..=180.0).contains(&self.lng)
    }
}

/// One block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Block {
    /// Unique in its guide.
    pub(crate) block_id: String,
    /// What it is about.
    #[serde(rename = "type")]
    pub(crate) kind: BlockType,
    /// A few words.
    pub(crate) title: String,
    /// A paragraph.
    pub(crate) description: String,
    /// Where it is; only ever from a geocoder.
    pub(crate) location: Option<Location>,
    /// Short words.
    #[serde(default)]
    pub(crate) smart_tags: Vec<String>,
}

/// Returns the blocks that are spots, in order.
pub(crate) fn spots(blocks: &[Block]) -> Vec<Block> {
    blocks.iter().filter(|block| block.kind == BlockType::Spot).cloned().collect()
}
