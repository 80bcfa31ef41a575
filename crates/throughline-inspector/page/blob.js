// A text of any size: lines in chunks, made as they come near. A line that is too long is folded.

import { html, useMemo } from "./vendor/htm-preact.js";
import { pieces } from "./highlight.js";
import { Lazy } from "./lazy.js";

const LINE_MOST = 2000;
const CHUNK = 200;

/** Shows a text; beyond some lines it scrolls by itself. */
export function Blob({ text, language = "" }) {
  const lines = useMemo(() => linesOf(text), [text]);
  const row = (line, at) => html`<${Line} key=${at} line=${line} language=${language} />`;
  return html`<pre class="blob" tabindex="0"><code><${Lazy} items=${lines} row=${row} size=${CHUNK} height=${18} /></code></pre>`;
}

/** A line in its colours. */
export function Line({ line, language }) {
  const parts = pieces(line, language);
  return html`<span class="line">${parts.map(([kind, text]) => (kind ? html`<span class=${kind}>${text}</span>` : text))}${"\n"}</span>`;
}

function linesOf(text) {
  const lines = text.split("\n");
  if (lines.length > 1 && lines[lines.length - 1] === "") lines.pop();
  if (lines.every((line) => line.length <= LINE_MOST)) return lines;
  return lines.flatMap((line) => {
    const parts = [];
    for (let at = 0; at < Math.max(1, line.length); at += LINE_MOST) parts.push(line.slice(at, at + LINE_MOST));
    return parts;
  });
}
