// What an edit changes, where the arguments of the call tell.

import { html } from "./vendor/htm-preact.js";
import { Blob } from "./blob.js";
import { languageOf, parsed } from "./words.js";

const LINES_MOST = 1500;

/** A result that is longer is not taken apart. */
const JSON_MOST = 1e6;

/** Shows the arguments of a call: as a diff, a patch, a command, or as JSON. */
export function Arguments({ input }) {
  const value = parsed(input);
  if (value === undefined || value === null || typeof value !== "object") {
    return html`<${Blob} text=${input} language=${input.startsWith("*** Begin Patch") ? "diff" : ""} />`;
  }
  const edits = editsOf(value);
  if (edits.length > 0) {
    const { old_string, new_string, old_str, new_str, old, new: to, edits: many, ...rest } = value;
    return html`<${Blob} text=${JSON.stringify(rest, null, 2)} language="json" />
      ${edits.map(([before, after]) => html`<${Diff} before=${before} after=${after} />`)}`;
  }
  const patch = [value.patch, value.input, value.diff].find((text) => typeof text === "string" && /^(\*\*\* Begin Patch|diff --git|--- )/m.test(text));
  if (patch) return html`<${Blob} text=${patch} language="diff" />`;
  if (Array.isArray(value)) return html`<${Blob} text=${JSON.stringify(value, null, 2)} language="json" />`;
  return html`<${Fields} value=${value} languageFor=${(name) => (name === "command" ? "shell" : languageOf(input))} />`;
}

/** Shows what a tool returned: fields of JSON that hold lines as lines, the rest as it is. */
export function Result({ text, input }) {
  const value = text.length < JSON_MOST && /^\s*[[{]/.test(text) ? parsed(text) : undefined;
  const language = languageOf(input);
  if (value === undefined) return html`<${Blob} text=${text} language=${language || (/^(diff --git|--- a\/|@@ )/m.test(text.slice(0, 2000)) ? "diff" : "")} />`;
  if (Array.isArray(value)) return html`<${Blob} text=${JSON.stringify(value, null, 2)} language="json" />`;
  return html`<${Fields} value=${value} languageFor=${(name) => (name === "content" ? language : "")} />`;
}

/** Fields of an object: short ones together as JSON, those of several lines each by itself. */
function Fields({ value, languageFor }) {
  const isLong = (field) => typeof field === "string" && field.trim().includes("\n");
  const long = Object.entries(value).filter(([, field]) => isLong(field));
  const short = Object.fromEntries(Object.entries(value).filter(([, field]) => !isLong(field)));
  return html`
    ${Object.keys(short).length > 0 && html`<${Blob} text=${JSON.stringify(short, null, 2)} language="json" />`}
    ${long.map(([name, text]) => html`<div class="label">${name}</div><${Blob} text=${text} language=${languageFor(name)} />`)}`;
}

function editsOf(value) {
  const pair = (edit) => [edit.old_string ?? edit.old_str ?? edit.old, edit.new_string ?? edit.new_str ?? edit.new];
  const all = [value, ...(Array.isArray(value.edits) ? value.edits : [])].map(pair);
  return all.filter(([before, after]) => typeof before === "string" && typeof after === "string");
}

function Diff({ before, after }) {
  return html`<${Blob} text=${diffed(before.split("\n"), after.split("\n")).join("\n")} language="diff" />`;
}

/** The lines of a change, each with "+", "-" or a blank in front. */
export function diffed(a, b) {
  if (a.length > LINES_MOST || b.length > LINES_MOST) return [...a.map((line) => `-${line}`), ...b.map((line) => `+${line}`)];
  // The longest common subsequence, from the end, so that the way through it runs forwards.
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j]
        ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(` ${a[i]}`);
      i += 1;
      j += 1;
    } else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.push(`-${a[i]}`);
      i += 1;
    } else {
      lines.push(`+${b[j]}`);
      j += 1;
    }
  }
  return lines;
}
