//! The canonical model of an agent's tool history.
//!
//! A client's request is an [`Ask`]: a list of [`Entry`]s, the [`Tool`]s on offer, and [`Settings`]. The
//! [`Ledger`] derives from the entries which call belongs to which result. [`prepare`] turns an ask into a
//! [`Prompt`] for one backend: the [`Strategy`] decides how tool history is shown, the normaliser mends
//! whatever the backend's [`Rules`] would reject, and the [`Report`] says what was changed and why. What does
//! not fit is shortened before that by the [`plan::Planner`]. The answer comes back as [`Frame`]s, which an
//! [`Assembler`] joins into a [`Reply`]. Where we run the tools ourselves, a [`Turn`] says what is to be done next.
//!
//! Invariants:
//! - Nothing here does I/O, reads a clock, draws randomness or spawns anything.
//! - Nothing here knows a vendor's field name, JSON or HTTP; `throughline-wire` does.
//! - Only the ledger knows which result belongs to which call; nothing else pairs them.
//! - A prompt never holds a result without its call, nor a call without a result.
//! - Arguments, schemas and sealed reasoning are carried as the exact text received.
#![doc = include_str!("../README.md")]

mod ask;
mod assemble;
mod entry;
mod exit;
mod failure;
mod frame;
mod id;
mod ledger;
mod naming;
mod normalise;
mod origin;
pub mod outcome;
mod part;
pub mod plan;
mod profiles;
mod prompt;
mod provenance;
mod render;
mod reply;
mod report;
mod rules;
mod text;
mod turn;

pub use ask::{Ask, Format, Number, Reasoning, Settings, Tool, ToolChoice, ToolForm};
pub use assemble::Assembler;
pub use entry::{
    Call, Continued, Entry, Handover, Input, Kind, Outcome, Place, Return, Role, Said, Seal, Side, Summary,
    Thought,
};
pub use exit::exit_code;
pub use failure::{Failure, FailureKind, Refusal};
pub use frame::{BlockId, BlockKind, Frame, Piece};
pub use id::{ConversationId, EntryId};
pub use ledger::{Ledger, Mismatch, Oddity, PairState, ToolPair};
pub use naming::NameMap;
pub use normalise::without_reasoning;
pub use origin::{Dialect, Envelope, Extra, Origin, Wire};
pub use part::{Content, File, Image, Media, Part, joined_text};
pub use prompt::{Prompt, Target, prepare};
pub use provenance::{
    Absence, Absent, Addition, Provenance, ProvenanceError, Row, SentPlace, Share, Source, Trace, Treatment,
    Treatments,
};
pub use render::{
    BriefOptions, BriefSummary, EmbedForm, Strategy, brief, brief_in_force, briefed, own_message, with_brief,
};
pub use reply::{Ending, Reply, Stop, Usage, settled_stop};
pub use report::{Action, Change, Report, Subject};
pub use rules::{Charset, EffortRule, ForeignReasoning, NameRule, ReasoningRule, Rules, SystemRule, Wording};
pub use text::Text;
pub use turn::{Closing, Conclusion, Settled, Settlement, Turn, TurnLimits, TurnStep};
