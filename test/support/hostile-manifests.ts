import { MAX_BYTES } from '../../sites/manifest/limits.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { manifestInput } from './manifest.ts';

const VALID = formatManifest(manifestInput());
/** Octets that are kept free for the end of a text. */
const SPARE = 64;

/**
 * Texts of up to `bytes` octets, each expensive for some part of a parser. `what` names the content; `valid`: the text
 * is still a valid manifest.
 */
export function hostileManifests(
  bytes = MAX_BYTES,
): readonly { readonly what: string; readonly text: string; readonly valid: boolean }[] {
  const room = bytes - VALID.length - SPARE;
  const repeat = (piece: string) => piece.repeat(Math.floor(room / piece.length));
  const fill = (make: (number: number) => string) => {
    let text = '';
    for (let number = 0; text.length < room - SPARE; number += 1) text += make(number);
    return text;
  };
  const broken: Readonly<Record<string, string>> = {
    'unknown keys': VALID + fill((number) => `k${number}: 1\n`),
    'one key many times': VALID + repeat('k: 1\n'),
    'keys in braces': `${VALID}x: {${fill((number) => `k${number},`)}}\n`,
    'explicit keys': VALID + repeat('? a\n'),
    'empty keys': VALID + repeat(':\n'),
    'a list in brackets': `${VALID}x: [${repeat('a,')}]\n`,
    'a list': `${VALID}x:\n${repeat('- a\n')}`,
    'nested lists': `${VALID}x:\n${repeat('- - - a\n')}`,
    'unknown texts': VALID + fill((number) => `k${number}: |\n a\n`),
    quotes: VALID + repeat('"\n'),
    brackets: VALID + repeat(']\n'),
    braces: VALID + repeat('}'),
    'reserved characters': VALID + repeat('@\n'),
    directives: repeat('%YAML 1.2\n'),
    documents: VALID + repeat('---\n'),
    'ends of documents': VALID + repeat('...\n'),
    'a long text': `${VALID}x: ${repeat('a\n  ')}\n`,
    'a long quoted text': `${VALID}x: "${repeat('\\n')}"\n`,
    'a long literal text': `${VALID}x: |\n${repeat(' a\n')}`,
    'a long name': VALID.replace(/^name:.*$/m, `name: ${repeat('a')}`),
    'a long hostname': VALID.replace(/edge:.*$/m, `edge: ${repeat('a.')}b`),
    'a long key': `${VALID}${repeat('a')}: 1\n`,
    'custom domains': `${VALID}customDomains:\n${fill((number) => `  - a${number}.acme-shop.example\n`)}`,
    'NUL characters': VALID + repeat('\0'),
    'carriage returns': VALID + repeat('\r'),
  };
  const valid: Readonly<Record<string, string>> = {
    'empty comments': VALID + repeat('#\n'),
    comments: VALID + repeat('# a note: [with, marks]\n'),
    'one comment': `${VALID}#${repeat('x')}\n`,
    'empty lines': VALID + repeat('\n'),
    'lines of spaces': VALID + repeat(' \n'),
    'lines of tabs': VALID + repeat('\t\n'),
  };
  return [
    ...Object.entries(broken).map(([what, text]) => ({ what, text, valid: false })),
    ...Object.entries(valid).map(([what, text]) => ({ what, text, valid: true })),
  ];
}
