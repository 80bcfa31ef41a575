/** The extension in a real VS Code, over simulated backends of all three dialects. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { openEditor, until } from "./editor.mjs";
import { DIALECTS, pairsOf, Stack } from "./gateway.mjs";

const lab = process.env.THROUGHLINE_LAB;
const here = import.meta.dirname;
const pictures = process.env.THROUGHLINE_SCREENSHOTS === "true" ? join(here, "../media") : join(lab, "run/pictures");
/** Runs the program, and says as which process. */
const launcher = { file: join(lab, "run/launcher"), pid: join(lab, "run/launcher.pid") };
let stack;
let opened;
let editor;
let page;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  const program = process.env.THROUGHLINE_PROGRAM;
  writeFileSync(launcher.file, `#!/bin/sh\necho $$ >'${launcher.pid}'\nexec '${program}' "$@"\n`, { mode: 0o755 });
  stack = new Stack(program, join(lab, "run/gateway"));
  await stack.start();
  opened = await openEditor({
    node: join(lab, "node/node_modules/node/bin/node"),
    codeServer: join(lab, "code-server"),
    browser: process.env.THROUGHLINE_BROWSER,
    vsix: join(here, "../throughline.vsix"),
    consumer: join(here, "consumer"),
    home: join(lab, "run/editor"),
    settings: { "throughline.url": stack.url, "throughline.program": launcher.file },
    models: customEndpoints(),
  });
  ({ editor, page } = opened);
  await until("the models", async () => (await models()).length > 0);
});

beforeEach(() => stack.switchAll(null));

after(async () => {
  await opened?.close();
  await stack?.close();
});

const picture = (name) => page.screenshot({ path: join(pictures, `${name}.png`) });

/** What `throughline env vscode` says belongs into the editor's file, and the same for the other dialects. */
function customEndpoints() {
  const printed = execFileSync(stack.program, ["env", "vscode", "--config", stack.config], { encoding: "utf8" });
  const [group] = JSON.parse(printed.replace(/^\/\/.*$/gm, ""));
  const [model] = group.models;
  const paths = { responses: "responses", messages: "messages", "chat-completions": "chat/completions" };
  return Object.entries(paths).map(([apiType, path]) => {
    const url = model.url.replace("/responses", `/${path}`);
    return { ...group, name: `Custom ${apiType}`, apiType, models: [{ ...model, id: apiType, name: apiType, url }] };
  });
}

const models = () =>
  editor.run(async (vscode) => {
    const found = await vscode.lm.selectChatModels({ vendor: "throughline" });
    return found.map(({ id, name, family, maxInputTokens }) => ({ id, name, family, maxInputTokens }));
  });

/** Sends messages of `[role, ...parts]` as another extension would, and returns what came back. */
const ask = (request) =>
  editor.run(async (vscode, { model = "active", messages, tools, options, cancelAfter, keep }, memory) => {
    const [found] = await vscode.lm.selectChatModels({ vendor: "throughline", id: model });
    const toPart = (part) => {
      if (typeof part === "string") return new vscode.LanguageModelTextPart(part);
      if (part.call) return new vscode.LanguageModelToolCallPart(part.call, part.name, part.input);
      if (part.result) return new vscode.LanguageModelToolResultPart(part.result, part.content.map(toPart));
      if (part.json) return vscode.LanguageModelDataPart.json(part.json, part.mime);
      return new vscode.LanguageModelDataPart(Buffer.from(part.data, "base64"), part.mime);
    };
    const history = messages.map(([role, ...parts]) => new vscode.LanguageModelChatMessage(role, parts.map(toPart)));
    const source = new vscode.CancellationTokenSource();
    const all = keep ? [...(memory[keep] ?? []), ...history] : history;
    const response = await found.sendRequest(all, { tools, modelOptions: options }, source.token);
    const seen = { text: "", calls: [], parts: [] };
    const said = [];
    try {
      for await (const part of response.stream) {
        seen.parts.push(part.constructor === Object ? "?" : (part.mimeType ?? (part.name ? "call" : "text")));
        if (part instanceof vscode.LanguageModelTextPart) seen.text += part.value;
        if (part instanceof vscode.LanguageModelToolCallPart) seen.calls.push(part);
        if (part.mimeType === "usage") seen.usage = JSON.parse(new TextDecoder().decode(part.data));
        if (part.mimeType !== "usage") said.push(part);
        if (cancelAfter && seen.text.includes(cancelAfter)) source.cancel();
      }
    } catch (error) {
      if (!cancelAfter) throw error;
      seen.cancelled = error.name;
    }
    if (keep) memory[keep] = [...all, new vscode.LanguageModelChatMessage(2, said)];
    return seen;
  }, request);

