/**
 * How many tokens a text has, as the gateway counts them.
 *
 * Hosts ask for every piece of a prompt, again and again, so what was counted is kept. When the gateway does not
 * answer soon, the answer is an estimate, by what the gateway said of other texts of that model.
 */

export interface Countable {
  /** What counts as the same. */
  key: string;
  /** About how many characters it has, for estimates. */
  length: number;
  /** The `input` of a Responses request. */
  input: unknown;
  /** The same without any content: what of the count is not this text. */
  empty: unknown;
}

export type Count = (body: { model?: string; input: unknown }, signal: AbortSignal) => Promise<number>;

const KEPT = 20_000;
const PATIENCE_MS = 1_500;
/** After a failure the gateway is not asked for so long: a prompt has hundreds of pieces. */
const PAUSE_MS = 5_000;
const USUAL_RATIO = 1 / 4;

export class TokenCounter {
  private readonly count: Count;
  private readonly now: () => number;
  private readonly known = new Map<string, number>();
  private readonly pending = new Map<string, Promise<number>>();
  /** By model: characters and tokens that were counted so far. */
  private readonly ratios = new Map<string, { chars: number; tokens: number }>();
  private pausedUntil = 0;

  constructor(count: Count, now: () => number = Date.now) {
    this.count = count;
    this.now = now;
  }

  /** Returns the count of a text; never fails, and never takes long. */
  async tokens(model: string | undefined, text: Countable): Promise<number> {
    if (text.length === 0) return 0;
    const name = model ?? "";
    try {
      const [whole, empty] = await Promise.all([
        this.ask(name, text.key, text.input),
        this.ask(name, `empty ${JSON.stringify(text.empty)}`, text.empty),
      ]);
      const tokens = Math.max(0, whole - empty);
      this.learn(name, text.length, tokens);
      return tokens;
    } catch {
      return this.estimate(name, text.length);
    }
  }

  /** Forgets everything: another backend may count otherwise. */
  forget(): void {
    this.known.clear();
    this.ratios.clear();
    this.pausedUntil = 0;
  }

  private estimate(model: string, length: number): number {
    const seen = this.ratios.get(model);
    const ratio = seen !== undefined && seen.chars > 0 ? seen.tokens / seen.chars : USUAL_RATIO;
    return Math.ceil(length * ratio);
  }

  private learn(model: string, chars: number, tokens: number): void {
    const seen = this.ratios.get(model) ?? { chars: 0, tokens: 0 };
    this.ratios.set(model, { chars: seen.chars + chars, tokens: seen.tokens + tokens });
  }

  private ask(model: string, key: string, input: unknown): Promise<number> {
    const id = `${model}\0${key}`;
    const known = this.known.get(id);
    if (known !== undefined) {
      this.known.delete(id); // used again: the last to be forgotten
      this.known.set(id, known);
      return Promise.resolve(known);
    }
    if (this.now() < this.pausedUntil) return Promise.reject(new Error("the gateway did not answer"));
    const pending = this.pending.get(id) ?? this.fetch(id, model, input);
    this.pending.set(id, pending);
    return pending;
  }

  private async fetch(id: string, model: string, input: unknown): Promise<number> {
    const body = model === "" ? { input } : { model, input };
    try {
      const tokens = await this.count(body, AbortSignal.timeout(PATIENCE_MS));
      this.keep(id, tokens);
      return tokens;
    } catch (error) {
      this.pausedUntil = this.now() + PAUSE_MS;
      throw error;
    } finally {
      this.pending.delete(id);
    }
  }

  private keep(id: string, tokens: number): void {
    this.known.set(id, tokens);
    const oldest = this.known.keys().next();
    if (this.known.size > KEPT && oldest.done !== true) this.known.delete(oldest.value);
  }
}
