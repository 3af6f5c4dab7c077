import { z } from 'zod';
import { TEXTS } from '../../plugins/all-texts.ts';
import { ALWAYS_ON, FEATURE_FLAGS, MODULES } from '../../plugins/document.ts';
import type { PluginView } from './plugins.schema.ts';

type Name = keyof typeof MODULES;

/** The plugins, in their order, with their options as JSON Schema: forms are made from it. */
export function describePlugins(): PluginView[] {
  return (Object.keys(MODULES) as Name[]).map((name) => {
    const flag = FEATURE_FLAGS.find((one) => one === name) ?? null;
    const { title = name, description = '' } = TEXTS[name] ?? {};
    const isAlwaysOn = ALWAYS_ON.some((one) => one === name);
    const kind = isAlwaysOn ? 'always_on' : flag === null ? 'default_on' : 'optional';
    return { name, title, description, kind, flag, options: optionsOf(name) };
  });
}

function optionsOf(name: Name): PluginView['options'] {
  const schema = z.toJSONSchema(MODULES[name], { io: 'input' });
  const { title, description, options = {} } = TEXTS[name] ?? {};
  const properties = Object.entries(schema.properties ?? {}).map(([key, property]) => {
    const [optionTitle = key, text = ''] = options[key] ?? [];
    return [
      key,
      { title: optionTitle, description: text, ...(typeof property === 'object' ? property : {}) },
    ];
  });
  return { ...schema, title, description, properties: Object.fromEntries(properties) };
}
