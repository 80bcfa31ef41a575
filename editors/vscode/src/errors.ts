/** What went wrong with a request, in words for the user. */

import { isRecord } from "./parts.ts";

export type FailureKind = "unreachable" | "permission" | "not-found" | "blocked" | "cancelled" | "other";

export class GatewayError extends Error {
  readonly kind: FailureKind;
  readonly code: string | undefined;

  constructor(kind: FailureKind, message: string, code?: string) {
    super(message);
    this.name = "GatewayError";
    this.kind = kind;
    this.code = code;
  }
}

/** Nothing answers at the gateway's address. */
export function unreachable(url: string, cause: unknown): GatewayError {
  const reason = reasonOf(cause);
  return new GatewayError(
    "unreachable",
    `Throughline is not running at ${url}${reason ? ` (${reason})` : ""}. ` +
      `Run "Throughline: Start the Gateway", or "throughline serve" in a terminal, then try again.`,
  );
}

function reasonOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  if (isRecord(inner) && typeof inner["code"] === "string") return inner["code"];
  return inner instanceof Error ? inner.message : "";
}

/** The gateway answered with a status other than success. */
export function refused(status: number, body: string, backend: string | undefined): GatewayError {
  const { message, code } = readError(body);
  const said = message ?? (body.trim().slice(0, 300) || "no reason given");
  return new GatewayError(
    kindOf(status, code),
    `${speaker(code, backend)} answered ${status}: ${said}${advice(status, code)}`,
    code,
  );
}

/** The answer ended with an error event. */
export function failed(error: unknown, backend: string | undefined): GatewayError {
  const { message, code } = readError(JSON.stringify(error));
  return new GatewayError(
    kindOf(0, code),
    `${speaker(code, backend)} failed: ${message ?? "no reason given"}${advice(0, code)}`,
    code,
  );
}

/** The gateway passes on what a backend says, and marks what it says itself. */
function speaker(code: string | undefined, backend: string | undefined): string {
  if (code?.startsWith("throughline_") === true) return "Throughline";
  return backend === undefined ? "The backend" : `Backend "${backend}"`;
}

function readError(body: string): { message: string | undefined; code: string | undefined } {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { message: undefined, code: undefined };
  }
  const inner = isRecord(value) && isRecord(value["error"]) ? value["error"] : value;
  if (!isRecord(inner)) return { message: undefined, code: undefined };
  const code = inner["code"] ?? inner["type"];
  return {
    message: typeof inner["message"] === "string" ? inner["message"] : undefined,
    code: typeof code === "string" ? code : undefined,
  };
}

function kindOf(status: number, code: string | undefined): FailureKind {
  if (status === 401 || status === 403) return "permission";
  if (status === 404) return "not-found";
  if (status === 429 || status === 402 || code === "rate_limit_exceeded" || code === "insufficient_quota")
    return "blocked";
  return "other";
}

function advice(status: number, code: string | undefined): string {
  if (code === "throughline_no_key" || code === "throughline_wrong_key") {
    return ' Run "Throughline: Set the Gateway Key".';
  }
  return status === 401 ? " Check the key of that backend in the gateway's configuration." : "";
}
