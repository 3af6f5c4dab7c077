import { shownHost } from '../../../../../base/host-name.ts';
import { api } from '../../data/api.ts';
import { useQuery } from '../../data/query.ts';
import { Ago } from '../../parts/marks.tsx';
import { Failure } from '../../parts/states.tsx';
import { count, plural } from '../../text/format.ts';

/** How many days before its end something is shown. Certificates are renewed well before that. */
const ENDING_DAYS = 14;
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

/** What ends within two weeks, each with what to do: one line, so that nothing moves when it is known, which can take long. */
export function EndsSoon() {
  const { data, error, reload } = useQuery('containers ending', fetchEnding);
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void reload()} />;
  if (data === undefined || (data.items.length === 0 && data.hostAnswers)) {
    return (
      <p class="card slim calm-line" title="Certificates, proofs of domains, old tokens">
        {data === undefined
          ? `Reading what ends within ${ENDING_DAYS} days…`
          : `Nothing ends within ${ENDING_DAYS} days.`}
      </p>
    );
  }
  const { items, hostAnswers, asOf } = data;
  return (
    <details class="card slim" id="ending">
      <summary>
        {items.length === 0
          ? 'The ends of certificates are unknown'
          : `${plural(items.length, 'thing')} ${items.length === 1 ? 'ends' : 'end'} within ${ENDING_DAYS} days`}
      </summary>
      {!hostAnswers && (
        <p class="notice warn">
          The host didn’t answer <Ago at={asOf} />, so the ends of certificates are unknown.
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
    </details>
  );
}
