/** Puts the parts together when the editor starts. */

import * as vscode from "vscode";
import { KEY, registerCommands, startGateway } from "./commands.ts";
import { Gateway } from "./gateway.ts";
import { Inspector } from "./inspector.ts";
import { Provider } from "./provider.ts";
import { Watch } from "./watch.ts";

export function activate(context: vscode.ExtensionContext): void {
  const settings = () => vscode.workspace.getConfiguration("throughline");
  const gateway = new Gateway(async () => ({
    url: settings()
      .get("url", "")
      .replace(/\/+(v1\/?)?$/, ""),
    key: await context.secrets.get(KEY),
  }));
  const start = async () => {
    if (!settings().get("autoStart", false)) return false;
    await startGateway(context, gateway);
    return true;
  };
  const watch = new Watch(gateway, context.globalState, start);
  const provider = new Provider(gateway, watch);
  const inspector = new Inspector(gateway, context.globalStorageUri);
  context.subscriptions.push(
    watch,
    vscode.lm.registerLanguageModelChatProvider("throughline", provider),
    ...registerCommands({ context, gateway, watch, provider, inspector }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("throughline")) void watch.look();
    }),
    context.secrets.onDidChange(() => void watch.look()),
  );
  void watch.look();
}
