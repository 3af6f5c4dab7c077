import type { TagLine } from '../../data/container-logs.ts';
import { StateMark } from '../../parts/marks.tsx';
import { clockTime, plural } from '../../text/format.ts';
import { StatusMark } from './row.tsx';

/** The columns of a list of lines, in the order of `LogLine`. */
export function LogHead() {
  return (
    <>
      <th scope="col" class="col-time">
        Time
      </th>
      <th scope="col" class="col-tag">
        Tag
      </th>
      <th scope="col">What it said</th>
    </>
  );
}

/** A line of a tag server. With `container`, the line links to its request. */
export function LogLine({ line, container }: { line: TagLine; container?: string }) {
  const { time, level, source, name, type, requestId } = line;
  const [shown, thousandths] = clockTime(time).split('.');
  return (
    <tr>
      <td>
        {shown}
        <span class="wide-only">.{thousandths}</span> <StateMark of={level} title={source} />
      </td>
      <td>
        {name ?? <span class="dim">no name</span>}
        {type !== null && <span class="dim small"> {type}</span>}
      </td>
      <td>
        <Said line={line} />
        {container !== undefined && requestId !== null && (
          <>
            {' '}
            <a
              class="small"
              href={`/console/containers/${container}/requests?requestId=${requestId}`}
              aria-label={`Request ${requestId}`}
            >
              Request
            </a>
          </>
        )}
      </td>
    </tr>
  );
}

function Said({ line }: { line: TagLine }) {
  const { eventName, requestMethod, requestUrl, responseStatusCode, message, permission, dropped } = line;
  const parts = [
    ...(responseStatusCode === null ? [] : [<StatusMark key="status" status={responseStatusCode} />]),
    ...(eventName === null ? [] : [<code key="event">{eventName}</code>]),
    ...(requestMethod === null
      ? []
      : [
          <span key="method" class="dim">
            {requestMethod}
          </span>,
        ]),
    ...(requestUrl === null ? [] : [<code key="url">{requestUrl}</code>]),
    ...(permission === null
      ? []
      : [
          <span key="permission" class="bad-text">
            The policy script refused <code>{permission}</code>.
          </span>,
        ]),
    ...(message === null ? [] : [<span key="message">{message}</span>]),
    ...(dropped === null
      ? []
      : [
          <em key="dropped" class="dim">
            {plural(dropped, 'line')} before this one {dropped === 1 ? 'was' : 'were'} not kept.
          </em>,
        ]),
  ];
  return <span class="said">{parts.length === 0 ? <span class="dim">nothing was kept</span> : parts}</span>;
}
