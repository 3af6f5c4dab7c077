import { writeFileSync } from 'node:fs';
import { createRecorder, machine, type Suite } from './bench.ts';
import { brokenManifests } from './broken-manifests.ts';
import { consoleFigures } from './console.ts';
import { consoleTail } from './console-tail.ts';
import { edge } from './edge.ts';
import { edgeSlow } from './edge-slow.ts';
import { edgeStart } from './edge-start.ts';
import { gateway } from './gateway.ts';
import { gitops } from './gitops.ts';
import { hits } from './hits.ts';
import { hostContainers } from './host-containers.ts';
import { hostNginx } from './host-nginx.ts';
import { hostRestart } from './host-restart.ts';
import { instance } from './instance.ts';
import { kubernetes } from './kubernetes.ts';
import { management } from './management.ts';
import { managementFeeds } from './management-feeds.ts';
import { managementHistory } from './management-history.ts';
import { managementLists } from './management-lists.ts';
import { managementLoad } from './management-load.ts';
import { managementRestore } from './management-restore.ts';
import { managementStrangers } from './management-strangers.ts';
import { packageFigures } from './package.ts';
import { requests } from './requests.ts';
import { traffic } from './traffic.ts';

/** The parts of the bench by name; `npm run bench -- <names>` runs only those. */
const SUITES: Readonly<Record<string, Suite>> = {
  instance,
  hits,
  edge,
  'edge-slow': edgeSlow,
  'edge-start': edgeStart,
  gitops,
  'broken-manifests': brokenManifests,
  management,
  'management-load': managementLoad,
  'management-feeds': managementFeeds,
  'management-lists': managementLists,
  'management-history': managementHistory,
  'management-strangers': managementStrangers,
  restore: managementRestore,
  requests,
  traffic,
  'console-tail': consoleTail,
  console: consoleFigures,
  package: packageFigures,
  'host-containers': hostContainers,
  'host-nginx': hostNginx,
  'host-restart': hostRestart,
  kubernetes,
  gateway,
};

// Prints one line per figure. Writes the figures as JSON to the path in `BENCH_JSON`: `{ machine, figures }`.
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in SUITES));
if (unknown.length > 0) {
  console.error(`No such bench: ${unknown.join(', ')}. There are: ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}

const { bench, figures } = createRecorder((line) => console.log(line));
console.log(
  Object.entries(machine())
    .map(([name, value]) => `${name} ${value}`)
    .join(', '),
);
try {
  for (const [name, suite] of Object.entries(SUITES)) {
    if (asked.length === 0 || asked.includes(name)) await suite(bench);
  }
} finally {
  // After a failure, the figures that were measured before it are written, too.
  const path = process.env.BENCH_JSON;
  if (path) writeFileSync(path, `${JSON.stringify({ machine: machine(), figures }, null, 2)}\n`);
}
