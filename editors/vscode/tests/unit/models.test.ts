import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { refused, unreachable } from "../../src/errors.ts";
import type { Backends } from "../../src/gateway.ts";
import { findProgram, listenAddress } from "../../src/launcher.ts";
import { requestName, toModels } from "../../src/models.ts";
import { importsOf } from "../../src/panel.ts";
import { recall } from "../../src/recall.ts";

const backend = (name: string, window: number | null) => ({
  name,
  dialect: "chat",
  default_model: `${name}-1`,
  models: null,
  configured: { context_window: window },
});
const BACKENDS: Backends = { active: "a", switched: null, backends: [backend("a", 100_000), backend("b", null)] };
const LISTED = [
  { id: "a-1", context_length: 100_000 },
  { id: "a/a-1", context_length: 100_000, max_output_tokens: 32_000 },
  { id: "b-1" },
  { id: "b/b-1" },
];

test("each model is offered once, under its backend, behind the active one", () => {
  const models = toModels(LISTED, BACKENDS);
  assert.deepEqual(
    models.map(({ id, family, detail }) => [id, family, detail]),
    [
      ["active", "a-1", "a · a-1"],
      ["a/a-1", "a-1", "a"],
      ["b/b-1", "b-1", "b"],
    ],
  );
  assert.deepEqual(
    models.map(({ maxInputTokens, maxOutputTokens }) => [maxInputTokens, maxOutputTokens]),
    [
      [68_000, 32_000],
      [68_000, 32_000],
      [128_000 - 16_384, 16_384],
    ],
  );
  assert.deepEqual(["active", "a/a-1"].map(requestName), [undefined, "a/a-1"]);
});

test("the active model follows a switch, also one to a model with a slash", () => {
  const active = (switched: string) => toModels(LISTED, { ...BACKENDS, switched })[0];
  assert.deepEqual([active("b")?.family, active("b")?.detail], ["b-1", "b · b-1"]);
  assert.equal(active("b/org/model")?.family, "org/model");
  assert.deepEqual(toModels([], { ...BACKENDS, active: "gone" }), []);
});

test("a tiny window leaves room for a prompt", () => {
  const [tiny] = toModels([{ id: "a/t", context_length: 4_000 }], BACKENDS).slice(1);
  assert.deepEqual([tiny?.maxInputTokens, tiny?.maxOutputTokens], [3_000, 1_000]);
});

test("an answer that may fill the window leaves half of it to the prompt", () => {
  const [, whole] = toModels([{ id: "a/w", context_length: 100_000, max_output_tokens: 100_000 }], BACKENDS);
  assert.deepEqual([whole?.maxInputTokens, whole?.maxOutputTokens], [50_000, 50_000]);
});

test("a model takes tools and pictures unless the gateway knows better", () => {
  const blind = { function_calling: true, vision: false };
  const [active, known, unknown] = toModels([{ id: "a/a-1", capabilities: blind }, { id: "a/u" }], BACKENDS);
  assert.deepEqual(active?.capabilities, { toolCalling: true, imageInput: false });
  assert.deepEqual(known?.capabilities, { toolCalling: true, imageInput: false });
  assert.deepEqual(unknown?.capabilities, { toolCalling: true, imageInput: true });
});

test("errors name who refused, and what to do", () => {
  const cause = Object.assign(new TypeError("fetch failed"), {
    cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }),
  });
  assert.match(
    unreachable("http://h", cause).message,
    /^Throughline is not running at http:\/\/h \(ECONNREFUSED\)\. Run /,
  );
  const locked = refused(401, '{"error":{"code":"throughline_no_key","message":"present a key"}}', undefined);
  assert.equal(locked.kind, "permission");
  assert.equal(locked.message, 'Throughline answered 401: present a key Run "Throughline: Set the Gateway Key".');
  assert.equal(refused(502, "<html>bad</html>", "b").message, 'Backend "b" answered 502: <html>bad</html>');
  assert.equal(refused(429, "", "b").kind, "blocked");
});

test("the program is the one that is set, else the bundled one, else the one on PATH", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "throughline-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const [bundled, other, locked] = ["bundled", "other", "locked"].map((name) => {
    const place = join(folder, name);
    mkdirSync(place);
    writeFileSync(join(place, "throughline"), "", { mode: name === "locked" ? 0o644 : 0o755 });
    return place;
  }) as [string, string, string];
  assert.equal(findProgram("/opt/t", bundled, other), "/opt/t");
  assert.equal(findProgram("", bundled, other), join(bundled, "throughline"));
  assert.equal(findProgram("", "/nowhere", `/neither:${locked}:${other}`), join(other, "throughline"));
  assert.equal(findProgram("", "/nowhere", "/neither"), undefined);
});

test("only an address on this machine can be served from here", () => {
  assert.equal(listenAddress("http://localhost:4141"), "127.0.0.1:4141");
  assert.equal(listenAddress("http://[::1]:4141"), "[::1]:4141");
  assert.equal(listenAddress("https://127.0.0.1:4141"), undefined);
  assert.equal(listenAddress("http://gateway.example:4141"), undefined);
});

test("the inspector's modules are found by what they import", () => {
  const source =
    'import { html } from "./vendor/x.js";\nimport * as api from "./api.js";\nconst lazy = () => import("./lazy.js");';
  assert.deepEqual(importsOf("main.js", source), ["vendor/x.js", "api.js", "lazy.js"]);
  assert.deepEqual(importsOf("vendor/x.js", 'import "../api.js"'), ["api.js"]);
});

test("what is recalled has the whole result, once, and is no recall itself", async () => {
  const at = "2026-01-01T00:00:00Z";
  const hit = (entry: string, kind: string) => ({
    conversation: "c",
    entry,
    at,
    kind,
    tool: "read",
    outcome: "ok",
    snippet: "",
    title: null,
  });
  const asked: Record<string, string>[] = [];
  const gateway = {
    search: async (query: Record<string, string>) => {
      asked.push(query);
      return query["q"] === "none"
        ? []
        : [hit("3", "called"), hit("s", "assistant"), hit("2", "returned"), hit("1", "called")];
    },
    conversation: async () => ({
      conversation: { id: "c", title: null, backend: null, exchanges: 1 },
      entries: [
        { id: "1", at, kind: "called", call_id: "k" },
        { id: "2", at, kind: "returned", call_id: "k", text: "AL" },
        { id: "3", at, kind: "called", call_id: "own", tool: "throughline_recall" },
      ],
    }),
    entry: async (_: string, id: string) =>
      id === "1"
        ? { id, at, kind: "called", tool: "read", input: '{"p":1}' }
        : { id, at, kind: "returned", outcome: "ok", text: "ALPHA" },
  };
  assert.equal(await recall(gateway, "c", { query: "x", limit: 1 }), `read({"p":1}) at ${at}: ok\nALPHA`);
  assert.match(
    await recall(gateway, "c", { query: "none", failed: true }),
    /No tool call of this conversation matches "none"/,
  );
  assert.deepEqual(asked[1], { q: "none", limit: "50", conversation: "c", failed: "true" });
});