const SYSTEM = 3;
const USER = 1;
const ASSISTANT = 2;
const READ = {
  name: "read_part",
  description: "Reads a part of the manuscript.",
  inputSchema: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
};
const CALLS = 30;

/** Calls the tool as a model's call of it is run. */
const invokeRecall = async (vscode, input) => {
  const result = await vscode.lm.invokeTool("throughline_recall", { input, toolInvocationToken: undefined });
  return result.content.map((part) => part.value).join("");
};

test("models come from the gateway, with their limits, and follow it", async () => {
  const [active, ...others] = await models();
  assert.deepEqual(
    [active.id, active.family, active.maxInputTokens],
    ["active", "sim-alpha", 200_000 - 16_384],
    "the window less what is kept for the answer",
  );
  const gamma = others.find(({ id }) => id === "gamma/sim-gamma");
  assert.equal(gamma.maxInputTokens, 64_000 - 16_000);
  await stack.switchAll("gamma");
  const switched = await until("the switch", async () => {
    const [first] = await models();
    return first.family === "sim-gamma" && first;
  });
  assert.deepEqual([switched.id, switched.maxInputTokens], ["active", 48_000]);
});

test("30 tool calls keep every pair, in order, through two switches and a compaction", async () => {
  const rules = [{ call: READ.name, until: CALLS, arguments: { number: "{n}" } }];
  for (const name of Object.keys(DIALECTS)) await stack.simulate(name, { rules });
  const content = (number) => `Part ${number}: ${`the quick brown fox number ${number} jumps over. `.repeat(12)}`;
  const options = { _capturingTokenCorrelationId: "c", _conversationId: "thirty", _telemetryTurn: 1 };
  const expected = [];
  let messages = [
    [SYSTEM, "You read manuscripts."],
    [USER, "Read all parts."],
  ];
  let usage;
  for (const [name, upTo] of [
    ["alpha", 10],
    ["beta", 20],
    ["gamma", CALLS],
  ]) {
    await stack.switchAll(name);
    for (;;) {
      const answer = await ask({ messages, tools: [READ], options, keep: "thirty" });
      usage = answer.usage;
      if (answer.calls.length === 0) break;
      assert.equal(answer.calls.length, 1);
      const [{ callId, input }] = answer.calls;
      const number = expected.length + 1;
      expected.push([READ.name, JSON.stringify(input), content(number)]);
      messages = [[USER, { result: callId, content: [content(number)] }]];
      if (expected.length === upTo && upTo < CALLS) break;
    }
    const recorded = await stack.recorded(name);
    assert.ok(recorded.every(({ status }) => status === 200));
    for (const { request } of recorded) {
      const pairs = pairsOf(DIALECTS[name], request);
      assert.deepEqual(pairs, expected.slice(0, pairs.length), `${name} sees every pair so far, in order`);
    }
    const seen = pairsOf(DIALECTS[name], recorded.at(-1).request).length;
    assert.equal(seen, name === "gamma" ? CALLS : upTo - 1);
  }
  assert.equal(expected.length, CALLS);

  // What the host's meter and its budget go by, against what the backend says.
  const counted = await editor.run(async (vscode, tool, { thirty }) => {
    const [model] = await vscode.lm.selectChatModels({ vendor: "throughline", id: "active" });
    const counts = await Promise.all(
      [...thirty.slice(0, -1), JSON.stringify(tool)].map((each) => model.countTokens(each)),
    );
    return counts.reduce((sum, each) => sum + each, 0);
  }, READ);
  const difference = Math.abs(counted - usage.prompt_tokens) / usage.prompt_tokens;
  console.log(
    `counted ${counted} tokens, the backend ${usage.prompt_tokens}: ${(difference * 100).toFixed(2)} % apart`,
  );
  assert.ok(difference < 0.02, `counted ${counted}, the backend says ${usage.prompt_tokens}`);

  // The host compacts: it asks for a summary with all tools on offer, and goes on with that alone.
  await stack.switchAll("alpha");
  const before = (await stack.recorded("alpha")).length;
  const asksForSummary = [[USER, "Summarize the conversation history in <summary> tags."]];
  const side = { _capturingTokenCorrelationId: "c", _conversationId: "thirty" };
  const summary = await ask({ messages: asksForSummary, tools: [READ], options: side, keep: "thirty" });
  assert.deepEqual(summary.calls, [], "nothing is done for a summary");
  assert.ok(!summary.parts.includes("stateful_marker"));
  const asked = (await stack.recorded("alpha")).slice(before);
  assert.equal(asked.at(-1).request.tool_choice, "none");
  const compacted = [
    [SYSTEM, "You read manuscripts."],
    [USER, "<conversation-summary>All 30 parts were read.</conversation-summary>"],
    [ASSISTANT, { call: "kept", name: READ.name, input: { number: 30 } }],
    [USER, { result: "kept", content: [content(30)] }],
  ];
  const after = await ask({ messages: compacted, tools: [READ], options });
  assert.equal(after.calls.length + (after.text === "" ? 0 : 1), 1);

  // The record has one thread with everything, and the model can have it back.
  const { entries } = await stack.api("/api/conversations/vscode-thirty");
  const kept = entries.filter(({ kind, text }) => kind === "returned" && text).map(({ text }) => text);
  assert.deepEqual(
    [...new Set(kept)],
    expected.map((pair) => pair[2]),
  );
  const { conversations } = await stack.api("/api/conversations");
  const ours = conversations.filter(({ id }) => id === "vscode-thirty");
  assert.equal(ours.length, 1);
  const recalled = await editor.run(invokeRecall, { query: "number 7 jumps" });
  assert.ok(recalled.includes(content(7)), recalled);

  // It has back what the host took from it, call by call, judged by what the backend was sent.
  const offered = await editor.run((vscode) => vscode.lm.tools.find(({ name }) => name === "throughline_recall"));
  const recalls = [{ call: offered.name, until: CALLS, arguments: { query: "number {n} jumps", limit: 1 } }];
  await stack.simulate("beta", { rules: recalls });
  await stack.switchAll("beta");
  let goesOn = [
    [SYSTEM, "You read manuscripts."],
    [USER, "<conversation-summary>All was read.</conversation-summary>"],
  ];
  for (;;) {
    const answer = await ask({ messages: goesOn, tools: [offered], options, keep: "compacted" });
    if (answer.calls.length === 0) break;
    const [{ callId, input }] = answer.calls;
    const found = await editor.run(invokeRecall, input);
    goesOn = [[USER, { result: callId, content: [found] }]];
  }
  const sent = pairsOf("messages", (await stack.recorded("beta")).at(-1).request);
  assert.equal(sent.length, CALLS);
  for (const [index, [, , text]] of sent.entries())
    assert.ok(text.includes(expected[index][2]), `recall ${index}: ${text}`);
});

