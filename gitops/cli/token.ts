import { embeddedOperator } from './client.ts';
import { Home } from './instance/home.ts';
import { mintToken } from './instance/issuer.ts';

/**
 * Gives the development subject `dev-<role>` that role in the client, and prints a JWT of it. Only the embedded
 * instance accepts the JWT.
 */
export async function token(home: string, { client, role }: { client: string; role: string }): Promise<void> {
  const instanceHome = new Home(home);
  const operator = await embeddedOperator(instanceHome);
  const subject = `dev-${role}`;
  await operator.setMember(client, subject, role);
  process.stdout.write(`${await mintToken(await instanceHome.instance(), subject)}\n`);
}
