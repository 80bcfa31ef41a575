// The context window over the exchanges: what filled it, where it ends, where compaction cut, and who answered.

import { html } from "./vendor/htm-preact.js";
import { brief, count, isBad, money } from "./words.js";

/** What an exchange's prompt took: read from the provider's cache, sent anew, and left out. */
export function sizes(exchange) {
  const plan = exchange.attempts.at(-1)?.plan;
  const cached = exchange.usage?.cache_read ?? 0;
  const input = exchange.usage?.input ?? plan?.tokens_after ?? 0;
  return { cached, fresh: Math.max(0, input - cached), cut: plan ? Math.max(0, plan.tokens_before - plan.tokens_after) : 0 };
}

const WIDTH = 720;
const HEIGHT = 150;
const LEFT = 38;
const TOP = 16;
const STRIP = 7;
const BAR_MOST = 70;

/** What went through the window in each exchange: read from the cache, sent anew, thought, answered. */
const layers = [
  ["cached", "cached", ({ usage }) => usage?.cache_read ?? 0],
  ["fresh", "new", (exchange) => sizes(exchange).fresh],
  ["reasoning", "reasoning", ({ usage }) => usage?.reasoning ?? 0],
  ["answer", "answer", ({ usage }) => Math.max(0, (usage?.output ?? 0) - (usage?.reasoning ?? 0))],
];

/**
 * The context window over the exchanges of a conversation: what filled it, where the window ends (it moves with a switch),
 * where compaction cut, who answered, what failed. A click opens what the backend saw.
 */
export function Chart({ exchanges: all, at, open }) {
  // What only holds the lines of an imported session asked nobody.
  const exchanges = all.map((exchange, number) => ({ ...exchange, number: number + 1 })).filter(({ ending }) => ending !== "imported");
  const names = [...new Set(exchanges.map(({ attempts }) => attempts.at(-1)?.backend).filter(Boolean))];
  const total = (exchange) => layers.reduce((sum, [, , take]) => sum + take(exchange), 0);
  const most = Math.max(1, ...exchanges.map(total));
  const windows = exchanges.map(({ window }) => window ?? 0).filter(Boolean);
  // A window that is far away would flatten everything below it; then it is told and not drawn.
  const nearest = windows.length > 0 ? Math.min(...windows) : 0;
  const isDrawn = nearest > 0 && nearest < most * 6;
  const top = Math.max(most, isDrawn ? Math.max(...windows.filter((window) => window < most * 6)) : 0) * 1.05;
  const width = Math.min((WIDTH - LEFT) / exchanges.length, BAR_MOST);
  const floor = names.length > 1 ? HEIGHT - STRIP - 3 : HEIGHT - 1;
  const y = (tokens) => floor - (tokens / top) * (floor - TOP);
  const bar = (exchange, place) => {
    const x = LEFT + place * width;
    const w = Math.max(0.5, width - (width > 4 ? 1.5 : 0));
    const backend = exchange.attempts.at(-1)?.backend;
    const { cut } = sizes(exchange);
    const told = layers.map(([, label, take]) => [label, take(exchange)]).filter(([, tokens]) => tokens > 0).map(([label, tokens]) => `${count(tokens)} ${label}`);
    const label = [`exchange ${exchange.number}`, backend ?? "nobody", ...told, cut > 0 && `compaction cut ${count(cut)}`, exchange.window && `window ${count(exchange.window)}`, money(exchange.cost), isBad(exchange.ending) && `${exchange.ending}: ${exchange.failure?.message ?? ""}`].filter(Boolean).join(", ");
    let below = 0;
    const areas = layers.map(([kind, , take]) => {
      const tokens = take(exchange);
      const area = tokens > 0 && html`<rect class=${kind} x=${x} y=${y(below + tokens)} width=${w} height=${Math.max(0, y(below) - y(below + tokens))} />`;
      below += tokens;
      return area;
    });
    const before = exchanges[place - 1]?.attempts.at(-1)?.backend;
    return html`<g class=${exchange.number === at ? "bar here" : "bar"} onClick=${() => open(exchange.number)}>
      <title>${label}</title>
      <rect class="hit" x=${x} y="0" width=${width} height=${HEIGHT} />
      ${areas}
      ${isBad(exchange.ending) && html`<rect class="bad" x=${x} y=${floor - 6} width=${w} height="6" />`}
      ${cut > 0 && html`<text class="scissors" x=${x + w / 2} y=${Math.max(11, y(below) - 3)}>✂</text>`}
      ${before && backend && before !== backend && html`<line class="moved" x1=${x} x2=${x} y1=${TOP - 4} y2=${floor} />`}
      ${names.length > 1 && html`<rect class="of-${names.indexOf(backend) % 5}" x=${x} y=${HEIGHT - STRIP} width=${w} height=${STRIP} />`}
    </g>`;
  };
  const limit = exchanges.map((exchange, place) => exchange.window && exchange.window < top && html`<line class="window" x1=${LEFT + place * width} x2=${LEFT + (place + 1) * width} y1=${y(exchange.window)} y2=${y(exchange.window)} />`);
  const has = ([, , take]) => exchanges.some((exchange) => take(exchange) > 0);
  const cached = exchanges.reduce((sum, { usage }) => sum + (usage?.cache_read ?? 0), 0);
  const sent = exchanges.reduce((sum, { usage }) => sum + (usage?.input ?? 0), 0);
  const saved = exchanges.reduce((sum, exchange) => sum + sizes(exchange).cut, 0);
  const last = exchanges.at(-1);
  return html`<figure class="chart">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${`the context window over ${exchanges.length} exchanges, at most ${count(most)} tokens`}>
      <text class="axis" x=${LEFT - 4} y=${y(most) + 4}>${brief(most)}</text><line class="grid" x1=${LEFT} x2=${WIDTH} y1=${y(most)} y2=${y(most)} />
      <text class="axis" x=${LEFT - 4} y=${floor}>0</text>
      ${exchanges.map(bar)}${limit}
      ${[...new Set(windows)].filter((window) => isDrawn && window < top).map((window) => html`<text class="axis" x=${LEFT - 4} y=${y(window) + 4}>${brief(window)}</text>`)}
    </svg>
    <figcaption><span>context window by exchange</span>
      ${layers.filter(has).map(([kind, label]) => html`<span class="key-of"><i class=${kind}></i> ${label}</span>`)}
      ${last?.window && html`<span class="key-of"><i class="window"></i> window ${brief(last.window)}</span>`}
      ${sent > 0 && cached > 0 && html`<span>cache hits ${Math.round((cached / sent) * 100)} %</span>`}
      ${saved > 0 && html`<span>✂ compaction left out ${brief(saved)}</span>`}
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
