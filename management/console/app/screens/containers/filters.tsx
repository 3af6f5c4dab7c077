import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CONTAINER_STATES } from '../../data/containers.ts';
import { stateWords } from '../../text/status.ts';

/** Keys that are pressed within this time are one search, milliseconds. */
const TYPING_MS = 60;

type Change = (changes: Readonly<Record<string, string | undefined>>, replace?: boolean) => void;

export function Filters({ query, change }: { query: Readonly<Record<string, string>>; change: Change }) {
  const [text, setText] = useState(query.q ?? '');
  const latest = useRef(change);
  latest.current = change;
  /** The search that this field last put into the address. Any other search there comes from a link or the history. */
  const sent = useRef(text);
  // In a layout effect, because it runs before a pending timer, which would send the old search again.
  useLayoutEffect(() => {
    const q = query.q ?? '';
    if (q === sent.current) return;
    sent.current = q;
    setText(q);
  }, [query.q]);
  useEffect(() => {
    const q = text.trim() === '' ? '' : text;
    if (q === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = q;
      latest.current({ q }, true);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <search class="filters">
      <input
        type="search"
        class="grow"
        data-find
        placeholder="Search name, domain, hostname"
        aria-label="Search containers by name, domain or hostname"
        value={text}
        maxLength={200}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <StateChoice value={query.state} set={(state) => change({ state })} />
    </search>
  );
}

function StateChoice({ value = '', set }: { value?: string | undefined; set: (value: string) => void }) {
  // A link may name several states. This menu shows them as one option.
  const isSeveral = value.includes(',');
  return (
    <select aria-label="State" value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
      <option value="">Every state</option>
      {isSeveral && <option value={value}>{value.split(',').map(stateWords).join(' or ')}</option>}
      {CONTAINER_STATES.map((one) => (
        <option key={one} value={one}>
          {stateWords(one)}
        </option>
      ))}
    </select>
  );
}
