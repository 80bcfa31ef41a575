//! Fields of a wrong type deep inside a request, for each dialect.
//!
//! Messages, items, tools and their parts; the fields around them are in `bad_values.rs`. What real clients get
//! wrong and the gateway mends, such as a result without the id of its call, is in none of the tables.

/// What a client of chat gets wrong deep inside, and the field that is to be named, to the letter.
pub const CHAT: &[(&str, &str)] = &[
    (r#"{"messages":[{"role":"user","content":[{"type":"text","text":7}]}]}"#, "messages[0].content[0].text"),
    (r#"{"messages":[{"role":"user","content":[{"type":7}]}]}"#, "messages[0].content[0].type"),
    (r#"{"messages":[{"role":"user","content":[{"type":"text"}]}]}"#, "messages[0].content[0].text"),
    (
        r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":7}]}]}"#,
        "messages[0].content[0].image_url",
    ),
    (
        r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#,
        "messages[0].content[0].image_url",
    ),
    (
        r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":7}}]}]}"#,
        "messages[0].content[0].image_url.url",
    ),
    (r#"{"messages":[{"role":"user","content":[{"type":"file","file":7}]}]}"#, "messages[0].content[0].file"),
    (
        r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":7}}]}]}"#,
        "messages[0].content[0].file.file_data",
    ),
    (r#"{"messages":[{"role":"assistant","tool_calls":[7]}]}"#, "messages[0].tool_calls[0]"),
    (
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":7,"type":"function","function":{"name":"a","arguments":""}}]}]}"#,
        "messages[0].tool_calls[0].id",
    ),
    (
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":7,"function":{"name":"a","arguments":""}}]}]}"#,
        "messages[0].tool_calls[0].type",
    ),
    (
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":7}]}]}"#,
        "messages[0].tool_calls[0].function",
    ),
    (
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function"}]}]}"#,
        "messages[0].tool_calls[0].function",
    ),
    (
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":7}}]}]}"#,
        "messages[0].tool_calls[0].function.name",
    ),
    (r#"{"messages":[{"role":"assistant","function_call":7}]}"#, "messages[0].function_call"),
    (r#"{"messages":[{"role":"assistant","refusal":7}]}"#, "messages[0].refusal"),
    (r#"{"messages":[{"role":"assistant","reasoning_content":7}]}"#, "messages[0].reasoning_content"),
    (r#"{"messages":[{"role":"tool","tool_call_id":7,"content":"x"}]}"#, "messages[0].tool_call_id"),
    (r#"{"messages":[{"role":"tool","tool_call_id":"x","content":7}]}"#, "messages[0].content"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"tools":[7]}"#, "tools[0]"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":7}]}"#, "tools[0].type"),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":7}]}"#,
        "tools[0].function",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":7}}]}"#,
        "tools[0].function.name",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{}}]}"#,
        "tools[0].function.name",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a","parameters":7}}]}"#,
        "tools[0].function.parameters",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a","strict":"y"}}]}"#,
        "tools[0].function.strict",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a","description":7}}]}"#,
        "tools[0].function.description",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"custom","custom":7}]}"#,
        "tools[0].custom",
    ),
    (r#"{"messages":[{"role":"user","content":"hi"}],"tool_choice":7}"#, "tool_choice"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":7}}"#, "tool_choice.type"),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"function","function":{"name":7}}}"#,
        "tool_choice.function.name",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"function","function":7}}"#,
        "tool_choice.function",
    ),
    (r#"{"messages":[{"role":"user","content":"hi"}],"parallel_tool_calls":"y"}"#, "parallel_tool_calls"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"response_format":7}"#, "response_format"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":7}}"#, "response_format.type"),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema"}}"#,
        "response_format.json_schema",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":7,"schema":{}}}}"#,
        "response_format.json_schema.name",
    ),
    (
        r#"{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":7}}}"#,
        "response_format.json_schema.schema",
    ),
    (r#"{"messages":[{"role":"user","content":"hi"}],"reasoning_effort":7}"#, "reasoning_effort"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"metadata":7}"#, "metadata"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"stop":7}"#, "stop"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"stop":[7]}"#, "stop[0]"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":"x"}"#, "max_tokens"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"max_completion_tokens":"x"}"#, "max_completion_tokens"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"top_p":[]}"#, "top_p"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"seed":"x"}"#, "seed"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"user":7}"#, "user"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"store":"y"}"#, "store"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"service_tier":7}"#, "service_tier"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"logprobs":"y"}"#, "logprobs"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"functions":7}"#, "functions"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"verbosity":7}"#, "verbosity"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"prompt_cache_key":7}"#, "prompt_cache_key"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"top_logprobs":"x"}"#, "top_logprobs"),
    (r#"{"messages":[{"role":"user","content":"hi"}],"presence_penalty":"x"}"#, "presence_penalty"),
    (r#"{"messages":null}"#, "messages"),
];

/// What a client of messages gets wrong deep inside, and the field that is to be named, to the letter.
pub const MESSAGES: &[(&str, &str)] = &[
    (r#"{"max_tokens":10,"messages":[{}]}"#, "messages[0].role"),
    (r#"{"max_tokens":10,"messages":[{"role":7,"content":"x"}]}"#, "messages[0].role"),
    (r#"{"max_tokens":10,"messages":[{"role":"robot","content":"x"}]}"#, "messages[0].role"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":[7]}]}"#, "messages[0].content[0]"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":[{}]}]}"#, "messages[0].content[0].type"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
        "messages[0].content[0].text",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image"}]}]}"#,
        "messages[0].content[0].source",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":7}]}]}"#,
        "messages[0].content[0].source",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":{"type":7}}]}]}"#,
        "messages[0].content[0].source.type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":7,"data":"x"}}]}]}"#,
        "messages[0].content[0].source.media_type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":7}}]}]}"#,
        "messages[0].content[0].source.data",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":7}}]}]}"#,
        "messages[0].content[0].source.url",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"document","source":7}]}]}"#,
        "messages[0].content[0].source",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"document","title":7,"source":{"type":"text","media_type":"text/plain","data":"x"}}]}]}"#,
        "messages[0].content[0].title",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":7}]}]}"#,
        "messages[0].content[0].tool_use_id",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":7}]}]}"#,
        "messages[0].content[0].content",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[7]}]}]}"#,
        "messages[0].content[0].content[0]",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":7}]}]}]}"#,
        "messages[0].content[0].content[0].text",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":"y"}]}]}"#,
        "messages[0].content[0].is_error",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":7,"name":"a","input":{}}]}]}"#,
        "messages[0].content[0].id",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"a","input":{}}]}]}"#,
        "messages[0].content[0].id",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":7,"input":{}}]}]}"#,
        "messages[0].content[0].name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]}]}"#,
        "messages[0].content[0].name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":7,"signature":"x"}]}]}"#,
        "messages[0].content[0].thinking",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":7}]}]}"#,
        "messages[0].content[0].signature",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":7}]}]}"#,
        "messages[0].content[0].data",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":7,"input_schema":{}}]}"#,
        "tools[0].name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"input_schema":{}}]}"#,
        "tools[0].name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a","input_schema":7}]}"#,
        "tools[0].input_schema",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a","input_schema":{},"description":7}]}"#,
        "tools[0].description",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":7}]}"#,
        "tools[0].type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a","input_schema":{},"strict":7}]}"#,
        "tools[0].strict",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":7}"#, "tool_choice"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":"auto"}"#, "tool_choice"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":{}}"#, "tool_choice.type"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":7}}"#,
        "tool_choice.type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"tool"}}"#,
        "tool_choice.name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"tool","name":7}}"#,
        "tool_choice.name",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"auto","disable_parallel_tool_use":"y"}}"#,
        "tool_choice.disable_parallel_tool_use",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"thinking":7}"#, "thinking"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"thinking":{}}"#, "thinking.type"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"thinking":{"type":7}}"#,
        "thinking.type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"thinking":{"type":"enabled","budget_tokens":"x"}}"#,
        "thinking.budget_tokens",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"metadata":7}"#, "metadata"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":7}}"#,
        "metadata.user_id",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_config":7}"#, "output_config"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_config":{"effort":7}}"#,
        "output_config.effort",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_config":{"format":7}}"#,
        "output_config.format",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_config":{"format":{"type":7}}}"#,
        "output_config.format.type",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_config":{"format":{"type":"json_schema","schema":7}}}"#,
        "output_config.format.schema",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"output_format":7}"#, "output_format"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"system":[7]}"#, "system[0]"),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"system":[{"type":"text","text":7}]}"#,
        "system[0].text",
    ),
    (
        r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"stop_sequences":["a",7]}"#,
        "stop_sequences[1]",
    ),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"top_k":"x"}"#, "top_k"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"top_p":{}}"#, "top_p"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"temperature":true}"#, "temperature"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"service_tier":7}"#, "service_tier"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"model":7}"#, "model"),
    (r#"{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"model":{}}"#, "model"),
];

