import assert from "node:assert/strict";
import { test } from "node:test";
import { identify, writeMarker } from "../../src/identity.ts";
import { type Message, readMessage } from "../../src/parts.ts";

const user = (value: string): Message => readMessage({ role: 1, content: [{ value }] });
const marked = (model: string, conversation: string): Message =>
  readMessage({ role: 2, content: [{ mimeType: "stateful_marker", data: writeMarker(model, conversation) }] });
const CHAT = { _capturingTokenCorrelationId: "c" };

test("the host's session names the conversation, whatever the prompt has become", () => {
  const options = { modelOptions: { ...CHAT, _conversationId: "s-1", _telemetryTurn: 3 } };
  const expected = { conversation: "vscode-s-1", side: false, summary: false };
  assert.deepEqual(identify([user("Hello")], options), expected);
  assert.deepEqual(identify([marked("m", "another"), user("<conversation-summary>")], options), expected);
});

test("a marker names it where the host has no session", () => {
  const messages = [marked("m", "conv_1"), user("a"), marked("other/model", "conv_2"), user("b")];
  assert.equal(identify(messages, {}).conversation, "conv_2");
  const foreign = readMessage({ role: 2, content: [{ mimeType: "stateful_marker", data: new Uint8Array([1, 2]) }] });
  assert.deepEqual(identify([foreign], {}), { conversation: undefined, side: false, summary: false });
});

test("what the host asks for itself is on the side", () => {
  const summary = { modelOptions: { ...CHAT, _conversationId: "s-1" } };
  const system = readMessage({ role: 3, content: [{ value: "Answer in <summary> tags." }] });
  assert.deepEqual(identify([system, user("Summarize.")], summary), {
    conversation: "vscode-s-1",
    side: true,
    summary: true,
  });
  assert.deepEqual(identify([user("A title, please")], { requestInitiator: "core" }), {
    conversation: undefined,
    side: true,
    summary: false,
  });
  // A sub-agent of the host's calls tools.
  assert.equal(identify([user("Find it.")], summary).summary, false);
});

test("a name that fits into no header is none", () => {
  const options = { modelOptions: { _conversationId: "a\r\nx-evil: 1" } };
  assert.equal(identify([user("Hello")], options).conversation, undefined);
});
