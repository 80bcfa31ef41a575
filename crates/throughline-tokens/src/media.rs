//! What pictures and files take, by the rules that vendors publish.
//!
//! A picture's size stands in the first bytes of its file, and only those are decoded. Where the size cannot
//! be known, because the picture is elsewhere or of another kind, a square of 1024 pixels is assumed.

use throughline_core::{File, Image, Media};

/// How much of a file is decoded to find its size: a JPEG tells it only behind its metadata.
const DECODED_BYTES_MAX: usize = 128 * 1024;

/// What is assumed of a picture that cannot be looked at.
const ASSUMED: Dimensions = Dimensions { width: 1024, height: 1024 };

/// Tokens of a page of a PDF, of which vendors give a range of 1,500 to 3,000, and the bytes of a usual page.
const PAGE_TOKENS: u64 = 2_250;
const PAGE_BYTES: u64 = 50_000;

/// What is assumed of a file that is elsewhere: two pages.
const FILE_ASSUMED: u64 = 2 * PAGE_TOKENS;

/// The size of a picture in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// How a family of models charges for pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pictures {
    /// Scaled into a square of 2048, then to a short side of 768, then by tiles of 512.
    Tiles { base: u64, tile: u64 },
    /// By patches of 32 pixels, at most 1,536 of them, times a factor in hundredths.
    Patches { hundredths: u64 },
    /// Scaled to a long side of 1568, then by area.
    Area,
}

impl Pictures {
    pub(crate) fn of_model(model: &str) -> Self {
        let model = model.rsplit('/').next().unwrap_or(model);
        let is = |name: &str| model.starts_with(name);
        let tiles = |base, tile| Self::Tiles { base, tile };
        match model {
            _ if is("gpt-4.1-mini") || is("gpt-5-mini") => Self::Patches { hundredths: 162 },
            _ if is("gpt-4.1-nano") || is("gpt-5-nano") => Self::Patches { hundredths: 246 },
            _ if is("o4-mini") => Self::Patches { hundredths: 172 },
            _ if is("gpt-4o-mini") => tiles(2833, 5667),
            _ if is("gpt-5") => tiles(70, 140),
            _ if is("o1") || is("o3") => tiles(75, 150),
            _ if is("gpt-") || is("chatgpt-") => tiles(85, 170),
            _ => Self::Area,
        }
    }

    /// Returns what a picture takes.
    pub(crate) fn tokens(self, image: &Image) -> u64 {
        let is_low = image.detail.as_deref() == Some("low");
        let found = base64_of(&image.media).and_then(dimensions).unwrap_or(ASSUMED);
        self.of_size(found, is_low)
    }

    fn of_size(self, size: Dimensions, is_low: bool) -> u64 {
        let (width, height) = (f64::from(size.width.max(1)), f64::from(size.height.max(1)));
        match self {
            Self::Tiles { base, .. } if is_low => base,
            Self::Tiles { base, tile } => {
                let fit = (2048.0 / width.max(height)).min(1.0);
                let fit = fit * (768.0 / (width.min(height) * fit)).min(1.0);
                let tiles = |side: f64| (side * fit / 512.0 - 1e-9).ceil().max(1.0);
                base + tile * whole(tiles(width) * tiles(height))
            }
            Self::Patches { hundredths } => {
                let patches = whole((width / 32.0).ceil() * (height / 32.0).ceil()).min(1_536);
                (patches * hundredths).div_ceil(100)
            }
            Self::Area => {
                let fit = (1568.0 / width.max(height)).min(1.0);
                whole((width * fit * height * fit / 750.0).ceil()).min(1_600)
            }
        }
    }
}

/// Returns what a file takes beside its text.
pub(crate) fn file_tokens(file: &File) -> u64 {
    match &file.media {
        Media::Plain(_) => 0,
        Media::Url(_) | Media::Stored(_) => FILE_ASSUMED,
        Media::Inline { base64, .. } => {
            let bytes = base64.len() as u64 * 3 / 4;
            bytes.div_ceil(PAGE_BYTES).max(1) * PAGE_TOKENS
        }
    }
}

fn base64_of(media: &Media) -> Option<&str> {
    match media {
        Media::Inline { base64, .. } => Some(base64),
        Media::Url(url) => url.strip_prefix("data:")?.split_once(";base64,").map(|(_, data)| data),
        Media::Plain(_) | Media::Stored(_) => None,
    }
}

/// Returns the size of a picture, if its first bytes tell: PNG, JPEG, GIF and WebP do.
#[must_use]
pub fn dimensions(base64: &str) -> Option<Dimensions> {
    // Almost all formats tell it within the first bytes.
    let start = decoded(base64, 64);
    match start.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => {
            Some(Dimensions { width: big(&start, 16)?, height: big(&start, 20)? })
        }
        [b'G', b'I', b'F', ..] => {
            Some(Dimensions { width: little(&start, 6, 2)?, height: little(&start, 8, 2)? })
        }
        [b'R', b'I', b'F', b'F', ..] => webp(&start),
        [0xFF, 0xD8, ..] => jpeg(&decoded(base64, DECODED_BYTES_MAX)),
        _ => None,
    }
}

