import { useState } from 'preact/hooks';
import { shownHost } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Container, Versioned } from '../../../data/containers.ts';
import { refresh, useQuery } from '../../../data/query.ts';
import { mayAct, mayEdit } from '../../../data/session.ts';
import { useAction } from '../../../parts/action.tsx';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { tabPath } from '../../../parts/container-tabs.tsx';
import { Ago, StateMark } from '../../../parts/marks.tsx';
import { Section } from '../../../parts/page.tsx';
import { Failure, Known } from '../../../parts/states.tsx';
import { CustomDomains } from './custom-domains.tsx';
import { DomainForm } from './domain-form.tsx';
import { DomainOrder } from './order.tsx';
import { Records } from './records.tsx';

type Domain = Container['domains'][number];

/** The domains whose pages carry the snippet, and the custom domains that serve the tags. */
export function DomainsSection({ versioned }: { versioned: Versioned }) {
  const { clientId, domains } = versioned.container;
  const [open, setOpen] = useState<'add' | 'order' | null>(null);
  const isOpen = (part: 'add' | 'order') => ({
    'aria-expanded': open === part,
    onClick: () => setOpen(open === part ? null : part),
  });
  const close = () => setOpen(null);
  return (
    <Section
      id="domains"
      title="Domains"
      aside={
        <>
          {mayEdit(clientId) && domains.length > 1 && (
            <button type="button" {...isOpen('order')}>
              Order
            </button>
          )}
          {mayAct(clientId) && (
            <button type="button" {...isOpen('add')}>
              Add a domain
            </button>
          )}
        </>
      }
    >
      {open === 'add' && <DomainForm versioned={versioned} domain={null} close={close} />}
      {open === 'order' ? (
        <DomainOrder versioned={versioned} close={close} />
      ) : (
        <ul class="rows">
          {domains.map((domain, index) => (
            <DomainRow key={domain.domain} versioned={versioned} domain={domain} isPrimary={index === 0} />
          ))}
        </ul>
      )}
      <CustomDomains versioned={versioned} />
    </Section>
  );
}

function DomainRow({
  versioned,
  domain,
  isPrimary,
}: {
  versioned: Versioned;
  domain: Domain;
  isPrimary: boolean;
}) {
  const { id, clientId, domains } = versioned.container;
  const [isRemoving, setRemoving] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const action = useAction();
  const path = { id, domain: domain.domain };
  const query = useQuery(`container domain ${id} ${domain.domain}`, async () => {
    return (await api.get('/server-containers/{id}/domains/{domain}', { params: { path } })).data;
  });
  const remove = (dryRun: boolean, header: OfVersion) =>
    api.delete('/server-containers/{id}/domains', {
      params: {
        path: { id },
        header,
        query: { domain: domain.domain, dryRun: dryRun ? '1' : '0' },
      },
    });
  return (
    <li class="tall wraps">
      <div class="grow">
        <span class="strong">{shownHost(domain.domain)}</span> <code>{domain.webTagId}</code>{' '}
        {isPrimary && domains.length > 1 && <span class="dim small">primary</span>}
        <Known query={query} rows={2}>
          {({ address, cookieLifetime, proof, records, checkedAt }) => (
            <>
              <div class="small dim">
                Loads the tags from <span class="plain-text">{address}</span>
                {domain.sameOrigin !== null && (
                  <>
                    {' '}
                    · same origin <a href="#same-origin">{domain.sameOrigin.path}</a>
                  </>
                )}
              </div>
              <div class="marks">
                {!domain.active && <StateMark of="inactive" />}
                {proof !== null && (
                  <>
                    <span class="small dim">Proof</span> <StateMark of={proof.status} />
                  </>
                )}
                <span class="small dim">Cookies in Safari</span> <StateMark of={cookieLifetime.verdict} />
                <span class="small dim">
                  checked <Ago at={checkedAt} />
                </span>
              </div>
              {!domain.active && (
                <p class="small">
                  Switch on the plugin “Several domains” under <a href={tabPath(id, 'settings')}>Settings</a>{' '}
                  to serve it.
                </p>
              )}
              {cookieLifetime.verdict !== 'full' && cookieLifetime.reason !== null && (
                <p class="small">{cookieLifetime.reason}</p>
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
      <div class="actions">
        {mayEdit(clientId) && (
          <button
            type="button"
            disabled={action.isBusy}
            aria-label={`Check now: ${shownHost(domain.domain)}`}
            onClick={() =>
              void action.run(async () => {
                await api.post('/server-containers/{id}/domains/{domain}/check', { params: { path } });
                await query.reload();
              })
            }
          >
            {action.isBusy ? 'Checking…' : 'Check now'}
          </button>
        )}
        {mayEdit(clientId) && (
          <button
            type="button"
            aria-label={`Edit ${shownHost(domain.domain)}`}
            aria-expanded={isEditing}
            onClick={() => setEditing(!isEditing)}
          >
            Edit
          </button>
        )}
        {mayAct(clientId) && domains.length > 1 && (
          <button
            type="button"
            aria-label={`Remove ${shownHost(domain.domain)}`}
            onClick={() => setRemoving(true)}
          >
            Remove
          </button>
        )}
      </div>
      {isEditing && <DomainForm versioned={versioned} domain={domain} close={() => setEditing(false)} />}
      {isRemoving && (
        <Confirm
          title={`Remove ${shownHost(domain.domain)}?`}
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
          <p>After that, its pages get no tags from here. Remove the snippet from them first.</p>
        </Confirm>
      )}
    </li>
  );
}
