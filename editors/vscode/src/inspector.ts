/**
 * The gateway's inspector, in a panel of the editor.
 *
 * The gateway lets no page frame it. So the panel is given the inspector's own files, and what they ask the gateway
 * for goes through the extension, which has the key and can reach the gateway also when the editor runs elsewhere.
 */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { unreachable } from "./errors.ts";
import type { Gateway } from "./gateway.ts";
import { importsOf, panelPage, panelScript } from "./panel.ts";

type Asked = { type: "fetch"; id: number; method: string; path: string; body?: string } | { type: "abort"; id: number };

export class Inspector {
  private readonly gateway: Gateway;
  private readonly folder: vscode.Uri;
  private panel: vscode.WebviewPanel | undefined;
  private readonly running = new Map<number, AbortController>();

  constructor(gateway: Gateway, storage: vscode.Uri) {
    this.gateway = gateway;
    this.folder = vscode.Uri.joinPath(storage, "inspector");
  }

  /** Shows the page at a hash such as `#/c/ID`. */
  async open(hash: string): Promise<void> {
    await this.load();
    this.panel ??= this.create();
    const { webview } = this.panel;
    const nonce = randomBytes(16).toString("hex");
    const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(this.folder, name)).toString();
    const urls = { style: file("inspector.css"), script: file("main.js"), icon: file("icon.svg") };
    webview.html = panelPage({ ...urls, source: webview.cspSource, nonce, bridge: panelScript(hash, urls.icon) });
    this.panel.reveal();
  }

  private create(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel("throughline.inspector", "Throughline", vscode.ViewColumn.Active, {
      enableScripts: true,
      retainContextWhenHidden: true,
      localResourceRoots: [this.folder],
    });
    panel.webview.onDidReceiveMessage((asked: Asked) => this.answer(panel.webview, asked));
    panel.onDidDispose(() => {
      for (const abort of this.running.values()) abort.abort();
      this.running.clear();
      this.panel = undefined;
    });
    return panel;
  }

  /** Copies the inspector's files from the gateway: they are of its version. */
  private async load(): Promise<void> {
    const wanted = ["main.js", "inspector.css", "icon.svg"];
    for (let name = wanted.pop(), known = new Set(wanted).add(name ?? ""); name !== undefined; name = wanted.pop()) {
      const bytes = await this.file(name);
      await vscode.workspace.fs.writeFile(vscode.Uri.joinPath(this.folder, name), bytes);
      if (!name.endsWith(".js")) continue;
      for (const found of importsOf(name, new TextDecoder().decode(bytes))) {
        if (!known.has(found)) wanted.push(found);
        known.add(found);
      }
    }
  }

  private async file(name: string): Promise<Uint8Array> {
    const response = await this.gateway
      .pass("GET", `/inspector/${name}`, undefined, AbortSignal.timeout(10_000))
      .catch(async (error) => {
        throw unreachable("the configured address", error);
      });
    if (!response.ok) throw new Error(`The gateway has no inspector (${response.status} for ${name}).`);
    return new Uint8Array(await response.arrayBuffer());
  }

  private async answer(webview: vscode.Webview, asked: Asked): Promise<void> {
    if (asked.type === "abort") return this.running.get(asked.id)?.abort();
    const { id, method, path, body } = asked;
    const abort = new AbortController();
    this.running.set(id, abort);
    try {
      if (!/^\/(api|metrics)(\/|\?|$)/.test(path)) throw new Error(`The inspector may not ask for ${path}.`);
      const response = await this.gateway.pass(method, path, body, abort.signal);
      const type = response.headers.get("content-type") ?? "application/json";
      await webview.postMessage({ id, kind: "head", status: response.status, contentType: type });
      if (response.body !== null) {
        for await (const chunk of response.body)
          await webview.postMessage({ id, kind: "chunk", chunk: Array.from(chunk) });
      }
      await webview.postMessage({ id, kind: "end" });
    } catch (error) {
      await webview.postMessage({ id, kind: "error", message: String(error) });
    } finally {
      this.running.delete(id);
    }
  }
}
