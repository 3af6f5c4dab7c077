import { useEffect, useState } from 'preact/hooks';
import type { Container } from '../data/containers.ts';
import { absolute, ago } from '../text/format.ts';
import { stateWords, toneOf } from '../text/status.ts';

/** A state as a word with a coloured dot. */
export function StateMark({ of, title }: { of: string; title?: string | null | undefined }) {
  return (
    <span class={`state ${toneOf(of)}`} title={title ?? undefined}>
      {stateWords(of)}
    </span>
  );
}

/** The state of a site, and those that hold besides. */
export function States({ state }: { state: Container['state'] }) {
  return (
    <span class="states">
      <StateMark of={state.name} title={state.sentence} />
      {state.also
        .filter((name) => name !== 'serving')
        .map((name) => (
          <StateMark key={name} of={name} />
        ))}
    </span>
  );
}

/** A time as its distance from now; the exact one on hover. */
export function Ago({ at }: { at: string | number }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((value) => value + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={new Date(at).toISOString()} title={absolute(at)}>
      {ago(at)}
    </time>
  );
}

/** A button that copies `text`. `what` names it: “Copy snippet”. */
export function Copy({
  text,
  what,
  name = 'Copy',
  style = 'quiet',
}: {
  text: string;
  what: string;
  name?: string;
  style?: string;
}) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_600);
  };
  return (
    <button type="button" class={`${style} copy`} onClick={() => void copy()} aria-label={`Copy ${what}`}>
      {isDone ? 'Copied' : name}
    </button>
  );
}

/** Text that is copied as it is: snippets, records, ids. */
export function Code({ text, what }: { text: string; what: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <Copy text={text} what={what} />
    </div>
  );
}
