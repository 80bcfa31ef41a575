//! The log of changes to a session: the whole of it first, then what became of it, a line each.

use crate::Damage;
use throughline_wire::json::{Document, Edit, Kind, Node, Writer, patch};

/// What a line does.
const WHOLE: u64 = 0;
const SET: u64 = 1;
const PUSH: u64 = 2;
const DELETE: u64 = 3;

/// Returns the session that a log leads to, and what of the log could not be read. A text that is no log is a session.
pub(crate) fn replay(text: &str) -> (String, Vec<Damage>) {
    let mut session: Option<Session> = None;
    let mut damaged = Vec::new();
    for (number, line) in (1..).zip(text.lines().filter(|line| !line.trim().is_empty())) {
        let change = Document::parse(line).ok();
        let root = change.as_ref().map(Document::root);
        let is_whole = root.is_some_and(|root| kind_of(&root) == Some(WHOLE));
        if is_whole {
            session = root.and_then(|root| Session::new(&root.field("v")?));
        } else if let Some(session) = &mut session {
            if root.and_then(|root| session.change(&root)).is_none() {
                damaged.push(Damage(format!("change {number} cannot be applied")));
            }
        } else {
            return (text.to_owned(), damaged);
        }
    }
    (session.and_then(|session| session.whole()).unwrap_or_else(|| text.to_owned()), damaged)
}

/// A session in pieces: nearly every change is to one request, and a session may have thousands of either.
struct Session {
    /// Everything but the requests.
    head: String,
    requests: Vec<String>,
}

impl Session {
    fn new(whole: &Node<'_>) -> Option<Self> {
        let requests = whole.field(REQUESTS).into_iter().flat_map(Node::items);
        let requests = requests.map(|request| request.raw().to_owned()).collect();
        let head = patch(whole.raw(), &[Edit::Set { name: REQUESTS, value: "[]" }]).ok()?;
        Some(Self { head, requests })
    }

    fn whole(&self) -> Option<String> {
        patch(&self.head, &[Edit::Set { name: REQUESTS, value: &array(&self.requests) }]).ok()
    }

    /// Applies a change; none if it fits nothing.
    fn change(&mut self, change: &Node<'_>) -> Option<()> {
        let path: Vec<Node<'_>> = change.field("k")?.items().collect();
        let alter = |old: Option<&str>| altered(old, change);
        match path.split_first() {
            Some((first, [])) if first.is_str(REQUESTS) => {
                let Changed::To(requests) = altered(Some(&array(&self.requests)), change)? else {
                    return None;
                };
                let document = Document::parse(requests).ok()?;
                self.requests = document.root().items().map(|request| request.raw().to_owned()).collect();
            }
            Some((first, [index, rest @ ..])) if first.is_str(REQUESTS) => {
                let request = self.requests.get_mut(usize::try_from(index.as_u64()?).ok()?)?;
                *request = at(request, rest, &alter)?;
            }
            _ => self.head = at(&self.head, &path, &alter)?,
        }
        Some(())
    }
}

const REQUESTS: &str = "requests";

fn kind_of(change: &Node<'_>) -> Option<u64> {
    change.field("kind")?.as_u64()
}

