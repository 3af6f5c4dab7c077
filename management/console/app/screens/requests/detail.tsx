import type { ComponentChildren } from 'preact';
import type { EdgeRequest } from '../../data/requests.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Code, Copy } from '../../parts/marks.tsx';
import { absolute, bytes, count, milliseconds } from '../../text/format.ts';
import { StatusMark } from './row.tsx';
import { TagLines } from './tag-lines.tsx';

/** All that is known of a request. */
export function RequestDetail({ row, close }: { row: EdgeRequest; close: () => void }) {
  const { method, route, status, error, cause, container } = row;
  return (
    <Dialog title={`${method} ${route === '' ? 'without a route' : route}`} close={close}>
      <div class="stack">
        <p>
          <StatusMark status={status} />{' '}
          {error !== null && (
            <>
              <code>{error}</code>{' '}
            </>
          )}
          <span class="dim">{absolute(row.time)}</span>
        </p>
        {cause !== null && <p class="notice warn">{cause}</p>}
        <dl class="facts">
          <Fact name="Request id">
            <span class="value">
              <code>{row.requestId}</code>
              <Copy text={row.requestId} what="request id" />
            </span>
          </Fact>
          <Fact name="Container">
            {container === null ? (
              <span class="dim">none: no site was found for the hostname</span>
            ) : (
              <a href={`/console/containers/${container}`}>{row.site ?? container}</a>
            )}
          </Fact>
          <Fact name="Duration">
            {milliseconds(row.duration)} <span class="dim">until the answer’s headers</span>
          </Fact>
          <Fact name="Cache">{row.cache ?? <span class="dim">nothing is cached here</span>}</Fact>
          <Fact name="Bodies">
            {octets(row.bytesIn)} received, {octets(row.bytesOut)} sent
          </Fact>
          <Fact name="Visitor">
            {row.country ?? 'country unknown'}, consent {row.consent ?? 'unknown'}
            {row.bot === true && ', a bot'}
            {row.probe && ', Tagyard’s own probe'}
          </Fact>
          <Fact name="Data centre">{row.colo ?? <span class="dim">unknown</span>}</Fact>
          <Fact name="Events">{pairs(row.events, count)}</Fact>
          <Fact name="Plugins">{pairs(row.plugins, milliseconds)}</Fact>
          <Fact name="Signals">{pairs(row.signals, (is) => (is ? 'yes' : 'no'))}</Fact>
          <Fact name="Web container">
            {row.webContainerVersion === null ? (
              <span class="dim">not stated</span>
            ) : (
              `version ${row.webContainerVersion}`
            )}
          </Fact>
        </dl>
        {container !== null && <TagLines container={container} request={row} />}
        <details>
          <summary>As JSON</summary>
          <Code text={JSON.stringify(row, null, 2)} what="request as JSON" />
        </details>
      </div>
      <div class="actions">
        {/* The link must close the dialog: if the list is open already, only its filter changes. */}
        <a
          class="button"
          onClick={close}
          href={`/console/requests?requestId=${encodeURIComponent(row.requestId)}`}
        >
          Only this request
        </a>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function octets(value: number | null): string {
  return value === null ? 'unknown' : bytes(value);
}

function pairs<Value>(values: Readonly<Record<string, Value>> | null, text: (value: Value) => string) {
  const shown = Object.entries(values ?? {});
  if (shown.length === 0) return <span class="dim">none</span>;
  return shown.map(([name, value]) => `${name} ${text(value)}`).join(', ');
}
