// Over the turns: how much of each prompt was cached, sent anew, and cut; and who answered.

import { html } from "./vendor/htm-preact.js";
import { brief, count, isBad, money } from "./words.js";

/** What an exchange's prompt took: read from the provider's cache, sent anew, and left out. */
export function sizes(exchange) {
  const plan = exchange.attempts.at(-1)?.report?.plan;
  const cached = exchange.usage?.cache_read ?? 0;
  const input = exchange.usage?.input ?? plan?.tokens_after ?? 0;
  return { cached, fresh: Math.max(0, input - cached), cut: plan ? Math.max(0, plan.tokens_before - plan.tokens_after) : 0 };
}

const WIDTH = 720;
const HEIGHT = 120;
const STRIP = 7;
const BAR_MOST = 90;

/** Bars for the exchanges of a conversation; a click opens what the backend saw. */
export function Chart({ exchanges, at, open }) {
  const bars = exchanges.map(sizes);
  const names = [...new Set(exchanges.map(({ attempts }) => attempts.at(-1)?.backend).filter(Boolean))];
  const most = Math.max(1, ...bars.map(({ cached, fresh, cut }) => cached + fresh + cut));
  const width = Math.min(WIDTH / bars.length, BAR_MOST);
  const high = names.length > 1 ? HEIGHT - STRIP - 3 : HEIGHT;
  const scale = (tokens) => (tokens / most) * (high - 2);
  const bar = ({ cached, fresh, cut }, number) => {
    const x = number * width;
    const [a, b, c] = [scale(cached), scale(fresh), scale(cut)];
    const { attempts, ending, cost } = exchanges[number];
    const backend = attempts.at(-1)?.backend;
    const label = `exchange ${number + 1}, ${backend ?? "nobody"}: ${count(cached)} tokens cached, ${count(fresh)} sent anew, ${count(cut)} cut${cost ? `, ${money(cost)}` : ""}${isBad(ending) ? `, ${ending}` : ""}`;
    const w = Math.max(0.5, width - (width > 4 ? 1.5 : 0));
    return html`<g class=${number + 1 === at ? "bar here" : "bar"} onClick=${() => open(number + 1)}>
      <title>${label}</title>
      <rect class="hit" x=${x} y="0" width=${width} height=${HEIGHT} />
      <rect class="cut" x=${x} y=${high - a - b - c} width=${w} height=${c} />
      <rect class="fresh" x=${x} y=${high - a - b} width=${w} height=${b} />
      <rect class="cached" x=${x} y=${high - a} width=${w} height=${a} />
      ${isBad(ending) && html`<rect class="bad" x=${x} y=${high - 6} width=${w} height="6" />`}
      ${names.length > 1 && html`<rect class="of-${names.indexOf(backend) % 5}" x=${x} y=${HEIGHT - STRIP} width=${w} height=${STRIP} />`}
    </g>`;
  };
  const has = (what) => bars.some((each) => each[what] > 0);
  return html`<figure class="chart">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${`prompt tokens of each of ${bars.length} exchanges, at most ${count(most)}`}>${bars.map(bar)}</svg>
    <figcaption><span>prompt tokens by exchange, at most ${brief(most)}</span>
      ${has("cached") && html`<span class="key-of"><i class="cached"></i> cached</span>`}<span class="key-of"><i class="fresh"></i> sent</span>${has("cut") && html`<span class="key-of"><i class="cut"></i> cut</span>`}
      ${names.length > 1 && html`<span class="names">${names.map((name, number) => html`<span class="key-of"><i class="of-${number % 5}"></i> ${name}</span>`)}</span>`}</figcaption>
  </figure>`;
}

const kinds = [
  ["instructions", "instructions"], ["user", "user"], ["assistant", "assistant"], ["reasoning", "reasoning"], ["call", "calls"],
  ["result", "results"], ["summary", "summaries"], ["handover", "notes of a switch"], ["reference", "references"], ["other", "other"],
];

/** Bars for the kinds of entries: as kept, as sent. */
export function Kinds({ tokens }) {
  const rows = kinds.filter(([name]) => tokens[name]);
  const most = Math.max(1, ...rows.map(([name]) => Math.max(tokens[name].kept, tokens[name].sent)));
  const part = (number) => ({ width: `${(number / most) * 100}%` });
  const sum = (side) => rows.reduce((total, [name]) => total + tokens[name][side], 0);
  return html`<table class="kinds"><thead><tr><th>tokens</th><th></th><th><i class="kept"></i> kept</th><th><i class="fresh"></i> sent</th></tr></thead><tbody>
    ${rows.map(([name, label]) => html`<tr><th>${label}</th>
      <td class="bars"><i class="kept" style=${part(tokens[name].kept)}></i><i class="fresh" style=${part(tokens[name].sent)}></i></td>
      <td>${count(tokens[name].kept)}</td><td>${count(tokens[name].sent)}</td></tr>`)}
    <tr class="sum"><th>together</th><td></td><td>${count(sum("kept"))}</td><td>${count(sum("sent"))}</td></tr>
  </tbody></table>`;
}
