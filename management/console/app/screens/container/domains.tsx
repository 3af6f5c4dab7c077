import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { Container, Versioned } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct, mayEdit } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { TextField } from '../../parts/fields.tsx';
import { StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { CustomDomains } from './custom-domains.tsx';
import { Records } from './records.tsx';

type Domain = Container['domains'][number];

/** The domains whose pages carry the snippet, and the hosts of their own that serve the tags. */
export function DomainsSection({ versioned }: { versioned: Versioned }) {
  const { container } = versioned;
  const [isAdding, setAdding] = useState(false);
  return (
    <Section
      id="domains"
      title="Domains"
      aside={
        mayAct(container.clientId) && (
          <button type="button" onClick={() => setAdding(!isAdding)} aria-expanded={isAdding}>
            Add a domain
          </button>
        )
      }
    >
      {isAdding && <AddDomain id={container.id} close={() => setAdding(false)} />}
      <ul class="rows">
        {container.domains.map((domain) => (
          <DomainRow key={domain.domain} container={container} domain={domain} />
        ))}
      </ul>
      <CustomDomains container={container} />
    </Section>
  );
}

function AddDomain({ id, close }: { id: string; close: () => void }) {
  const [domain, setDomain] = useState('');
  const [webTagId, setTag] = useState('');
  const { isBusy, error, run } = useAction();
  const add = async () => {
    await api.post('/server-containers/{id}/domains', {
      params: { path: { id } },
      body: { domain: domain.trim(), webTagId: webTagId.trim() },
    });
    refresh(id);
    close();
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(add);
      }}
    >
      <div class="form-row">
        <TextField label="Domain" value={domain} set={setDomain} required placeholder="shop.example" />
        <TextField label="Web tag id" value={webTagId} set={setTag} required placeholder="GTM-ABC1234" />
        <button type="submit" class="primary" disabled={isBusy}>
          Add
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
      {error !== null && <Failure error={error} />}
    </form>
  );
}

function DomainRow({ container, domain }: { container: Container; domain: Domain }) {
  const { id, clientId } = container;
  const [isRemoving, setRemoving] = useState(false);
  const action = useAction();
  const path = { id, domain: domain.domain };
  const query = useQuery(`container domain ${id} ${domain.domain}`, async () => {
    return (await api.get('/server-containers/{id}/domains/{domain}', { params: { path } })).data;
  });
  const remove = (dryRun: boolean) =>
    api.delete('/server-containers/{id}/domains', {
      params: { path: { id }, query: { domain: domain.domain, dryRun: dryRun ? '1' : '0' } },
    });
  return (
    <li class="tall">
      <div class="grow">
        <span class="strong">{domain.domain}</span> <code>{domain.webTagId}</code>
        <Known query={query} rows={1}>
          {({ address, cookieLifetime, proof, records }) => (
            <>
              <div class="small dim">Loads the tags from {address}</div>
              {cookieLifetime.verdict !== 'full' && cookieLifetime.reason !== null && (
                <div class="small">
                  <StateMark of={cookieLifetime.verdict} /> of cookies in Safari: {cookieLifetime.reason}
                </div>
              )}
              {proof !== null && proof.status !== 'proven' && (
                <>
                  <p class="small">Set this record to prove that the domain is yours:</p>
                  <Records records={records} />
                </>
              )}
            </>
          )}
        </Known>
        {action.error !== null && <Failure error={action.error} />}
      </div>
      <StateMark
        of={domain.active ? 'active' : 'inactive'}
        title={domain.active ? null : 'multi_domain is off'}
      />
      {domain.proof !== null && <StateMark of={domain.proof.status} />}
      {mayEdit(clientId) && (
        <button
          type="button"
          disabled={action.isBusy}
          aria-label={`Check now: ${domain.domain}`}
          onClick={() =>
            void action.run(async () => {
              await api.post('/server-containers/{id}/domains/{domain}/check', { params: { path } });
              await query.reload();
            })
          }
        >
          Check now
        </button>
      )}
      {mayAct(clientId) && container.domains.length > 1 && (
        <button type="button" aria-label={`Remove ${domain.domain}`} onClick={() => setRemoving(true)}>
          Remove
        </button>
      )}
      {isRemoving && (
        <Confirm
          title={`Remove ${domain.domain}?`}
          verb="Remove"
          isDanger
          close={() => setRemoving(false)}
          plan={async () => (await remove(true)).data}
          act={async () => {
            await remove(false);
            refresh(id);
          }}
        >
          <p>Its pages no longer get tags from here. Remove the snippet from them first.</p>
        </Confirm>
      )}
    </li>
  );
}
