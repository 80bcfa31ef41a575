// What was said: words as they are, with the code in them set as code.

import { html } from "./vendor/htm-preact.js";
import { Blob } from "./blob.js";

const named = { js: "script", ts: "script", javascript: "script", typescript: "script", sh: "shell", bash: "shell", py: "python", rs: "rust", yml: "yaml", cpp: "c" };

/** Shows words; fenced code in its colours, code between backticks as such. Nothing in them becomes a link. */
export function Talk({ text }) {
  return html`<div class="talk">${blocks(text).map((block) => (block.code === undefined
    ? spans(block.words)
    : html`<${Blob} text=${block.code} language=${block.language} />`))}</div>`;
}

/** Cuts a text at its fences. */
export function blocks(text) {
  const all = [];
  let words = [];
  let open = null;
  for (const line of text.split("\n")) {
    const fence = /^\s{0,3}(`{3,}|~{3,})\s*([\w+-]*)\s*$/.exec(line);
    if (open && fence && fence[1].startsWith(open.fence) && !fence[2]) {
      all.push({ code: open.lines.join("\n"), language: open.language });
      open = null;
    } else if (open) {
      open.lines.push(line);
    } else if (fence) {
      if (words.length > 0) all.push({ words: words.join("\n") });
      words = [];
      open = { fence: fence[1], language: named[fence[2]] ?? fence[2], lines: [] };
    } else {
      words.push(line);
    }
  }
  // A fence that was never closed is no fence.
  if (open) words.push(`${open.fence}${open.language}`, ...open.lines);
  if (words.length > 0) all.push({ words: words.join("\n") });
  return all;
}

function spans(words) {
  return words.split(/(`[^`\n]+`)/).map((piece) => (piece.length > 2 && piece.startsWith("`") && piece.endsWith("`")
    ? html`<code>${piece.slice(1, -1)}</code>`
    : piece));
}