test("pictures, data and what the host adds for itself", async () => {
  for (const name of Object.keys(DIALECTS)) await stack.simulate(name);
  const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  for (const [name, dialect] of Object.entries(DIALECTS)) {
    const answer = await ask({
      model: `${name}/sim-${name}`,
      messages: [
        [USER, "Read it.", { mime: "cache_control", data: "ZXBoZW1lcmFs" }],
        [ASSISTANT, { call: "c1", name: READ.name, input: { number: 1, where: { $mid: 1, path: "/a" } } }],
        [USER, { result: "c1", content: ["ALPHA", { mime: "image/png", data: picture }] }],
        [USER, "And this?", { mime: "image/png", data: picture }, { json: { line: 42 }, mime: "application/json" }],
      ],
    });
    assert.ok(answer.text.length > 0);
    const [{ body, request }] = (await stack.recorded(name)).slice(-1);
    assert.ok(
      body.includes(picture) && body.includes("42") && !body.includes("$mid") && !body.includes("ZXBoZW1lcmFs"),
    );
    assert.deepEqual(
      pairsOf(dialect, request).map(([, given]) => JSON.parse(given)),
      [{ number: 1, where: { path: "/a" } }],
    );
  }
});

test("orphans are mended, not refused", async () => {
  for (const name of Object.keys(DIALECTS)) {
    const messages = [
      [USER, "Go on."],
      [ASSISTANT, { call: "open", name: READ.name, input: { number: 1 } }],
      [USER, { result: "lost", content: ["ORPHAN-9"] }],
      [USER, "From memory: what about ORPHAN-9?"],
    ];
    const answer = await ask({ model: `${name}/sim-${name}`, messages, tools: [READ] });
    assert.ok(answer.text.includes("ORPHAN-9"), `${name}: ${answer.text}`);
  }
});