fn webp(bytes: &[u8]) -> Option<Dimensions> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            let side = |at| little(bytes, at, 2).map(|side| side & 0x3FFF);
            Some(Dimensions { width: side(26)?, height: side(28)? })
        }
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(Dimensions { width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1 })
        }
        b"VP8X" => Some(Dimensions { width: little(bytes, 24, 3)? + 1, height: little(bytes, 27, 3)? + 1 }),
        _ => None,
    }
}

/// Walks the segments of a JPEG to the one that begins the frame.
fn jpeg(bytes: &[u8]) -> Option<Dimensions> {
    let mut at = 2;
    loop {
        let [0xFF, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            0xFF => at += 1,
            0x01 | 0xD0..=0xD8 => at += 2,
            // All frames but the tables that share their range.
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let side =
                    |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
                return Some(Dimensions { height: side(at + 5)?, width: side(at + 7)? });
            }
            _ => {
                let len = usize::from(u16::from_be_bytes(bytes.get(at + 2..at + 4)?.try_into().ok()?));
                at += 2 + len.max(2);
            }
        }
    }
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + len)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

/// Decodes the beginning of base64, up to anything that is not base64.
fn decoded(base64: &str, bytes_max: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes_max.min(base64.len()));
    let (mut bits, mut held) = (0_u32, 0);
    for byte in base64.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xFF).unwrap_or_default());
            if out.len() == bytes_max {
                break;
            }
        }
    }
    out
}

/// Returns a number that is whole and not negative as such.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and not negative")]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Text;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAB4AAAAQ4CAYAAADo08FD";

    fn encoded(bytes: &[u8]) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits: Vec<u8> =
            bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        bits.chunks(6)
            .map(|six| six.iter().chain(&[0; 6]).take(6).fold(0, |value, bit| value << 1 | usize::from(*bit)))
            .map(|value| char::from(LETTERS[value]))
            .collect()
    }

    #[test]
    fn the_size_is_read_from_each_kind_of_file() {
        let size = |width, height| Some(Dimensions { width, height });
        assert_eq!(dimensions(PNG), size(1920, 1080));
        assert_eq!(dimensions(&encoded(b"GIF89a\x40\x01\xf0\x00\0\0")), size(320, 240));
        let mut jpeg = vec![0xFF, 0xD8, 0xFF, 0xE1, 0x10, 0x00];
        jpeg.resize(4 + 0x1000, 0);
        jpeg.extend([0xFF, 0xC2, 0, 17, 8, 0x02, 0x58, 0x03, 0x20, 3]);
        assert_eq!(dimensions(&encoded(&jpeg)), size(800, 600));
        let webp =
            |kind: &[u8], rest: &[u8]| encoded(&[b"RIFF\0\0\0\0WEBP", kind, b"\0\0\0\0", rest].concat());
        assert_eq!(dimensions(&webp(b"VP8X", &[0, 0, 0, 0, 0xFF, 0x03, 0, 0xFF, 0x01, 0])), size(1024, 512));
        assert_eq!(dimensions(&webp(b"VP8 ", &[0, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0xE0, 1])), size(640, 480));
        assert_eq!(dimensions(&webp(b"VP8L", &[0x2F, 0x7F, 0xC2, 0x3B, 0])), size(640, 240));
        for nothing in ["", "AAAA", "iVBORw0KGgo", "/9j/", "%%%"] {
            assert_eq!(dimensions(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn pictures_take_what_the_vendors_say() {
        let of = |model: &str, width, height, low| {
            Pictures::of_model(model).of_size(Dimensions { width, height }, low)
        };
        assert_eq!(of("gpt-4o", 1024, 1024, false), 765);
        assert_eq!(of("gpt-4o", 2048, 4096, false), 1105);
        assert_eq!(of("gpt-4o", 4096, 8192, true), 85);
        assert_eq!(of("gpt-5", 1024, 1024, false), 630);
        assert_eq!(of("gpt-4.1-mini", 1024, 1024, false), 1659);
        assert_eq!(of("o4-mini", 1800, 2400, false), 2642);
        assert_eq!(of("claude-sonnet-4-5", 1000, 1000, false), 1334);
        assert_eq!(of("claude-sonnet-4-5", 200, 200, false), 54);
        assert_eq!(of("claude-sonnet-4-5", 8000, 8000, false), 1600);
    }

    #[test]
    fn a_picture_elsewhere_counts_as_a_usual_one() {
        let image = |media| Image { media, detail: None };
        let pictures = Pictures::of_model("gpt-4o");
        let elsewhere = pictures.tokens(&image(Media::Url(Text::from_static("https://example.com/a.png"))));
        assert_eq!(elsewhere, 765);
        let data = pictures.tokens(&image(Media::Url(format!("data:image/png;base64,{PNG}").into())));
        assert_eq!(data, 1105);
    }
}
