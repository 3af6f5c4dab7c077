import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { refresh, usePolling, useQuery } from '../../data/query.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Ago, Code, StateMark } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { absolute, clockTime, plural } from '../../text/format.ts';
import { ROLLOUT_TEXTS } from '../../text/rollout-reasons.ts';
import { stateWords } from '../../text/status.ts';
import { ImageMark, imageName } from './image.tsx';
import { isActive, ProgressBar, progressOf, ROLLOUT_POLL_MS } from './progress.tsx';

type Rollout = components['schemas']['ImageRollout'];
type Wave = Rollout['waves'][number];

/** Sites of a wave, and events, that are shown at once. */
const SHOWN = 50;

/** One rollout: how far it is, wave by wave, and what happened; with buttons to stop it and to undo it. */
export default function RolloutScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`instance rollout ${id}`, async () => {
    return (await api.get('/image-rollouts/{id}', { params: { path: { id } } })).data;
  });
  const rollout = query.data;
  usePolling(query, rollout === undefined || isActive(rollout.status) ? ROLLOUT_POLL_MS : null);
  return (
    <Page
      title={rollout === undefined ? 'Rollout' : `Rollout of ${imageName(rollout.image)}`}
      sub={
        rollout === undefined ? (
          ' '
        ) : (
          <>
            <StateMark of={rollout.status} />
            <span>
              began <Ago at={rollout.createdAt} /> by {rollout.actor}
            </span>
            <span>
              waves of {rollout.waveSizes.join(', ')}; each site is watched for{' '}
              {plural(rollout.watchSeconds, 'second')}
            </span>
          </>
        )
      }
      actions={rollout !== undefined && <Actions rollout={rollout} />}
    >
      <Known query={query} rows={8}>
        {(known) => <Progress rollout={known} />}
      </Known>
    </Page>
  );
}

function Progress({ rollout }: { rollout: Rollout }) {
  const { image, sites, reason, detail, waves, status } = rollout;
  return (
    <>
      <Section id="progress" title={progressOf(sites)}>
        <ProgressBar sites={sites} />
        {reason !== null && (
          <div class="notice bad">
            <p class="strong">{ROLLOUT_TEXTS[reason]}.</p>
            {detail !== null && <p>{detail}</p>}
            {(status === 'failed' || status === 'stopped') && (
              <p>Sites with the new image keep it. “Back to the earlier images” changes them back.</p>
            )}
          </div>
        )}
        <Code text={image} what="image" />
      </Section>
      <Section id="waves" title="Waves">
        <ol class="waves">
          {waves.map((wave) => (
            <WaveItem key={wave.number} wave={wave} />
          ))}
        </ol>
      </Section>
      <Events waves={waves} />
    </>
  );
}

function WaveItem({ wave: { number, sites } }: { wave: Wave }) {
  const isPending = sites.every(({ state }) => state === 'pending');
  const isOver = sites.every(
    ({ state }) => state === 'swapped' || state === 'already' || state === 'skipped',
  );
  return (
    <li>
      <details open={!isPending && (!isOver || number === 1)}>
        <summary>
          <span class="grow">
            Wave {number} <span class="dim small">{plural(sites.length, 'site')}</span>
          </span>
          {isPending ? (
            <span class="dim small">to follow</span>
          ) : (
            [...Map.groupBy(sites, ({ state }) => state)].map(([state, own]) => (
              <span key={state} class="small">
                {own.length} <StateMark of={state} />
              </span>
            ))
          )}
        </summary>
        <ul class="rows">
          {sites.slice(0, SHOWN).map(({ siteId, containerId, state, reason, detail, fromImage, since }) => (
            <li key={siteId}>
              <div class="grow">
                <a href={`/console/containers/${containerId}`} data-row>
                  {siteId}
                </a>{' '}
                {fromImage !== null && (
                  <span class="dim small">
                    from <ImageMark image={fromImage} />
                  </span>
                )}
                {reason !== null && <div class="small">{ROLLOUT_TEXTS[reason]}.</div>}
                {detail !== null && <div class="small dim">{detail}</div>}
              </div>
              {since !== null && (
                <span class="dim small since">
                  <Ago at={since} />
                </span>
              )}
              <StateMark of={state} />
            </li>
          ))}
        </ul>
        {sites.length > SHOWN && <p class="dim small">{plural(sites.length - SHOWN, 'further site')}.</p>}
      </details>
    </li>
  );
}

/** The newest change of each site, the newest first. */
function Events({ waves }: { waves: readonly Wave[] }) {
  const events = waves
    .flatMap(({ number, sites }) => sites.map((site) => ({ ...site, number })))
    .flatMap(({ since, ...site }) => (since === null ? [] : [{ ...site, since }]))
    .toSorted((a, b) => b.since.localeCompare(a.since));
  if (events.length === 0) return null;
  return (
    <Section id="events" title="Events">
      <ol class="events">
        {events.slice(0, SHOWN).map(({ siteId, state, since, number, commit }) => (
          <li key={siteId}>
            <time dateTime={since} title={absolute(since)} class="dim">
              {clockTime(since)}
            </time>
            <span class="grow">
              <span class="strong">{siteId}</span> {stateWords(state).toLowerCase()}{' '}
              <span class="dim small">
                wave {number}
                {commit !== null && (
                  <>
                    , commit <code>{commit.slice(0, 8)}</code>
                  </>
                )}
              </span>
            </span>
          </li>
        ))}
      </ol>
      {events.length > SHOWN && <p class="dim small">The newest {SHOWN}.</p>}
    </Section>
  );
}

function Actions({ rollout: { id, status, sites } }: { rollout: Rollout }) {
  const [asked, ask] = useState<'stop' | 'back' | null>(null);
  const hasChanged = ['changing', 'swapped', 'failed'].some((state) => (sites[state] ?? 0) > 0);
  const send = async (dryRun: boolean) => {
    const params = { path: { id }, query: dryRun ? { dryRun: '1' as const } : {} };
    return asked === 'stop'
      ? (await api.post('/image-rollouts/{id}/stop', { params })).data
      : (await api.post('/image-rollouts/{id}/back', { params })).data;
  };
  return (
    <>
      {status === 'running' && (
        <button type="button" onClick={() => ask('stop')}>
          Stop
        </button>
      )}
      {hasChanged && status !== 'reverting' && (
        <button type="button" class="danger" onClick={() => ask('back')}>
          Back to the earlier images
        </button>
      )}
      {asked !== null && (
        <Confirm
          title={asked === 'stop' ? 'Stop this rollout?' : 'Give the sites their earlier images?'}
          verb={asked === 'stop' ? 'Stop' : 'Go back'}
          isDanger={asked === 'back'}
          close={() => ask(null)}
          plan={() => send(true)}
          act={async () => {
            await send(false);
            refresh('instance rollout');
          }}
        >
          <p>
            {asked === 'stop'
              ? 'No further wave begins. The current one continues to its end; its sites keep the new image.'
              : 'All sites that this rollout changed get their earlier image at once. Those that were changed since by others stay as they are.'}
          </p>
        </Confirm>
      )}
    </>
  );
}
