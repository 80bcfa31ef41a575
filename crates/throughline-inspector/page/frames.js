// Every event that came back from backends, as it came, with the notes of runs between them.

import { html, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Lazy } from "./lazy.js";
import { Copy, Nothing, Reading } from "./shared.js";
import { clock, moment, oneLine, parsed, several } from "./words.js";

/** The frames of a conversation, or of one of its runs. */
export function Frames({ id, run, exchanges, fail }) {
  const [frames, setFrames] = useState(null);
  const [open, setOpen] = useState(() => new Set());
  const [filter, setFilter] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    api.frames(id, run, stop.signal).then((page) => setFrames(page.frames), (error) => stop.signal.aborted || fail(error));
    return () => stop.abort();
  }, [id, run, exchanges.length]);
  const rows = useMemo(() => grouped(frames ?? [], exchanges, filter), [frames, exchanges, filter]);
  if (!frames) return html`<${Reading} />`;
  if (frames.length === 0) return html`<${Nothing} title="No frames"><p class="dim">No backend has answered here, or its events were not to be kept.</p></${Nothing}>`;
  const notes = frames.filter(isNote).length;
  const toggle = (at) => setOpen((before) => {
    const after = new Set(before);
    if (!after.delete(at)) after.add(at);
    return after;
  });
  const row = (each) => (each.heading
    ? html`<div class="frames-of" key=${each.heading}><b>exchange ${each.number}</b><span class="dim">${each.attempt > 0 ? `attempt ${each.attempt + 1}, ` : ""}${each.backend ?? ""}</span></div>`
    : html`<article class="frame" key=${each.at} data-row tabindex="-1">
      <button class="head" aria-expanded=${open.has(each.at)} onClick=${() => toggle(each.at)}>
        <span class="dim at">${each.at + 1}</span><b>${nameOf(each.frame)}</b>${isNote(each.frame) && html`<span class="chip changed" title="written by Throughline, not by the provider">note</span>`}
        <code class="gist">${oneLine(each.frame.data)}</code><time class="dim" title=${moment(each.frame.at)}>${clock(each.frame.at)}</time></button>
      ${open.has(each.at) && html`<div class="body"><div class="label"><${Copy} text=${each.frame.data} what="the frame as it came" /></div><${Blob} text=${pretty(each.frame.data)} language="json" /></div>`}
    </article>`);
  return html`<div class="bar-of-tools small"><input type="search" placeholder="Filter by name or content" aria-label="filter frames" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim" role="status">${several(frames.length - notes, "event")} of providers, in their order and unaltered${notes ? `; ${several(notes, "note")} of Throughline` : ""}</span></div>
    ${rows.length === 0 ? html`<${Nothing} title="None of these fits" />` : html`<div class="frames"><${Lazy} items=${rows} row=${row} size=${100} height=${34} /></div>`}`;
}

const isNote = ({ event }) => event?.startsWith("throughline.");
const nameOf = (frame) => frame.event ?? parsed(frame.data)?.type ?? parsed(frame.data)?.object ?? "data";

/** The frames that fit, with a heading where an exchange or an attempt begins. */
function grouped(frames, exchanges, filter) {
  const numbers = new Map(exchanges.map((exchange, at) => [exchange.id, { ...exchange, number: exchange.number ?? at + 1 }]));
  const wanted = filter.toLowerCase();
  const rows = [];
  let last = "";
  frames.forEach((frame, at) => {
    if (wanted && !`${frame.event ?? ""} ${frame.data}`.toLowerCase().includes(wanted)) return;
    const heading = `${frame.exchange} ${frame.attempt}`;
    if (heading !== last) {
      const exchange = numbers.get(frame.exchange);
      rows.push({ heading, number: exchange?.number ?? "?", attempt: frame.attempt, backend: exchange?.attempts?.[frame.attempt]?.backend });
      last = heading;
    }
    rows.push({ frame, at });
  });
  return rows;
}

function pretty(data) {
  const value = parsed(data);
  return value === undefined ? data : JSON.stringify(value, null, 2);
}
