import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { RAW_ARGUMENTS } from "../../src/request.ts";
import { type Output, ResponseReader, readEvents } from "../../src/stream.ts";

const read = (...events: object[]): Output[] => {
  const reader = new ResponseReader("glm");
  return events.flatMap((event) => reader.read(JSON.stringify(event)));
};
const done = (item: object) => ({ type: "response.output_item.done", item });
const failure = (run: () => unknown): GatewayError => {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  return assert.fail("it did not fail");
};

test("events are found wherever the bytes are cut", async () => {
  const bytes = new TextEncoder().encode('event: a\r\ndata: {"é":1}\r\n\r\n: ping\n\ndata: two\ndata: lines\n\n');
  for (let size = 1; size < 9; size++) {
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
    };
    const found: string[] = [];
    for await (const data of readEvents(chunks())) found.push(data);
    assert.deepEqual(found, ['{"é":1}', "two\nlines"], `in pieces of ${size}`);
  }
});

test("text is told once, whether it came in pieces or whole", () => {
  const message = { type: "message", id: "m", content: [{ type: "output_text", text: "Hello" }] };
  const pieces = read(
    { type: "response.output_text.delta", item_id: "m", delta: "Hel" },
    { type: "response.output_text.delta", item_id: "m", delta: "lo" },
    done(message),
  );
  assert.deepEqual(pieces, [
    { kind: "text", text: "Hel" },
    { kind: "text", text: "lo" },
  ]);
  assert.deepEqual(read(done(message)), [{ kind: "text", text: "Hello" }]);
});

test("a thought is shown as it comes, and kept whole", () => {
  const item = {
    type: "reasoning",
    id: "r",
    summary: [{ type: "summary_text", text: "Hm." }],
    encrypted_content: "sealed",
  };
  for (const type of [
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning.delta",
  ]) {
    assert.deepEqual(read({ type, item_id: "r", delta: "Hm." }, done(item)), [
      { kind: "thinking", text: "Hm.", id: "r" },
      { kind: "thought", id: "r", item: JSON.stringify(item) },
    ]);
  }
  assert.equal(read(done(item)).length, 2, "also when there were no pieces");
});

test("a call has its arguments, also when they are no JSON", () => {
  const call = (written: string) =>
    read(done({ type: "function_call", call_id: "c", name: "read", arguments: written }));
  assert.deepEqual(call('{"path":"a"}'), [{ kind: "call", callId: "c", name: "read", input: { path: "a" } }]);
  assert.deepEqual(call(""), [{ kind: "call", callId: "c", name: "read", input: {} }]);
  assert.deepEqual(call('{"path":'), [
    { kind: "call", callId: "c", name: "read", input: { [RAW_ARGUMENTS]: '{"path":' } },
  ]);
});

test("usage has the names that the host's meter reads", () => {
  const usage = { input_tokens: 90, output_tokens: 10, input_tokens_details: { cached_tokens: 80 } };
  assert.deepEqual(read({ type: "response.completed", response: { usage } }), [
    {
      kind: "usage",
      usage: {
        prompt_tokens: 90,
        completion_tokens: 10,
        total_tokens: 100,
        prompt_tokens_details: { cached_tokens: 80 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    },
  ]);
});

test("what fails says who failed and why", () => {
  const response = { error: { code: "rate_limit_exceeded", message: "Slow down" } };
  const limited = failure(() => read({ type: "response.failed", response }));
  assert.deepEqual([limited.kind, limited.message], ["blocked", 'Backend "glm" failed: Slow down']);
  assert.match(failure(() => read({ type: "error", message: "Broken" })).message, /Broken/);
  const filtered = { incomplete_details: { reason: "content_filter" } };
  assert.equal(failure(() => read({ type: "response.incomplete", response: filtered })).kind, "blocked");
  assert.match(failure(() => new ResponseReader("glm").finish()).message, /ended its answer in the middle/);
});
