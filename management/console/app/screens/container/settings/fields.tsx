import type { components } from '../../../../../../base/client/index.ts';
import { api } from '../../../data/api.ts';
import { useQuery } from '../../../data/query.ts';
import { CERTIFICATES, CheckField, ChoiceField, TextField } from '../../../parts/fields.tsx';
import { Known } from '../../../parts/states.tsx';
import type { SettingsDraft } from './draft.ts';
import { OptionsFields } from './options.tsx';
import { RegionRules } from './regions.tsx';
import { ResourceFields } from './resources.tsx';

type Plugin = components['schemas']['Plugin'];

/** Chosen by an upload. */
const UPLOADED = { value: 'uploaded', name: 'Your own, where it covers the name' } as const;

export function SettingsFields({
  draft,
  set,
  isReadOnly,
}: {
  draft: SettingsDraft;
  set: (changes: Partial<SettingsDraft>) => void;
  isReadOnly: boolean;
}) {
  const plugins = useQuery('plugins', async () => (await api.get('/plugins')).data);
  return (
    <fieldset class="plain form" disabled={isReadOnly}>
      <legend class="hidden">Settings</legend>
      <div class="grid">
        <TextField
          label="Name"
          hint="What people call it"
          value={draft.name}
          set={(name) => set({ name })}
          required
          maxLength={120}
        />
        <ChoiceField
          label="Certificates"
          hint="Those of the tag server’s and custom domains’ names"
          value={draft.tls}
          of={draft.tls === 'uploaded' ? [UPLOADED, ...CERTIFICATES] : CERTIFICATES}
          set={(tls) => set({ tls })}
        />
      </div>
      <h3>Consent</h3>
      <div class="grid">
        <ChoiceField
          label="Consent"
          hint="When visitors are identified"
          value={draft.consent}
          of={[
            { value: 'opt_out', name: 'Unless the visitor refuses' },
            { value: 'required', name: 'Only after a grant' },
          ]}
          set={(consent) => set({ consent })}
        />
        <ChoiceField
          label="Consent Mode"
          hint="How tags load before a grant"
          value={draft.consentMode}
          of={[
            { value: 'basic', name: 'Basic: not at all' },
            { value: 'advanced', name: 'Advanced: without cookies' },
          ]}
          set={(consentMode) => set({ consentMode })}
        />
        <ChoiceField
          label="Fallback"
          hint="What pages load while the edge fails"
          value={draft.fallback}
          of={[
            { value: 'vendor', name: 'Google’s script directly' },
            { value: 'none', name: 'No tag' },
          ]}
          set={(fallback) => set({ fallback })}
        />
        <TextField
          label="Days that a consent lasts"
          hint="An older consent counts as none"
          type="number"
          min={1}
          max={395}
          value={String(draft.consentMaxDays)}
          set={(text) => set({ consentMaxDays: Number(text) })}
          required
        />
      </div>
      <RegionRules regions={draft.regions} set={(regions) => set({ regions })} isReadOnly={isReadOnly} />
      <ResourceFields resources={draft.resources} set={(resources) => set({ resources })} />
      <h3>Plugins</h3>
      <Known query={plugins} rows={5}>
        {({ items }) =>
          items.map((plugin) => <PluginFields key={plugin.name} plugin={plugin} draft={draft} set={set} />)
        }
      </Known>
    </fieldset>
  );
}

/** A plugin's switch, and its options as its schema describes them. */
function PluginFields({
  plugin,
  draft,
  set,
}: {
  plugin: Plugin;
  draft: SettingsDraft;
  set: (changes: Partial<SettingsDraft>) => void;
}) {
  const { name, title, description, kind, flag, options } = plugin;
  const own = optionsOf(draft.modules[name]);
  const setOptions = (next: Readonly<Record<string, unknown>>) =>
    set({ modules: { ...draft.modules, [name]: next } });
  return (
    <div class="plugin">
      {kind === 'optional' && flag !== null ? (
        <CheckField
          label={title}
          hint={description}
          value={draft.features[flag] ?? false}
          set={(isOn) => set({ features: { ...draft.features, [flag]: isOn } })}
        />
      ) : kind === 'default_on' ? (
        <CheckField
          label={title}
          hint={description}
          value={own.enabled !== false}
          set={(enabled) => setOptions({ ...own, enabled })}
        />
      ) : (
        <CheckField label={title} hint={`${description} Always on.`} value set={() => undefined} disabled />
      )}
      <OptionsFields schema={options} value={own} set={setOptions} />
    </div>
  );
}

function optionsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