/// What a client of responses gets wrong deep inside, and the field that is to be named, to the letter.
pub const RESPONSES: &[(&str, &str)] = &[
    (r#"{"input":[{}]}"#, "input[0].type"),
    (r#"{"input":[{"role":7,"content":"x"}]}"#, "input[0].role"),
    (r#"{"input":[{"type":"message","content":"x"}]}"#, "input[0].role"),
    (r#"{"input":[{"role":"user","content":[7]}]}"#, "input[0].content[0]"),
    (r#"{"input":[{"role":"user","content":[{"type":"input_text","text":7}]}]}"#, "input[0].content[0].text"),
    (
        r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":7}]}]}"#,
        "input[0].content[0].image_url",
    ),
    (
        r#"{"input":[{"role":"user","content":[{"type":"input_file","file_data":7}]}]}"#,
        "input[0].content[0].file_data",
    ),
    (
        r#"{"input":[{"role":"assistant","content":[{"type":"output_text","text":7}]}]}"#,
        "input[0].content[0].text",
    ),
    (
        r#"{"input":[{"role":"assistant","content":[{"type":"refusal","refusal":7}]}]}"#,
        "input[0].content[0].refusal",
    ),
    (r#"{"input":[{"type":"function_call","call_id":"c","name":7,"arguments":""}]}"#, "input[0].name"),
    (r#"{"input":[{"type":"function_call","call_id":"c","arguments":""}]}"#, "input[0].name"),
    (r#"{"input":[{"type":"function_call","id":7,"call_id":"c","name":"a","arguments":""}]}"#, "input[0].id"),
    (r#"{"input":[{"type":"function_call_output","call_id":7,"output":"x"}]}"#, "input[0].call_id"),
    (r#"{"input":[{"type":"function_call_output","call_id":"c","output":[7]}]}"#, "input[0].output[0]"),
    (
        r#"{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":7}]}]}"#,
        "input[0].output[0].text",
    ),
    (r#"{"input":[{"type":"custom_tool_call","call_id":"c","name":"a","input":7}]}"#, "input[0].input"),
    (r#"{"input":[{"type":"custom_tool_call_output","call_id":"c","output":7}]}"#, "input[0].output"),
    (r#"{"input":[{"type":"reasoning","summary":7}]}"#, "input[0].summary"),
    (r#"{"input":[{"type":"reasoning","summary":[7]}]}"#, "input[0].summary[0]"),
    (
        r#"{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":7}]}]}"#,
        "input[0].summary[0].text",
    ),
    (r#"{"input":[{"type":"reasoning","summary":[],"encrypted_content":7}]}"#, "input[0].encrypted_content"),
    (r#"{"input":[{"type":"reasoning","summary":[],"content":7}]}"#, "input[0].content"),
    (r#"{"input":[{"type":"item_reference","id":7}]}"#, "input[0].id"),
    (r#"{"input":"hi","tools":[7]}"#, "tools[0]"),
    (r#"{"input":"hi","tools":[{}]}"#, "tools[0].type"),
    (r#"{"input":"hi","tools":[{"type":7}]}"#, "tools[0].type"),
    (r#"{"input":"hi","tools":[{"type":"function","name":7}]}"#, "tools[0].name"),
    (r#"{"input":"hi","tools":[{"type":"function"}]}"#, "tools[0].name"),
    (r#"{"input":"hi","tools":[{"type":"function","name":"a","parameters":7}]}"#, "tools[0].parameters"),
    (r#"{"input":"hi","tools":[{"type":"function","name":"a","strict":"y"}]}"#, "tools[0].strict"),
    (r#"{"input":"hi","tools":[{"type":"function","name":"a","description":7}]}"#, "tools[0].description"),
    (r#"{"input":"hi","tool_choice":7}"#, "tool_choice"),
    (r#"{"input":"hi","tool_choice":{"type":7}}"#, "tool_choice.type"),
    (r#"{"input":"hi","tool_choice":{"type":"function","name":7}}"#, "tool_choice.name"),
    (r#"{"input":"hi","tool_choice":{"type":"allowed_tools","tools":7}}"#, "tool_choice.tools"),
    (r#"{"input":"hi","parallel_tool_calls":"y"}"#, "parallel_tool_calls"),
    (r#"{"input":"hi","text":7}"#, "text"),
    (r#"{"input":"hi","text":{"format":7}}"#, "text.format"),
    (r#"{"input":"hi","text":{"format":{"type":7}}}"#, "text.format.type"),
    (r#"{"input":"hi","text":{"format":{"type":"json_schema","name":7,"schema":{}}}}"#, "text.format.name"),
    (
        r#"{"input":"hi","text":{"format":{"type":"json_schema","name":"a","schema":7}}}"#,
        "text.format.schema",
    ),
    (
        r#"{"input":"hi","text":{"format":{"type":"json_schema","name":"a","schema":{},"strict":"y"}}}"#,
        "text.format.strict",
    ),
    (r#"{"input":"hi","text":{"verbosity":7}}"#, "text.verbosity"),
    (r#"{"input":"hi","reasoning":7}"#, "reasoning"),
    (r#"{"input":"hi","reasoning":{"effort":7}}"#, "reasoning.effort"),
    (r#"{"input":"hi","reasoning":{"summary":7}}"#, "reasoning.summary"),
    (r#"{"input":"hi","metadata":7}"#, "metadata"),
    (r#"{"input":"hi","model":[]}"#, "model"),
    (r#"{"input":"hi","store":"y"}"#, "store"),
    (r#"{"input":"hi","conversation":7}"#, "conversation"),
    (r#"{"input":"hi","conversation":{"id":7}}"#, "conversation.id"),
    (r#"{"input":"hi","max_tool_calls":"x"}"#, "max_tool_calls"),
    (r#"{"input":"hi","temperature":"hot"}"#, "temperature"),
    (r#"{"input":"hi","top_p":true}"#, "top_p"),
    (r#"{"input":"hi","user":7}"#, "user"),
    (r#"{"input":"hi","service_tier":7}"#, "service_tier"),
    (r#"{"input":"hi","prompt_cache_key":7}"#, "prompt_cache_key"),
    (r#"{"input":"hi","top_logprobs":"x"}"#, "top_logprobs"),
    (r#"{"input":"hi","instructions":{}}"#, "instructions"),
    (r#"{"input":"hi","safety_identifier":7}"#, "safety_identifier"),
];
