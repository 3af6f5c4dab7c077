import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { projectOf } from './shipped.ts';

/**
 * Lets npm list the package and its dependencies for all operating systems, as a bill of materials (CycloneDX, JSON).
 */
export async function billOfMaterials(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-sbom-'));
  try {
    for (const [name, text] of Object.entries(projectOf('tagyard.tgz')))
      await writeFile(join(folder, name), text);
    const { stdout } = await execa(
      'npm',
      ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'],
      { cwd: folder },
    );
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
