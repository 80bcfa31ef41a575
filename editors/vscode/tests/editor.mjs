/** A real VS Code for tests: code-server with our extension installed, opened in a headless Chromium. */

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** How long anything may take before the test is given up: a busy machine is slow, a hang is longer than this. */
export const PATIENCE_MS = 90_000;

/** Waits until `look` returns something; says what was waited for when it never does. */
export async function until(what, look) {
  const deadline = Date.now() + PATIENCE_MS;
  for (let last; ; ) {
    try {
      const found = await look();
      if (found !== undefined && found !== false && found !== null) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}${last ? `: ${last.message}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "visible",
  "workbench.colorTheme": "Default Light Modern",
  "remote.autoForwardPorts": false,
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "chat.tools.global.autoApprove": true,
  "chat.tips.enabled": false,
  "git.openRepositoryInParentFolders": "never",
};

/** Installs the extension in an editor of its own, and opens it. */
export async function openEditor({ node, codeServer, browser, vsix, consumer, home, settings, models }) {
  const folder = mkdtempSync(join(tmpdir(), "notes-"));
  const extensions = join(home, "extensions");
  const portFile = join(home, "consumer-port");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(join(home, "user/User"), { recursive: true });
  mkdirSync(extensions, { recursive: true });
  mkdirSync(join(home, "user/Machine"), { recursive: true });
  writeFileSync(join(home, "user/User/settings.json"), JSON.stringify(SETTINGS));
  writeFileSync(join(home, "user/Machine/settings.json"), JSON.stringify(settings));
  if (models) writeFileSync(join(home, "user/User/chatLanguageModels.json"), JSON.stringify(models));
  writeFileSync(join(folder, "notes.txt"), "The secret word is THROUGHLINE-7.\n");
  const entry = join(codeServer, "node_modules/code-server/out/node/entry.js");
  const places = ["--user-data-dir", join(home, "user"), "--extensions-dir", extensions];
  const env = {
    ...process.env,
    THROUGHLINE_TEST_PORT_FILE: portFile,
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config"),
  };
  await finished(spawn(node, [entry, ...places, "--install-extension", vsix], { env, stdio: "pipe" }));
  cpSync(consumer, join(extensions, "throughline-tests.consumer-0.0.1"), { recursive: true });
  registerConsumer(extensions);
  const port = await freePort();
  const log = [];
  const server = spawn(
    node,
    [entry, ...places, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-workspace-trust"].concat([
      "--disable-telemetry",
      "--disable-update-check",
      folder,
    ]),
    { env, stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (chunk) => log.push(chunk.toString()));
  const close = () => {
    rmSync(folder, { recursive: true, force: true });
    // The server and the extension hosts that it started are one group.
    try {
      process.kill(-server.pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  try {
    const url = `http://127.0.0.1:${port}`;
    await until("code-server", async () => (await fetch(`${url}/healthz`)).ok);
    const chrome = await chromium.launch({ executablePath: browser, args: ["--no-sandbox"] });
    const page = await chrome.newPage({ viewport: { width: 1360, height: 860 } });
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${url}/?folder=${encodeURIComponent(folder)}`);
    await page.waitForSelector(".monaco-workbench");
    const consumerPort = await until(
      "the consumer extension",
      () => existsSync(portFile) && readFileSync(portFile, "utf8"),
    );
    const editor = new Editor(page, Number(consumerPort), folder);
    return { editor, page, folder, home, log, close: () => chrome.close().finally(close) };
  } catch (error) {
    close();
    throw new Error(`${error.message}\n${log.join("").slice(-2_000)}`);
  }
}

/** The consumer is put in place without being packaged; the list of extensions must name it. */
function registerConsumer(extensions) {
  const file = join(extensions, "extensions.json");
  const listed = JSON.parse(readFileSync(file, "utf8"));
  const name = "throughline-tests.consumer-0.0.1";
  const location = { $mid: 1, fsPath: join(extensions, name), path: join(extensions, name), scheme: "file" };
  const identifier = { id: "throughline-tests.consumer" };
  listed.push({ identifier, version: "0.0.1", location, relativeLocation: name, metadata: {} });
  writeFileSync(file, JSON.stringify(listed));
}

class Editor {
  constructor(page, port, folder) {
    this.page = page;
    this.port = port;
    this.folder = folder;
  }

  /** Runs a function in the extension host, with `vscode`, `memory` and an argument. */
  async run(body, argument) {
    const code = `const argument = ${JSON.stringify(argument ?? null)};\nreturn (${body.toString()})(vscode, argument, memory);`;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(`http://127.0.0.1:${this.port}/`, { method: "POST", body: code, signal });
    const result = JSON.parse(await response.text());
    if (response.ok) return result;
    throw Object.assign(new Error(result.message), { code: result.code, name: result.name });
  }

  command(name, ...given) {
    return this.run(
      async (vscode, [command, rest]) => {
        const result = await vscode.commands.executeCommand(command, ...rest);
        return typeof result === "object" ? null : result;
      },
      [name, given],
    );
  }
}

export async function freePort() {
  const { createServer } = await import("node:net");
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function finished(child) {
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (said += chunk));
  const code = await new Promise((resolve, reject) => child.on("exit", resolve).on("error", reject));
  if (code !== 0) throw new Error(`${child.spawnargs.join(" ")} ended with ${code}: ${said.slice(-2_000)}`);
  return said;
}
