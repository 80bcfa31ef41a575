/** Which conversation a request belongs to, and whether it is a question on the side. */

import { isRecord, MARKER_MIME, type Message } from "./parts.ts";

export interface Identity {
  /** Undefined when the host says nothing: the gateway then recognises the conversation by its beginning. */
  conversation: string | undefined;
  /** Asked by the host for itself (a title, a summary), not by the user. */
  side: boolean;
  /** The answer is to be a summary of the conversation, and nothing is to be done for it. */
  summary: boolean;
}

/** What the options of a request may say beyond what the stable interface promises. */
export interface HostOptions {
  readonly modelOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly requestInitiator?: string | undefined;
}

/**
 * Returns what is known of a request.
 *
 * The chat of VS Code names its session in `modelOptions._conversationId` and counts its turns in
 * `_telemetryTurn`; what it asks for itself has no turn. Other callers give back the marker of an earlier answer.
 */
export function identify(messages: readonly Message[], options: HostOptions): Identity {
  const modelOptions = options.modelOptions ?? {};
  const session = modelOptions["_conversationId"];
  const isChat = "_capturingTokenCorrelationId" in modelOptions;
  const side = options.requestInitiator === "core" || (isChat && modelOptions["_telemetryTurn"] === undefined);
  const named = typeof session === "string" && /^[\w.:-]{1,200}$/.test(session) ? `vscode-${session}` : undefined;
  return { conversation: named ?? marked(messages), side, summary: side && asksForSummary(messages) };
}

/**
 * The host reads a summary out of `<summary>` tags, so a request for one explains them, in its instructions or in its
 * last message. Nothing else tells it from other requests: that no tool may be called is lost between the host's chat
 * and its providers.
 */
function asksForSummary(messages: readonly Message[]): boolean {
  const last = messages.findLast((message) => message.role === "user");
  const told = messages.filter((message) => message.role === "system" || message === last);
  return told.some(({ parts }) => parts.some((part) => part.kind === "text" && part.text.includes("<summary>")));
}

/** Returns the conversation that the latest marker in the messages names. */
function marked(messages: readonly Message[]): string | undefined {
  for (const message of messages.toReversed()) {
    for (const part of message.parts.toReversed()) {
      const found = part.kind === "data" && part.mime === MARKER_MIME ? readMarker(part.data) : undefined;
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The host's chat keeps what stands behind a backslash, and puts the model's id in front of it again. */
export function writeMarker(model: string, conversation: string): Uint8Array {
  return new TextEncoder().encode(`${model}\\${JSON.stringify({ throughline: conversation })}`);
}

function readMarker(data: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(data);
  try {
    const marker: unknown = JSON.parse(text.slice(text.indexOf("\\") + 1));
    const conversation = isRecord(marker) ? marker["throughline"] : undefined;
    return typeof conversation === "string" ? conversation : undefined;
  } catch {
    return undefined; // a marker of another provider
  }
}
