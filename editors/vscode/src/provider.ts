/** Models behind the gateway, as the host's chat and other extensions use them. */

import * as vscode from "vscode";
import { GatewayError } from "./errors.ts";
import type { Gateway } from "./gateway.ts";
import { type HostOptions, identify, writeMarker } from "./identity.ts";
import { type Model, requestName } from "./models.ts";
import { MARKER_MIME, readMessage } from "./parts.ts";
import { buildRequest, REASONING_ITEM, toCountable } from "./request.ts";
import { type Output, ResponseReader, readEvents } from "./stream.ts";
import { TokenCounter } from "./tokens.ts";
import type { Watch } from "./watch.ts";

/** A class of the host's that is not in the stable interface; where it is missing, thoughts are not shown. */
type ThinkingPart = new (text: string, id?: string, metadata?: object) => vscode.LanguageModelResponsePart;

const thinkingPart = (vscode as unknown as { LanguageModelThinkingPart?: ThinkingPart }).LanguageModelThinkingPart;

type Options = vscode.ProvideLanguageModelChatResponseOptions &
  HostOptions & { readonly modelConfiguration?: Readonly<Record<string, unknown>> };

export class Provider implements vscode.LanguageModelChatProvider<Model> {
  private readonly gateway: Gateway;
  private readonly watch: Watch;
  private readonly counter: TokenCounter;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly conversed = new vscode.EventEmitter<string>();
  readonly onDidChangeLanguageModelChatInformation = this.changed.event;
  /** Fires with the conversation that the user was last answered in. */
  readonly onDidConverse = this.conversed.event;
  private latest: string | undefined;

  constructor(gateway: Gateway, watch: Watch) {
    this.gateway = gateway;
    this.watch = watch;
    this.counter = new TokenCounter((body, signal) => gateway.countTokens(body, signal));
    watch.onDidChange(() => {
      this.counter.forget();
      this.changed.fire();
    });
  }

  /** The conversation that the user was last answered in. */
  get conversation(): string | undefined {
    return this.latest;
  }

  async provideLanguageModelChatInformation(): Promise<Model[]> {
    return this.watch.models();
  }

  async provideLanguageModelChatResponse(
    model: Model,
    messages: readonly vscode.LanguageModelChatRequestMessage[],
    options: Options,
    progress: vscode.Progress<vscode.LanguageModelResponsePart>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const read = messages.map(readMessage);
    const identity = identify(read, options);
    const required = options.toolMode === vscode.LanguageModelChatToolMode.Required;
    const body = buildRequest(read, {
      model: requestName(model.id),
      tools: options.tools ?? [],
      toolChoice: identity.summary ? "none" : required ? "required" : "auto",
      effort: effort(options),
      modelOptions: options.modelOptions ?? {},
    });
    const conversation = identity.conversation ?? (identity.side ? this.latest : undefined);
    const headers: Record<string, string> = {};
    if (conversation !== undefined) headers["x-throughline-conversation"] = conversation;
    if (identity.side) headers["x-throughline-side"] = "true";
    const abort = new AbortController();
    const cancelled = token.onCancellationRequested(() => abort.abort());
    if (token.isCancellationRequested) abort.abort();
    try {
      await this.watch.ready();
      const answer = await this.gateway.respond(body, headers, abort.signal);
      const placed = answer.conversation ?? conversation;
      if (!identity.side && placed !== undefined) {
        this.latest = placed;
        this.conversed.fire(placed);
      }
      const reader = new ResponseReader(answer.backend);
      for await (const data of readEvents(answer.body)) {
        for (const output of reader.read(data)) report(output, progress);
      }
      reader.finish();
      if (!identity.side && placed !== undefined) {
        progress.report(new vscode.LanguageModelDataPart(writeMarker(model.id, placed), MARKER_MIME));
      }
    } catch (error) {
      if (abort.signal.aborted) throw new vscode.CancellationError();
      if (error instanceof GatewayError && error.kind === "unreachable") this.watch.lost();
      throw toHostError(error);
    } finally {
      cancelled.dispose();
    }
  }

  async provideTokenCount(model: Model, text: string | vscode.LanguageModelChatRequestMessage): Promise<number> {
    const name = requestName(model.id);
    if (typeof text === "string") {
      return this.counter.tokens(name, { key: text, length: text.length, input: text, empty: "" });
    }
    const countable = toCountable(readMessage(text));
    return this.counter.tokens(name, { ...countable, key: JSON.stringify(countable.input) });
  }
}

/** What the host's own picker says beats the setting. */
function effort(options: Options): string | undefined {
  const picked = options.modelConfiguration?.["reasoningEffort"] ?? options.modelOptions?.["reasoning_effort"];
  if (typeof picked === "string") return picked;
  const set = vscode.workspace.getConfiguration("throughline").get<string>("reasoningEffort");
  return set === undefined || set === "default" ? undefined : set;
}

function report(output: Output, progress: vscode.Progress<vscode.LanguageModelResponsePart>): void {
  const part = toPart(output);
  if (part !== undefined) progress.report(part);
}

function toPart(output: Output): vscode.LanguageModelResponsePart | undefined {
  switch (output.kind) {
    case "text":
      return new vscode.LanguageModelTextPart(output.text);
    case "thinking":
      return thinkingPart && new thinkingPart(output.text, output.id);
    case "thought":
      return (
        thinkingPart && new thinkingPart("", output.id, { [REASONING_ITEM]: output.item, vscode_reasoning_done: true })
      );
    case "call":
      return new vscode.LanguageModelToolCallPart(output.callId, output.name, output.input);
    case "image":
      return vscode.LanguageModelDataPart.image(output.data, output.mime);
    case "usage":
      // The host's meter reads parts of exactly this type.
      return vscode.LanguageModelDataPart.json(output.usage, "usage");
  }
}

function toHostError(error: unknown): Error {
  if (!(error instanceof GatewayError)) return error instanceof Error ? error : new Error(String(error));
  switch (error.kind) {
    case "permission":
      return vscode.LanguageModelError.NoPermissions(error.message);
    case "not-found":
      return vscode.LanguageModelError.NotFound(error.message);
    case "blocked":
      return vscode.LanguageModelError.Blocked(error.message);
    default:
      return new vscode.LanguageModelError(error.message);
  }
}
