//! The blocks that get an image.

use crate::block::{Block, BlockType};

/// Maximum number of images of a guide. Each is searched or paid for.
pub(crate) const MAX_IMAGES: usize = 6;

/// Types of blocks, those with the best images first.
const ORDER: [BlockType; 5] =
    [BlockType::Spot, BlockType::Food, BlockType::Shopping, BlockType::Transport, BlockType::Other];

/// Returns the blocks that get an image: at most `count`, or the maximum of a guide.
pub(crate) fn choose(blocks: &[Block], count: Option<u32>) -> Vec<&Block> {
    let count = count.map_or(MAX_IMAGES, |count| (count as usize).clamp(1, MAX_IMAGES));
    let of_kind = |kind| blocks.iter().filter(move |block| block.kind == kind);
    ORDER.into_iter().flat_map(of_kind).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::block::{Block, BlockType};
    use crate::image::plan::tests::block;

    fn check(blocks: &[Block], count: Option<u32>, expected: &[&str]) {
        let chosen = choose(blocks, count);
        let ids: Vec<&str> = chosen.iter().map(|block| block.block_id.as_str()).collect();
        assert_eq!(ids, expected, "{count:?}");
    }

    #[test]
    fn s3_30_s3_31_spots_come_first_and_six_images_are_the_maximum() {
        let kinds = [
            ("o", BlockType::Other),
            ("t", BlockType::Transport),
            ("s1", BlockType::Spot),
            ("f", BlockType::Food),
            ("h", BlockType::Shopping),
            ("s2", BlockType::Spot),
            ("s3", BlockType::Spot),
        ];
        let blocks: Vec<Block> = kinds.map(|(id, kind)| block(id, kind)).into();
        check(&blocks, None, &["s1", "s2", "s3", "f", "h", "t"]);
        check(&blocks, Some(2), &["s1", "s2"]);
        check(&blocks, Some(99), &["s1", "s2", "s3", "f", "h", "t"]);
        check(&blocks, Some(0), &["s1"]);
        check(&blocks[..2], None, &["t", "o"]);
        check(&[], None, &[]);
    }
}
