//! JSON as clients may write it: any key order, any white space, needless escapes, odd numbers.
//!
//! What a body says is drawn by `proptest`, so that a failure shrinks; how it is written is decided by
//! [`Dice`], thrown while printing. Dice with seed zero always show the first side, which is the plainest
//! form, so that the writing shrinks too.

use throughline_wire::json::{Kind, Node};

/// Small decisions that need no shrinking of their own.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `sides`; zero if the seed was zero.
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        if self.0 == 0 {
            return 0;
        }
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    /// Says yes once in `times`; never if the seed was zero.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.roll(times) + 1 == times
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in 1..items.len() {
            let other = at - self.roll(at + 1).min(at);
            items.swap(at, other);
        }
    }
}

/// A JSON value that is not written yet.
#[derive(Clone, Debug)]
pub(super) enum Json {
    /// Exactly this text.
    Raw(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object, to be written in any order.
    Object(Vec<(String, Self)>),
}

pub(super) fn raw(text: impl Into<String>) -> Json {
    Json::Raw(text.into())
}

pub(super) fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

pub(super) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns an object with a `type`.
pub(super) fn typed<const N: usize>(kind: &str, fields: [(&str, Json); N]) -> Json {
    object(fields).with("type", text(kind))
}

impl Json {
    /// Adds a field to an object.
    pub(super) fn with(mut self, name: &str, value: Self) -> Self {
        if let Self::Object(fields) = &mut self {
            fields.push((name.to_owned(), value));
        }
        self
    }

    /// Adds a field to an object, if there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<Self>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a field that no dialect knows, now and then.
    pub(super) fn with_unknown(self, wild: bool, dice: &mut Dice) -> Self {
        if wild && dice.one_in(4) {
            let value = unknown_value(dice);
            return self.with(dice.pick(&["x_unknown", "vendor-field", "élan", "cache_hint"]), value);
        }
        self
    }

    pub(super) fn print(&self, dice: &mut Dice) -> String {
        let mut out = String::new();
        self.write(&mut out, dice);
        out
    }

    fn write(&self, out: &mut String, dice: &mut Dice) {
        match self {
            Self::Raw(text) => out.push_str(text),
            Self::Text(text) => write_string(text, out, dice),
            Self::List(items) => {
                write_all('[', items, ']', out, dice, Self::write);
            }
            Self::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                dice.shuffle(&mut fields);
                write_all('{', &fields, '}', out, dice, |(name, value), out, dice| {
                    write_string(name, out, dice);
                    write_space(out, dice);
                    out.push(':');
                    write_space(out, dice);
                    value.write(out, dice);
                });
            }
        }
    }
}

fn write_all<T>(
    open: char,
    items: &[T],
    close: char,
    out: &mut String,
    dice: &mut Dice,
    write: impl Fn(&T, &mut String, &mut Dice),
) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_space(out, dice);
        write(item, out, dice);
        write_space(out, dice);
    }
    out.push(close);
}

fn write_space(out: &mut String, dice: &mut Dice) {
    out.push_str(dice.pick(&["", "", "", "", "", " ", "\n  ", "\t"]));
}

/// Writes a string, with some characters escaped that need not be.
fn write_string(text: &str, out: &mut String, dice: &mut Dice) {
    let needless = dice.one_in(4);
    out.push('"');
    for c in text.chars() {
        if needless && dice.one_in(3) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            let quoted = serde_json::to_string(&c).expect("a character");
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out.push('"');
}

/// Returns a value such as only a field that nobody knows may have.
pub(super) fn unknown_value(dice: &mut Dice) -> Json {
    raw(dice.pick(&[
        "1.10",
        "1e0",
        "12345678901234567890123",
        "-0.0",
        "null",
        "[]",
        "{}",
        "true",
        r#""\u00e9\/\ud83d\ude00""#,
        r#"{"b": 1, "a" :[2.50, null, {"z":[], "y":1E+2}]}"#,
    ]))
}

/// Returns where two values differ: fields in any order, strings by what they mean, numbers by their text,
/// and what tools are given and declared with by its exact text.
pub(super) fn difference(before: Node<'_>, after: Node<'_>) -> Option<String> {
    let differs = || Some(format!("{}: {} became {}", before.path(), before.raw(), after.raw()));
    match (before.kind(), after.kind()) {
        (Kind::String, Kind::String) => {
            if before.as_str() == after.as_str() {
                None
            } else {
                differs()
            }
        }
        (Kind::Array, Kind::Array) => {
            if before.len() == after.len() {
                before.items().zip(after.items()).find_map(|(before, after)| difference(before, after))
            } else {
                differs()
            }
        }
        (Kind::Object, Kind::Object) => {
            if before.len() != after.len() {
                return differs();
            }
            before.fields().find_map(|(name, value)| match after.field(&name) {
                Some(other) if is_exact(&name, value) => (value.raw() != other.raw()).then(differs).flatten(),
                Some(other) => difference(value, other),
                None => differs(),
            })
        }
        _ if before.raw() == after.raw() => None,
        _ => differs(),
    }
}

fn is_exact(name: &str, value: Node<'_>) -> bool {
    value.kind() == Kind::Object
        && matches!(name, "input" | "arguments" | "parameters" | "input_schema" | "schema")
}
