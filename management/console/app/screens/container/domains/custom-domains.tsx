import { useState } from 'preact/hooks';
import type { components } from '../../../../../../base/client/index.ts';
import { shownHost, shownHostsIn } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh, useQuery } from '../../../data/query.ts';
import { mayAct, mayEdit } from '../../../data/session.ts';
import { useAction } from '../../../parts/action.tsx';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { TextField } from '../../../parts/fields.tsx';
import { Ago, StateMark } from '../../../parts/marks.tsx';
import { Failure, Known } from '../../../parts/states.tsx';
import { Records } from './records.tsx';

type CustomDomain = components['schemas']['CustomDomain'];

/** The custom domains, with their DNS records, certificates and cookies. */
export function CustomDomains({ versioned }: { versioned: Versioned }) {
  const { id, clientId, customDomains, domains } = versioned.container;
  const query = useQuery(`container hosts ${id} ${customDomains.join()}`, async () => {
    return (await api.get('/server-containers/{id}/custom-domains', { params: { path: { id } } })).data;
  });
  return (
    <div class="stack part">
      <h3>Custom domains</h3>
      {customDomains.length === 0 ? (
        <p class="dim">
          None yet. With a host of the client’s own domain, such as{' '}
          <code>metrics.{shownHost(domains[0]?.domain ?? '')}</code>, cookies last longer in Safari.
        </p>
      ) : (
        <Known query={query} rows={2}>
          {(list) => (
            <ul class="rows">
              {list.items.map((one) => (
                <HostRow key={one.domain} versioned={versioned} host={one} />
              ))}
            </ul>
          )}
        </Known>
      )}
      {mayAct(clientId) && <NewHost versioned={versioned} />}
    </div>
  );
}

function NewHost({ versioned }: { versioned: Versioned }) {
  const { id } = versioned.container;
  const [host, setHost] = useState('');
  const [isReviewing, setReviewing] = useState(false);
  const domain = host.trim();
  const add = (dryRun: boolean, header: OfVersion) =>
    api.post('/server-containers/{id}/custom-domains', {
      params: { path: { id }, header, query: dryRun ? { dryRun: '1' } : {} },
      body: { domain },
    });
  return (
    <>
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          setReviewing(true);
        }}
      >
        <TextField
          label="New custom domain"
          value={host}
          set={setHost}
          required
          placeholder="metrics.shop.example"
        />
        <button type="submit">Add…</button>
      </form>
      {isReviewing && (
        <Confirm
          title={`Add ${domain}?`}
          verb="Add"
          versioned={versioned}
          close={() => setReviewing(false)}
          plan={async (header) => (await add(true, header)).data}
          act={async (header) => {
            await add(false, header);
            setHost('');
            refresh(id);
          }}
        >
          <p>Its row shows which DNS record to set. The certificate follows by itself.</p>
        </Confirm>
      )}
    </>
  );
}

function HostRow({ versioned, host }: { versioned: Versioned; host: CustomDomain }) {
  const { id, clientId } = versioned.container;
  const { domain, served, state, dns, tls, cookieLifetime, proof, records, checkedAt } = host;
  const [isRemoving, setRemoving] = useState(false);
  const { isBusy, error, run } = useAction();
  const remove = (dryRun: boolean, header: OfVersion) =>
    api.delete('/server-containers/{id}/custom-domains', {
      params: { path: { id }, header, query: { domain, dryRun: dryRun ? '1' : '0' } },
    });
  const check = async () => {
    await api.post('/server-containers/{id}/custom-domains/{domain}/check', {
      params: { path: { id, domain } },
    });
    refresh(id, 'containers');
  };
  return (
    <li class="tall wraps">
      <div class="grow">
        <p>
          <span class="strong">{shownHost(domain)}</span> <StateMark of={state.name} title={state.sentence} />{' '}
          <span class="dim small">
            checked <Ago at={checkedAt} />
          </span>
        </p>
        <dl class="verdicts">
          <div>
            <dt>DNS</dt>
            <dd>
              <StateMark of={dns.status} />
              {dns.detail !== null && <span class="small">{shownHostsIn(dns.detail)}</span>}
            </dd>
          </div>
          <div>
            <dt>TLS</dt>
            <dd>
              <StateMark of={tls.status} />
              <span class="small">
                {tls.detail}
                {tls.notAfter !== null && (
                  <span class="dim">
                    by {tls.issuer}, expiry <Ago at={tls.notAfter} />
                  </span>
                )}
              </span>
            </dd>
          </div>
          {proof !== null && (
            <div>
              <dt>Proof</dt>
              <dd>
                <StateMark of={proof.status} />
                {!served && <span class="small">It is served once its domain is proven.</span>}
              </dd>
            </div>
          )}
          <div>
            <dt>Cookies in Safari</dt>
            <dd>
              <StateMark of={cookieLifetime.verdict} />
              {cookieLifetime.reason !== null && <span class="small">{cookieLifetime.reason}</span>}
            </dd>
          </div>
        </dl>
        {(dns.status !== 'ok' || (proof !== null && proof.status !== 'proven')) && (
          <Records records={records} />
        )}
        {dns.answers.length > 0 && (
          <details>
            <summary class="small">What the resolvers answer</summary>
            <ul class="small">
              {dns.answers.map(({ resolver, addresses, aliases, problem }) => (
                <li key={resolver}>
                  <code>{resolver}</code> {problem ?? ([...aliases, ...addresses].join(' → ') || 'no record')}
                </li>
              ))}
            </ul>
          </details>
        )}
        {error !== null && <Failure error={error} />}
      </div>
      <div class="actions">
        {mayEdit(clientId) && (
          <button
            type="button"
            disabled={isBusy}
            aria-label={`Check now: ${shownHost(domain)}`}
            onClick={() => void run(check)}
          >
            {isBusy ? 'Checking…' : 'Check now'}
          </button>
        )}
        {mayAct(clientId) && (
          <button type="button" aria-label={`Remove ${shownHost(domain)}`} onClick={() => setRemoving(true)}>
            Remove
          </button>
        )}
      </div>
      {isRemoving && (
        <Confirm
          title={`Remove ${shownHost(domain)}?`}
          verb="Remove"
          isDanger
          versioned={versioned}
          close={() => setRemoving(false)}
          plan={async (header) => (await remove(true, header)).data}
          act={async (header) => {
            await remove(false, header);
            refresh(id);
          }}
        >
          <p>Until their snippet is replaced, pages that name this host get tags from the vendor or none.</p>
        </Confirm>
      )}
    </li>
  );
}
