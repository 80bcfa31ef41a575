//! Error texts, as providers and gateways have been seen to write them, and a few that they might.

use super::*;
use throughline_core::{FailureKind, Text};

fn judged(status: u16, code: &str, param: &str, message: &str) -> Option<Rejection> {
    let given = |text: &str| (!text.is_empty()).then(|| Text::from(text));
    let failure = Failure {
        code: given(code),
        param: given(param),
        ..Failure::new(FailureKind::InvalidRequest, message)
    };
    rejection(status, &failure, message)
}

#[test]
fn a_backend_that_does_not_know_tool_items_is_recognised() {
    for (status, code, param, message) in [
        (400, "", "", "Invalid input"),
        (400, "invalid_request_error", "", "Bad Request: Invalid input"),
        (400, "", "input", "Invalid input."),
        (400, "", "input[2]", "Invalid input"),
        (400, "", "", "Unsupported role: tool"),
        (400, "", "", "Unexpected role RoleEnum.tool"),
        (
            400,
            "",
            "messages[2].role",
            "Invalid value: 'tool'. Supported values are: 'system', 'assistant', 'user'.",
        ),
        (
            400,
            "invalid_value",
            "input[1].type",
            "Invalid value: 'function_call'. Supported values are: 'message'.",
        ),
        (400, "", "input", "Unsupported input item type: function_call_output"),
        (422, "", "", "body.input.1.type: Input should be 'message' (got 'function_call')"),
        (400, "", "", "messages.1.content.0.type: unexpected value 'tool_use'; permitted: 'text'"),
        (400, "", "messages.1.content.0", "Input tag 'tool_result' found using 'type' is not allowed"),
        (400, "", "", "messages.1.tool_calls: Extra inputs are not permitted"),
        (422, "", "", "Failed to deserialize the JSON body: messages[3]: unknown variant `tool`"),
        (400, "", "", "property 'messages.1.tool_calls' is unsupported"),
        (400, "unsupported_item", "", "function_call items are not supported in input"),
        (400, "", "", "custom_tool_call is not a valid item type"),
        (400, "", "", "This gateway does not support tool_call history"),
    ] {
        assert_eq!(judged(status, code, param, message), Some(Rejection::NativeTools), "{message}");
    }
}

