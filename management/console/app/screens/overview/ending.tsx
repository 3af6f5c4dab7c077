import { shownHost } from '../../../../../base/host-name.ts';
import { api } from '../../data/api.ts';
import { type Query, useQuery } from '../../data/query.ts';
import { Ago } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { count } from '../../text/format.ts';

/** How many days before its end something is shown. Certificates are renewed well before that. */
export const ENDING_DAYS = 14;
const SHOWN = 8;

/** For each kind of thing that ends: its name, what to do before, and the part of the container’s page that has it. */
const KINDS = {
  certificate: {
    name: 'Certificate',
    fix: 'It should have been renewed by now. Health shows what prevents that.',
    part: 'health',
  },
  proof: {
    name: 'Proof of the domain',
    fix: 'Its DNS record is missing. Set it again, or the custom domains stop.',
    part: 'domains',
  },
  forwarder_token: {
    name: 'Old forwarder token',
    fix: 'Before then, put the new configuration on the domain’s own server.',
    part: 'same-origin',
  },
  loader_token: {
    name: 'Old loader token',
    fix: 'Put the new snippet on pages that still have the old one.',
    part: 'keys',
  },
} as const;

async function fetchEnding() {
  return (await api.get('/ending', { params: { query: { days: ENDING_DAYS } } })).data;
}
type Ending = Awaited<ReturnType<typeof fetchEnding>>;

/** Reads what ends within two weeks. */
export function useEnding(): Query<Ending> {
  return useQuery('containers ending', fetchEnding);
}

/** What ends within two weeks, each with what to do. */
export function EndsSoon({ query }: { query: Query<Ending> }) {
  return (
    <Section id="ending" title="Ends soon">
      <Known query={query} rows={1}>
        {({ items, hostAnswers, asOf }) => (
          <>
            {!hostAnswers && (
              <p class="notice warn">
                The host didn’t answer <Ago at={asOf} />, so the ends of certificates are unknown.
              </p>
            )}
            {items.length === 0 && hostAnswers && (
              <p class="calm">
                Nothing within {ENDING_DAYS} days: proofs and old tokens last longer, certificates are renewed
                in time.
              </p>
            )}
            <ul class="rows">
              {items.slice(0, SHOWN).map(({ kind, at, subject, containerId, name }) => {
                const { name: what, fix, part } = KINDS[kind];
                return (
                  <li key={`${kind} ${containerId} ${subject} ${at}`}>
                    <span class="when">
                      <Ago at={at} />
                    </span>
                    <div class="grow">
                      <span class="strong">{what}</span> {subject === null ? '' : shownHost(subject)}{' '}
                      <a href={`/console/containers/${containerId}`}>{name}</a>
                      <div class="small dim">{fix}</div>
                    </div>
                    <a
                      class="button"
                      href={`/console/containers/${containerId}#${part}`}
                      aria-label={`Solve ${what} of ${name}`}
                    >
                      Solve
                    </a>
                  </li>
                );
              })}
            </ul>
            {items.length > SHOWN && (
              <p class="dim">
                {count(items.length - SHOWN)} more end within {ENDING_DAYS} days.
              </p>
            )}
          </>
        )}
      </Known>
    </Section>
  );
}