test("a conversation without a name of the host's is kept together by its marker", async () => {
  const first = await ask({ messages: [[USER, "Remember MARKER-1."]], keep: "marked" });
  assert.ok(first.parts.includes("stateful_marker"));
  await ask({ messages: [[USER, "From memory: what about MARKER-1?"]], keep: "marked" });
  // The host drops the beginning; only the marker tells.
  await editor.run(async (_, __, memory) => {
    memory.marked = memory.marked.slice(-1);
  });
  await ask({ messages: [[USER, "Still there?"]], keep: "marked" });
  const { conversations } = await stack.api("/api/conversations");
  assert.equal(conversations.filter(({ title }) => title?.includes("MARKER-1")).length, 1);
  assert.equal(conversations.filter(({ title }) => title?.includes("Still there")).length, 0);
});

test("cancelling stops the backend's answer", async () => {
  await stack.simulate("alpha", { turns: [{ text: "One two three four five six seven eight nine ten.", hang: 6 }] });
  const answer = await ask({ messages: [[USER, "Count."]], cancelAfter: "One" });
  assert.ok(answer.text.startsWith("One"));
  const [recorded] = await until("the backend to notice", async () => {
    const all = await stack.recorded("alpha");
    return all.length === 1 && all[0].completed === false && all;
  });
  assert.equal(recorded.completed, false);
});

test("errors say what is wrong", async () => {
  const error = (status, message, code) => ({ error: { status, message, code } });
  await stack.simulate("alpha", {
    turns: [error(401, "Invalid key", "invalid_api_key"), error(400, "context_length_exceeded: too long")],
  });
  const failure = () => ask({ messages: [[USER, "Hello"]] }).then(assert.fail, (problem) => problem);
  const key = await failure();
  assert.match(key.message, /^The backend answered 401: Invalid key/);
  assert.equal(key.code, "NoPermissions");
  assert.match((await failure()).message, /too long/);
});

test("a gateway that is gone gives one clear message, and is found again by itself", async () => {
  await stack.simulate("alpha");
  await stack.stop("serve");
  const problem = await ask({ messages: [[USER, "Hello"]] }).then(assert.fail, (error) => error);
  assert.match(problem.message, /^Throughline is not running at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)\. Run /);
  assert.ok((await models()).length > 3, "the models stay on offer");
  const status = page.locator('[id="throughline.throughline.throughline.status"]');
  await status.locator(".codicon-debug-disconnect").waitFor();
  assert.equal(await page.locator(".notification-toast").count(), 0, "nothing pops up");
  await stack.serve();
  await status.getByText("alpha/sim-alpha").waitFor();
  assert.match((await ask({ messages: [[USER, "Hello"]] })).text, /Hello/);
});

test("the gateway is started from the editor", async () => {
  await stack.stop("serve");
  await editor.command("throughline.start");
  const { backends } = await stack.api("/api/backends");
  assert.deepEqual(
    backends.map(({ name }) => name),
    ["sim"],
    "without any configuration there is the simulated backend",
  );
  await until("its models", async () => (await models()).some(({ id }) => id.startsWith("sim/")));
  process.kill(Number(readFileSync(launcher.pid, "utf8")));
  const isGone = () =>
    fetch(`${stack.url}/healthz`).then(
      () => false,
      () => true,
    );
  await until("it to end", isGone);
  await stack.serve();
  await until("our models", async () => (await models())[0].family === "sim-alpha");
});

/** Types into the box that a command shows. */
async function type(command, words) {
  const done = editor.command(command);
  const input = page.locator(".quick-input-widget input").first();
  await input.waitFor();
  await input.fill(words);
  await page.keyboard.press("Enter");
  await done;
}

