import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenCounter } from "../../src/tokens.ts";

const text = (words: string) => ({ key: words, length: words.length, input: words, empty: "" });

test("a text is counted once, without what every prompt has", async () => {
  const asked: unknown[] = [];
  const counter = new TokenCounter(async (body) => {
    asked.push(body);
    return 9 + String(body.input).length;
  });
  const both = await Promise.all([counter.tokens("m", text("abc")), counter.tokens("m", text("abc"))]);
  assert.deepEqual([...both, await counter.tokens("m", text("abc"))], [3, 3, 3]);
  assert.deepEqual(asked, [
    { model: "m", input: "abc" },
    { model: "m", input: "" },
  ]);
  assert.equal(await counter.tokens(undefined, text("")), 0);
  assert.equal(asked.length, 2);
});

test("without a gateway it is an estimate, by what was counted before, and nobody waits", async () => {
  let isUp = true;
  let tries = 0;
  let now = 0;
  const counter = new TokenCounter(
    async ({ input }) => {
      tries += 1;
      if (!isUp) throw new Error("refused");
      return String(input).length / 2;
    },
    () => now,
  );
  assert.equal(await counter.tokens("m", text("x".repeat(40))), 20);
  isUp = false;
  tries = 0;
  for (let piece = 0; piece < 100; piece++)
    assert.equal(await counter.tokens("m", text("y".repeat(10 + piece))), Math.ceil((10 + piece) / 2));
  assert.equal(tries, 1, "a prompt has hundreds of pieces; one failure is enough");
  isUp = true;
  now = 60_000;
  assert.equal(await counter.tokens("m", text("z".repeat(8))), 4);
  assert.equal(await new TokenCounter(() => Promise.reject(new Error("down"))).tokens("m", text("x".repeat(40))), 10);
});
