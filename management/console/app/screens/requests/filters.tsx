import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  CACHE_RESULTS,
  REQUEST_SPANS,
  type RequestChoice,
  type RequestTimes,
  rangeOf,
} from '../../data/requests.ts';
import { ContainerPicker } from '../../parts/container-picker.tsx';
import { timeZone, words } from '../../text/format.ts';

/** Keystrokes within this many milliseconds are one search: longer than for lists, because a search costs more. */
const TYPING_MS = 350;

/** The page width at which all filters fit, as in `style/requests.css`. */
const WIDE = '(min-width: 761px)';

export type ChangeAddress = (
  changes: Readonly<Record<string, string | undefined>>,
  replace?: boolean,
) => void;

/** What is searched, as the address has it. `times` is `null` in the live view. */
export function RequestFilterBar({
  filter,
  times,
  isOfOne,
  change,
}: {
  filter: RequestChoice;
  times: RequestTimes | null;
  /** The page is that of one container. */
  isOfOne: boolean;
  change: ChangeAddress;
}) {
  const { route, status, cache, error, probes } = filter;
  // A narrow page has them behind a click, unless one of them is set.
  const [isOpen] = useState(
    () => matchMedia(WIDE).matches || [route, status, cache, error, probes].some((one) => one !== undefined),
  );
  return (
    <search class="request-filters">
      <div class="filters">
        {!isOfOne && (
          <ContainerPicker
            value={filter.container ?? null}
            set={(id) => change({ container: id ?? undefined })}
          />
        )}
        <Typed
          name="Request id"
          class="grow"
          isFirst
          maxLength={200}
          value={filter.requestId}
          set={(requestId) => change({ requestId }, true)}
        />
        {times !== null && <Times times={times} change={change} />}
      </div>
      <details class="more-filters" open={isOpen}>
        <summary>More filters</summary>
        <div class="filters">
          <Typed
            name="Route"
            example="/c/:token.js"
            class="grow"
            maxLength={300}
            value={filter.route}
            set={(route) => change({ route }, true)}
          />
          <Typed
            name="Status"
            example="5xx"
            class="short"
            maxLength={3}
            pattern="[1-5](\d\d|xx)"
            value={filter.status}
            set={(status) => change({ status }, true)}
          />
          <select
            aria-label="Cache"
            value={filter.cache ?? ''}
            onChange={({ currentTarget }) => change({ cache: currentTarget.value })}
          >
            <option value="">Any cache result</option>
            {CACHE_RESULTS.map((one) => (
              <option key={one} value={one}>
                {words(one)}
              </option>
            ))}
          </select>
          <Typed
            name="Error"
            example="upstream_failed"
            class="grow"
            maxLength={100}
            value={filter.error}
            set={(error) => change({ error }, true)}
          />
          <label class="check inline">
            <input
              type="checkbox"
              checked={filter.probes === 'true'}
              onChange={({ currentTarget }) => change({ probes: currentTarget.checked ? 'true' : undefined })}
            />
            <span>Tagyard’s probes too</span>
          </label>
        </div>
      </details>
    </search>
  );
}

/** A field whose value is taken once typing has paused; a value that doesn't match its pattern is not taken. */
export function Typed({
  name,
  example,
  isFirst = false,
  value = '',
  set,
  ...rest
}: {
  name: string;
  example?: string;
  /** `/` focuses it. */
  isFirst?: boolean;
  value?: string | undefined;
  set: (value: string) => void;
  class: string;
  maxLength: number;
  pattern?: string;
}) {
  const [text, setText] = useState(value);
  const [isValid, setValid] = useState(true);
  const latest = useRef(set);
  latest.current = set;
  /** The value that this field last put into the address. Any other value there comes from a link or the history. */
  const sent = useRef(value);
  useLayoutEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    const typed = text.trim();
    if (typed === sent.current || !isValid) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      latest.current(typed);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, isValid]);
  return (
    <input
      type="search"
      {...(isFirst ? { 'data-find': true } : {})}
      aria-label={name}
      placeholder={example === undefined ? name : `${name}, such as ${example}`}
      autoComplete="off"
      spellcheck={false}
      value={text}
      onInput={({ currentTarget }) => {
        setValid(currentTarget.validity.valid);
        setText(currentTarget.value);
      }}
      {...rest}
    />
  );
}

/** A span up to now, or two times in the browser's time zone. */
export function Times({ times, change }: { times: RequestTimes; change: ChangeAddress }) {
  const chosen = 'span' in times ? times.span.value : 'between';
  const choose = (value: string) => {
    if (value !== 'between') {
      change({ span: value, from: undefined, to: undefined });
      return;
    }
    const { from, to = new Date().toISOString() } = rangeOf(times);
    change({ span: undefined, from, to });
  };
  return (
    <>
      <select
        aria-label="Time span"
        value={chosen}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        {REQUEST_SPANS.map(({ value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
        <option value="between">Between two times</option>
      </select>
      {'from' in times && (
        <span class="between">
          <Moment name="From" at={times.from} set={(from) => change({ from }, true)} />
          <Moment name="To" at={times.to} set={(to) => change({ to }, true)} />
          <span class="dim small">{timeZone()}</span>
        </span>
      )}
    </>
  );
}

function Moment({ name, at, set }: { name: string; at: number; set: (time: string) => void }) {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return (
    <input
      type="datetime-local"
      aria-label={name}
      value={local}
      onChange={({ currentTarget: { value } }) => {
        // A time without a zone is in the browser's time zone.
        if (value !== '') set(new Date(value).toISOString());
      }}
    />
  );
}