test("a gateway that asks for a key gets it from the editor's secret store", async () => {
  const open = readFileSync(stack.config, "utf8");
  await stack.stop("serve");
  writeFileSync(stack.config, `auth.keys = ["sesame-4711"]\n${open}`);
  await stack.serve();
  const locked = await ask({ messages: [[USER, "Hello"]] }).then(assert.fail, (error) => error);
  assert.equal(locked.code, "NoPermissions");
  assert.match(locked.message, /Run "Throughline: Set the Gateway Key"/);
  await type("throughline.setKey", "sesame-4711");
  assert.match((await ask({ messages: [[USER, "Hello"]] })).text, /Hello/);
  const { stdout: files } = spawnSync("grep", ["-rlF", "sesame-4711", opened.home], { encoding: "utf8" });
  assert.doesNotMatch(files, /settings\.json|storage\.json/, "no setting holds the key");
  await stack.stop("serve");
  writeFileSync(stack.config, open);
  await stack.serve();
  await type("throughline.setKey", "");
});

/** Types into the chat of the editor, as the user of a model. */
const chat = (query, model = { vendor: "throughline", id: "active" }) =>
  editor.command("workbench.action.chat.open", { query, modelSelector: model });

/** Waits until a backend was sent so many requests, and the editor shows the end of its answer. */
async function answered(backend, requests, words) {
  await until(`${requests} requests at ${backend}`, async () => (await stack.recorded(backend)).length >= requests);
  await page.locator(".interactive-response").last().getByText(words).last().waitFor();
  await page.locator(".chat-response-loading").waitFor({ state: "detached" });
  return stack.recorded(backend);
}

/** Picks from the list that a command shows. */
async function pick(command, words) {
  const done = editor.command(command);
  const input = page.locator(".quick-input-widget input").first();
  await input.waitFor();
  await input.fill(words);
  await page.locator(".quick-input-list .monaco-list-row.focused").getByText(words).first().waitFor();
  await page.keyboard.press("Enter");
  await done;
}

const readNotes = (lines) => ({
  name: "read_file",
  arguments: { filePath: join(editor.folder, "notes.txt"), startLine: 1, endLine: lines },
});
const NOTES = /The secret word is THROUGHLINE-7/;

test("the editor's chat: thoughts, calls, the meter, a switch, a compaction", async () => {
  // The chat is there for whoever has a model; nobody needs an account for it.
  await editor.command("workbench.action.chat.manage");
  const isActive = (vscode) =>
    vscode.extensions.all.some(({ id, isActive }) => id === "GitHub.copilot-chat" && isActive);
  await until("the editor's chat", () => editor.run(isActive));
  await page.getByText("alpha/sim-alpha").first().waitFor();
  await picture("models");
  await page.keyboard.press("Escape");

  const thoughts = [{ reasoning: "The notes first.", text: "Let me look.", calls: [readNotes(5)] }];
  await stack.simulate("alpha", { turns: [...thoughts, { calls: [readNotes(2), readNotes(3)] }, { quote: true }] });
  await chat("Read the file notes.txt");
  const [first, second, third] = (await answered("alpha", 3, NOTES)).map(({ request }) => request);
  const reasoning = second.input.filter(({ type }) => type === "reasoning");
  assert.equal(reasoning.length, 1, "what the model thought came back, sealed as it was");
  assert.ok(reasoning[0].encrypted_content.length > 0);
  assert.deepEqual(
    pairsOf("responses", third).map(([name, , text]) => [name, NOTES.test(text)]),
    [1, 2, 3].map(() => ["read_file", true]),
  );
  assert.ok(
    first.tools.some(({ name }) => name === "throughline_recall"),
    "the model can recall",
  );
  const meter = page.locator(".chat-context-usage-widget");
  const label = await until("the meter", () => meter.getAttribute("aria-label"));
  assert.match(label, /Context window usage: [1-9]\d*%/);
  await picture("chat");

  // The user switches this conversation, and goes on.
  await stack.simulate("beta", { rules: [{ call: "read_file", until: 4, arguments: readNotes(4).arguments }] });
  await pick("throughline.switchConversation", "beta");
  await chat("Read it once more");
  const taken = await answered("beta", 2, NOTES);
  const pairs = pairsOf("messages", taken.at(-1).request);
  assert.equal(pairs.length, 4, "the new backend sees the old calls and its own");
  assert.ok(!JSON.stringify(taken.at(-1).request).includes("sealed"), "and no thoughts of another's");

  // The editor compacts the conversation, and the user goes on behind that.
  const summary = "<summary>The user had notes.txt read four times.</summary>";
  await stack.simulate("beta", { turns: [{ text: summary }, { text: "Here we are." }] });
  await chat("/compact");
  const [compaction] = await until("the summary", async () => {
    const all = await stack.recorded("beta");
    return all.length > 0 && all;
  });
  assert.equal(compaction.request.tool_choice?.type, "none", "a summary calls no tools");
  await page
    .getByText(/Compacted|compacted/)
    .last()
    .waitFor();
  await chat("Are you still here?");
  const after = await answered("beta", 2, "Here we are.");
  assert.ok(after.at(-1).body.includes("conversation-summary"));
  const { conversations } = await stack.api("/api/conversations?limit=100");
  const named = conversations.filter(
    ({ id, client }) => id.startsWith("vscode-") && client?.startsWith("throughline-vscode"),
  );
  const [ours] = named.filter(({ id }) => id !== "vscode-thirty");
  assert.equal(named.length, 2, "one conversation for all of this");
  const { entries } = await stack.api(`/api/conversations/${ours.id}`);
  assert.equal(entries.filter(({ kind }) => kind === "returned").length, 4, "nothing is lost to the compaction");
  const recalled = await editor.run(invokeRecall, { query: "THROUGHLINE-7" });
  assert.match(recalled, NOTES);
});

