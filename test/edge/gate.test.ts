import { describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { gate, OPEN_GATE } from '../../edge/gate.ts';
import type { Plugin } from '../../plugins/contract.ts';

const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  size: z._default(z.number(), 1),
});
const mandatory: Plugin = { name: 'mandatory', kind: 'mandatory', config, routes: [] };
const optional: Plugin = { name: 'optional', kind: 'optional', flag: 'flag', config, routes: [] };

describe('gate', () => {
  test.each<[string, Parameters<typeof gate>[1], Record<string, number>, string[]]>([
    ['no document: mandatory plugins on their defaults', OPEN_GATE, { mandatory: 1 }, []],
    [
      'the flag of an optional plugin enables it',
      { features: { flag: true }, modules: {} },
      { mandatory: 1, optional: 1 },
      [],
    ],
    ['a false flag does not', { features: { flag: false }, modules: {} }, { mandatory: 1 }, []],
    [
      'a flag with the plugin’s name does not',
      { features: { optional: true }, modules: {} },
      { mandatory: 1 },
      [],
    ],
    [
      'enabled: false disables either kind',
      { features: { flag: true }, modules: { mandatory: { enabled: false }, optional: { enabled: false } } },
      {},
      [],
    ],
    [
      'options are parsed',
      { features: { flag: true }, modules: { mandatory: { size: 2 }, optional: { size: 3 } } },
      { mandatory: 2, optional: 3 },
      [],
    ],
    [
      'invalid options: a mandatory plugin runs on its defaults, an optional one is disabled',
      { features: { flag: true }, modules: { mandatory: { size: 'x' }, optional: { colour: 'red' } } },
      { mandatory: 1 },
      ['mandatory', 'optional'],
    ],
    [
      'invalid options of a disabled optional plugin are not parsed',
      { features: {}, modules: { optional: { size: 'x' } } },
      { mandatory: 1 },
      [],
    ],
    [
      'unknown flags and modules are ignored',
      { features: { future: true }, modules: { future: { size: 'x' } } },
      { mandatory: 1 },
      [],
    ],
  ])('%s', (_name, document, sizes, refused) => {
    const { enabled, rejected } = gate([mandatory, optional], document);
    const actual = enabled.map(({ plugin, settings }) => [plugin.name, config.parse(settings).size]);
    expect(Object.fromEntries(actual)).toEqual(sizes);
    expect(rejected.map(({ plugin }) => plugin)).toEqual(refused);
  });

  test('enabled: false does not disable a plugin that is always on', () => {
    const always: Plugin = { ...mandatory, kind: 'mandatory', alwaysOn: true };
    const { enabled } = gate([always], { features: {}, modules: { mandatory: { enabled: false, size: 4 } } });
    expect(enabled.map(({ settings }) => config.parse(settings).size)).toEqual([4]);
  });

  test('plugins that derive keys of profiles are listed, enabled or not, unless their options are invalid', () => {
    const deriving: Plugin = { ...optional, profileKey: async () => undefined };
    const keepers = (features: object, modules: object) =>
      gate([mandatory, deriving], { features: { ...features }, modules: { ...modules } }).keepers.length;
    expect(keepers({ flag: true }, {})).toBe(1);
    expect(keepers({}, {})).toBe(1);
    expect(keepers({}, { optional: { size: 'x' } })).toBe(0);
  });

  test('keeps the order of the list', () => {
    const { enabled } = gate([optional, mandatory], { features: { flag: true }, modules: {} });
    expect(enabled.map(({ plugin }) => plugin.name)).toEqual(['optional', 'mandatory']);
  });

  test('the reason of a rejection contains nothing of the options', () => {
    const { rejected } = gate([mandatory], { features: {}, modules: { mandatory: { size: 'secret' } } });
    expect(rejected[0]?.reason).toEqual(expect.any(String));
    expect(rejected[0]?.reason).not.toContain('secret');
  });
});
