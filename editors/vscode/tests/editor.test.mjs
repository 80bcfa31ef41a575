/** The extension in a real VS Code, over simulated backends of all three dialects. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openEditor, until } from "./editor.mjs";
import { DIALECTS, pairsOf, Stack } from "./gateway.mjs";

const lab = process.env.THROUGHLINE_LAB;
const here = import.meta.dirname;
let stack;
let opened;
let editor;

before(async () => {
  stack = new Stack(process.env.THROUGHLINE_PROGRAM, join(lab, "run/gateway"));
  await stack.start();
  opened = await openEditor({
    node: join(lab, "node/node_modules/node/bin/node"),
    codeServer: join(lab, "code-server"),
    browser: process.env.THROUGHLINE_BROWSER,
    vsix: join(here, "../throughline.vsix"),
    consumer: join(here, "consumer"),
    home: join(lab, "run/editor"),
    settings: { "throughline.url": stack.url },
  });
  editor = opened.editor;
});

after(async () => {
  await opened?.close();
  await stack?.close();
});

const models = () =>
  editor.run(async (vscode) =>
    (await vscode.lm.selectChatModels({ vendor: "throughline" })).map(({ id, name, family, maxInputTokens }) => ({
      id,
      name,
      family,
      maxInputTokens,
    })),
  );

test("models come from the gateway with their limits", async () => {
  const listed = await until("models", async () => (await models()).length > 0 && models());
  console.log(listed);
  assert.equal(listed[0].id, "active");
});

test("text", async () => {
  console.log(
    await editor.run(async (vscode) => {
      const [model] = await vscode.lm.selectChatModels({ vendor: "throughline", id: "active" });
      const response = await model.sendRequest([vscode.LanguageModelChatMessage.User("Hello")]);
      const out = [];
      for await (const part of response.stream) out.push(part);
      return [out, await model.countTokens("Hello world, this is text")];
    }),
  );
});
