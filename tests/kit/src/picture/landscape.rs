//! Landscapes for the demo: sky, sun and hills, whose colors and shapes are derived from a text.
//! Different texts look different, and equal texts look equal.

use super::{SIGNATURE, international_text, push_chunk, zlib_stored};

const WIDTH: u32 = 320;
const HEIGHT: u32 = 180;

/// Shades of the sky, from the top down. The colors after them are sun, far hills and near hills.
const SKY_SHADES: u32 = 8;
const SUN: u8 = 8;
const FAR: u8 = 9;
const NEAR: u8 = 10;

/// Returns a PNG of 320 by 180 pixels that contains `text` as [`super::png_with_text`] does.
pub fn landscape(text: &str) -> Vec<u8> {
    let seed = *blake3::hash(text.as_bytes()).as_bytes();
    let mut png = SIGNATURE.to_vec();
    let mut header = [WIDTH.to_be_bytes(), HEIGHT.to_be_bytes()].concat();
    // Four bits per pixel, colors from a palette, no interlace.
    header.extend([4, 3, 0, 0, 0]);
    push_chunk(&mut png, *b"IHDR", &header);
    push_chunk(&mut png, *b"iTXt", &international_text(text));
    push_chunk(&mut png, *b"PLTE", &colors(seed[0]).concat());
    push_chunk(&mut png, *b"IDAT", &zlib_stored(&pixels(&seed)));
    push_chunk(&mut png, *b"IEND", &[]);
    png
}

/// Returns sixteen colors around a hue. The last ones are unused.
fn colors(hue: u8) -> Vec<[u8; 3]> {
    let mixed = |share: f64| {
        let wave = |shift: f64| {
            let angle = f64::from(hue) / 256.0 * std::f64::consts::TAU + shift;
            let tint = 0.5 + 0.5 * angle.sin();
            whole(255.0 * (share + (1.0 - share) * (0.35 + 0.4 * tint)))
        };
        [wave(0.0), wave(2.1), wave(4.2)]
    };
    let sky = (0..SKY_SHADES).map(|shade| mixed(f64::from(shade) / f64::from(SKY_SHADES)));
    let dark = |[red, green, blue]: [u8; 3], by: u8| [red / by, green / by, blue / by];
    let hills = [[255, 244, 214], dark(mixed(0.3), 2), dark(mixed(0.1), 3)];
    let mut colors: Vec<[u8; 3]> = sky.chain(hills).collect();
    colors.resize(16, [0, 0, 0]);
    colors
}

/// Returns rows of two pixels per byte, each with the filter type 0.
fn pixels(seed: &[u8; 32]) -> Vec<u8> {
    let row = |y: u32| {
        let pairs = (0..WIDTH / 2).map(move |pair| {
            let [left, right] = [2 * pair, 2 * pair + 1].map(|x| color(seed, x, y));
            (left << 4) | right
        });
        std::iter::once(0).chain(pairs)
    };
    (0..HEIGHT).flat_map(row).collect()
}

fn color(seed: &[u8; 32], x: u32, y: u32) -> u8 {
    let [x, y] = [x, y].map(f64::from);
    let chance = |place: usize| f64::from(seed[place]) / 255.0;
    let hill = |base: f64, place: usize| {
        let waves = (x / (28.0 + 20.0 * chance(place)) + 6.0 * chance(place + 1)).sin()
            + 0.5 * (x / (11.0 + 9.0 * chance(place + 2))).sin();
        base + 14.0 * waves
    };
    if y > hill(145.0, 1) {
        return NEAR;
    }
    if y > hill(112.0, 4) {
        return FAR;
    }
    let (away_x, away_y) = (x - 50.0 - 220.0 * chance(7), y - 35.0 - 40.0 * chance(8));
    if away_x.hypot(away_y) < 22.0 {
        return SUN;
    }
    whole(y / f64::from(HEIGHT) * f64::from(SKY_SHADES))
}

#[expect(clippy::cast_sign_loss, reason = "colors and shades are never negative")]
fn whole(value: f64) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use super::landscape;
    use crate::picture::text_of_png;

    #[test]
    fn equal_texts_have_equal_landscapes() {
        let tower = landscape("Tokyo Tower at dusk");
        assert_eq!(text_of_png(&tower).as_deref(), Some("Tokyo Tower at dusk"));
        assert_eq!(tower, landscape("Tokyo Tower at dusk"));
        assert_ne!(tower, landscape("Senso-ji at noon"));
        assert!((20_000..40_000).contains(&tower.len()), "{}", tower.len());
    }
}
