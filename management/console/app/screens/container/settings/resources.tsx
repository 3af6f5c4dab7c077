import { CheckField, TextField } from '../../../parts/fields.tsx';
import type { SettingsDraft } from './draft.ts';

type Resources = SettingsDraft['resources'];

const MEMORY = '[1-9][0-9]{0,5}[mg]';

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
          hint="Processing containers beside each other"
          type="number"
          min={1}
          max={16}
          value={String(processing.replicas)}
          set={(text) => setProcessing({ replicas: Number(text) })}
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
      <CheckField
        label="Start the preview on demand"
        hint="It needs no memory while no one previews; the first preview takes some seconds longer"
        value={preview.onDemand}
        set={(onDemand) => setPreview({ onDemand })}
      />
    </>
  );
}
