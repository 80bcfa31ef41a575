//! What entries, tools and prompts take.

use throughline_core::{
    Call, Content, Entry, File, Image, Input, Kind, Media, Outcome, Part, Return, Role, Said, Seal, Text,
    Thought, Tool, ToolForm,
};
use throughline_tokens::{Calibration, Counts, Gauge, Method, Size, Vocabulary, family};

fn gauge(model: &str) -> Gauge {
    Vocabulary::ALL.into_iter().for_each(Vocabulary::load);
    Gauge::of_model(model)
}

fn call(arguments: &str) -> Entry {
    Entry::new(Kind::Called(Call {
        id: Text::from_static("call_1"),
        item_id: None,
        name: Text::from_static("read_file"),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    }))
}

fn returned(parts: Vec<Part>) -> Entry {
    Entry::new(Kind::Returned(Return {
        call_id: Some(Text::from_static("call_1")),
        item_id: None,
        name: None,
        parts,
        outcome: Outcome::Ok,
        freeform: false,
    }))
}

#[test]
fn an_entry_takes_its_text_and_what_frames_it() {
    let (gauge, counts) = (gauge("gpt-4o"), Counts::default());
    assert_eq!(gauge.method(), Method::Exact);
    let said = Entry::said(Role::User, "hello world");
    assert_eq!(gauge.tokens(gauge.entry(&counts, &said)), 2 + 4);
    let name = Vocabulary::O200k.count("read_file");
    assert_eq!(gauge.tokens(gauge.entry(&counts, &call("hello world"))), name + 2 + 8);
    assert_eq!(gauge.tokens(gauge.entry(&counts, &returned(vec![Part::text("hello world")]))), 2 + 5);
}

#[test]
fn every_kind_of_content_takes_something() {
    let (gauge, counts) = (gauge("claude-sonnet-4-5"), Counts::default());
    let media = || Media::Url(Text::from_static("https://example.com/x"));
    let image = Content::Image(Image { media: media(), detail: None });
    let file = Content::File(File { media: media(), name: None });
    let plain = Content::File(File { media: Media::Plain(Text::from_static("hello world")), name: None });
    let size = |content| {
        let part = Part { content, wire: None };
        let said = Said { role: Role::User, parts: vec![part], standing: false };
        gauge.entry(&counts, &Entry::new(Kind::Said(said)))
    };
    assert_eq!(size(image), Size { text: 4, fixed: 1399 });
    assert_eq!(size(file), Size { text: 4, fixed: 4500 });
    assert_eq!(size(plain), Size { text: 6, fixed: 0 });
    let seal = |seal| Entry::new(Kind::Thought(Thought { seal: Some(seal), ..Thought::default() }));
    let sealed = Text::from("x".repeat(160));
    assert_eq!(gauge.entry(&counts, &seal(Seal::Encrypted(sealed.clone()))).fixed, 30);
    assert_eq!(gauge.entry(&counts, &seal(Seal::Signature(sealed))).fixed, 0);
}

#[test]
fn a_tool_takes_its_name_description_and_schema() {
    let (gauge, counts) = (gauge("gpt-4o"), Counts::default());
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tool = |description: Option<&str>| Tool {
        name: Text::from_static("read"),
        namespace: None,
        description: description.map(Text::from),
        form: ToolForm::Function { schema: Some(schema.into()), strict: None },
        wire: None,
        intact: true,
    };
    let without = gauge.tool(&counts, &tool(None)).text;
    assert_eq!(without, Vocabulary::O200k.count("read") + Vocabulary::O200k.count(schema) + 8);
    assert_eq!(gauge.tool(&counts, &tool(Some("hello world"))).text, without + 2);
}

#[test]
fn a_factor_scales_text_and_nothing_else() {
    let gauge = gauge("claude-sonnet-4-5");
    let size = Size { text: 1000, fixed: 500 };
    assert_eq!(gauge.tokens(size), 1200 + 500);
    let mut calibration = Calibration::default();
    for _ in 0..3 {
        assert!(gauge.teach(&mut calibration, size, 1350 + 500));
    }
    let calibrated = gauge.calibrated(&calibration);
    assert_eq!(calibrated.tokens(size), 1350 + 500);
    assert!(calibrated.tokens_at_most(size) > calibrated.tokens(size));
}

#[test]
fn a_public_vocabulary_is_not_scaled_and_learns_nothing() {
    let gauge = gauge("gpt-5");
    let mut calibration = Calibration::default();
    assert!(!gauge.teach(&mut calibration, Size { text: 1000, fixed: 0 }, 1500));
    for _ in 0..9 {
        calibration.observe(1000, 1500);
    }
    assert_eq!(gauge.calibrated(&calibration), gauge);
    assert_eq!(gauge.tokens_at_most(Size { text: 1000, fixed: 7 }), 1007);
}

#[test]
fn later_models_of_anthropic_start_higher() {
    for model in ["claude-opus-4-7", "claude-opus-4.8", "claude-sonnet-5", "anthropic/claude-opus-5-20270101"]
    {
        assert_eq!(Gauge::of_model(model).factor(), 1500, "{model}");
    }
    for model in ["claude-sonnet-4-5-20250929", "claude-opus-4-5", "claude-3-7-sonnet-latest", "qwen3", ""] {
        assert_eq!(Gauge::of_model(model).factor(), 1200, "{model}");
    }
}

#[test]
fn a_family_is_a_name_without_date_server_and_variant() {
    for (model, name) in [
        ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("Qwen/Qwen3-Coder-480B:free", "qwen3-coder-480b"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("", ""),
    ] {
        assert_eq!(family(model), name, "{model}");
    }
}
