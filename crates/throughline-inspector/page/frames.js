// Every event that came back from backends, as it came.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Lazy } from "./lazy.js";
import { clock, oneLine, parsed, several } from "./words.js";

/** The frames of a conversation. */
export function Frames({ id, fail }) {
  const [frames, setFrames] = useState(null);
  const [open, setOpen] = useState(-1);
  useEffect(() => {
    const stop = new AbortController();
    api.frames(id, stop.signal).then((page) => setFrames(page.frames), (error) => stop.signal.aborted || fail(error));
    return () => stop.abort();
  }, [id]);
  if (!frames) return html`<p class="dim wait">reading…</p>`;
  const row = (frame, at) => html`<article class="frame" key=${at} data-row tabindex="-1">
    <button class="head" aria-expanded=${open === at} onClick=${() => setOpen(open === at ? -1 : at)}>
      <span class="dim">${at + 1}</span><b>${frame.event ?? parsed(frame.data)?.type ?? "data"}</b>
      <code class="gist">${oneLine(frame.data)}</code><time class="dim">${clock(frame.at)}</time></button>
    ${open === at && html`<${Blob} text=${pretty(frame.data)} language="json" />`}
  </article>`;
  return html`<p class="dim">${several(frames.length, "event")} of providers, in their order and unaltered</p>
    <div class="frames"><${Lazy} items=${frames} row=${row} size=${100} height=${34} /></div>`;
}

function pretty(data) {
  const value = parsed(data);
  return value === undefined ? data : JSON.stringify(value, null, 2);
}