/// Applies something to the value that a path leads to.
fn at(value: &str, path: &[Node<'_>], alter: &dyn Fn(Option<&str>) -> Option<Changed>) -> Option<String> {
    let Some((step, rest)) = path.split_first() else {
        return match alter(Some(value))? {
            Changed::To(new) => Some(new),
            Changed::Gone => None,
        };
    };
    let document = Document::parse(value).ok()?;
    let root = document.root();
    if let Some(name) = step.as_str() {
        let old = root.field(&name);
        let new = match (&old, rest) {
            (None, []) => alter(None)?,
            (None, _) => return None,
            (Some(old), []) => alter(Some(old.raw()))?,
            (Some(old), _) => Changed::To(at(old.raw(), rest, alter)?),
        };
        let edit = match &new {
            Changed::To(value) => Edit::Set { name: &name, value },
            Changed::Gone => Edit::Remove { name: &name },
        };
        return patch(value, &[edit]).ok();
    }
    let index = usize::try_from(step.as_u64()?).ok()?;
    let mut items: Vec<String> = root.items().map(|item| item.raw().to_owned()).collect();
    let old = items.get(index)?;
    let new = if rest.is_empty() { alter(Some(old))? } else { Changed::To(at(old, rest, alter)?) };
    match new {
        Changed::To(new) => items[index] = new,
        Changed::Gone => drop(items.remove(index)),
    }
    Some(array(&items))
}

/// What becomes of a value.
enum Changed {
    To(String),
    Gone,
}

fn altered(old: Option<&str>, change: &Node<'_>) -> Option<Changed> {
    let value = change.field("v");
    match change.field("kind")?.as_u64()? {
        SET => Some(value.map_or(Changed::Gone, |value| Changed::To(value.raw().to_owned()))),
        DELETE => Some(Changed::Gone),
        PUSH => {
            let document = Document::parse(old.unwrap_or("[]")).ok()?;
            if document.root().kind() != Kind::Array {
                return None;
            }
            let mut items: Vec<String> = document.root().items().map(|item| item.raw().to_owned()).collect();
            if let Some(length) = change.field("i").and_then(|length| length.as_u64()) {
                items.truncate(usize::try_from(length).ok()?);
            }
            items.extend(value.into_iter().flat_map(Node::items).map(|item| item.raw().to_owned()));
            Some(Changed::To(array(&items)))
        }
        _ => None,
    }
}

fn array(items: &[String]) -> String {
    let mut writer = Writer::new();
    writer.begin_array();
    items.iter().for_each(|item| writer.raw(item));
    writer.end_array();
    writer.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(changes: &[&str]) -> (String, usize) {
        let (session, damaged) = replay(&changes.join("\n"));
        (session, damaged.len())
    }

    #[test]
    fn changes_are_applied_one_after_the_other() {
        let changes = [
            r#"{"kind":0,"v":{"requests":[],"title":"a"}}"#,
            r#"{"kind":2,"k":["requests"],"v":[{"id":1,"response":["x","y"]},{"id":2}]}"#,
            r#"{"kind":1,"k":["requests",0,"result"],"v":{"metadata":{"n":1}}}"#,
            r#"{"kind":1,"k":["requests",0,"result","metadata","n"],"v":2}"#,
            r#"{"kind":2,"k":["requests",0,"response"],"v":["z"],"i":1}"#,
            r#"{"kind":2,"k":["requests",1,"response"],"v":["new"]}"#,
            r#"{"kind":3,"k":["title"]}"#,
        ];
        let expected = r#"{"requests":[{"id":1,"response":["x","z"],"result":{"metadata":{"n":2}}},{"id":2,"response":["new"]}]}"#;
        assert_eq!(session(&changes), (expected.to_owned(), 0));
    }

    #[test]
    fn a_session_that_is_no_log_is_itself() {
        assert_eq!(
            session(&[r#"{"version":3,"requests":[]}"#]),
            (r#"{"version":3,"requests":[]}"#.to_owned(), 0)
        );
        assert_eq!(session(&["no JSON"]), ("no JSON".to_owned(), 0));
    }

    #[test]
    fn a_change_that_fits_nothing_is_named_and_left_out() {
        let whole = r#"{"kind":0,"v":{"requests":[]}}"#;
        for bad in [
            r#"{"kind":1,"k":["requests",7,"result"],"v":1}"#,
            r#"{"kind":2,"k":["nowhere","at","all"],"v":[1]}"#,
            r#"{"kind":9,"k":["requests"]}"#,
            r#"{"kind":1,"#,
        ] {
            assert_eq!(session(&[whole, bad]), (r#"{"requests":[]}"#.to_owned(), 1), "{bad}");
        }
    }
}
