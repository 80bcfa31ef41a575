//! What a backend answers, in the terms in which the client asked.
//!
//! A prompt may call tools by other names than the client does, and show a custom tool as a function. The
//! calls that come back are renamed, and the input of a custom tool is unwrapped, before anyone sees them.

use crate::input;
use std::collections::BTreeMap;
use throughline_core::{
    BlockId, BlockKind, Call, Frame, Input, Kind, Piece, Prompt, Reply, Text, Tool, ToolForm,
};

/// Turns answers to a prompt into answers to the request that it was made from.
#[derive(Clone, Debug)]
pub struct Restorer {
    /// The tools by how the backend refers to them: the namespace, where it has any, and the name.
    tools: BTreeMap<(Option<Text>, Text), Declared>,
    /// The inputs of custom tools under way, held back until they can be unwrapped.
    held: BTreeMap<BlockId, String>,
}

/// A tool as the client declared it.
#[derive(Clone, Debug)]
struct Declared {
    name: Text,
    namespace: Option<Text>,
    is_custom: bool,
}

impl Restorer {
    /// Returns the restorer for answers to `prompt`.
    #[must_use]
    pub fn new(prompt: &Prompt<'_>) -> Self {
        Self { tools: declared(prompt), held: BTreeMap::new() }
    }

    /// Passes a frame on, in the client's terms.
    pub fn handle_frame(&mut self, frame: Frame, out: &mut Vec<Frame>) {
        match frame {
            Frame::Begun { block, kind } => out.push(Frame::Begun { block, kind: self.begun(block, kind) }),
            Frame::Grew { block, piece: Piece::Text(text) } if self.held.contains_key(&block) => {
                self.held.entry(block).or_default().push_str(&text);
            }
            Frame::Ended { block } => {
                if let Some(text) = self.held.remove(&block) {
                    let text = input::from_arguments(text.into()).text().clone();
                    out.push(Frame::Grew { block, piece: Piece::Text(text) });
                }
                out.push(Frame::Ended { block });
            }
            frame => out.push(frame),
        }
    }

    fn begun(&mut self, block: BlockId, kind: BlockKind) -> BlockKind {
        let BlockKind::Call { id, item_id, name, namespace, freeform } = kind else { return kind };
        let Some(tool) = self.tools.get(&(namespace.clone(), name.clone())) else {
            return BlockKind::Call { id, item_id, name, namespace, freeform };
        };
        if tool.is_custom && !freeform {
            self.held.insert(block, String::new());
        }
        BlockKind::Call {
            id,
            item_id,
            name: tool.name.clone(),
            namespace: tool.namespace.clone(),
            freeform: tool.is_custom,
        }
    }

    /// Puts a whole reply into the client's terms.
    pub fn restore(&self, reply: &mut Reply) {
        for entry in &mut reply.entries {
            let Kind::Called(call) = &mut entry.kind else { continue };
            if let Some(tool) = self.tools.get(&(call.namespace.clone(), call.name.clone()))
                && restore_call(call, tool)
            {
                entry.intact = false;
                // The answer as it came says something else by now.
                reply.fields = None;
            }
        }
    }
}

fn declared(prompt: &Prompt<'_>) -> BTreeMap<(Option<Text>, Text), Declared> {
    let of_tool = |tool: &Tool| {
        let full = prompt.rules.full_name(tool.namespace.as_ref(), &tool.name);
        let namespace = tool.namespace.clone().filter(|_| prompt.rules.namespaces);
        let is_custom = matches!(tool.form, ToolForm::Custom { .. });
        let declared = Declared { name: tool.name.clone(), namespace: tool.namespace.clone(), is_custom };
        ((namespace, prompt.names.to_sent(&full).clone()), declared)
    };
    prompt.ask.tools.iter().filter(|tool| !tool.is_hosted()).map(of_tool).collect()
}

/// Puts one call into the client's terms, and says whether that changed anything.
fn restore_call(call: &mut Call, tool: &Declared) -> bool {
    let input = match &call.input {
        Input::Arguments(text) if tool.is_custom => {
            Input::Freeform(input::from_arguments(text.clone()).text().clone())
        }
        input => input.clone(),
    };
    let changes = call.name != tool.name || call.namespace != tool.namespace || call.input != input;
    call.name = tool.name.clone();
    call.namespace = tool.namespace.clone();
    call.input = input;
    changes
}
