/**
 * An extension that uses language models, driven from outside: each POST has the body of an async function, which
 * runs in the extension host with `vscode` at hand, and is answered with what it returns. The port is written to the
 * file that THROUGHLINE_TEST_PORT_FILE names.
 */

const { createServer } = require("node:http");
const { renameSync, writeFileSync } = require("node:fs");
const vscode = require("vscode");

const AsyncFunction = (async () => {}).constructor;
/** What a test wants to find again in a later call. */
const memory = {};

exports.activate = (context) => {
  const file = process.env.THROUGHLINE_TEST_PORT_FILE;
  if (file === undefined) return;
  const server = createServer(async (request, response) => {
    let code = "";
    for await (const chunk of request) code += chunk;
    try {
      const result = await new AsyncFunction("vscode", "memory", code)(vscode, memory);
      response.end(JSON.stringify(result ?? null));
    } catch (error) {
      response.statusCode = 500;
      response.end(JSON.stringify({ name: error.name, code: error.code, message: error.message }));
    }
  });
  server.listen(0, "127.0.0.1", () => {
    writeFileSync(`${file}.new`, String(server.address().port));
    renameSync(`${file}.new`, file);
  });
  context.subscriptions.push({ dispose: () => server.close() });
};