/** Waits for the inspector's panel to show these words. */
const inspector = (words) =>
  until(`the inspector with ${words}`, async () => {
    for (const frame of page.frames()) if (await frame.locator("#page main").getByText(words).count()) return frame;
  });

test("the inspector opens on this conversation", async () => {
  await editor.command("throughline.openInspector");
  await inspector("read_file");
  await editor.command("workbench.action.closeSidebar");
  await picture("inspector");
  await editor.command("throughline.showSent");
  await inspector("conversation-summary");
  await type("throughline.searchHistory", "THROUGHLINE-7");
  await inspector("THROUGHLINE-7");
});

test("all conversations are switched from the editor, and back", async () => {
  await pick("throughline.switchAll", "gamma");
  await until("the switch", async () => (await stack.api("/api/backends")).switched === "gamma");
  await until("its models", async () => (await models())[0].family === "sim-gamma");
  await pick("throughline.switchAll", "Take the switch back");
  await until("the way back", async () => (await models())[0].family === "sim-alpha");
});

test("the editor's own custom endpoints work over every dialect", async () => {
  await stack.switchAll("beta");
  for (const type of ["responses", "messages", "chat-completions"]) {
    await stack.simulate("beta", { rules: [{ call: "read_file", until: 2, arguments: readNotes(5).arguments }] });
    await editor.command("workbench.action.chat.newChat");
    await chat("Read the file notes.txt", { vendor: "customendpoint", id: type });
    const all = await answered("beta", 3, NOTES);
    assert.ok(all.every(({ status }) => status === 200));
    assert.equal(pairsOf("messages", all.at(-1).request).length, 2, type);
  }
});

test("what the editor kept of its chats can be imported", async () => {
  const data = join(lab, "run/appdata");
  rmSync(data, { recursive: true, force: true });
  mkdirSync(join(data, "Code"), { recursive: true });
  symlinkSync(join(opened.home, "user/User"), join(data, "Code/User"));
  const options = { encoding: "utf8", env: { ...process.env, VSCODE_APPDATA: data, HOME: data } };
  const run = (...given) => execFileSync(stack.program, ["--data", join(data, "history"), ...given], options);
  // The editor writes a session a while after its last turn.
  const imported = await until("the session on disk", () => {
    const said = run("import", "vscode", "--all");
    return /vscode: 4 turns, 4 calls, 4 results/.test(said) && said;
  });
  const [, id] = /(\S+) {2}.*vscode: 4 turns/.exec(imported);
  const pairs = run("show", id, "--view", "pairs");
  assert.equal(pairs.match(/THROUGHLINE-7/g)?.length >= 4, true, pairs);
});
