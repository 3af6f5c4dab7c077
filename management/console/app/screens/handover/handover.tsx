import { useState } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct, me } from '../../data/session.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { ContainerName } from '../../parts/container-picker.tsx';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { NewLink } from './new-link.tsx';

type Link = components['schemas']['HandoverLink'];

const MAIL: Readonly<Record<Link['mail']['state'], string>> = {
  none: 'No mail: no address was named',
  waiting: 'A mail is sent when all records are right',
  due: 'The mail is due',
  sending: 'The mail is being sent',
  sent: 'The mail was sent',
  failed: 'The mail could not be sent',
  unclear: 'The mail may have been sent',
};

/**
 * Links to pages that show, without a login, the DNS records that a client has to set. On a container's page: only the
 * links that concern it.
 */
export function HandoverSection({ client, container }: { client: string; container?: string }) {
  const [revoked, revoke] = useState<Link | null>(null);
  const isAllowed = mayAct(client) || me().isOperator;
  const query = useQuery(`handover ${client}`, async () => {
    const params = { path: { id: client }, query: { limit: 100 } };
    return (await api.get('/clients/{id}/handover-links', { params })).data;
  });
  if (!isAllowed) return null;
  return (
    <Section id="handover" title="DNS handover">
      <p class="dim">
        A link for the person who manages the DNS: it shows the records to set and whether they are right,
        without a login.
      </p>
      <Known query={query} rows={2}>
        {({ items, sendsMail }) => {
          const shown = items
            .filter((link) => container === undefined || [null, container].includes(link.container))
            .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
          return (
            <>
              {shown.length === 0 ? (
                <p class="dim">No link is open.</p>
              ) : (
                <ul class="rows">
                  {shown.map((link) => (
                    <LinkItem key={link.id} link={link} sendsMail={sendsMail} revoke={() => revoke(link)} />
                  ))}
                </ul>
              )}
              <NewLink client={client} container={container} sendsMail={sendsMail} />
              {!sendsMail && (
                <p class="small dim">
                  No mail is sent: this installation has no mail server (<code>SMTP_URL</code>). The page of
                  the link shows whether all records are right.
                </p>
              )}
            </>
          );
        }}
      </Known>
      {revoked !== null && (
        <Confirm
          title="Revoke this link?"
          verb="Revoke"
          isDanger
          close={() => revoke(null)}
          act={async () => {
            await api.delete('/clients/{id}/handover-links/{link}', {
              params: { path: { id: client, link: revoked.id } },
            });
            refresh(`handover ${client}`);
          }}
        >
          <p>Its page is gone at once for everyone who has the link, and no mail is sent any more.</p>
        </Confirm>
      )}
    </Section>
  );
}

function LinkItem({ link, sendsMail, revoke }: { link: Link; sendsMail: boolean; revoke: () => void }) {
  const { container, recipients, createdBy, createdAt, expiresAt, completeAt, mail } = link;
  const isSilent = !sendsMail && mail.state === 'waiting';
  return (
    <li class="tall">
      <div class="grow">
        <p>
          <span class="strong">
            {container === null ? 'All containers' : <ContainerName id={container} />}
          </span>{' '}
          <span class="dim small">
            made <Ago at={createdAt} /> by {createdBy}, ends <Ago at={expiresAt} />
          </span>
        </p>
        <p class={`small ${mail.state === 'failed' || isSilent ? 'bad-text' : 'dim'}`}>
          {isSilent ? 'No mail is sent: there is no mail server' : MAIL[mail.state]}
          {recipients.length > 0 && `: ${recipients.join(', ')}`}
          {mail.error !== null && ` (${mail.error})`}
        </p>
      </div>
      {completeAt === null ? (
        <StateMark of="waits_for_dns" />
      ) : (
        <span class="small">
          <StateMark of="complete" /> <Ago at={completeAt} />
        </span>
      )}
      <button
        type="button"
        onClick={revoke}
        aria-label={`Revoke the link ${recipients.length === 0 ? 'without recipients' : `for ${recipients.join(', ')}`}`}
      >
        Revoke
      </button>
    </li>
  );
}
