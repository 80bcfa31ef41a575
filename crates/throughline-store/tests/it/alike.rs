//! A search gives the same over every store, item for item, whatever the words, the filters and the size of a page.
//!
//! The stores have different full-text engines with ideas of their own about letters; what a word is must not depend
//! on them. So one history is put into all stores, made of pieces that engines are known to take differently.

use std::sync::Arc;

use throughline_core::Outcome;
use throughline_store::{Field, Hit, Memory, Moment, Paging, Search};

use crate::fixtures::{
    Folder, Schema, Store, append, assistant, call, conversation, open, result, run, user,
};

/// What texts and queries are made of.
const PIECES: [&str; 48] = [
    // Marks that stand alone, joined with their letter, or in scripts where they make the vowels.
    "é",
    "e\u{301}",
    "naïve",
    "nai\u{308}ve",
    "\u{301}",
    "हिन्दी",
    "ภาษาไทย",
    "שָׁלוֹם",
    // No spaces between words, and letters of newer Unicode versions.
    "日本語",
    "日本",
    "テスト",
    "ﾃｽﾄ",
    "한국어",
    "ꭰꭱ",
    "ᎠᎡ",
    "ᲐᲑ",
    "𝒳",
    "𞤀",
    // Small letters that are not what one expects.
    "Straße",
    "STRASSE",
    "İstanbul",
    "istanbul",
    "ſo",
    "Σίσυφος",
    "ΣΊΣΥΦΟΣ",
    "ǅ",
    "K",
    // Numbers that are not digits, what is private, what is nothing.
    "x²",
    "①",
    "Ⅷ",
    "١٢٣",
    "\u{e000}a",
    "🦀",
    "a\u{200d}b",
    "a\u{0}b",
    "\u{ad}",
    // Paths, commands, errors.
    "src/main.rs",
    "C:\\Windows\\x.txt",
    "foo_bar",
    "fooBar",
    "--workspace",
    "error[E0425]",
    "don't",
    "cargo test",
    "a.b.c",
    "NOT",
    "near(x)",
    "'quoted' \"twice\"",
];

const TOOLS: [&str; 3] = ["Read", "Bash", "日本"];

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn any<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn text(&mut self) -> String {
        let count = 1 + self.below(6);
        let pieces: Vec<&str> = (0..count).map(|_| self.any(&PIECES)).collect();
        pieces.join(self.any(&[" ", " ", "\n", "/", "", "\u{3000}"]))
    }

    fn query(&mut self) -> String {
        let count = 1 + self.below(2);
        let terms: Vec<String> = (0..count)
            .map(|_| {
                let piece = self.any(&PIECES);
                let upper = if self.below(3) == 0 { piece.to_uppercase() } else { piece.to_owned() };
                let whole = upper.chars().count();
                let some: String = upper.chars().take(1 + self.below(whole)).collect();
                match self.below(5) {
                    0 => format!("\"{upper} {}\"", self.any(&PIECES)),
                    1 => format!("\"{upper}\"*"),
                    2 => format!("{some}*"),
                    _ => upper,
                }
            })
            .collect();
        terms.join(" ")
    }

    fn search(&mut self) -> Search {
        let moment = |at: usize| Moment(i64::try_from(at).unwrap());
        Search {
            words: if self.below(10) == 0 { String::new() } else { self.query() },
            field: [None, None, None, Some(Field::Talk), Some(Field::Input), Some(Field::Output)]
                [self.below(6)],
            tool: (self.below(6) == 0)
                .then(|| self.any(&[TOOLS[0], TOOLS[1], TOOLS[2], "SHELL", "view"]).into()),
            path: (self.below(10) == 0).then(|| self.query()),
            command: (self.below(10) == 0).then(|| self.query()),
            failed: self.below(12) == 0,
            conversation: (self.below(4) == 0).then(|| conversation(&self.below(7).to_string())),
            since: (self.below(4) == 0).then(|| moment(self.below(60))),
            until: (self.below(4) == 0).then(|| moment(self.below(60))),
            paging: Paging::first(u32::try_from(1 + self.below(40)).unwrap()),
            effort: if self.below(3) == 0 { 1 + u32::try_from(self.below(60)).unwrap() } else { 20_000 },
        }
    }
}

/// Puts the same history into a store each time: six conversations, said and done.
async fn fill(store: &Store) {
    let mut dice = Dice(7);
    let mut tips = vec![None; 6];
    for at in 0..60 {
        let id = dice.below(tips.len());
        let (one, other) = (format!("c{at}"), format!("d{at}"));
        let arguments = format!("{{\"path\":{}}}", quoted(&dice.text()));
        let outcomes = [Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown];
        let outcome = outcomes[dice.below(outcomes.len())];
        let entries = [
            user(&dice.text()),
            call(&one, dice.any(&TOOLS), &arguments),
            call(&other, dice.any(&TOOLS), &format!("{{\"command\":{}}}", quoted(&dice.text()))),
            result(&one, &dice.text(), outcome),
            result(&other, &format!("Exit code: {}\n{}", dice.below(2), dice.text()), Outcome::Ok),
            assistant(&dice.text()),
        ];
        tips[id] = Some(append(store, &id.to_string(), tips[id].as_ref(), at, &entries).await);
    }
}

/// A text as JSON, with the escapes that JSON wants.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\u{0}'..='\u{1f}' => format!("\\u{:04x}", u32::from(c)),
        _ => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Everything that a search finds, page by page, none of which is larger than was asked for.
async fn all_pages(store: &Store, mut search: Search) -> Vec<Hit> {
    let mut hits = Vec::new();
    loop {
        let page = store.search(search.clone()).await.unwrap();
        assert!(page.items.len() <= search.paging.limit as usize);
        hits.extend(page.items);
        search.paging.after = match page.next {
            Some(next) => Some(next),
            None => return hits,
        };
    }
}

/// Holds a store against the one in memory, which has no index that could be wrong.
async fn compare(store: Store) {
    let memory: Store = Arc::new(Memory::new());
    fill(&memory).await;
    fill(&store).await;
    let mut dice = Dice(11);
    let mut found = 0;
    for _ in 0..400 {
        let search = dice.search();
        let (expected, hits) =
            (all_pages(&memory, search.clone()).await, all_pages(&store, search.clone()).await);
        assert_eq!(hits, expected, "{search:?}");
        found += usize::from(!hits.is_empty());
    }
    assert!(found > 100, "{found} of the searches found something");
}

#[test]
fn sqlite_finds_what_memory_finds() {
    let folder = Folder::new("alike");
    run(compare(Arc::new(open(&folder.database()))));
}

#[test]
fn postgres_finds_what_memory_finds() {
    let Some(schema) = Schema::new("alike") else { return };
    run(compare(Arc::new(schema.open())));
}
