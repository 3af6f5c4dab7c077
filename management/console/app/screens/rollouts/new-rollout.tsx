import { useId, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { AreaField, TextField } from '../../parts/fields.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Failure, Known } from '../../parts/states.tsx';
import { count, plural } from '../../text/format.ts';
import { ImageMark, imageName } from './image.tsx';

type Images = components['schemas']['Images'];
type Plan = components['schemas']['ImageRolloutPlan']['plan'];

/** The values of the form, as typed. */
interface Draft {
  readonly image: string;
  readonly sites: string;
  readonly waves: string;
  readonly watch: string;
}

/** Plans a rollout first, then starts what the plan shows. */
export default function NewRolloutScreen() {
  const images = useQuery('instance images', async () => (await api.get('/images')).data);
  return (
    <Page
      title="New rollout"
      sub="The plan shows which sites change, and in which wave. Nothing changes before you start it."
    >
      <Known query={images} rows={6}>
        {(known) => <RolloutForm images={known} />}
      </Known>
    </Page>
  );
}

function RolloutForm({ images }: { images: Images }) {
  const { route } = useLocation();
  const [draft, setDraft] = useState<Draft>({ image: '', sites: '', waves: '1, 5', watch: '60' });
  const [newest, setNewest] = useState<{ readonly of: Draft; readonly plan: Plan } | null>(null);
  // A plan for earlier values is ignored, also one that arrives after a change.
  const plan = newest?.of === draft ? newest.plan : null;
  const { isBusy, error, run } = useAction();
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
  const waves = wavesOf(draft.waves);
  const send = (dryRun: boolean) =>
    api.post('/image-rollouts', {
      params: { query: dryRun ? { dryRun: '1' } : {} },
      body: bodyOf(draft),
    });
  const makePlan = async () => {
    const answer: unknown = (await send(true)).data;
    setNewest({ of: draft, plan: (answer as components['schemas']['ImageRolloutPlan']).plan }); // a dry run’s
  };
  const start = async () => {
    const { data } = await send(false);
    refresh('instance rollout');
    route(`/console/rollouts/${data.id}`);
  };
  return (
    <>
      <Section id="rollout" title="What changes">
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            if (waves !== null) void run(makePlan);
          }}
        >
          <ImageField images={images} value={draft.image} set={(image) => set({ image })} />
          <AreaField
            label="Sites"
            hint="One name per line, in the order of the rollout. Empty: all live sites, the oldest first."
            value={draft.sites}
            set={(sites) => set({ sites })}
            placeholder="acme-shop"
          />
          <TextField
            label="Waves"
            hint="How many sites each wave changes. The last number counts for all further waves."
            value={draft.waves}
            set={(text) => set({ waves: text })}
            required
          />
          {waves === null && <p class="bad-text">Waves are whole numbers from 1 to 500, such as 1, 5, 20.</p>}
          <TextField
            label="Watch each site (seconds)"
            hint="A wave ends once each of its sites has been ready with the image for this long."
            type="number"
            min={0}
            max={86_400}
            value={draft.watch}
            set={(watch) => set({ watch })}
            required
          />
          {error !== null && <Failure error={error} />}
          <div class="actions">
            <button type="submit" class={plan === null ? 'primary' : ''} disabled={isBusy || waves === null}>
              {isBusy ? 'Working…' : 'Plan'}
            </button>
          </div>
        </form>
      </Section>
      {plan !== null && (
        <PlanSection plan={plan} image={draft.image.trim()} isBusy={isBusy} start={() => void run(start)} />
      )}
    </>
  );
}

/** An image that sites have already, or another one from an allowed repository. */
function ImageField({ images, value, set }: { images: Images; value: string; set: (image: string) => void }) {
  const id = useId();
  const { repositories, items, ofNewSites } = images;
  const known = [ofNewSites, ...items.map(({ image }) => image)].filter(
    (one, index, all) => all.indexOf(one) === index,
  );
  return (
    <div class="field wide-field">
      <label for={id}>Image</label>
      <span class="dim small" id={`${id}-hint`}>
        Pinned by its digest. Allowed repositories:{' '}
        {repositories.map((one, index) => (
          <span key={one}>
            {index > 0 && ', '}
            {one === 'local' ? 'images of the host by id' : <code>{one}</code>}
          </span>
        ))}
      </span>
      <input
        id={id}
        aria-describedby={`${id}-hint`}
        list={`${id}-list`}
        value={value}
        required
        autoComplete="off"
        spellcheck={false}
        placeholder={`${repositories.find((one) => one !== 'local') ?? 'repository'}@sha256:…`}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {known.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {items.length > 0 && (
        <ul class="small dim">
          {items.slice(0, 5).map(({ image, sites }) => (
            <li key={image}>
              {plural(sites, 'site')} now: <ImageMark image={image} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function PlanSection({
  plan: { changes, waves },
  image,
  isBusy,
  start,
}: {
  plan: Plan;
  image: string;
  isBusy: boolean;
  start: () => void;
}) {
  return (
    <Section
      id="plan"
      title={`Plan: ${plural(changes.length, 'site')} in ${plural(waves.length, 'wave')}`}
      aside={
        changes.length > 0 && (
          <button type="button" class="primary" disabled={isBusy} onClick={start}>
            Start the rollout
          </button>
        )
      }
    >
      {changes.length === 0 ? (
        <Empty title="Nothing to change">
          <p>These sites have the image already.</p>
        </Empty>
      ) : (
        <>
          <p>
            They get <code title={image}>{imageName(image)}</code> wave by wave. A wave begins once all sites
            of the one before have been ready for the watch time, and the first failure stops the rollout.
          </p>
          <ol class="waves">
            {waves.map((sites, index) => (
              <li key={sites[0]}>
                <details open={index < 3}>
                  <summary>
                    <span class="grow">Wave {index + 1}</span>
                    <span class="dim small">{plural(sites.length, 'site')}</span>
                  </summary>
                  <p>
                    {sites.slice(0, 100).join(', ')}
                    {sites.length > 100 && ` and ${count(sites.length - 100)} more`}
                  </p>
                </details>
              </li>
            ))}
          </ol>
        </>
      )}
    </Section>
  );
}

function wavesOf(text: string): number[] | null {
  const sizes = text
    .split(/[\s,]+/)
    .filter((part) => part !== '')
    .map(Number);
  const isValid = (size: number) => Number.isInteger(size) && size >= 1 && size <= 500;
  return sizes.length > 0 && sizes.every(isValid) ? sizes : null;
}

function bodyOf({ image, sites, waves, watch }: Draft) {
  const names = sites.split(/[\s,]+/).filter((name) => name !== '');
  return {
    image: image.trim(),
    ...(names.length === 0 ? {} : { sites: names }),
    waves: wavesOf(waves) ?? [],
    watchSeconds: Number(watch),
  };
}
