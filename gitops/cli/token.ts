import { embeddedOperator } from './client.ts';
import { Home } from './instance/home.ts';
import { mintToken } from './instance/issuer.ts';
import type { CliContext } from './instance/provisioner-client.ts';

/**
 * Gives the development subject `dev-<role>` that role in the client, and prints a JWT of it. Only the embedded
 * instance accepts the JWT.
 */
export async function token(
  context: CliContext,
  { client, role }: { client: string; role: string },
): Promise<void> {
  const instanceHome = new Home(context.home);
  const operator = await embeddedOperator(context);
  const subject = `dev-${role}`;
  await operator.setMember(client, subject, role);
  process.stdout.write(`${await mintToken(await instanceHome.instance(), subject)}\n`);
}
