import { styleText } from 'node:util';

export interface Output {
  readonly json?: true;
}

/** JSON for machines, else what `render` makes of it for people. Colours are left out where nobody sees them. */
export function print<Value>({ json }: Output, value: Value, render: (value: Value) => string): void {
  process.stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : render(value));
}

export function header(...names: string[]): string[] {
  return names.map((name) => styleText('bold', name));
}

export function short(revision: string | null): string {
  return revision?.slice(0, 8) ?? '–';
}

/** A line that is written over and over on a terminal, and not at all elsewhere. */
export function progress(): { show(text: string): void; clear(): void } {
  const { stderr } = process;
  const clear = () => {
    if (stderr.isTTY) stderr.write('\r\u001b[K');
  };
  return {
    clear,
    show(text) {
      clear();
      // 0 where the terminal doesn't say how wide it is.
      if (stderr.isTTY) stderr.write(text.slice(0, (stderr.columns || 80) - 1));
    },
  };
}
