import type Docker from 'dockerode';
import { buildDemoImage } from '../../../sites/local/demo/image.ts';

/**
 * The demo tag server's image, with a name of its own for this process. Disposing removes it and all containers of
 * `instance`.
 */
export async function tagServerImage(docker: Docker, instance: string) {
  const repository = `tagyard-test/${instance}-${process.pid}`;
  await removeContainers(docker, instance);
  const image = await buildDemoImage({ docker, repository });
  return {
    image,
    repository,
    async [Symbol.asyncDispose]() {
      await removeContainers(docker, instance);
      for (const { RepoTags } of await docker.listImages({ filters: { reference: [repository] } })) {
        for (const tag of RepoTags ?? []) await docker.getImage(tag).remove();
      }
    },
  };
}

/** Removes the containers of an instance, of this run or of one that was killed. */
export async function removeContainers(docker: Docker, instance: string): Promise<void> {
  const all = await docker.listContainers({ all: true });
  const ours = all.filter(({ Names }) => Names.some((name) => name.startsWith(`/tagyard-${instance}-`)));
  await Promise.all(ours.map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true })));
}

type BuiltImage = Awaited<ReturnType<typeof tagServerImage>>;

/** Another image with the same server, like a new release. */
export function nextRelease(docker: Docker, built: BuiltImage): Promise<string> {
  return derive(docker, built, 'next', 'LABEL release=next');
}

/** A release that fails for some sites: the server exits at once if the `env` of its config is this one. */
export async function pickyRelease(docker: Docker, built: BuiltImage, env: string): Promise<string> {
  const { Config } = await docker.getImage(built.image).inspect();
  const [node = '', main = ''] = [Config.Entrypoint ?? []].flat();
  const script = `
    const query = Buffer.from(process.env.CONTAINER_CONFIG, 'base64').toString();
    if (new URLSearchParams(query).get('env') === ${JSON.stringify(env)}) {
      console.error('this release knows no such environment');
      process.exit(3);
    }
    import(${JSON.stringify(main)});`;
  const entry = [node, '--eval', script.replace(/\s+/g, ' ')];
  return await derive(docker, built, 'picky', `ENTRYPOINT ${JSON.stringify(entry)}`);
}

/**
 * A release that differs: it answers 200 where it should answer `status`, and writes its environment to its log at each
 * start.
 */
export function spoiltRelease(docker: Docker, built: BuiltImage, status: number): Promise<string> {
  const code = `
    console.log(process.env);
    const { ServerResponse } = process.getBuiltinModule('node:http');
    const { writeHead } = ServerResponse.prototype;
    ServerResponse.prototype.writeHead = function (status, ...rest) {
      return writeHead.call(this, status === ${status} ? 200 : status, ...rest);
    };`;
  return changedRelease(docker, built, code);
}

/** A release that runs this code before the server. */
export async function changedRelease(docker: Docker, built: BuiltImage, code: string): Promise<string> {
  const { Config } = await docker.getImage(built.image).inspect();
  const [node = '', main = ''] = [Config.Entrypoint ?? []].flat();
  const entry = [node, '--eval', `${code} import(${JSON.stringify(main)});`.replace(/\s+/g, ' ')];
  return await derive(docker, built, 'changed', `ENTRYPOINT ${JSON.stringify(entry)}`);
}

/** An image that, like the real one, has a health check; here it runs every second. */
export async function checkedRelease(docker: Docker, built: BuiltImage): Promise<string> {
  const { Config } = await docker.getImage(built.image).inspect();
  const [node = ''] = [Config.Entrypoint ?? []].flat();
  const script =
    "fetch('http://127.0.0.1:8080/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))";
  const check = `CMD ${JSON.stringify([node, '--eval', script])}`;
  return await derive(
    docker,
    built,
    'checked',
    `HEALTHCHECK --interval=1s --start-period=90s --retries=1 ${check}`,
  );
}

async function derive(docker: Docker, { image, repository }: BuiltImage, tag: string, changes: string) {
  const container = await docker.createContainer({ Image: image });
  try {
    const { Id } = await container.commit({ repo: repository, tag, changes });
    return Id;
  } finally {
    await container.remove();
  }
}
