import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { bytesOf } from './manifests.ts';
import { burst, leave, plan } from './members.ts';
import { type Edit, SITES, type Step } from './steps.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

type Of<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

/** What the checks after a step have to know about it. */
export interface Effect {
  /** A site that was changed outside of git: until it is ready again, what it lacks is no violation. */
  readonly drifted?: string;
  /** The provisioner was killed and started again. */
  readonly restarted?: boolean;
  /** The guarded changes of a plan were approved. */
  readonly approved?: boolean;
  /** Set if the branch was deleted: puts it back. */
  readonly restore?: () => Promise<void>;
}

/** Makes one step. Its own answer is checked here; its consequences are checked by `checks.ts`. */
export async function act(world: World, step: Step): Promise<Effect> {
  switch (step.kind) {
    case 'tree':
      return await changeTree(world, step);
    case 'history':
      return await changeHistory(world, step);
    case 'drift':
      return await drift(world, step);
    case 'operate':
      return await operate(world, step);
    case 'call':
      return await callPart(world, step);
    case 'burst':
      await burst(world, step);
      return {};
    case 'leave':
      await leave(world, step);
      return {};
    case 'plan':
      await plan(world, step, () =>
        changeTree(world, { kind: 'tree', way: 'commit', edits: [firstManifest(step.site)] }),
      );
      return {};
  }
}

async function changeTree({ repository, manifests }: World, { way, edits }: Of<'tree'>): Promise<Effect> {
  await repository.move(async (head) => {
    const tree = await repository.edited(head, edits, async (edit) =>
      edit.op === 'put' ? bytesOf(edit.content, manifests) : Buffer.alloc(0),
    );
    if (way === 'commit') return await repository.commit(tree, [head], 'Change the tree');
    const side = await repository.commit(tree, [head], 'Change a side branch');
    return await repository.commit(tree, [head, side], 'Merge a side branch');
  });
  return {};
}

async function changeHistory({ repository }: World, { how, back }: Of<'history'>): Promise<Effect> {
  if (how === 'hide') return { restore: await repository.hide() };
  if (how === 'pack') {
    await repository.git(['gc', '--quiet', '--prune=now']);
    return {};
  }
  await repository.move(async (head) => {
    const treeOf = async (revision: string) => await repository.git(['rev-parse', `${revision}^{tree}`]);
    const older = await repository.git(['rev-parse', '--verify', `${head}~${back}`]).catch(() => head);
    switch (how) {
      case 'reset':
        return older;
      case 'orphan':
        return await repository.commit(await treeOf(head), [], 'Start the history again');
      case 'amend':
        return await repository.commit(await treeOf(head), [older], 'Rewrite the last commits');
      case 'revert':
        return await repository.commit(await treeOf(older), [head], 'Revert the last commits');
      case 'forget': {
        const paths = (await repository.tree(head)).filter(({ path }) => path.endsWith('.yaml'));
        const { path = '' } = paths[back % paths.length] ?? {};
        const tree = await repository.edited(head, [{ op: 'delete', path }], async () => Buffer.alloc(0));
        return await repository.commit(tree, [], 'Start the history again, without one file');
      }
    }
  });
  return {};
}

async function drift(world: World, { where, site }: Of<'drift'>): Promise<Effect> {
  const { records, keys } = await world.marked(site);
  const [record, key] = [records[0], keys[0]];
  const isDelete = where.endsWith('delete');
  if (where.startsWith('dns') && record !== undefined) {
    if (isDelete) await world.cloudflare('DELETE', record.url);
    else {
      const content = record.type === 'AAAA' ? '2001:db8::66' : '192.0.2.66';
      await world.cloudflare('PATCH', record.url, { content });
    }
  } else if (where.startsWith('kv') && key !== undefined) {
    if (isDelete) await world.cloudflare('DELETE', key.url);
    else await world.cloudflare('PUT', key.url, { drifted: true });
  } else if (where.startsWith('proxy')) {
    const folder = world.proxyFolder();
    const name = readdirSync(folder).find((file) => file.includes(site));
    if (name === undefined) return {};
    if (isDelete) rmSync(join(folder, name));
    else writeFileSync(join(folder, name), 'server { this is no configuration');
  } else return {};
  return { drifted: site };
}

async function operate(world: World, { what, site }: Of<'operate'>): Promise<Effect> {
  const freeze = join(world.home, 'provisioner', 'freeze');
  switch (what) {
    case 'freeze':
      writeFileSync(freeze, 'fuzz');
      return {};
    case 'thaw':
      rmSync(freeze, { force: true });
      return {};
    case 'restart':
      await world.kill('gitops/main.ts');
      return { restarted: true };
    case 'approve': {
      const { checksum } = await world.plan();
      await answered(world, 'POST', '/approve', { checksum });
      return { approved: true };
    }
    case 'restore':
      rmSync(freeze, { force: true });
      return await changeTree(world, { kind: 'tree', way: 'commit', edits: SITES.map(firstManifest) });
    case 'prune':
      await answered(world, 'POST', '/prune', { olderThanDays: 0 });
      return {};
    case 'revert':
    case 'suspend':
    case 'resume':
      await answered(world, 'POST', `/sites/${site}/${what}`);
      return {};
  }
}

const firstManifest = (site: string): Edit => ({
  op: 'put',
  path: `${site}.yaml`,
  mode: '100644',
  content: { of: 'manifest', site, change: 'same', other: site },
});

/** A refusal is a valid answer, a fault of the part is not. 503 is valid: it says what is away, such as git. */
async function answered(world: World, method: 'POST', path: string, body?: object): Promise<void> {
  const { status, body: said } = await world.call.provisioner(method, path, body);
  if (status >= 500 && status !== 503) {
    throw new Violation('answers', `${method} ${path} answers ${status}: ${JSON.stringify(said)}`);
  }
}

async function callPart({ run }: World, { part, method, path, body }: Of<'call'>): Promise<Effect> {
  const credentials = {
    management: { authorization: `Bearer ${run.demo.token}` },
    provisioner: { 'x-secret': run.provisioner.secret },
    edge: { host: `acme.tagyard.localhost:${new URL(run.edge.url).port}` },
  };
  const payload = method === 'GET' ? {} : { body };
  const answer = await request(`${run[part].url}${path}`, {
    method,
    headers: { ...credentials[part], 'content-type': 'application/json' },
    ...payload,
  });
  const said = await answer.body.text();
  // These are valid: they say that something is unavailable, such as the site or the host.
  const isOutage = part === 'edge' ? answer.statusCode > 500 : [502, 503].includes(answer.statusCode);
  if (answer.statusCode >= 500 && !isOutage) {
    throw new Violation(
      'answers',
      `${part}: ${method} ${path} answers ${answer.statusCode}: ${said.slice(0, 300)}`,
    );
  }
  return {};
}
