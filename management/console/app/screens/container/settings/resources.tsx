import { useState } from 'preact/hooks';
import { CheckField, TextField } from '../../../parts/fields.tsx';
import type { SettingsDraft } from './draft.ts';

type Resources = SettingsDraft['resources'];

const MEMORY = '[1-9][0-9]{0,5}[mg]';

type Replicas = Resources['processing']['replicas'];

/** The values of the fields for replicas. If their number is fixed, `max` is empty. */
function shownReplicas(replicas: Replicas): [min: number, max: string] {
  return typeof replicas === 'number' ? [replicas, ''] : [replicas.min, String(replicas.max)];
}

function replicasFrom(min: string, max: string): Replicas {
  return max === '' ? Number(min) : { min: Number(min), max: Number(max) };
}

/** Memory, parts of a core and replicas of the site's containers on their host. */
export function ResourceFields({
  resources,
  set,
}: {
  resources: Resources;
  set: (resources: Resources) => void;
}) {
  const { processing, preview } = resources;
  const setProcessing = (changes: Partial<Resources['processing']>) =>
    set({ ...resources, processing: { ...processing, ...changes } });
  const setRequests = (changes: { memory?: string | undefined; cpus?: number | undefined }) =>
    setProcessing({ requests: { ...processing.requests, ...changes } as typeof processing.requests });
  const [min, max] = shownReplicas(processing.replicas);
  // Decided at the first rendering, so that the section doesn't close when its last field is emptied.
  const [isScaled] = useState(max !== '' || processing.requests !== undefined);
  const setPreview = (changes: Partial<Resources['preview']>) =>
    set({ ...resources, preview: { ...preview, ...changes } });
  return (
    <>
      <h3>Resources</h3>
      <div class="grid">
        <TextField
          label="Memory"
          hint="Of each processing container: 512m, 1g"
          value={processing.memory}
          set={(memory) => setProcessing({ memory })}
          pattern={MEMORY}
          required
        />
        <TextField
          label="Cores"
          hint="Of each processing container, at most 1"
          type="number"
          min={0.05}
          max={1}
          step={0.05}
          value={String(processing.cpus)}
          set={(text) => setProcessing({ cpus: Number(text) })}
          required
        />
        <TextField
          label="Replicas"
          hint="Number of processing containers; a cluster runs at least 2 if no maximum is set"
          type="number"
          min={1}
          max={16}
          value={String(min)}
          set={(text) => setProcessing({ replicas: replicasFrom(text, max) })}
          required
        />
      </div>
      <div class="grid">
        <TextField
          label="Memory of the preview"
          hint="Of the preview container: 256m"
          value={preview.memory}
          set={(memory) => setPreview({ memory })}
          pattern={MEMORY}
          required
        />
        <TextField
          label="Cores of the preview"
          hint="At most 1"
          type="number"
          min={0.05}
          max={1}
          step={0.05}
          value={String(preview.cpus)}
          set={(text) => setPreview({ cpus: Number(text) })}
          required
        />
      </div>
      <details open={isScaled}>
        <summary>In a cluster</summary>
        <div class="grid">
          <TextField
            label="Maximum replicas"
            hint="Replicas are added up to this number under load; empty: none is added"
            type="number"
            min={min}
            max={16}
            value={max}
            set={(text) => setProcessing({ replicas: replicasFrom(String(min), text) })}
          />
          <TextField
            label="Requested memory"
            hint="Reserved for each processing container; empty: 256m"
            value={processing.requests?.memory ?? ''}
            set={(memory) => setRequests({ memory: memory === '' ? undefined : memory })}
            pattern={MEMORY}
          />
          <TextField
            label="Requested cores"
            hint="A cluster adds replicas while more than 70 % of these cores are used; empty: 0.1"
            type="number"
            min={0.05}
            max={1}
            step={0.05}
            value={String(processing.requests?.cpus ?? '')}
            set={(text) => setRequests({ cpus: text === '' ? undefined : Number(text) })}
          />
        </div>
      </details>
      <CheckField
        label="Start the preview on demand"
        hint="It needs no memory while no one previews; the first preview takes some seconds longer"
        value={preview.onDemand}
        set={(onDemand) => setPreview({ onDemand })}
      />
    </>
  );
}
