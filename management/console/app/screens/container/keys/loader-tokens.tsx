import { useState } from 'preact/hooks';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh, useQuery } from '../../../data/query.ts';
import { mayAct } from '../../../data/session.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { GraceField, graceDate } from '../../../parts/grace.tsx';
import { Ago, StateMark } from '../../../parts/marks.tsx';
import { Known } from '../../../parts/states.tsx';

const MOST_DAYS = 365;

/** The tokens by which the edge knows the loader: the current one, and old ones that are still accepted. */
export function LoaderTokenPart({ versioned }: { versioned: Versioned }) {
  const { id, clientId } = versioned.container;
  const [isRotating, setRotating] = useState(false);
  const [revoked, revoke] = useState<{ id: string; value: string } | null>(null);
  const query = useQuery(`container tokens ${id}`, async () => {
    return (await api.get('/server-containers/{id}/loader-tokens', { params: { path: { id } } })).data;
  });
  return (
    <div class="stack part">
      <div class="part-head">
        <h3>Loader tokens</h3>
        {mayAct(clientId) && (
          <button type="button" onClick={() => setRotating(true)}>
            New loader token…
          </button>
        )}
      </div>
      <Known query={query} rows={1}>
        {({ items }) => (
          <ul class="rows">
            {items.map(({ id: token, value, current, until }) => (
              <li key={token}>
                <code class="grow">{value}</code>
                {until !== null && (
                  <span class="dim small">
                    ends <Ago at={`${until}T00:00:00Z`} />
                  </span>
                )}
                <StateMark
                  of={current ? 'current' : 'replaced'}
                  title={current ? 'The snippet has it' : 'Accepted for old pages'}
                />
                {!current && mayAct(clientId) && (
                  <button
                    type="button"
                    class="danger"
                    aria-label={`Revoke ${value}`}
                    onClick={() => revoke({ id: token, value })}
                  >
                    Revoke
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Known>
      {isRotating && <Rotate versioned={versioned} close={() => setRotating(false)} />}
      {revoked !== null && <Revoke versioned={versioned} token={revoked} close={() => revoke(null)} />}
    </div>
  );
}

function Rotate({ versioned, close }: { versioned: Versioned; close: () => void }) {
  const { id } = versioned.container;
  const [days, setDays] = useState('30');
  const rotate = (dryRun: boolean, header: OfVersion) =>
    api.post('/server-containers/{id}/loader-tokens/rotate', {
      params: { path: { id }, header, query: { dryRun: dryRun ? '1' : '0' } },
      body: { graceUntil: graceDate(days) },
    });
  return (
    <Confirm
      title="Make a new loader token?"
      verb="Make it"
      versioned={versioned}
      close={close}
      plan={async (header) => (await rotate(true, header)).data}
      planOf={days}
      act={async (header) => {
        await rotate(false, header);
        refresh(id);
      }}
    >
      <p>The snippet gets the new token. Pages with the old snippet get the loader for the days of grace.</p>
      <GraceField value={days} set={setDays} max={MOST_DAYS} />
    </Confirm>
  );
}

function Revoke({
  versioned,
  token: { id: token, value },
  close,
}: {
  versioned: Versioned;
  token: { readonly id: string; readonly value: string };
  close: () => void;
}) {
  const { id } = versioned.container;
  const remove = (dryRun: boolean, header: OfVersion) =>
    api.delete('/server-containers/{id}/loader-tokens/{token}', {
      params: { path: { id, token }, header, query: { dryRun: dryRun ? '1' : '0' } },
    });
  return (
    <Confirm
      title={`Revoke ${value}?`}
      verb="Revoke"
      isDanger
      versioned={versioned}
      close={close}
      plan={async (header) => (await remove(true, header)).data}
      act={async (header) => {
        await remove(false, header);
        refresh(id);
      }}
    >
      <p>Snippets with this token get no loader from now on: pages load tags from the vendor, or none.</p>
    </Confirm>
  );
}
