import { useState } from 'preact/hooks';
import type { components } from '../../../../../gitops/clients/management/index.ts';
import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct, mayEdit } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { Records } from './records.tsx';

type CustomDomain = components['schemas']['CustomDomain'];

/** Hosts of the client's own domains that serve the tags: their records, certificates and cookies. */
export function CustomDomains({ container }: { container: Container }) {
  const { id, clientId, customDomains } = container;
  const [host, setHost] = useState('');
  const { isBusy, error, run } = useAction();
  const query = useQuery(`container hosts ${id} ${customDomains.join()}`, async () => {
    return (await api.get('/server-containers/{id}/custom-domains', { params: { path: { id } } })).data;
  });
  const add = async () => {
    await api.post('/server-containers/{id}/custom-domains', {
      params: { path: { id } },
      body: { domain: host.trim() },
    });
    setHost('');
    refresh(id);
  };
  return (
    <div class="stack">
      <h3>Custom domains</h3>
      {customDomains.length === 0 ? (
        <p class="dim">
          None. With a host of the client’s own domain, such as{' '}
          <code>metrics.{container.domains[0]?.domain}</code>, cookies last longer in Safari.
        </p>
      ) : (
        <Known query={query} rows={2}>
          {(list) => (
            <ul class="rows">
              {list.items.map((one) => (
                <HostRow key={one.domain} container={container} host={one} />
              ))}
            </ul>
          )}
        </Known>
      )}
      {mayAct(clientId) && (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void run(add);
          }}
        >
          <div class="form-row">
            <TextField
              label="New custom domain"
              value={host}
              set={setHost}
              required
              placeholder="metrics.shop.example"
            />
            <button type="submit" disabled={isBusy}>
              Add
            </button>
          </div>
          {error !== null && <Failure error={error} />}
        </form>
      )}
    </div>
  );
}

function HostRow({ container, host }: { container: Container; host: CustomDomain }) {
  const { id, clientId } = container;
  const { domain, dns, tls, cookieLifetime, proof, records, checkedAt } = host;
  const [isRemoving, setRemoving] = useState(false);
  const { isBusy, error, run } = useAction();
  const remove = (dryRun: boolean) =>
    api.delete('/server-containers/{id}/custom-domains', {
      params: { path: { id }, query: { domain, dryRun: dryRun ? '1' : '0' } },
    });
  const check = async () => {
    await api.post('/server-containers/{id}/custom-domains/{domain}/check', {
      params: { path: { id, domain } },
    });
    refresh(`container hosts ${id}`);
  };
  return (
    <li class="tall">
      <div class="grow">
        <span class="strong">{domain}</span>
        <div class="marks">
          <span class="small dim">DNS</span> <StateMark of={dns.status} />
          <span class="small dim">TLS</span> <StateMark of={tls.status} />
          {proof !== null && (
            <>
              <span class="small dim">Proof</span> <StateMark of={proof.status} />
            </>
          )}
          <span class="small dim">Cookies</span> <StateMark of={cookieLifetime.verdict} />
          <span class="small dim">
            checked <Ago at={checkedAt} />
          </span>
        </div>
        {dns.detail !== null && <p class="small">{dns.detail}</p>}
        {tls.detail !== null && <p class="small">{tls.detail}</p>}
        {cookieLifetime.reason !== null && <p class="small dim">{cookieLifetime.reason}</p>}
        {(dns.status !== 'ok' || (proof !== null && proof.status !== 'proven')) && (
          <Records records={records} />
        )}
        {error !== null && <Failure error={error} />}
      </div>
      {mayEdit(clientId) && (
        <button
          type="button"
          disabled={isBusy}
          aria-label={`Check now: ${domain}`}
          onClick={() => void run(check)}
        >
          Check now
        </button>
      )}
      {mayAct(clientId) && (
        <button type="button" aria-label={`Remove ${domain}`} onClick={() => setRemoving(true)}>
          Remove
        </button>
      )}
      {isRemoving && (
        <Confirm
          title={`Remove ${domain}?`}
          verb="Remove"
          isDanger
          close={() => setRemoving(false)}
          plan={async () => (await remove(true)).data}
          act={async () => {
            await remove(false);
            refresh(id);
          }}
        />
      )}
    </li>
  );
}
