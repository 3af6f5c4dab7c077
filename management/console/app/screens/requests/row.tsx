import type { JSX } from 'preact';
import type { EdgeRequest } from '../../data/requests.ts';
import { clockTime, milliseconds } from '../../text/format.ts';

type Open = (row: EdgeRequest) => void;

/** The columns of a list of requests, in the order of `RequestLine`. */
export function RequestHead({ hasSite }: { hasSite: boolean }) {
  return (
    <>
      <th scope="col" class="col-time">
        Time
      </th>
      <th scope="col" class="col-status">
        Status
      </th>
      <th scope="col">Request</th>
      {hasSite && (
        <th scope="col" class="col-site wide-only">
          Container
        </th>
      )}
      <th scope="col" class="col-cache wide-only">
        Cache
      </th>
      <th scope="col" class="col-country wide-only">
        Country
      </th>
      <th scope="col" class="col-duration right">
        Duration
      </th>
    </>
  );
}

/** A request in one line. Its detail has the rest. */
export function RequestLine({ row, hasSite, open }: { row: EdgeRequest; hasSite: boolean; open: Open }) {
  const { time, status, method, route, site, cache, country, duration, error, probe } = row;
  const clock = clockTime(time);
  const [shown, thousandths] = clock.split('.');
  return (
    <tr>
      <td>
        <button
          type="button"
          class="row-link cell-button"
          data-row
          aria-label={`${clock}, ${status}, ${method} ${route || 'no route'}: all fields`}
          onClick={() => open(row)}
        >
          {shown}
          <span class="wide-only">.{thousandths}</span>
        </button>
      </td>
      <td>
        <StatusMark status={status} />
      </td>
      <td class="request">
        <span class="dim method wide-only">{method}</span>{' '}
        {route === '' ? <em class="dim">no route</em> : <code>{route}</code>}
        {probe && <span class="dim small"> probe</span>}
        {error !== null && <span class="bad-text small error">{error}</span>}
      </td>
      {hasSite && <td class="wide-only clip">{site ?? <em class="dim">unknown host</em>}</td>}
      <td class="wide-only dim">{cache ?? '–'}</td>
      <td class="wide-only dim">{country ?? '–'}</td>
      <td class="right">{milliseconds(duration)}</td>
    </tr>
  );
}

const drawn = new WeakMap<EdgeRequest, JSX.Element>();

/** The element of a row, made once, so that a tail draws only new rows. It keeps its first `open`. */
export function tailRow(row: EdgeRequest, open: Open): JSX.Element {
  const known = drawn.get(row);
  if (known !== undefined) return known;
  const made = <RequestLine key={row.id} row={row} hasSite={false} open={open} />;
  drawn.set(row, made);
  return made;
}

/** A status with the colour of its class; 4xx and 5xx differ by their number, too. */
export function StatusMark({ status }: { status: number }) {
  const tone = status >= 500 ? 'bad' : status >= 400 ? 'warn' : status >= 300 ? 'busy' : 'good';
  return <span class={`status ${tone}`}>{status}</span>;
}
