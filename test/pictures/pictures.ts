/** One picture of the console. */
export interface Picture {
  /** Its file in `docs/screenshots`. */
  readonly file: string;
  /** An address of the console; `{shop}` is the id of the demo's container. */
  readonly path: string;
  /** In CSS pixels, which are also the file's. */
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: 'light' | 'dark';
  /** Text that is on the page when it shows its data. */
  readonly shows: string | RegExp;
  /** What is typed before the picture is taken, by the labels of the fields. */
  readonly typed?: Readonly<Record<string, string>>;
}

const DESK = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

/** The pictures that `npm run screenshots` takes. The README and docs/console.md show them. */
export const PICTURES: readonly Picture[] = [
  {
    file: 'overview.png',
    path: '/console',
    viewport: DESK,
    colorScheme: 'light',
    shows: 'Nordlicht Outdoor',
  },
  {
    file: 'containers.png',
    path: '/console/containers',
    viewport: DESK,
    colorScheme: 'light',
    shows: 'Nordlicht Outdoor',
  },
  {
    file: 'container.png',
    path: '/console/containers/{shop}',
    viewport: DESK,
    colorScheme: 'light',
    shows: /^[1-9][\d,]+ requests$/,
  },
  {
    file: 'create.png',
    path: '/console/containers/new',
    viewport: DESK,
    colorScheme: 'light',
    shows: 'GTM-SRV0042',
    typed: {
      'Container configuration': Buffer.from('id=GTM-SRV0042&env=1&auth=an-example-only').toString('base64'),
      Name: 'Hafen Kontor',
      Domain: 'hafen-kontor.example',
      'Web tag id': 'GTM-HAFEN01',
    },
  },
  {
    file: 'changes.png',
    path: '/console/changes',
    viewport: DESK,
    colorScheme: 'light',
    shows: /nordlicht-outdoor/,
  },
  {
    file: 'phone.png',
    path: '/console/containers/{shop}',
    viewport: PHONE,
    colorScheme: 'dark',
    shows: /^[1-9][\d,]+ requests$/,
  },
];

/** The folder of the pictures, from the root of the tree. */
export const FOLDER = 'docs/screenshots';
/** The most bytes of a picture: every clone and every reader of the README loads them. */
export const MOST_BYTES = 150 * 1024;