/// Errors that have another cause: status, code, field, message.
const OTHERWISE_WRONG: &[(u16, &str, &str, &str)] = &[
    // length
    (400, "context_length_exceeded", "input", "Your input exceeds the context window of this model."),
    (400, "", "messages", "This model's maximum context length is 8192 tokens, tool_calls included"),
    (400, "", "", "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "", "", "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens"),
    (400, "string_above_max_length", "input[3].call_id", "Invalid 'input[3].call_id': string too long."),
    (400, "", "messages[1].tool_calls[0].id", "Invalid 'messages[1].tool_calls[0].id': string too long"),
    // reasoning
    (400, "", "", "messages.1.content.0: Invalid `signature` in `thinking` block"),
    (400, "", "", "messages.3.content.0.type: Expected `thinking`, but found `tool_use`"),
    (400, "invalid_encrypted_content", "", "The encrypted content gAAA... could not be verified"),
    (
        400,
        "",
        "input",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item",
    ),
    (400, "", "", "The reasoning_content in the thinking mode must be passed back, tool_calls invalid"),
    (400, "", "", "Function call is missing a thought_signature in functionCall parts"),
    // pairing and order
    (
        400,
        "",
        "",
        "messages.130: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    (400, "", "", "messages.48.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"),
    (
        400,
        "",
        "messages.[3].role",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
    (400, "", "", "An assistant message with 'tool_calls' must be followed by tool messages"),
    (400, "", "input", "No tool output found for function call call_1."),
    (400, "", "input", "No tool call found for function call output with call_id call_1."),
    (400, "", "", "Unexpected role 'user' after role 'tool'"),
    (400, "", "", "Message has tool role, but there was no previous assistant message with a tool call!"),
    (400, "", "", "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn"),
    (400, "", "", "messages: `tool_use` ids must be unique"),
    (400, "", "", "Conversation roles must alternate user/assistant/tool; invalid"),
    // ids and arguments
    (400, "", "", "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    (400, "", "", "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9. Invalid"),
    (400, "", "", "Invalid function arguments: tool_calls[0].function.arguments is not valid JSON"),
    (400, "", "messages[1].tool_calls[0].function.name", "Invalid 'messages[1].tool_calls[0].function.name'"),
    // tools on offer
    (400, "", "tools[0].function.parameters", "Invalid schema for function 'read': tool_call"),
    (400, "", "tools", "Invalid type for 'tools': expected an array; function_call"),
    (400, "", "", "tools.0.custom.input_schema: Field required"),
    (400, "", "", "registry.example/library/small does not support tools"),
    (400, "", "tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed with tools"),
    (400, "", "", "No endpoints found that support tool use"),
    // content
    (400, "", "", "messages.2.content.0.tool_result.content.0.image.source: Invalid base64 data"),
    (400, "", "", "messages: text content blocks in tool_result must be non-empty; invalid"),
    // everything else
    (400, "", "temperature", "Invalid input"),
    (400, "", "metadata", "Invalid input"),
    (400, "", "", "Invalid input: temperature must be at most 2"),
    (400, "model_not_found", "model", "The model `x` does not exist"),
    (400, "", "", "Your credit balance is too low to use tool_use; invalid"),
    (400, "", "", "Invalid API key"),
    // the right words under the wrong status
    (401, "", "", "Invalid input"),
    (404, "", "", "Unknown item type function_call"),
    (429, "", "", "Invalid input"),
    (503, "", "", "Invalid input"),
];

#[test]
fn no_other_kind_of_error_is_taken_for_it() {
    for (status, code, param, message) in OTHERWISE_WRONG {
        let judged = judged(*status, code, param, message);
        assert_ne!(judged, Some(Rejection::NativeTools), "{status} {param} {message}");
    }
}

#[test]
fn state_that_is_gone_is_told_from_state_that_never_is() {
    let gone = Some(Rejection::StateGone);
    let unsupported = Some(Rejection::StateUnsupported);
    for (status, code, param, message, expected) in [
        (
            404,
            "previous_response_not_found",
            "previous_response_id",
            "Previous response with id 'resp_1' not found.",
            gone,
        ),
        (
            400,
            "previous_response_not_found",
            "previous_response_id",
            "Previous response with id 'resp_1' not found.",
            gone,
        ),
        (404, "", "", "No response for previous_response_id", gone),
        (400, "", "", "The previous response has expired", gone),
        (400, "", "previous_response_id", "Unsupported parameter: 'previous_response_id'", unsupported),
        (422, "", "", "previous_response_id: Extra inputs are not permitted", unsupported),
        (400, "", "", "previous_response_id is not supported when store is false", unsupported),
        (
            400,
            "",
            "previous_response_id",
            "Previous response cannot be used for this organization due to Zero Data Retention.",
            unsupported,
        ),
        (404, "", "", "The model does not exist", None),
        (500, "", "", "Previous response with id 'resp_1' not found.", None),
        (400, "", "", "previous_response_id and conversation cannot be used together", None),
    ] {
        assert_eq!(judged(status, code, param, message), expected, "{message}");
    }
}

#[test]
fn a_server_that_must_not_store_is_understood() {
    let refused = Some(Rejection::StoreRefused);
    for (status, param, message, expected) in [
        (400, "", "Store must be set to false", refused),
        (400, "store", "Unsupported value: true", refused),
        (400, "", "'store' is not allowed for organizations with Zero Data Retention", refused),
        (400, "vector_store_ids", "Vector store must be one of yours", None),
        (500, "", "Store must be set to false", None),
        (404, "", "The store was not found", None),
    ] {
        assert_eq!(judged(status, "", param, message), expected, "{message}");
    }
}
