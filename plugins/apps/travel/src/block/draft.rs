//! Blocks as a model drafts them: their checks, and their conversion to blocks of the guide.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::block::{Block, BlockType, id};

/// Number of blocks in a guide.
pub(crate) const BLOCKS: std::ops::RangeInclusive<usize> = 4..=16;

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct Draft {
    /// All blocks, 4 to 16, in the order of the guide.
    pub(crate) blocks: Vec<DraftBlock>,
    /// The blocks of type `spot` once more, unchanged.
    pub(crate) spot_blocks: Vec<DraftBlock>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct DraftBlock {
    /// Unique among the blocks.
    pub(crate) block_id: String,
    /// What it is about.
    #[serde(rename = "type")]
    pub(crate) kind: BlockType,
    /// A few words.
    pub(crate) title: String,
    /// A paragraph.
    pub(crate) description: String,
    /// Always null: coordinates come from a geocoder.
    #[schemars(with = "()")]
    pub(crate) location: Option<Value>,
    /// Short words.
    pub(crate) smart_tags: Vec<String>,
}

/// Checks a draft. The errors are one sentence each.
pub(crate) fn check(draft: &Draft) -> Result<(), Vec<String>> {
    let mut errors = Vec::new();
    if !BLOCKS.contains(&draft.blocks.len()) {
        let (count, least, most) = (draft.blocks.len(), BLOCKS.start(), BLOCKS.end());
        errors.push(format!("`blocks` has {count} blocks; give {least} to {most}"));
    }
    let mut ids = HashSet::new();
    for (at, block) in draft.blocks.iter().enumerate() {
        errors.extend(block.problems(&format!("blocks[{at}]")));
        if !ids.insert(block.block_id.as_str()) {
            errors.push(format!("`blocks[{at}].block_id` `{}` is not unique", block.block_id));
        }
    }
    errors.extend(check_spots(draft));
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that the spots are exactly the blocks of type `spot`.
fn check_spots(draft: &Draft) -> Vec<String> {
    let mut errors = Vec::new();
    let mut open: Vec<&DraftBlock> = draft.blocks.iter().filter(|block| block.is_spot()).collect();
    for (at, spot) in draft.spot_blocks.iter().enumerate() {
        let id = &spot.block_id;
        if spot.location.is_some() {
            errors.push(format!("`spot_blocks[{at}].location` must be null"));
        }
        match open.iter().position(|block| block.block_id == *id) {
            Some(found) if open[found].says_the_same(spot) => drop(open.remove(found)),
            Some(found) => {
                open.remove(found);
                errors.push(format!("`spot_blocks[{at}]` differs from block `{id}`; repeat it"));
            }
            None => errors.push(format!(
                "`spot_blocks[{at}]` `{id}` is no block of type `spot`, or is there twice"
            )),
        }
    }
    let missing = |block: &&DraftBlock| format!("`spot_blocks` lacks spot `{}`", block.block_id);
    errors.extend(open.iter().map(missing));
    errors
}

impl DraftBlock {
    fn is_spot(&self) -> bool {
        self.kind == BlockType::Spot
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let own = (self.kind, self.title.trim(), self.description.trim());
        own == (other.kind, other.title.trim(), other.description.trim())
    }

    fn problems(&self, place: &str) -> Vec<String> {
        let texts = [
            ("block_id", &self.block_id),
            ("title", &self.title),
            ("description", &self.description),
        ];
        let empty = texts.iter().filter(|(_, text)| text.trim().is_empty());
        let mut errors: Vec<String> =
            empty.map(|(name, _)| format!("`{place}.{name}` is empty")).collect();
        if self.location.is_some() {
            errors.push(format!("`{place}.location` must be null: a geocoder finds coordinates"));
        }
        errors
    }
}

/// Converts a checked draft to blocks: with new ids, without coordinates, with clean tags. The ids
/// depend only on the video and the draft, so a repeated step creates equal ids.
pub(crate) fn sanitize(draft: Draft, video_id: &str) -> Vec<Block> {
    let mut taken = HashSet::new();
    let blocks = draft.blocks.into_iter().enumerate();
    blocks
        .map(|(at, block)| {
            let title = block.title.trim().to_owned();
            let block_id = id::unique(&mut taken, video_id, at, &title);
            Block {
                block_id,
                kind: block.kind,
                title,
                description: block.description.trim().to_owned(),
                location: None,
                smart_tags: clean(&block.smart_tags),
            }
        })
        .collect()
}

/// Returns the tags that are not empty, without duplicates.
fn clean(tags: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let tags = tags.iter().map(|tag| tag.trim()).filter(|tag| !tag.is_empty());
    tags.filter(|tag| seen.insert(*tag)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Draft, check, sanitize};
    use crate::block::spots;

    fn block(id: &str, kind: &str) -> Value {
        json!({"block_id": id, "type": kind, "title": format!("Title {id}"),
            "description": "Words", "location": null, "smart_tags": [" a ", "a", "", "b"]})
    }

    /// Creates a draft of four blocks, two of them spots, and changes it.
    fn draft(change: impl FnOnce(&mut Value)) -> Draft {
        let mut draft = json!({
            "blocks": [
                block("a", "spot"), block("b", "food"), block("c", "spot"), block("d", "other"),
            ],
            "spot_blocks": [block("c", "spot"), block("a", "spot")],
        });
        change(&mut draft);
        serde_json::from_value(draft).unwrap()
    }

    fn errors(change: impl FnOnce(&mut Value)) -> Vec<String> {
        check(&draft(change)).err().unwrap_or_default()
    }

    #[test]
    fn s3_21_a_valid_draft_has_no_errors() {
        assert!(errors(|_| {}).is_empty());
    }

    #[test]
    fn s3_21_there_are_four_to_sixteen_blocks() {
        for (count, is_good) in [(0, false), (3, false), (4, true), (16, true), (17, false)] {
            let errors = errors(|draft| {
                draft["blocks"] = (0..count).map(|n| block(&format!("x{n}"), "food")).collect();
                draft["spot_blocks"] = json!([]);
            });
            assert_eq!(errors.is_empty(), is_good, "{count}");
            let told = format!("`blocks` has {count} blocks; give 4 to 16");
            assert!(is_good || errors[0] == told, "{errors:?}");
        }
    }

    #[test]
    fn s3_21_every_rule_has_its_error() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 9] = [
            (|it| it["blocks"][1]["block_id"] = json!(" "), "`blocks[1].block_id` is empty"),
            (
                |it| it["blocks"][1]["block_id"] = json!("d"),
                "`blocks[3].block_id` `d` is not unique",
            ),
            (|it| it["blocks"][1]["title"] = json!(""), "`blocks[1].title` is empty"),
            (|it| it["blocks"][3]["description"] = json!("\n"), "`blocks[3].description` is empty"),
            (
                |it| it["blocks"][0]["location"] = json!({"lat": 1, "lng": 2}),
                "`blocks[0].location` must be null: a geocoder finds coordinates",
            ),
            (
                |it| it["spot_blocks"][0]["location"] = json!({"lat": 1, "lng": 2}),
                "`spot_blocks[0].location` must be null",
            ),
            (|it| it["spot_blocks"] = json!([block("a", "spot")]), "`spot_blocks` lacks spot `c`"),
            (
                |it| it["spot_blocks"][1] = block("b", "food"),
                "`spot_blocks[1]` `b` is no block of type `spot`, or is there twice",
            ),
            (
                |it| it["spot_blocks"][1]["title"] = json!("Other"),
                "`spot_blocks[1]` differs from block `a`; repeat it",
            ),
        ];
        for (change, expected) in cases {
            let errors = errors(change);
            assert!(errors.iter().any(|error| error == expected), "{expected}: {errors:?}");
        }
        let twice =
            errors(|it| it["spot_blocks"] = json!([block("a", "spot"), block("a", "spot")]));
        assert_eq!(twice.len(), 2);
    }

    #[test]
    fn s3_22_ids_coordinates_and_tags_are_replaced() {
        let blocks = sanitize(draft(|it| it["blocks"][0]["title"] = json!(" Tower ")), "vid");
        assert_eq!(blocks[0].title, "Tower");
        assert_eq!(blocks[0].smart_tags, ["a", "b"]);
        assert!(blocks.iter().all(|block| block.location.is_none()));
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for block in &blocks {
            assert!(block.block_id.len() == 8 && block.block_id.chars().all(word), "{block:?}");
        }
    }

    #[test]
    fn s3_23_spots_have_the_ids_of_their_blocks_and_a_repeated_step_is_equal() {
        let blocks = sanitize(draft(|_| {}), "vid");
        let ids: Vec<_> = spots(&blocks).into_iter().map(|spot| spot.block_id).collect();
        assert_eq!(ids, [blocks[0].block_id.clone(), blocks[2].block_id.clone()]);
        assert_eq!(sanitize(draft(|_| {}), "vid"), blocks);
        assert_ne!(sanitize(draft(|_| {}), "other")[0].block_id, blocks[0].block_id);
    }

    #[test]
    fn s3_11_s3_21_the_schema_permits_no_coordinates_and_only_the_known_block_types() {
        let schema = schemars::schema_for!(Draft).to_value();
        let definition = &schema["$defs"]["DraftBlock"]["properties"];
        assert_eq!(definition["location"]["type"], "null");
        for name in definition["type"]["enum"].as_array().unwrap() {
            let blocks = [block("a", name.as_str().unwrap())];
            let draft = json!({"blocks": blocks, "spot_blocks": []});
            assert!(serde_json::from_value::<Draft>(draft).is_ok(), "{name}");
        }
        let wrong = json!({"blocks": [block("a", "museum")], "spot_blocks": []});
        assert!(serde_json::from_value::<Draft>(wrong).is_err());
    }
}
