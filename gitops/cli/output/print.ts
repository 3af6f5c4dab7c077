import { styleText } from 'node:util';

export interface OutputOptions {
  readonly json?: true;
}

/** Prints `value` as JSON with `--json`, else as the text of `render`, in colour on a terminal or by `FORCE_COLOR`. */
export function print<Value>({ json }: OutputOptions, value: Value, render: (value: Value) => string): void {
  process.stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : render(value));
}

export function header(...names: string[]): string[] {
  return names.map((name) => styleText('bold', name));
}

/** The first eight digits of a revision. */
export function short(revision: string | null): string {
  return revision?.slice(0, 8) ?? '–';
}

/** A progress line on standard error. A terminal shows it and overwrites it; anything else gets nothing. */
export function progress(): { show(text: string): void; clear(): void } {
  const { stderr } = process;
  const clear = () => {
    if (stderr.isTTY) stderr.write('\r\u001b[K');
  };
  return {
    clear,
    show(text) {
      clear();
      // `columns` is 0 on a terminal that reports no width.
      if (stderr.isTTY) stderr.write(text.slice(0, (stderr.columns || 80) - 1));
    },
  };
}
