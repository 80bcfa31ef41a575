/** The commands, the status item, and the tool. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Backends, Gateway } from "./gateway.ts";
import type { Inspector } from "./inspector.ts";
import { findProgram, listenAddress, startProgram } from "./launcher.ts";
import type { Provider } from "./provider.ts";
import { type RecallInput, recall } from "./recall.ts";
import { describe, type Watch } from "./watch.ts";

export const KEY = "throughline.key";

export interface Parts {
  context: vscode.ExtensionContext;
  gateway: Gateway;
  watch: Watch;
  provider: Provider;
  inspector: Inspector;
}

const settings = () => vscode.workspace.getConfiguration("throughline");

/** Starts the gateway at its address, if that is on this machine. Tells why not with an error. */
export async function startGateway(context: vscode.ExtensionContext, gateway: Gateway): Promise<void> {
  const url = settings().get("url", "");
  const isUp = () =>
    gateway.backends().then(
      () => true,
      () => false,
    );
  if (await isUp()) return;
  const address = listenAddress(url);
  if (address === undefined) throw new Error(`${url} is not on this machine: start the gateway there.`);
  const program = findProgram(settings().get("program", ""), join(context.extensionPath, "bin"));
  if (program === undefined) {
    throw new Error(
      "There is no throughline program on PATH. Install it, or name it in the setting throughline.program.",
    );
  }
  mkdirSync(context.globalStorageUri.fsPath, { recursive: true });
  await startProgram({ program, address, log: join(context.globalStorageUri.fsPath, "gateway.log"), isUp });
}

/** Registers everything that a user can reach. */
export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { context, gateway, watch, provider, inspector } = parts;
  const command = (name: string, run: () => Promise<unknown>) =>
    vscode.commands.registerCommand(`throughline.${name}`, async () => {
      try {
        return await run();
      } catch (error) {
        void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
        return undefined;
      }
    });
  return [
    command("manage", () => manage(parts)),
    command("switchAll", async () => {
      const picked = await pickBackend(await gateway.backends(), "All conversations are answered by");
      if (picked !== undefined) await gateway.switchAll(picked.backend).then(() => watch.look());
    }),
    command("switchConversation", async () => {
      const id = conversation(provider);
      const picked = await pickBackend(await gateway.backends(), "This conversation is answered by");
      if (picked !== undefined) await gateway.switchConversation(id, picked.backend).then(() => watch.look());
    }),
    command("openInspector", () => {
      const id = provider.conversation;
      return inspector.open(id === undefined ? "#/" : `#/c/${encodeURIComponent(id)}`);
    }),
    command("searchHistory", async () => {
      const q = await vscode.window.showInputBox({
        prompt: "Search the tool history",
        placeHolder: "words, a path, an error",
      });
      if (q) await inspector.open(`#/search?${new URLSearchParams({ q })}`);
    }),
    command("showSent", async () => {
      const id = conversation(provider);
      const { exchanges } = (await gateway.conversation(id)).conversation;
      await inspector.open(`#/c/${encodeURIComponent(id)}/seen/${exchanges}`);
    }),
    command("start", async () => {
      const title = "Starting Throughline";
      const location = vscode.ProgressLocation.Notification;
      await vscode.window.withProgress({ location, title }, () => startGateway(context, gateway));
      await watch.look();
    }),
    command("setKey", async () => {
      const prompt = "Key of the gateway, as in auth.keys of its configuration; empty removes it";
      const key = await vscode.window.showInputBox({ prompt, password: true });
      if (key === undefined) return;
      await (key === "" ? context.secrets.delete(KEY) : context.secrets.store(KEY, key));
      await watch.look();
    }),
    vscode.lm.registerTool<RecallInput>("throughline_recall", {
      prepareInvocation: ({ input }) => ({ invocationMessage: `Recalling "${input.query}"` }),
      invoke: async ({ input }) => {
        const text = await recall(gateway, provider.conversation, input);
        return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(text)]);
      },
    }),
    statusItem(watch),
  ];
}

function conversation(provider: Provider): string {
  const id = provider.conversation;
  if (id === undefined) throw new Error("Nothing was asked through Throughline yet: send a message first.");
  return id;
}

async function manage({ watch }: Parts): Promise<void> {
  const command = (label: string, name: string) => ({ label, name });
  const stopped = watch.state.kind === "stopped" ? [command("$(play) Start the gateway", "start")] : [];
  const picked = await vscode.window.showQuickPick(
    [
      ...stopped,
      command("$(arrow-swap) Switch the backend of this conversation", "switchConversation"),
      command("$(arrow-swap) Switch the backend of all conversations", "switchAll"),
      command("$(list-tree) Open the inspector", "openInspector"),
      command("$(eye) Show what the backend saw", "showSent"),
      command("$(search) Search tool history", "searchHistory"),
      command("$(key) Set the gateway key", "setKey"),
    ],
    { title: `Throughline: ${describe(watch.state)}` },
  );
  if (picked !== undefined) await vscode.commands.executeCommand(`throughline.${picked.name}`);
}

async function pickBackend(known: Backends, title: string): Promise<{ backend: string | null } | undefined> {
  const models = known.backends.flatMap(({ name, dialect, default_model, models: listed }) => {
    const others = (listed ?? []).filter((model) => model !== default_model);
    return [
      { label: name, description: default_model ?? "", detail: dialect, backend: name },
      ...others.map((model) => ({ label: `${name}/${model}`, description: "", backend: `${name}/${model}` })),
    ];
  });
  const none = { label: "$(discard) Take the switch back", description: known.active, backend: null };
  return vscode.window.showQuickPick([...models, none], { title, matchOnDescription: true });
}

function statusItem(watch: Watch): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("throughline.status", vscode.StatusBarAlignment.Right, 100);
  item.name = "Throughline";
  item.command = "throughline.manage";
  const show = () => {
    const { state } = watch;
    const isStopped = state.kind === "stopped";
    item.text = `$(${isStopped ? "debug-disconnect" : "git-compare"}) ${isStopped ? "Throughline" : describe(state)}`;
    item.tooltip = isStopped ? state.error.message : `Throughline: ${describe(state)} answers`;
    item.backgroundColor = isStopped ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  show();
  item.show();
  return vscode.Disposable.from(item, watch.onDidChangeState(show));
}
