// Numbers, times and tools in the words that people read.

const units = [["y", 31557600], ["mo", 2629800], ["d", 86400], ["h", 3600], ["min", 60]];

/** How long ago a moment was: "3 min ago". */
export function ago(iso, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  for (const [unit, size] of units) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return seconds < 5 ? "now" : `${Math.floor(seconds)} s ago`;
}

/** A number with its thousands apart. */
export const count = (number) => number.toLocaleString("en-US");

/** A number in few characters: 1,234 → "1.2k". */
export function brief(number) {
  if (number < 1000) return String(number);
  if (number < 1e6) return `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

/** An amount in US dollars, with as many places as say something; nothing where it is not known. */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "";
  if (dollars === 0) return "$0";
  if (dollars < 0.0001) return "< $0.0001";
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`;
}

/** What was used: tokens in, of those cached, and out. */
export function tokens(usage) {
  if (!usage) return "";
  return `${brief(usage.input)} ${usage.input === 1 ? "token" : "tokens"} in${usage.cache_read ? ` (${brief(usage.cache_read)} cached)` : ""}, ${brief(usage.output)} out`;
}

const endings = {
  end_turn: "done", stop: "done", stop_sequence: "done", tool_calls: "tools called", max_tokens: "cut at the limit",
  context_window: "window full", broken: "broken off",
};

/** How an answer ended, in words. */
export const ended = (ending) => endings[ending] ?? (ending ?? "").replaceAll("_", " ");

/** Whether an answer ended as it should not. */
export const isBad = (ending) => ["failed", "broken", "cancelled"].includes(ending);

/** An answer that has not ended after so long will not: whoever was to write its end is gone. */
const CUT_OFF_MS = 3600e3;

/** Whether a conversation is being answered. */
export const isAnswering = (of) => Boolean(of.answering) && Date.now() - Date.parse(of.updated) < CUT_OFF_MS;

/** How a conversation stands: a word, and the class that it is shown in. */
export function stateOf(of) {
  if (isAnswering(of)) return ["answering", "answering"];
  if (of.answering) return ["cut off", "bad"];
  return [ended(of.ending), isBad(of.ending) ? "bad" : ""];
}

/** One of something, or several. */
export const several = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** How long something took. */
export function took(from, to) {
  if (!from || !to) return "";
  return lasted(Date.parse(to) - Date.parse(from));
}

/** So many milliseconds, in words. */
export function lasted(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60000)} min`;
}

/** The time of day, in the reader's zone. */
export const clock = (iso) => new Date(iso).toLocaleTimeString([], { hour12: false });

/** Day and time, in the reader's zone. */
export const moment = (iso) => new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false });

/** What a client calls itself, without its version. */
export const clientName = (client) => (client ? client.split(/[/ ]/)[0] : "");

const telling = [
  "command", "cmd", "pattern", "query", "file_path", "path", "notebook_path", "filename", "url", "handle",
  "description", "prompt", "name",
];

/** What the arguments of a call are about, on one line. */
export function gist(input) {
  const value = parsed(input);
  if (value === undefined) return oneLine(partial(input) ?? input);
  if (typeof value !== "object" || value === null) return oneLine(input);
  const key = telling.find((name) => value[name] !== undefined) ?? Object.keys(value)[0];
  if (key === undefined) return "";
  const about = value[key];
  if (Array.isArray(about)) return oneLine(about.every((word) => typeof word === "string") ? about.join(" ") : JSON.stringify(about));
  return oneLine(typeof about === "string" ? about : JSON.stringify(about));
}

/** What a text that was cut off somewhere in its JSON is about. */
function partial(input) {
  const fields = [...input.matchAll(/"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*)/g)].map(([, name, text]) => [name, text]);
  const found = telling.map((name) => fields.find(([other]) => other === name)).find(Boolean);
  return found && (parsed(`${found[1]}"`) ?? found[1].slice(1));
}

/** The first line that says something. */
export function oneLine(text, most = 160) {
  const line = (text ?? "").trim().split("\n", 1)[0] ?? "";
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** A value that a text holds as JSON, or undefined. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const languages = {
  rs: "rust", py: "python", js: "script", mjs: "script", ts: "script", tsx: "script", jsx: "script", go: "go",
  java: "java", c: "c", h: "c", cc: "c", cpp: "c", hpp: "c", rb: "ruby", sh: "shell", bash: "shell", json: "json",
  toml: "toml", yml: "yaml", yaml: "yaml", html: "markup", xml: "markup", svg: "markup", css: "css", sql: "sql",
  md: "text", txt: "text", diff: "diff", patch: "diff",
};

/** The language of a result, as far as the call tells. */
export function languageOf(input) {
  const value = parsed(input);
  const path = value && typeof value === "object" ? value.file_path ?? value.path ?? value.filename : undefined;
  const ending = typeof path === "string" ? path.split(".").pop().toLowerCase() : "";
  return languages[ending] ?? "";
}
