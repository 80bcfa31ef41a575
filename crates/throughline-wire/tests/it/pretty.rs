//! JSON laid out for people, with every number and string exactly as written.

use throughline_wire::json::{Document, Kind, Node};

/// Returns `json` with one field a line; short containers stay on theirs.
pub fn pretty(json: &str) -> String {
    let document = Document::parse(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let mut out = String::new();
    write(document.root(), 0, &mut out);
    out
}

fn write(node: Node<'_>, depth: usize, out: &mut String) {
    let (open, close) = match node.kind() {
        Kind::Object => ('{', '}'),
        Kind::Array => ('[', ']'),
        _ => return out.push_str(node.raw()),
    };
    if node.raw().len() < 90 && !node.raw().contains('\n') {
        return out.push_str(node.raw());
    }
    out.push(open);
    let break_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for (at, (key, child)) in children(node).into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        break_line(out, depth + 1);
        out.push_str(&key);
        write(child, depth + 1, out);
    }
    break_line(out, depth);
    out.push(close);
}

fn children(node: Node<'_>) -> Vec<(String, Node<'_>)> {
    match node.kind() {
        Kind::Object => node
            .fields()
            .map(|(key, child)| (format!("{}: ", throughline_wire::json::quote(&key)), child))
            .collect(),
        _ => node.items().map(|child| (String::new(), child)).collect(),
    }
}
