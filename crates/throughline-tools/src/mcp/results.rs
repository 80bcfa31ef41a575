//! What a server answered, as an outcome.

use crate::limits::Limits;
use crate::outcome::{Answer, Image, Outcome, OutcomeKind};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Returns a result as the model is told it.
pub(super) fn outcome(result: CallToolResult, limits: &Limits) -> Outcome {
    let failed = result.is_error == Some(true);
    let mut answer = Answer::default();
    let mut texts: Vec<String> = Vec::new();
    let mut images: Vec<String> = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(it) => texts.push(it.text),
            ContentBlock::Image(it) => match image(it.mime_type, it.data, limits) {
                Ok(image) => {
                    images.push(image.media_type.clone());
                    answer = answer.image(image);
                }
                Err(note) => answer = answer.note(note),
            },
            ContentBlock::Audio(it) => {
                answer =
                    answer.note(format!("the result held audio ({}), which cannot be shown", it.mime_type));
            }
            ContentBlock::Resource(it) => match it.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    texts.push(format!("{uri}:\n{text}"));
                }
                ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                    let kind = mime_type.unwrap_or_else(|| "unknown type".to_owned());
                    answer = answer.note(format!("the result held {uri} ({kind}), which cannot be shown"));
                }
                _ => answer = answer.note("the result held a resource of a kind that is not known"),
            },
            ContentBlock::ResourceLink(it) => texts.push(format!("{} ({})", it.uri, it.name)),
            _ => answer = answer.note("the result held something of a kind that is not known"),
        }
    }
    let name = if failed { "error" } else { "content" };
    // Servers say structured results as text as well; what is said already is not repeated.
    let structured = result.structured_content.filter(|value| !texts.iter().any(|text| says(text, value)));
    answer = answer.text(name, texts.join("\n").as_bytes(), limits);
    if let Some(structured) = structured {
        answer = answer.text("structured", structured.to_string().as_bytes(), limits);
    }
    if !images.is_empty() {
        answer = answer.field("images", images);
    }
    answer.ended(if failed { OutcomeKind::Failed } else { OutcomeKind::Done })
}

fn says(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value)
}

/// Returns an image that models can be shown, or a note about one that they cannot.
fn image(media_type: String, base64: String, limits: &Limits) -> Result<Image, String> {
    let bytes = base64.len() / 4 * 3;
    if bytes > limits.image_bytes_max {
        return Err(format!(
            "the result held an image of {bytes} bytes, and at most {} can be shown",
            limits.image_bytes_max
        ));
    }
    let known = matches!(media_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    if known {
        Ok(Image { media_type, base64 })
    } else {
        Err(format!("the result held an image ({media_type}), which cannot be shown"))
    }
}
