import assert from "node:assert/strict";
import { test } from "node:test";
import { readMessage } from "../../src/parts.ts";
import { buildRequest, RAW_ARGUMENTS, REASONING_ITEM, toItems } from "../../src/request.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const items = (role: number, ...content: unknown[]) => toItems(readMessage({ role, content }));
const text = (value: string) => ({ value });
const OPTIONS = { model: undefined, tools: [], toolChoice: "auto", effort: undefined, modelOptions: {} } as const;

test("calls and results stay where they are, and in order", () => {
  const said = items(2, text("Let me look."), { callId: "a", name: "read", input: { path: "x" } }, text("And more."), {
    callId: "b",
    name: "list",
    input: {},
  });
  assert.deepEqual(said, [
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "Let me look." }] },
    { type: "function_call", call_id: "a", name: "read", arguments: '{"path":"x"}' },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "And more." }] },
    { type: "function_call", call_id: "b", name: "list", arguments: "{}" },
  ]);
  const returned = items(1, { callId: "a", content: [text("one "), text("two")] }, text("Go on."));
  assert.deepEqual(returned, [
    { type: "function_call_output", call_id: "a", output: "one two" },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Go on." }] },
  ]);
});

test("marks of the host's wire are left out, at every depth", () => {
  const [call] = items(2, {
    callId: "a",
    name: "open",
    input: { $mid: 1, uri: { $mid: 1, path: "/a" }, all: [{ $mid: 2 }] },
  });
  assert.equal(call?.["arguments"], '{"uri":{"path":"/a"},"all":[{}]}');
  const [result] = items(1, { callId: "a", content: [{ $mid: 5, line: 3 }] });
  assert.equal(result?.["output"], '{"line":3}');
});

test("what a tool rendered with prompt-tsx is its text", () => {
  const tree = {
    node: {
      type: 1,
      children: [
        { type: 2, text: "one\n" },
        { type: 1, children: [{ type: 2, text: "two" }] },
      ],
    },
  };
  const [result] = items(1, { callId: "a", content: [{ value: tree }] });
  assert.equal(result?.["output"], "one\ntwo");
});

test("pictures, documents and data go in place; what the host keeps for itself does not", () => {
  const data = (mimeType: string, content: string) => ({ mimeType, data: bytes(content) });
  const [message, ...rest] = items(
    1,
    text("See:"),
    data("image/png", "PNG"),
    data("application/pdf", "PDF"),
    data("application/json", '{"a":1}'),
    data("application/wasm", "WASM"),
    data("cache_control", "ephemeral"),
    data("stateful_marker", "m\\{}"),
    data("usage", "{}"),
  );
  assert.deepEqual(rest, []);
  assert.deepEqual(message?.["content"], [
    { type: "input_text", text: "See:" },
    { type: "input_image", image_url: "data:image/png;base64,UE5H", detail: "auto" },
    { type: "input_file", filename: "document.pdf", file_data: "data:application/pdf;base64,UERG" },
    { type: "input_text", text: '{"a":1}' },
    { type: "input_text", text: "[application/wasm, 4 bytes, not shown]" },
  ]);
  const [result] = items(1, { callId: "a", content: [text("A picture:"), data("image/png", "PNG")] });
  const output = result?.["output"] as { type: string }[];
  assert.equal(output[1]?.type, "input_image");
});

test("a thought comes back as it was, in front of what it led to", () => {
  const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" };
  const kept = { value: "", id: "rs_1", metadata: { [REASONING_ITEM]: JSON.stringify(item) } };
  const said = items(2, text("So."), { callId: "a", name: "read", input: {} }, kept);
  assert.deepEqual(said[0], item);
  assert.deepEqual(
    said.map(({ type }) => type),
    ["reasoning", "message", "function_call"],
  );
  const [plain] = items(2, { value: ["Let me ", "think."], id: undefined, metadata: undefined });
  assert.deepEqual(plain, { type: "reasoning", summary: [{ type: "summary_text", text: "Let me think." }] });
});

test("arguments that are no JSON come back as the model wrote them", () => {
  const [call] = items(2, { callId: "a", name: "read", input: { [RAW_ARGUMENTS]: '{"path": ' } });
  assert.equal(call?.["arguments"], '{"path": ');
});

test("options of the host are read, and its own are not passed on", () => {
  const body = buildRequest([], {
    ...OPTIONS,
    model: "a/b",
    effort: "high",
    toolChoice: "required",
    tools: [{ name: "t", description: "d" }],
    modelOptions: { temperature: 0, max_tokens: 9, _conversationId: "x" },
  });
  assert.deepEqual(body, {
    input: [],
    stream: true,
    include: ["reasoning.encrypted_content"],
    model: "a/b",
    tools: [
      { type: "function", name: "t", description: "d", parameters: { type: "object", properties: {} }, strict: false },
    ],
    tool_choice: "required",
    reasoning: { effort: "high", summary: "auto" },
    temperature: 0,
    max_output_tokens: 9,
  });
  assert.equal("model" in buildRequest([], OPTIONS), false, "whatever is active");
});
