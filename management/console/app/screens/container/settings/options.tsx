import { AreaField, CheckField, ChoiceField, TextField } from '../../../parts/fields.tsx';
import { words } from '../../../text/format.ts';

/** The parts of a JSON Schema (2020-12) that plugins' options use. */
interface Schema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

type Options = Readonly<Record<string, unknown>>;

/** A field for each option. An option that is emptied is not set: its default applies. */
export function OptionsFields({
  schema,
  value,
  set,
}: {
  schema: Schema;
  value: Options;
  set: (value: Options) => void;
}) {
  // The plugin's own switch is above its options.
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => name !== 'enabled');
  if (fields.length === 0) return null;
  const change = (name: string, next: unknown) => {
    const { [name]: _old, ...others } = value;
    set(next === undefined ? others : { ...others, [name]: next });
  };
  return (
    <details>
      <summary class="small">Options</summary>
      <div class="form">
        {fields.map(([name, field]) => (
          <OptionField
            key={name}
            name={name}
            schema={field}
            value={value[name]}
            set={(next) => change(name, next)}
          />
        ))}
      </div>
    </details>
  );
}

function OptionField({
  name,
  schema,
  value,
  set,
}: {
  name: string;
  schema: Schema;
  value: unknown;
  set: (value: unknown) => void;
}) {
  const { type, title = words(name), description } = schema;
  const text = { label: title, hint: description };
  if (type === 'boolean') return <CheckField {...text} value={value === true} set={set} />;
  if (schema.enum !== undefined) {
    const values = schema.enum.map(String);
    return (
      <ChoiceField
        {...text}
        value={String(value ?? schema.default ?? '')}
        of={values.map((one) => ({ value: one, name: words(one) }))}
        set={set}
      />
    );
  }
  if (type === 'integer' || type === 'number') {
    return (
      <TextField
        {...text}
        type="number"
        {...(schema.minimum === undefined ? {} : { min: schema.minimum })}
        {...(schema.maximum === undefined ? {} : { max: schema.maximum })}
        value={value === undefined ? '' : String(value)}
        set={(next) => set(next === '' ? undefined : Number(next))}
      />
    );
  }
  if (type === 'array' && schema.items?.type === 'string') {
    const lines = Array.isArray(value) ? value : Array.isArray(schema.default) ? schema.default : [];
    return (
      <AreaField
        label={title}
        hint={`${description ?? ''} One per line.`}
        value={lines.join('\n')}
        set={(next) => set(next === '' ? undefined : next.split('\n'))}
      />
    );
  }
  if (type === 'string') {
    return (
      <TextField
        {...text}
        {...(schema.maxLength === undefined ? {} : { maxLength: schema.maxLength })}
        value={typeof value === 'string' ? value : ''}
        set={(next) => set(next === '' ? undefined : next)}
      />
    );
  }
  return <JsonField name={title} value={value} />;
}

/** An option that has no field here: it is shown, and only the API can change it. */
function JsonField({ name, value }: { name: string; value: unknown }) {
  return (
    <p class="small">
      {name}: <code>{value === undefined ? 'not set' : JSON.stringify(value)}</code>
    </p>
  );
}
